/**
 * Replacing a dead host as docs/cluster.md says: with the same number and an empty directory, and with a fourth broker.
 * Records are taken and read throughout, none is lost, all copies are equal in the end, and the new voter's vote counts:
 * the cluster lives on when another broker is killed.
 */
import assert from 'node:assert/strict';
import { mkdirSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { errorName } from '../../net/protocol/errors.ts';
import { Cluster, type QuorumVoter } from '../harness/cluster.ts';
import { ClusterLoad } from '../harness/cluster_load.ts';
import { assertHistory } from '../harness/cluster_records.ts';
import { ClusterTail } from '../harness/cluster_tail.ts';
import { ClusterView } from '../harness/cluster_view.ts';
import { History } from '../harness/history.ts';
import type { Target } from '../harness/load.ts';
import { assertEqualReplicas } from '../harness/replica_logs.ts';
import { runScenario, scenarioOptions } from '../harness/scenario_options.ts';
import type { Random } from '../harness/split_mix.ts';

const options = scenarioOptions();
const topic = 'kept';
const partitions = 4;
const targets: readonly Target[] = Array.from({ length: partitions }, (_, partition) => ({
  topic,
  partition,
}));
const backMs = 60_000;
const dead = 3;
const settings = { 'min.insync.replicas': 2, 'log.segment.bytes': 1_048_576 };

interface World {
  readonly cluster: Cluster;
  readonly view: ClusterView;
  readonly load: ClusterLoad;
  /** When records have been taken for every partition. */
  readonly served: () => Promise<void>;
}

const test = suite('replacing a host');

test('the same number with an empty directory: an observer, then a voter again', () =>
  withWorld(async ({ cluster, view, served }) => {
    const { dataDir } = cluster.broker(dead);
    const old = voter(await cluster.quorum().then(({ voters }) => voters));
    rmSync(dataDir, { recursive: true });
    mkdirSync(dataDir);
    await cluster.restart(dead);
    assert.match(cluster.broker(dead).output, /observer/);
    await served();
    await view.whole(backMs);
    const { observers } = await cluster.quorum();
    const renewed = voter(observers);
    assert.notEqual(renewed.directoryId, old.directoryId);
    await removeVoter(cluster, old);
    await addVoter(cluster, renewed);
    await assertVoters(cluster, [1, 2, dead]);
    return cluster.brokers;
  }));

test('a fourth broker takes the copies and the vote of the dead one', () =>
  withWorld(async ({ cluster, view, served }) => {
    const fourth = await cluster.add();
    assert.match(cluster.broker(fourth).output, /observer/);
    const client = await cluster.client(fourth);
    const answer = await client.request('AlterPartitionReassignments', {
      timeoutMs: 30_000,
      topics: [
        {
          name: topic,
          partitions: targets.map(({ partition }) => ({
            partitionIndex: partition,
            replicas: [1, 2, fourth],
          })),
        },
      ],
    });
    assert.equal(answer.errorCode, ErrorCode.NONE);
    await eventually(async () => {
      await view.refresh();
      return targets.every((target) => view.partition(target)?.replicas.includes(dead) === false);
    });
    await view.whole(backMs);
    await served();
    const { voters, observers } = await cluster.quorum();
    await addVoter(cluster, voter(observers, fourth));
    await removeVoter(cluster, voter(voters));
    await assertVoters(cluster, [1, 2, fourth]);
    const gone = await client.request('UnregisterBroker', { brokerId: dead });
    assert.equal(errorName(gone.errorCode), 'NONE');
    client.close();
    return cluster.brokers.filter((_, k) => k + 1 !== dead);
  }));

/** Kills a broker for good, has it replaced, and looks whether all is as before. */
async function withWorld(replace: (world: World) => Promise<Cluster['brokers']>): Promise<void> {
  await runScenario(options, async ({ dataDir, random }) => {
    const cluster = await Cluster.start({ settings, dataDir });
    try {
      await underLoad(cluster, random, replace);
    } catch (error) {
      for (const { output } of cluster.brokers) console.error(output.slice(-6_000));
      throw error;
    } finally {
      await cluster.dispose();
    }
  });
}

async function underLoad(
  cluster: Cluster,
  random: Random,
  replace: (world: World) => Promise<Cluster['brokers']>,
): Promise<void> {
  const admin = await cluster.client(1);
  await admin.createTopic(topic, partitions, {}, 3);
  admin.close();
  const history = new History();
  const view = new ClusterView(cluster, [topic]);
  const loadOptions = { name: 'p', targets, history, random, pauseMsMax: 20, oneLargeIn: 100 };
  const load = new ClusterLoad(cluster, loadOptions);
  const tail = new ClusterTail(cluster, targets, history);
  const served = (): Promise<void> => load.progressed(backMs);
  try {
    await served();
    await cluster.kill(dead);
    await served();
    const holders = await replace({ cluster, view, load, served });
    await load.drain();
    tail.assertHealthy();
    const bytes = await assertEqualReplicas(holders, targets, backMs);
    await view.refresh();
    await assertHistory(cluster, view, targets, history);
    load.resume();
    await cluster.kill(await cluster.controller());
    await served();
    load.assertHealthy();
    tail.assertHealthy();
    console.log(
      `${history.count('acked')} records acknowledged, ${load.resent} batches sent again, ${bytes} bytes equal on ${holders.length} brokers`,
    );
  } finally {
    await load.stop();
    await tail.stop();
    view.close();
  }
}

function voter(nodes: readonly QuorumVoter[], id: number = dead): QuorumVoter {
  const found = nodes.find((node) => node.id === id);
  assert(found !== undefined, `node ${id} is not among ${JSON.stringify(nodes)}`);
  return found;
}

async function addVoter(cluster: Cluster, { id, directoryId }: QuorumVoter): Promise<void> {
  const client = await cluster.client(1);
  const answer = await client.request('AddRaftVoter', {
    clusterId: null,
    timeoutMs: 30_000,
    voterId: id,
    voterDirectoryId: directoryId,
    listeners: [cluster.controllerEndpoint(id)],
  });
  assert.equal(errorName(answer.errorCode), 'NONE', answer.errorMessage ?? '');
  client.close();
}

async function removeVoter(cluster: Cluster, { id, directoryId }: QuorumVoter): Promise<void> {
  const client = await cluster.client(1);
  const answer = await client.request('RemoveRaftVoter', {
    clusterId: null,
    voterId: id,
    voterDirectoryId: directoryId,
  });
  assert.equal(errorName(answer.errorCode), 'NONE', answer.errorMessage ?? '');
  client.close();
}

async function assertVoters(cluster: Cluster, ids: readonly number[]): Promise<void> {
  const { voters } = await cluster.quorum();
  assert.deepEqual(voters.map(({ id }) => id).sort(), ids);
}

async function eventually(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + backMs;
  while (!(await condition())) {
    assert(performance.now() < deadline, `not so within ${backMs / 1000} s: ${condition}`);
    await sleep(20);
  }
}

test.run();
