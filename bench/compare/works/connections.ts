/** W9: 1,000 connections that each send one small produce request a second. */

import { Histogram } from '../../../tools/histogram.ts';
import { buildBatch } from '../batch.ts';
import { settle } from '../broker.ts';
import { sleep } from '../children.ts';
import { sync } from '../machine.ts';
import { type Figures, measure, shares } from '../measure.ts';
import { deleteTopic, makeTopic, produceError, produceFrame, withClient } from '../requests.ts';
import { WireClient } from '../wire_client.ts';
import type { RoundContext, SharedWork } from './work.ts';

const CONNECTIONS = 1_000;
const SECONDS = 15;
const GRACE_MS = 3_000;
const VALUE_BYTES = 100;
/** Connections made at a time: below every listen backlog. */
const CONNECT_BATCH = 50;

export const connectionWorks: readonly SharedWork[] = [
  { kind: 'shared', rows: ['W9'], durability: 'os', needs: 'produce', run: runConnections },
];

async function runConnections(context: RoundContext): Promise<Figures[]> {
  const { broker } = context;
  const topic = `W9-${context.roundKey}`;
  await makeTopic(broker.port, topic, { partitions: 1 });
  await settle(context.running);
  await sync();
  const rssBefore = broker.rssMiB();
  const clients: WireClient[] = [];
  try {
    while (clients.length < CONNECTIONS) {
      const batch = Array.from({ length: CONNECT_BATCH }, () => WireClient.connect(broker.port));
      clients.push(...(await Promise.all(batch)));
    }
    await settle(context.running);
    const histogram = new Histogram();
    const cost = await measure(broker, () => sendEachSecond(clients, topic, histogram));
    const values = {
      serverPercent: shares(cost).serverPercent,
      rssGrowthMiB: broker.rssMiB() - rssBefore,
      p50Ms: histogram.percentile(50),
      p99Ms: histogram.percentile(99),
      unanswered: CONNECTIONS * SECONDS - histogram.count,
    };
    return [{ work: 'W9', values, bottleneck: null }];
  } finally {
    for (const client of clients) client.close();
    await withClient(broker.port, (client) => deleteTopic(client, topic));
  }
}

/** Spreads the connections evenly over each second. Latency counts from when a request was due. */
async function sendEachSecond(
  clients: readonly WireClient[],
  topic: string,
  histogram: Histogram,
): Promise<undefined> {
  const frame = produceFrame(topic, 0, buildBatch(1, VALUE_BYTES, Date.now()), 1);
  const total = clients.length * SECONDS;
  const intervalMs = 1_000 / clients.length;
  const started = performance.now();
  let errors = 0;
  let answered = 0;
  for (const client of clients) client.onFailure(() => (errors += 1));
  const end = started + SECONDS * 1_000 + GRACE_MS;
  for (let sent = 0; answered < total && performance.now() < end; await sleep(1)) {
    const due = Math.min(total, Math.floor((performance.now() - started) / intervalMs) + 1);
    for (; sent < due; sent += 1) {
      const dueAt = started + sent * intervalMs;
      const client = clients[sent % clients.length] as WireClient;
      client.send(Buffer.from(frame), (body) => {
        answered += 1;
        if (produceError(body) === 0) histogram.record(performance.now() - dueAt);
        else errors += 1;
      });
    }
  }
  if (errors > 0) throw new Error(`W9: ${errors} requests or connections failed`);
  return undefined;
}
