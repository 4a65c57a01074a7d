/**
 * Power cuts: a broker under load writes down everything that it does to its disk; then the journal is cut at random
 * points, a directory is made of what each cut could have left (everything that flushes had covered, and of the rest
 * a random choice, torn writes included), and a broker is started on it. What was acknowledged before the cut must be
 * there, in order, once, where the acknowledgement said, and so must what a consumer had seen, the topics, and the
 * producer ids that were handed out (I1, I3, I4, I6; faults 2, 4, 10).
 *
 *   node test/scenario/power_cut.test.ts [--rounds CUTS] [--seed N]
 */
import assert from 'node:assert/strict';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { NodeDisk } from '../../engine/node_ports.ts';
import type { Settings } from '../harness/broker_process.ts';
import { Client, type ProducerIdentity } from '../harness/client.ts';
import type { Endpoint } from '../harness/connection.ts';
import { assertNoViolations, History, idOf, type Observed } from '../harness/history.ts';
import { Load, laneName, type Target } from '../harness/load.ts';
import { startLocalBroker } from '../harness/local_broker.ts';
import { runScenario, type ScenarioRun, scenarioOptions } from '../harness/scenario_options.ts';
import { leaveShardJournal } from '../harness/shard_journal.ts';
import type { Random } from '../harness/split_mix.ts';
import { TailReader } from '../harness/tail_reader.ts';
import { journalPosition, newJournalCounter } from '../sim/journal.ts';
import { JournalPlayer } from '../sim/journal_player.ts';
import { RecordingDisk } from '../sim/recording_disk.ts';

const options = scenarioOptions();
/** Without a number of cuts: as many as fit into this time, but not fewer than `cutsMin`. */
const cutsForMs = 60_000;
const cutsMin = 25;
/** The journal is played from its start for each group of cuts. */
const cutsPerPlay = 25;
const loadMs = 4_000;

const settings: Settings = {
  'log.segment.bytes': 1_048_576,
  'log.index.interval.bytes': 512,
  'log.index.size.max.bytes': 4_096,
  'log.flush.offset.checkpoint.interval.ms': 200,
};
const topics: readonly { name: string; partitions: number; configs: Record<string, string> }[] = [
  { name: 'plain', partitions: 2, configs: {} },
  { name: 'stamped', partitions: 1, configs: { 'message.timestamp.type': 'LogAppendTime' } },
  { name: 'short', partitions: 1, configs: { 'segment.ms': '300', 'segment.jitter.ms': '100' } },
];
const targets: readonly Target[] = topics.flatMap(({ name, partitions }) =>
  Array.from({ length: partitions }, (_, partition) => ({ topic: name, partition })),
);

/** What the broker had promised, each promise with the journal's position when it was heard. */
interface Promises {
  readonly history: History;
  readonly topics: { readonly name: string; readonly id: string; readonly at: number }[];
  readonly producers: { readonly identity: ProducerIdentity; readonly at: number }[];
}

interface Recording extends Promises {
  readonly root: string;
  readonly journals: readonly string[];
}

const test = suite('power cut');

test('whatever a power cut leaves, nothing acknowledged is lost, doubled or moved', async () => {
  await runScenario(options, async (run) => {
    const recording = await record(run, settings);
    const startedMs = performance.now();
    let cuts = 0;
    const goesOn = (): boolean =>
      options.rounds === null
        ? cuts < cutsMin || performance.now() - startedMs < cutsForMs
        : cuts < options.rounds;
    while (goesOn()) {
      const player = new JournalPlayer(recording.journals, recording.root);
      for (const cut of cutPoints(player.end, run.random)) {
        if (!goesOn()) break;
        await checkCut(player, cut, recording, run);
        cuts += 1;
      }
    }
    const { history } = recording;
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
    console.log(`${cuts} cuts in ${seconds} s, ${history.count('acked')} records acknowledged`);
  });
});

test('canary: without flushes this test finds records that were acknowledged and lost', async () => {
  await runScenario(options, async (run) => {
    const recording = await record(run, { ...settings, 'log.durability': 'os' });
    const player = new JournalPlayer(recording.journals, recording.root);
    for (const cut of cutPoints(player.end, run.random)) {
      try {
        await checkCut(player, cut, recording, run);
      } catch (error) {
        assert(error instanceof Error);
        if (/lost: /.test(String(error.cause))) return;
        throw error;
      }
    }
    assert.fail(`${cutsPerPlay} cuts lost nothing although nothing was flushed`);
  });
});

function cutPoints(end: number, random: Random): number[] {
  return Array.from({ length: cutsPerPlay }, () => 1 + random(end)).sort((a, b) => a - b);
}

/** Runs a broker under load on a recording disk. */
async function record({ dataDir, random }: ScenarioRun, settings: Settings): Promise<Recording> {
  const root = join(dataDir, 'recorded');
  const mainJournal = join(dataDir, 'journal-main');
  const counter = newJournalCounter();
  leaveShardJournal({ path: join(dataDir, 'journal-shard'), counter });
  const broker = await startLocalBroker(root, settings, {
    disk: new RecordingDisk(new NodeDisk(), 'main', mainJournal, counter),
    shardEntry: new URL('./recording_shard.ts', import.meta.url),
  });
  const now = (): number => journalPosition(counter);
  const promises: Promises = { history: new History(), topics: [], producers: [] };
  const admin = await Client.connect(broker.address);
  const create = async (name: string, partitions: number, configs = {}): Promise<void> => {
    const id = await admin.createTopic(name, partitions, configs);
    promises.topics.push({ name, id, at: now() });
  };
  for (const { name, partitions, configs } of topics) await create(name, partitions, configs);
  const { history } = promises;
  const loads = ['p0', 'p1'].map(
    (name) =>
      new Load({
        name,
        endpoint: () => broker.address,
        targets,
        history,
        random,
        pauseMsMax: 20,
        oneLargeIn: 300,
        now,
      }),
  );
  const reader = new TailReader(() => broker.address, targets, history, now);
  const endMs = performance.now() + loadMs;
  for (let index = 0; performance.now() < endMs; index += 1) {
    await sleep(loadMs / 12);
    await create(`later-${index}`, 1 + random(3));
    promises.producers.push({ identity: await admin.initProducerId(), at: now() });
    for (const load of loads) load.assertHealthy();
    reader.assertHealthy();
  }
  await Promise.all(loads.map((load) => load.drain()));
  await reader.stop();
  await Promise.all(loads.map((load) => load.stop()));
  admin.close();
  await broker.stop();
  assert(reader.records > 0, 'the consumer saw nothing');
  const names = readdirSync(dataDir).filter((name) => name.startsWith('journal-'));
  return { ...promises, root, journals: names.map((name) => join(dataDir, name)) };
}

/** Makes a directory of what one cut could have left, starts a broker on it and looks for what it had promised. */
async function checkCut(
  player: JournalPlayer,
  cut: number,
  recording: Recording,
  { dataDir, random }: ScenarioRun,
): Promise<void> {
  const target = join(dataDir, 'cut');
  const seed = random(2 ** 31);
  try {
    player.advanceTo(cut);
    player.materialise(seed, target);
    const broker = await startLocalBroker(target, settings);
    try {
      await checkPromises(broker.address, recording, cut);
    } finally {
      await broker.stop();
    }
  } catch (error) {
    throw new Error(`cut at ${cut} of ${player.end}, materialised with seed ${seed}`, {
      cause: error,
    });
  }
  rmSync(target, { recursive: true });
}

async function checkPromises(
  endpoint: Endpoint,
  { history, topics: promised, producers }: Promises,
  cut: number,
): Promise<void> {
  const client = await Client.connect(endpoint);
  const metadata = await client.metadata();
  const ids = new Map(metadata.topics.map(({ name, topicId }) => [name, topicId]));
  for (const { name, id, at } of promised)
    if (at <= cut || ids.has(name)) assert.equal(ids.get(name), id, `the id of ${name}`);
  const violations = [];
  for (const { topic, partition } of targets) {
    const observed: Observed[] = [];
    if (ids.has(topic))
      await client.readEach(topic, partition, ({ offset, value }) =>
        observed.push({ offset, id: idOf(value) }),
      );
    violations.push(...history.check(laneName({ topic, partition }), observed, cut));
  }
  assertNoViolations(violations);
  const fresh = await client.initProducerId();
  for (const { identity, at } of producers)
    if (at <= cut)
      assert.notEqual(fresh.producerId, identity.producerId, 'a producer id was handed out twice');
  // A broker that came back must be of use.
  if (ids.has('plain'))
    await client.produceOne('plain', 0, [{ value: Buffer.from('after the cut') }]);
  client.close();
}

test.run();
