/** idle connections: what 5,000 connections that do nothing keep of a broker's memory. */
import { RunningBroker, settle } from '../broker.ts';
import { sleep } from '../children.ts';
import { untilFirstProduce } from '../first_produce.ts';
import type { Figures } from '../measure.ts';
import { ApiKey, request } from '../wire.ts';
import { WireClient } from '../wire_client.ts';
import type { LifeContext, LifeWork } from './work.ts';

const ROW = 'idle connections';
const CONNECTIONS = 5_000;
/** Below every listen backlog. */
const CONNECT_BATCH = 50;
const TIMEOUT_MS = 60_000;
const IDLE_MS = 10_000;
const KIB_PER_MIB = 1_024;

export const idleConnectionWorks: readonly LifeWork[] = [
  { kind: 'life', rows: [ROW], rehearse: async () => {}, run: runIdle },
];

/** A fresh broker each time: one that had as many before has the memory for them already. */
async function runIdle({ spec, launch }: LifeContext): Promise<Figures[]> {
  const broker = await RunningBroker.place(spec, launch);
  const clients: WireClient[] = [];
  try {
    broker.start('fsync');
    await untilFirstProduce(broker, 'first', true, TIMEOUT_MS);
    await sleep(IDLE_MS / 2);
    await settle([broker]);
    const before = broker.rssMiB();
    const started = performance.now();
    while (clients.length < CONNECTIONS) clients.push(...(await connectSome(broker.port)));
    const connectSeconds = (performance.now() - started) / 1_000;
    await settle([broker]);
    const after = broker.rssMiB();
    const cpuBefore = broker.cpuMs();
    await sleep(IDLE_MS);
    const values = {
      idleConnections: clients.length,
      connectedPerSecond: clients.length / connectSeconds,
      rssBeforeMiB: before,
      rssKiBPerConnection: ((after - before) * KIB_PER_MIB) / clients.length,
      rssLaterKiBPerConnection: ((broker.rssMiB() - before) * KIB_PER_MIB) / clients.length,
      idleCpuPercent: ((broker.cpuMs() - cpuBefore) / IDLE_MS) * 100,
    };
    return [{ work: ROW, values, bottleneck: null }];
  } finally {
    for (const client of clients) client.close();
    await broker.discard();
  }
}

/** Each has been answered once, as the first request of every client is. */
function connectSome(port: number): Promise<WireClient[]> {
  const connecting = Array.from({ length: CONNECT_BATCH }, async () => {
    const client = await WireClient.connect(port);
    await client.call(request(ApiKey.apiVersions, 0).frame());
    return client;
  });
  return Promise.all(connecting);
}
