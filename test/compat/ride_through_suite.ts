/**
 * What every client's producer and consumer groups must come through: brokers of a cluster that die one after the other
 * (kill -9), each while it leads partitions and coordinates groups, and come back. The client reports no error but those
 * that it tries again by itself; what it was told to be acknowledged is there once, in order, where it was said to be, on
 * all replicas (I1 to I4); and its groups read every record and lose no position (I6).
 *
 *   node test/compat/ride_through.java.test.ts [--rounds 20]
 */
import assert from 'node:assert/strict';
import { suite, type Test } from 'uvu';
import { Cluster } from '../harness/cluster.ts';
import { assertHistory } from '../harness/cluster_records.ts';
import { ClusterView } from '../harness/cluster_view.ts';
import { History } from '../harness/history.ts';
import { laneName, type Target } from '../harness/load.ts';
import { assertEqualReplicas } from '../harness/replica_logs.ts';
import { runScenario, type ScenarioRun, scenarioOptions } from '../harness/scenario_options.ts';
import { WatchedGroup } from '../harness/watched_group.ts';
import { isKafka } from './exchange.ts';
import { GroupMember, type MemberOptions } from './group_member.ts';
import { kafkaLauncher } from './kafka_broker.ts';
import { groupPrograms, type RidingProgram } from './peers/program_peer.ts';
import { StreamProducer } from './stream_producer.ts';

const options = scenarioOptions();
const kills = options.rounds ?? 4;
const topic = 'ridden';
const partitions = 6;
const pauseMs = 10;
/** Generous: the machine may be busy, and a client's own time-outs take half a minute. */
const backMs = 120_000;
const settings = {
  'min.insync.replicas': 2,
  'offsets.topic.replication.factor': 3,
  'offsets.topic.num.partitions': 3,
  'group.initial.rebalance.delay.ms': 300,
};
const targets: readonly Target[] = Array.from({ length: partitions }, (_, partition) => ({
  topic,
  partition,
}));

/** One group, by the protocol of its members, and how many it has. */
interface GroupPlan {
  readonly protocol: MemberOptions['protocol'];
  readonly members: number;
}

async function startGroup(
  program: RidingProgram,
  cluster: Cluster,
  { protocol, members: count }: GroupPlan,
): Promise<WatchedGroup> {
  const { bootstrap } = cluster;
  const group = `riding-${protocol}`;
  const members: GroupMember[] = [];
  for (let at = 0; at < count; at += 1)
    members.push(
      new GroupMember(`${protocol} ${at}`, await groupPrograms[program](), {
        ...{ bootstrap, topic, group, protocol },
        ...{ strategy: 'eager', instance: null },
      }),
    );
  return new WatchedGroup(cluster, members, { group, topic, partitions, backMs });
}

/** One kill: whoever leads some partition dies, the client goes on without it, and it comes back. */
async function ride(
  cluster: Cluster,
  view: ClusterView,
  producer: StreamProducer,
  groups: readonly WatchedGroup[],
  { random }: ScenarioRun,
): Promise<number> {
  await view.whole(backMs);
  await view.electPreferred();
  await view.refresh();
  await producer.progressed(5, backMs);
  const victim = view.partition(targets[random(partitions)]!)?.leaderId ?? 1;
  const at = performance.now();
  await cluster.kill(victim);
  await producer.progressed(1, backMs);
  const ms = performance.now() - at;
  await producer.progressed(5, backMs);
  const ends = producer.ends();
  for (const group of groups) await group.processedUntil(ends);
  await cluster.restart(victim);
  return ms;
}

async function allKills(
  program: RidingProgram,
  plans: readonly GroupPlan[],
  run: ScenarioRun,
  cluster: Cluster,
): Promise<void> {
  const admin = await cluster.client(1);
  await admin.createTopic(topic, partitions, {}, 3);
  admin.close();
  const view = new ClusterView(cluster, [topic]);
  const { bootstrap } = cluster;
  const streamed = { bootstrap, topic, partitions, pauseMs };
  const producer = new StreamProducer(await groupPrograms[program](), streamed);
  const groups: WatchedGroup[] = [];
  try {
    for (const plan of plans) groups.push(await startGroup(program, cluster, plan));
    const gaps: number[] = [];
    for (let kill = 0; kill < kills; kill += 1)
      gaps.push(await ride(cluster, view, producer, groups, run));
    await view.whole(backMs);
    const { acknowledged, sent } = await producer.finish();
    await view.refresh();
    const history = new History();
    for (const [partition, count] of sent.entries())
      for (let number = 0; number < count; number += 1)
        history.sent(`${partition}-${number}`, laneName({ topic, partition }), program);
    for (const { partition, number, offset } of acknowledged)
      history.acked(`${partition}-${number}`, offset);
    assert.equal(history.count('unknown'), 0);
    await assertHistory(cluster, view, targets, history);
    for (const group of groups) await group.finish(sent);
    if (!isKafka) await assertEqualReplicas(cluster.brokers, targets, backMs);
    const rebalances = groups.map(({ members }) =>
      members.map(({ name, rebalances }) => `${name}: ${rebalances}`).join(', '),
    );
    console.log(
      `${program}, ${kills} kills: ${acknowledged.length} records acknowledged; all partitions again after ${gaps.map(Math.round).join(', ')} ms; assignments of ${rebalances.join('; ')}`,
    );
  } finally {
    for (const group of groups) await group.close();
    await producer.close();
    view.close();
  }
}

/** The test of one client. The caller runs it. */
export function rideThroughSuite(program: RidingProgram, plans: readonly GroupPlan[]): Test {
  const test = suite(`${program} rides through`);
  test(`${kills} kills of leaders`, async () => {
    await runScenario(options, async (run) => {
      const { dataDir } = run;
      const launcher = isKafka ? { launcher: () => kafkaLauncher() } : {};
      const cluster = await Cluster.start({ settings, dataDir, ...launcher });
      try {
        await allKills(program, plans, run, cluster);
      } catch (error) {
        for (const { output } of cluster.brokers) console.error(output.slice(-6_000));
        throw error;
      } finally {
        await cluster.dispose();
      }
    });
  });
  return test;
}
