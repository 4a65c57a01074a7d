/**
 * Three brokers, idempotent producers with acks=all, consumers at the tail, a group that commits, and round after round
 * of what can happen to brokers and to the network between them. In the end every acknowledged record is where the
 * acknowledgement said, in order and once, what a consumer has seen is still there, committed offsets never went back,
 * and the copies of all partitions are equal byte for byte (I1 to I4, I6, I9; faults 1, 11, 13, 14, 16, 22, 27).
 *
 *   node test/scenario/cluster_rounds.test.ts [--rounds 100] [--only KIND] [--seed N]
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { Cluster } from '../harness/cluster.ts';
import { ClusterLoad } from '../harness/cluster_load.ts';
import { assertHistory } from '../harness/cluster_records.ts';
import { ClusterTail } from '../harness/cluster_tail.ts';
import { ClusterView } from '../harness/cluster_view.ts';
import { CommitLedger, CommittingMember } from '../harness/committing_member.ts';
import { GroupSession, type GroupSessionOptions } from '../harness/group_session.ts';
import { History } from '../harness/history.ts';
import { laneName, type Target } from '../harness/load.ts';
import { assertEqualReplicas } from '../harness/replica_logs.ts';
import { runScenario, type ScenarioRun, scenarioOptions } from '../harness/scenario_options.ts';
import type { Random } from '../harness/split_mix.ts';

const options = scenarioOptions();
const rounds = options.rounds ?? 3;
const isLong = options.rounds !== null;
/** Generous: the machine may be busy with something else. */
const backMs = 60_000;
const silenceMs = isLong ? 20_000 : 3_000;

const settings = {
  'log.segment.bytes': 1_048_576,
  'log.flush.offset.checkpoint.interval.ms': 300,
  'min.insync.replicas': 2,
  'offsets.topic.replication.factor': 3,
  'offsets.topic.num.partitions': 3,
  'group.initial.rebalance.delay.ms': 50,
  'broker.heartbeat.interval.ms': 500,
  'broker.session.timeout.ms': 4_000,
  'replica.lag.time.max.ms': 4_000,
};

const topics: readonly { name: string; partitions: number; configs: Record<string, string> }[] = [
  { name: 'plain', partitions: 4, configs: {} },
  { name: 'short', partitions: 2, configs: { 'segment.ms': '1000', 'segment.jitter.ms': '100' } },
];
const targets: readonly Target[] = topics.flatMap(({ name, partitions }) =>
  Array.from({ length: partitions }, (_, partition) => ({ topic: name, partition })),
);

class World {
  readonly cluster: Cluster;
  readonly random: Random;
  readonly history = new History();
  readonly view: ClusterView;
  readonly loads: readonly ClusterLoad[];
  readonly tail: ClusterTail;
  readonly ledger = new CommitLedger();
  readonly members: readonly CommittingMember[];
  readonly group: GroupSessionOptions = {
    group: 'counting',
    topic: 'plain',
    partitions: 4,
    instance: null,
    sessionTimeoutMs: 6_000,
    rebalanceTimeoutMs: 6_000,
  };

  constructor(cluster: Cluster, random: Random) {
    this.cluster = cluster;
    this.random = random;
    const { history } = this;
    this.view = new ClusterView(
      cluster,
      topics.map(({ name }) => name),
    );
    this.loads = ['p0', 'p1'].map(
      (name) =>
        new ClusterLoad(cluster, {
          name,
          // The second producer keeps to one partition: with little else in its requests, its pace is another.
          targets: name === 'p1' ? targets.slice(0, 1) : targets,
          history,
          random,
          pauseMsMax: name === 'p1' ? 5 : 20,
          oneLargeIn: 150,
        }),
    );
    this.tail = new ClusterTail(cluster, targets, history);
    this.members = [0, 1].map(
      () => new CommittingMember(() => cluster.broker(this.someBroker()), this.group, this.ledger),
    );
  }

  /** One that is up; any one where none is. */
  someBroker(): number {
    const up = this.cluster.ids.filter((id) => this.cluster.isUp(id));
    return up[this.random(up.length)] ?? 1;
  }

  async someLeader(): Promise<number> {
    const target = targets[this.random(targets.length)]!;
    const deadline = performance.now() + backMs;
    for (;;) {
      await this.view.refresh();
      const id = this.view.partition(target)?.leaderId ?? -1;
      if (id !== -1 && this.cluster.isUp(id)) return id;
      assert(performance.now() < deadline, `${laneName(target)} has no leader: ${id}`);
      await sleep(20);
    }
  }

  assertHealthy(): void {
    for (const part of [...this.loads, this.tail, ...this.members]) part.assertHealthy();
  }

  /** Resolves when records have been taken for every partition. */
  async served(): Promise<void> {
    await Promise.all(this.loads.map((load) => load.progressed(backMs)));
  }

  /** Resolves when the group has committed once more. */
  async committed(): Promise<void> {
    const before = this.ledger.commits;
    const deadline = performance.now() + backMs;
    while (this.ledger.commits === before) {
      this.assertHealthy();
      assert(performance.now() < deadline, `no commit of the group in ${backMs / 1_000} s`);
      await sleep(20);
    }
  }

  async whole(): Promise<void> {
    await this.view.whole(backMs);
  }

  async stop(): Promise<void> {
    await Promise.all(this.loads.map((load) => load.stop()));
    await this.tail.stop();
    await Promise.all(this.members.map((member) => member.stop('crash')));
    this.view.close();
  }
}

async function killAndRestart(world: World, id: number): Promise<void> {
  await world.cluster.kill(id);
  if (world.random(3) > 0) await world.served();
  else await sleep(world.random(300));
  await world.cluster.restart(id);
}

const kinds: Readonly<Record<string, (world: World) => Promise<void>>> = {
  async 'kill a leader'(world) {
    await killAndRestart(world, await world.someLeader());
  },
  async 'kill the controller'(world) {
    await killAndRestart(world, await world.cluster.controller());
  },
  async 'kill all'({ cluster }) {
    await Promise.all(cluster.ids.map((id) => cluster.kill(id)));
    await Promise.all(cluster.ids.map((id) => cluster.restart(id)));
  },
  async silence(world) {
    const { cluster, random } = world;
    const id = random(2) === 0 ? await world.someLeader() : await cluster.controller();
    cluster.pause(id);
    try {
      await Promise.all([world.served(), sleep(silenceMs)]);
    } finally {
      cluster.resume(id);
    }
  },
  async 'one-way cut'(world) {
    const { cluster, random } = world;
    const from = 1 + random(3);
    const to = 1 + ((from + random(2)) % 3);
    cluster.links?.cut(from, to);
    try {
      await Promise.all([world.served(), sleep(2_000 + random(isLong ? 8_000 : 1_000))]);
    } finally {
      cluster.links?.heal(random(2) === 0);
    }
  },
  async 'rolling restart'(world) {
    const first = world.random(3);
    for (const k of [0, 1, 2]) {
      const id = 1 + ((first + k) % 3);
      await world.whole();
      assert.deepEqual(await world.cluster.stop(id), { code: 0, signal: null });
      await world.cluster.restart(id);
    }
  },
};
const chosen = Object.keys(kinds).filter((kind) => kind === (options.only ?? kind));
assert(chosen.length > 0, `--only takes one of ${Object.keys(kinds).join(', ')}`);

const test = suite('cluster');

test(`${rounds} rounds each of ${chosen.join(', ')}: nothing acknowledged is lost, doubled or moved`, async () => {
  await runScenario(options, async (run) => {
    const { dataDir } = run;
    const cluster = await Cluster.start({ settings, dataDir, links: true });
    try {
      await allRounds(cluster, run);
    } catch (error) {
      for (const { output } of cluster.brokers) console.error(output.slice(-6_000));
      throw error;
    } finally {
      await cluster.dispose();
    }
  });
});

async function allRounds(cluster: Cluster, { random, seed }: ScenarioRun): Promise<void> {
  const admin = await cluster.client(1);
  for (const { name, partitions, configs } of topics)
    await admin.createTopic(name, partitions, configs, 3);
  admin.close();
  const world = new World(cluster, random);
  const begun = performance.now();
  try {
    await Promise.all([world.served(), world.committed()]);
    for (let round = 1; round <= rounds; round += 1)
      for (const kind of chosen) {
        console.log(`round ${round}: ${kind}`);
        if (random(3) > 0) await world.whole();
        await sleep(random(600));
        await kinds[kind]!(world);
        await Promise.all([world.served(), world.committed()]);
        world.assertHealthy();
      }
    await Promise.all(world.loads.map((load) => load.drain()));
    await world.whole();
    const bytes = await assertEqualReplicas(cluster.brokers, targets, backMs);
    await compare(world);
    world.assertHealthy();
    report(world, seed, bytes, performance.now() - begun);
  } finally {
    await world.stop();
  }
}

/** Reads every partition from its start and holds it against the history; and the group's offsets against its ledger. */
async function compare({ cluster, view, history, ledger, group }: World): Promise<void> {
  await assertHistory(cluster, view, targets, history);
  const session = await GroupSession.connect(cluster.broker(1), group);
  const ackedBefore = new Map(ledger.acked);
  ledger.check(group.group, await session.committed(), ackedBefore);
  session.close();
}

/** A run that did little proves little: says what happened, and fails when too little did. */
function report(world: World, seed: number, bytes: number, ms: number): void {
  const { history, loads, tail, ledger } = world;
  const sum = (of: (load: ClusterLoad) => number): number =>
    loads.reduce((total, load) => total + of(load), 0);
  const resent = sum((load) => load.resent);
  const acked = history.count('acked');
  const refusals = loads.map((load) => JSON.stringify(Object.fromEntries(load.refusals)));
  console.log(
    `seed ${seed}: ${rounds} rounds each of ${chosen.join(', ')} in ${Math.round(ms / 1000)} s: ${acked} records acknowledged, ${tail.records} seen at the tail, ${resent} batches sent again, ${sum((load) => load.late)} acknowledged late, ${ledger.commits} commits; ${bytes} bytes equal on all brokers; refusals ${refusals.join(' ')}`,
  );
  assert.equal(history.count('unknown'), 0);
  assert(acked > 50 * rounds, 'too few records went through');
  assert(ledger.commits > rounds, 'too few commits went through');
}

test.run();
