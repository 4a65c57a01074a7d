/**
 * Works that look at the broker from inside (`inside.ts`), each on a broker of its own so that no other figure pays for
 * it: how late the shards' event loops are under W5, and how many hops a batch takes with several shards.
 */
import { RunningBroker, settle } from '../broker.ts';
import { makeDirectory, removeDirectory } from '../children.ts';
import { insideVariables, markValues, takeMarks } from '../inside_marks.ts';
import { produce } from '../kcat.ts';
import { sync, warmPageCache } from '../machine.ts';
import { type Figures, measure, shares, type Values } from '../measure.ts';
import { preparePayload } from '../payload.ts';
import { type ProbeResult, probeDuring } from '../probe.ts';
import { makeTopic } from '../requests.ts';
import { produceSpread } from './shards.ts';
import type { LifeContext, LifeWork } from './work.ts';

const MESSAGES = 524_288;
const MESSAGE_BYTES = 1_024;
const BATCH_BYTES = 1_000_000;
const WARM_MIB = 700;

export const insideWorks: readonly LifeWork[] = [
  lifeWork('delay under W5', runDelay),
  lifeWork('S hops 1 MB', (context, row) => runHops(context, row, BATCH_BYTES)),
  lifeWork('S hops 8 KB', (context, row) => runHops(context, row, 8_192)),
];

function lifeWork(
  row: string,
  run: (context: LifeContext, row: string) => Promise<Figures[]>,
): LifeWork {
  return {
    kind: 'life',
    rows: [row],
    rehearse: async () => {},
    run: (context) => run(context, row),
  };
}

type Load = (broker: RunningBroker, topic: string, scratch: string) => Promise<unknown>;

/** Starts a broker, gives it the load once to warm up, and runs `measured` on it. */
async function onWarmBroker(
  { spec, launch, log }: LifeContext,
  durability: 'os' | 'fsync',
  load: Load,
  partitions: number,
  measured: (broker: RunningBroker, run: () => Promise<unknown>) => Promise<Values>,
): Promise<Values> {
  const broker = await RunningBroker.place(spec, launch);
  const scratch = makeDirectory(launch.base, 'scratch');
  const configs = durability === 'fsync' ? spec.flushedTopicConfigs : {};
  try {
    broker.start(durability, spec.shards === null ? {} : insideVariables(broker));
    await broker.waitUntilAnswers();
    const ready = async (topic: string): Promise<void> => {
      await makeTopic(broker.port, topic, { partitions, configs });
      await settle([broker]);
      await sync();
      warmPageCache(scratch, WARM_MIB);
    };
    await ready('warm-up');
    await load(broker, 'warm-up', scratch);
    log(`${spec.name}: warmed up`);
    await ready('measured');
    return await measured(broker, () => load(broker, 'measured', scratch));
  } finally {
    await broker.discard();
    removeDirectory(scratch);
  }
}

/** W5 with a probe beside it. */
async function runDelay(context: LifeContext, row: string): Promise<Figures[]> {
  const { spec } = context;
  if (!spec.can.flush) return [];
  const load: Load = (broker, topic, scratch) => {
    const payload = preparePayload(scratch, MESSAGES, MESSAGE_BYTES);
    const options = { acks: -1, batchBytes: BATCH_BYTES, partitions: 1 } as const;
    return produce(broker.port, topic, payload, options);
  };
  const values = await onWarmBroker(context, 'fsync', load, 1, async (broker, run) => {
    if (spec.shards !== null) await takeMarks(broker);
    const results: ProbeResult[] = [];
    const cost = await measure(broker, async () => {
      results.push(await probeDuring(broker.port, run));
      return undefined;
    });
    const { histogram, ownDelayP999Ms } = results[0] as ProbeResult;
    const marks = spec.shards === null ? null : markValues(await takeMarks(broker));
    return {
      probeP50Ms: histogram.percentile(50),
      probeP99Ms: histogram.percentile(99),
      probeP999Ms: histogram.percentile(99.9),
      probeMaxMs: histogram.maxMs,
      proberP999Ms: ownDelayP999Ms,
      ...(marks === null ? {} : loopValues(marks)),
      stolenPercent: shares(cost).stolenPercent,
    };
  });
  return [{ work: row, values, bottleneck: null }];
}

function loopValues(marks: Values): Values {
  return Object.fromEntries(Object.entries(marks).filter(([name]) => name.startsWith('loop')));
}

async function runHops(context: LifeContext, row: string, batchBytes: number): Promise<Figures[]> {
  if (context.spec.shards === null) return [];
  const load: Load = (broker, topic, scratch) =>
    produceSpread(broker.port, topic, batchBytes, scratch);
  const values = await onWarmBroker(context, 'os', load, 6, async (broker, run) => {
    await takeMarks(broker);
    await run();
    return markValues(await takeMarks(broker));
  });
  return [{ work: row, values, bottleneck: null }];
}
