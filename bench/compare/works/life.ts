/** W8: start-up, idle cost, many partitions, and restarts. One broker at a time, nobody else on the CPU. */
import { RunningBroker, settle } from '../broker.ts';
import { sleep } from '../children.ts';
import { produceToAll, untilFirstProduce } from '../first_produce.ts';
import { sync } from '../machine.ts';
import type { Values } from '../measure.ts';
import { makeTopic } from '../requests.ts';
import type { LifeContext, LifeWork } from './work.ts';

const TIMEOUT_MS = 180_000;
const IDLE_MS = 10_000;
const PARTITIONS = 1_000;
const MORE_PARTITIONS = 3_000;
const TOPIC = 'first';
/** Millrace's default; the others have one way only. */
const AS_SHIPPED = 'fsync';

export const lifeWorks: readonly LifeWork[] = [
  {
    kind: 'life',
    rows: ['W8'],
    rehearse,
    run: async (context) => [{ work: 'W8', values: await runLife(context), bottleneck: null }],
  } satisfies LifeWork,
];

/** A first start writes what later ones find on the disk: compiled code, the page cache of the binary. */
async function rehearse(context: LifeContext): Promise<void> {
  const broker = await RunningBroker.place(context.spec, context.launch);
  try {
    broker.start(AS_SHIPPED);
    await untilFirstProduce(broker, TOPIC, true, TIMEOUT_MS);
    await broker.stop();
  } finally {
    await broker.discard();
  }
}

async function runLife(context: LifeContext): Promise<Values> {
  const { spec, log } = context;
  const broker = await RunningBroker.place(spec, context.launch);
  try {
    const startMs = await timedStart(broker, true);
    const first = { startMs, ...(await idle(broker)) };
    log(`${spec.name}: started, idle measured`);
    if (!spec.can.restart) return first;
    const create1000Ms = await createAndFill(broker, 'thousand', PARTITIONS);
    const rss1000MiB = broker.rssMiB();
    const cleanStopMs = await broker.stop('SIGTERM');
    const cleanStart1000Ms = await timedStart(broker, false);
    log(`${spec.name}: 1,000 partitions created, cleanly restarted`);
    await produceToAll(broker.port, 'thousand', PARTITIONS, TIMEOUT_MS);
    await broker.stop('SIGKILL');
    const killStart1000Ms = await timedStart(broker, false);
    await createAndFill(broker, 'more', MORE_PARTITIONS);
    await produceToAll(broker.port, 'thousand', PARTITIONS, TIMEOUT_MS);
    await broker.stop('SIGKILL');
    const killStart4000Ms = await timedStart(broker, false);
    log(`${spec.name}: restarted after kill -9 with 1,000 and 4,000 partitions`);
    return {
      ...first,
      create1000Ms,
      rss1000MiB,
      cleanStopMs,
      cleanStart1000Ms,
      killStart1000Ms,
      killStart4000Ms,
    };
  } finally {
    await broker.discard();
  }
}

/** From the start of the process to the first record acknowledged. */
async function timedStart(broker: RunningBroker, create: boolean): Promise<number> {
  await sync();
  const started = performance.now();
  broker.start(AS_SHIPPED);
  return (await untilFirstProduce(broker, TOPIC, create, TIMEOUT_MS)) - started;
}

async function idle(broker: RunningBroker): Promise<Values> {
  await settle([broker], 15_000);
  const before = broker.cpuMs();
  await sleep(IDLE_MS);
  return {
    idleCpuPercent: ((broker.cpuMs() - before) / IDLE_MS) * 100,
    idleRssMiB: broker.rssMiB(),
  };
}

/** From the request for a topic of that many partitions until every one of them has taken a record. */
async function createAndFill(
  broker: RunningBroker,
  topic: string,
  partitions: number,
): Promise<number> {
  await settle([broker], 15_000);
  const started = performance.now();
  await makeTopic(broker.port, topic, { partitions }, TIMEOUT_MS);
  await produceToAll(broker.port, topic, partitions, TIMEOUT_MS);
  return performance.now() - started;
}
