/**
 * kill -9, again and again: under load, during start-up and recovery, during a clean stop. Idempotent producers with
 * several batches in flight go on over every restart with the same producer ids and sequence numbers. In the end
 * every acknowledged record is where the acknowledgement said, in order and once, and what a consumer has seen is
 * still there (I1, I3, I4 and I6 of one broker; fault 1). The same for topics that are created and deleted meanwhile.
 *
 *   node test/scenario/kill_loop.test.ts [--rounds 200] [--seed N]
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { BrokerProcess } from '../harness/broker_process.ts';
import { Client } from '../harness/client.ts';
import { assertNoViolations, History, idOf, type Observed } from '../harness/history.ts';
import { Load, laneName, type Target } from '../harness/load.ts';
import { runScenario, type ScenarioRun, scenarioOptions } from '../harness/scenario_options.ts';
import type { Random } from '../harness/split_mix.ts';
import { TailReader } from '../harness/tail_reader.ts';
import { TopicChurn } from '../harness/topic_churn.ts';

const options = scenarioOptions();
const rounds = options.rounds ?? 20;
/** Everything is read and compared after so many rounds, and at the end. */
const roundsPerCheck = 25;

/** Small files, so that rolls, indexes and snapshots are in play all the time. */
const settings = {
  'log.segment.bytes': 1_048_576,
  'log.index.interval.bytes': 512,
  'log.index.size.max.bytes': 4_096,
  'log.flush.offset.checkpoint.interval.ms': 300,
};

const topics: readonly { name: string; partitions: number; configs: Record<string, string> }[] = [
  { name: 'plain', partitions: 2, configs: {} },
  { name: 'stamped', partitions: 1, configs: { 'message.timestamp.type': 'LogAppendTime' } },
  { name: 'short', partitions: 2, configs: { 'segment.ms': '400', 'segment.jitter.ms': '100' } },
];
const targets: readonly Target[] = topics.flatMap(({ name, partitions }) =>
  Array.from({ length: partitions }, (_, partition) => ({ topic: name, partition })),
);

const kinds = ['under load', 'during start-up', 'during a clean stop'] as const;
type Kind = (typeof kinds)[number];

const test = suite('kill loop');

test(`${rounds} rounds of kill -9: nothing acknowledged is lost, doubled or moved`, async () => {
  await runScenario(options, async (run) => {
    const broker = await BrokerProcess.start({ dataDir: run.dataDir, settings });
    try {
      await killLoop(broker, run);
    } finally {
      await broker.dispose();
    }
  });
});

async function killLoop(broker: BrokerProcess, { random }: ScenarioRun): Promise<void> {
  const admin = await Client.connect(broker);
  for (const { name, partitions, configs } of topics)
    await admin.createTopic(name, partitions, configs);
  admin.close();
  const history = new History();
  const loads = startLoads(broker, history, random);
  const reader = new TailReader(() => broker, targets, history);
  const churn = new TopicChurn(() => broker);
  const counts = new Map<Kind, number>();
  try {
    for (let round = 1; round <= rounds; round += 1) {
      const kind = kindOf(round, random);
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
      await sleep(50 + random(600));
      const churned = churn.run();
      await sleep(random(350));
      await killOnce(broker, kind, random);
      await churned;
      for (const load of loads) load.assertHealthy();
      reader.assertHealthy();
      if (round % roundsPerCheck === 0) await checkAll(broker, loads, history);
      await churn.check();
    }
    await checkAll(broker, loads, history);
  } finally {
    await Promise.all(loads.map((load) => load.stop()));
    await reader.stop();
  }
  assert.deepEqual(await broker.stop(), { code: 0, signal: null });
  await broker.restart();
  await compare(broker, history);
  await broker.stop();
  report(history, loads, reader, churn, counts);
}

function startLoads(broker: BrokerProcess, history: History, random: Random): Load[] {
  return ['p0', 'p1', 'p2'].map(
    (name) =>
      new Load({
        name,
        endpoint: () => broker,
        // The last producer keeps to a single partition: with little else in its requests, its pace is another.
        targets: name === 'p2' ? targets.slice(0, 1) : targets,
        history,
        random,
        pauseMsMax: name === 'p2' ? 3 : 15,
        oneLargeIn: 150,
      }),
  );
}

/** The first rounds try each kind once; later ones draw, load twice as often as the others. */
function kindOf(round: number, random: Random): Kind {
  return kinds[round - 1] ?? kinds[Math.max(0, random(4) - 1)] ?? kinds[0];
}

/** Kills the broker in one of the ways, and starts it again. Throws when a start fails that nobody disturbed. */
async function killOnce(broker: BrokerProcess, kind: Kind, random: Random): Promise<void> {
  if (kind === 'during a clean stop') {
    const { pid } = broker;
    const stopped = broker.stop();
    await sleep(random(60));
    if (broker.isRunning) process.kill(pid, 'SIGKILL');
    await stopped;
  } else await broker.kill();
  if (kind === 'during start-up') {
    for (let again = 1 + random(3); again > 0; again -= 1) await killDuringStart(broker, random);
  }
  await broker.restart();
}

async function killDuringStart(broker: BrokerProcess, random: Random): Promise<void> {
  const started = broker.restart().then(
    () => null,
    (error: unknown) => error as Error,
  );
  await sleep(20 + random(500));
  if (broker.isRunning) await broker.kill();
  const error = await started;
  if (error !== null)
    assert.match(error.message, /SIGKILL/, 'a start that was killed failed before');
}

async function checkAll(
  broker: BrokerProcess,
  loads: readonly Load[],
  history: History,
): Promise<void> {
  await Promise.all(loads.map((load) => load.drain()));
  await compare(broker, history);
  for (const load of loads) load.resume();
}

/** Reads every partition from its start and holds it against the history. */
async function compare(broker: BrokerProcess, history: History): Promise<void> {
  const client = await Client.connect(broker);
  const violations = [];
  for (const { topic, partition } of targets) {
    const observed: Observed[] = [];
    await client.readEach(topic, partition, ({ offset, value }) =>
      observed.push({ offset, id: idOf(value) }),
    );
    violations.push(...history.check(laneName({ topic, partition }), observed));
  }
  client.close();
  assertNoViolations(violations);
}

/** A run that did little proves little: says what happened, and fails when too little did. */
function report(
  history: History,
  loads: readonly Load[],
  reader: TailReader,
  churn: TopicChurn,
  counts: ReadonlyMap<Kind, number>,
): void {
  const resent = loads.reduce((sum, load) => sum + load.resent, 0);
  const kills = [...counts].map(([kind, count]) => `${count} ${kind}`).join(', ');
  console.log(
    `${rounds} rounds (${kills}): ${history.count('acked')} records acknowledged, ${reader.records} seen at the tail, ${resent} batches sent again, ${churn.counts}`,
  );
  assert.equal(history.count('unknown'), 0);
  assert(history.count('acked') > 50 * rounds, 'too few records went through');
  assert(resent >= rounds / 4, 'too few batches were in flight when the broker was killed');
}

test.run();
