/** G4: how long a broker that was killed takes until the offsets of a million partitions can be asked for again. */
import { RunningBroker, settle } from '../broker.ts';
import { sleep } from '../children.ts';
import {
  COMES_UP,
  commitError,
  commitFrame,
  fetchOffset,
  findCoordinator,
} from '../group_requests.ts';
import { sync } from '../machine.ts';
import type { Values } from '../measure.ts';
import { makeTopic, withClient } from '../requests.ts';
import { WireClient } from '../wire_client.ts';
import type { LifeContext, LifeWork } from './work.ts';

const GROUPS = 10_000;
const PARTITIONS = 100;
const TOPIC = 'stored';
const OFFSET = 7;
/** Commits under way at a time. */
const WINDOW = 16;
const TIMEOUT_MS = 180_000;
/** Groups that are asked for: as good as certainly some of each partition of `__consumer_offsets`. */
const ASKED = 500;
const AS_SHIPPED = 'fsync';

export const storedOffsetWorks: readonly LifeWork[] = [
  {
    kind: 'life',
    rows: ['G4'],
    rehearse,
    run: async (context) => [{ work: 'G4', values: await run(context), bottleneck: null }],
  } satisfies LifeWork,
];

const groupName = (index: number): string => `stored-${index}`;

async function rehearse(context: LifeContext): Promise<void> {
  const broker = await RunningBroker.place(context.spec, context.launch);
  try {
    broker.start(AS_SHIPPED);
    await broker.waitUntilAnswers();
    await broker.stop();
  } finally {
    await broker.discard();
  }
}

async function run(context: LifeContext): Promise<Values> {
  const broker = await RunningBroker.place(context.spec, context.launch);
  try {
    broker.start(AS_SHIPPED);
    await broker.waitUntilAnswers();
    const storeMs = await store(broker);
    context.log(`${context.spec.name}: ${GROUPS * PARTITIONS} offsets stored`);
    await settle([broker]);
    const rssMiB = broker.rssMiB();
    await broker.stop('SIGKILL');
    await sync();
    const started = performance.now();
    broker.start(AS_SHIPPED);
    const { firstMs, allMs } = await untilLoaded(broker, started);
    return { storeMs, firstMs, allMs, startServerCpuMs: broker.cpuMs(), rssMiB };
  } finally {
    await broker.discard();
  }
}

/** Commits all offsets, each group's in one request. */
async function store(broker: RunningBroker): Promise<number> {
  await makeTopic(broker.port, TOPIC, { partitions: PARTITIONS });
  const client = await WireClient.connect(broker.port);
  const partitions = Array.from({ length: PARTITIONS }, (_, index) => index);
  try {
    await findCoordinator(client, groupName(0));
    const started = performance.now();
    await new Promise<void>((resolve, reject) => {
      client.onFailure(reject);
      let sent = 0;
      let answered = 0;
      const commit = (index: number): void => {
        const committer = { group: groupName(index), generation: -1, memberId: '' };
        client.send(commitFrame(committer, TOPIC, partitions, OFFSET), (body) => {
          const code = commitError(body);
          if (COMES_UP.includes(code)) setTimeout(() => commit(index), 50);
          else if (code !== 0) reject(new Error(`OffsetCommit: error ${code}`));
          else {
            answered += 1;
            if (answered === GROUPS) resolve();
            else next();
          }
        });
      };
      const next = (): void => {
        if (sent === GROUPS) return;
        sent += 1;
        commit(sent - 1);
      };
      for (let count = 0; count < WINDOW; count += 1) next();
    });
    return performance.now() - started;
  } finally {
    client.close();
  }
}

/** From the start of the process to the first offset that is told, and to the last one. */
async function untilLoaded(
  broker: RunningBroker,
  started: number,
): Promise<{ firstMs: number; allMs: number }> {
  let firstMs = 0;
  let asked = 0;
  while (asked < ASKED) {
    broker.assertAlive();
    if (performance.now() - started > TIMEOUT_MS) throw new Error(`not up in ${TIMEOUT_MS} ms`);
    try {
      await withClient(broker.port, async (client) => {
        for (; asked < ASKED; asked += 1) {
          await untilTold(client, groupName(asked), started);
          if (firstMs === 0) firstMs = performance.now() - started;
        }
      });
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('wrong')) throw error;
      await sleep(5);
    }
  }
  return { firstMs, allMs: performance.now() - started };
}

async function untilTold(client: WireClient, group: string, started: number): Promise<void> {
  for (;;) {
    const { code, offset } = await fetchOffset(client, group, TOPIC, PARTITIONS - 1);
    if (code === 0 && offset === OFFSET) return;
    if (code === 0) throw new Error(`wrong offset of ${group}: ${offset}`);
    if (performance.now() - started > TIMEOUT_MS) throw new Error(`${group}: error ${code}`);
    await sleep(5);
  }
}
