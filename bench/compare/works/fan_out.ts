/** W10: one producer at a steady rate, three consumers that read the tail, all on one partition. */

import { Histogram } from '../../../tools/histogram.ts';
import { BATCH_HEADER_BYTES, BatchField, buildBatch } from '../batch.ts';
import { settle } from '../broker.ts';
import { sleep } from '../children.ts';
import { sync, warmPageCache } from '../machine.ts';
import { type Figures, measure, shares } from '../measure.ts';
import {
  deleteTopic,
  fetchedRecords,
  fetchFrame,
  makeTopic,
  produceError,
  produceFrame,
  withClient,
} from '../requests.ts';
import { WireClient } from '../wire_client.ts';
import type { RoundContext, SharedWork } from './work.ts';

const CONSUMERS = 3;
const VALUE_BYTES = 1_024;
/** 64 records every 1.28 ms are 50,000 records, or 48.8 MiB of payload, a second. */
const RECORDS_PER_BATCH = 64;
const BATCHES_PER_SECOND = 781.25;
const SECONDS = 8;
const GRACE_MS = 5_000;
const FETCH_WAIT_MS = 500;
const FETCH_BYTES_MAX = 1_048_576;

export const fanOutWorks: readonly SharedWork[] = [
  { kind: 'shared', rows: ['W10'], durability: 'os', needs: 'fetch', run: runFanOut },
];

/** What producer and consumers of one round share. */
interface Shared {
  port: number;
  topic: string;
  /** When each batch was due, by its number; the milliseconds of `performance.now`. */
  dueAt: number[];
  lag: Histogram;
  consumed: number[];
  failure: Error | null;
}

async function runFanOut(context: RoundContext): Promise<Figures[]> {
  const { broker } = context;
  const topic = `W10-${context.roundKey}`;
  const batches = Math.floor(BATCHES_PER_SECOND * SECONDS);
  const mibIn = (batches * RECORDS_PER_BATCH * VALUE_BYTES) / 1_024 ** 2;
  await makeTopic(broker.port, topic, {
    partitions: 1,
    configs: { 'file.delete.delay.ms': '1000' },
  });
  await settle(context.running);
  await sync();
  warmPageCache(context.scratch, Math.ceil(mibIn * 1.3));
  const shared: Shared = {
    port: broker.port,
    topic,
    dueAt: [],
    lag: new Histogram(),
    consumed: new Array<number>(CONSUMERS).fill(0),
    failure: null,
  };
  const cost = await measure(broker, () => runAll(shared, batches));
  await withClient(broker.port, (client) => deleteTopic(client, topic));
  if (shared.failure !== null) throw shared.failure;
  const mibOut = (shared.lag.count * RECORDS_PER_BATCH * VALUE_BYTES) / 1_024 ** 2;
  const values = {
    serverCpuMsPerMiB: cost.serverCpuMs / (mibIn + mibOut),
    mibInPerSecond: mibIn / (cost.wallMs / 1_000),
    p50Ms: shared.lag.percentile(50),
    p99Ms: shared.lag.percentile(99),
    p999Ms: shared.lag.percentile(99.9),
    unanswered: batches * CONSUMERS - shared.lag.count,
    ...shares(cost),
  };
  return [{ work: 'W10', values, bottleneck: null }];
}

async function runAll(shared: Shared, batches: number): Promise<undefined> {
  const producer = await WireClient.connect(shared.port);
  const consumers = await Promise.all(shared.consumed.map(() => WireClient.connect(shared.port)));
  const fail = (error: Error): void => {
    shared.failure ??= error;
  };
  for (const client of [producer, ...consumers]) client.onFailure(fail);
  consumers.forEach((client, index) => {
    consume(client, index, shared, 0);
  });
  const batch = buildBatch(RECORDS_PER_BATCH, VALUE_BYTES, Date.now());
  const frame = produceFrame(shared.topic, 0, batch, 1);
  const started = performance.now();
  const end = started + SECONDS * 1_000 + GRACE_MS;
  const done = (): boolean => shared.consumed.every((count) => count >= batches);
  while (!done() && shared.failure === null && performance.now() < end) {
    const elapsed = performance.now() - started;
    const due = Math.min(batches, Math.floor((elapsed * BATCHES_PER_SECOND) / 1_000) + 1);
    while (shared.dueAt.length < due) {
      shared.dueAt.push(started + (shared.dueAt.length / BATCHES_PER_SECOND) * 1_000);
      producer.send(Buffer.from(frame), (body) => {
        const code = produceError(body);
        if (code !== 0) fail(new Error(`produce failed with error ${code}`));
      });
    }
    await sleep(1);
  }
  for (const client of [producer, ...consumers]) client.close();
  return undefined;
}

/** Fetches from `offset` on for as long as the connection lives, and notes the lag of each batch. */
function consume(client: WireClient, index: number, shared: Shared, offset: number): void {
  client.send(fetchFrame(shared.topic, offset, FETCH_WAIT_MS, FETCH_BYTES_MAX), (body) => {
    const now = performance.now();
    const { code, records } = fetchedRecords(body);
    if (code !== 0) {
      shared.failure ??= new Error(`fetch failed with error ${code}`);
      return;
    }
    let next = offset;
    let at = 0;
    while (records.length - at >= BATCH_HEADER_BYTES) {
      const bytes = records.readInt32BE(at + BatchField.length) + BatchField.leaderEpoch;
      // The last batch may be cut off by the fetch's limit; the next fetch has it whole.
      if (records.length - at < bytes) break;
      const number = shared.consumed[index] ?? 0;
      shared.lag.record(now - (shared.dueAt[number] ?? now));
      shared.consumed[index] = number + 1;
      next += records.readInt32BE(at + BatchField.lastOffsetDelta) + 1;
      at += bytes;
    }
    consume(client, index, shared, next);
  });
}
