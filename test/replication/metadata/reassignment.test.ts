import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { PartitionOutcome } from '../../../replication/metadata/controller_api.ts';
import { TestCluster } from './test_cluster.ts';

const test = suite('reassignments');

function reassign(
  cluster: TestCluster,
  replicas: readonly number[] | null,
  { name = 't', partitionIndex = 0, allowReplicationFactorChange = true } = {},
): PartitionOutcome {
  const { topics } = cluster.node.result<'alterPartitionReassignments'>({
    type: 'alterPartitionReassignments',
    allowReplicationFactorChange,
    topics: [{ name, partitions: [{ partitionIndex, replicas }] }],
  });
  return topics[0]!.partitions[0]!;
}

function move(cluster: TestCluster, replicas: readonly number[] | null): void {
  const { errorCode, errorMessage } = reassign(cluster, replicas);
  assert.equal(errorCode, ErrorCode.NONE, errorMessage ?? '');
}

/** Replicas, with those that are added and removed: `4,5,1 +4,5 -1`. */
function replicas(cluster: TestCluster): string {
  const partition = cluster.partition('t');
  const adding = partition.addingReplicas.length === 0 ? '' : ` +${partition.addingReplicas}`;
  const removing = partition.removingReplicas.length === 0 ? '' : ` -${partition.removingReplicas}`;
  return `${partition.replicas}${adding}${removing}`;
}

function withTopic(brokers = [1, 2, 3]): TestCluster {
  const cluster = new TestCluster([1, 2, 3, 4, 5, 6]);
  cluster.create('t', [brokers]);
  return cluster;
}

test('a partition moves when all its new replicas are in sync', () => {
  const cluster = withTopic();
  move(cluster, [4, 5, 3]);
  assert.equal(replicas(cluster), '4,5,3,1,2 +4,5 -1,2');
  assert.equal(cluster.state('t'), '1 [1,2,3]');
  assert.equal(cluster.partition('t').leaderEpoch, 0, 'nothing has moved yet');
  cluster.isr('t', [1, 2, 3, 4]);
  assert.equal(replicas(cluster), '4,5,3,1,2 +4,5 -1,2');
  const answer = cluster.askIsr('t', [1, 2, 3, 4, 5]);
  assert.equal(answer.errorCode, ErrorCode.NEW_LEADER_ELECTED, 'the leader leaves');
  assert.equal(replicas(cluster), '4,5,3');
  assert.equal(cluster.state('t'), '4 [3,4,5]');
  const { directories, leaderEpoch } = cluster.partition('t');
  assert.equal(leaderEpoch, 1);
  assert.deepEqual(
    directories,
    [4, 5, 3].map((id) => cluster.broker(id).logDirs[0]),
  );
});

test('the epoch of a leader that stays grows with the loss of a replica', () => {
  const cluster = withTopic();
  move(cluster, [1, 2, 4]);
  assert.equal(cluster.askIsr('t', [1, 2, 3, 4]).errorCode, ErrorCode.NONE);
  assert.equal(replicas(cluster), '1,2,4');
  assert.equal(cluster.state('t'), '1 [1,2,4]');
  assert.equal(cluster.partition('t').leaderEpoch, 1);
});

test('another order, and fewer replicas, need no waiting', () => {
  const cluster = withTopic();
  move(cluster, [3, 2, 1]);
  assert.equal(replicas(cluster), '3,2,1');
  assert.equal(cluster.state('t'), '1 [1,2,3]');
  move(cluster, [2]);
  assert.equal(replicas(cluster), '2');
  assert.equal(cluster.state('t'), '2 [2]');
  assert.equal(cluster.partition('t').leaderEpoch, 1);
});

test('fewer replicas wait when those that stay are not in sync', () => {
  const cluster = withTopic();
  cluster.isr('t', [1]);
  move(cluster, [2]);
  assert.equal(replicas(cluster), '2,1,3 -1,3');
  assert.equal(cluster.state('t'), '1 [1]');
  assert.equal(cluster.askIsr('t', [1, 2]).errorCode, ErrorCode.NEW_LEADER_ELECTED);
  assert.equal(replicas(cluster), '2');
  assert.equal(cluster.state('t'), '2 [2]');
});

test('a cancelled reassignment leaves what was before', () => {
  const cluster = withTopic();
  move(cluster, [4, 5, 6]);
  cluster.isr('t', [1, 2, 3, 5]);
  move(cluster, null);
  assert.equal(replicas(cluster), '1,2,3');
  assert.equal(cluster.state('t'), '1 [1,2,3]');
  assert.equal(cluster.partition('t').leaderEpoch, 1);
  assert.equal(reassign(cluster, null).errorCode, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS);
});

test('a reassignment is not cancelled where only new replicas have everything', () => {
  for (const unclean of ['false', 'true']) {
    const cluster = new TestCluster([1, 2]);
    cluster.create('t', [[1]], { 'unclean.leader.election.enable': unclean });
    cluster.start(3);
    move(cluster, [2, 3]);
    cluster.isr('t', [1, 2]);
    cluster.lose(1);
    cluster.startWhole(1);
    assert.equal(cluster.state('t'), '2 [2]');
    const { errorCode } = reassign(cluster, null);
    if (unclean === 'false') {
      assert.equal(errorCode, ErrorCode.INVALID_REPLICA_ASSIGNMENT);
      assert.equal(cluster.state('t'), '2 [2]');
      assert.equal(replicas(cluster), '2,3,1 +2,3 -1');
    } else {
      assert.equal(errorCode, ErrorCode.NONE);
      assert.equal(replicas(cluster), '1');
      assert.equal(cluster.state('t'), '1 [1]');
      assert.equal(cluster.partition('t').leaderRecoveryState, 1);
    }
  }
});

test('a reassignment is not cancelled while nobody is in sync', () => {
  const cluster = withTopic();
  move(cluster, [4, 5, 6]);
  for (const id of [1, 2, 3]) cluster.lose(id);
  assert.equal(cluster.state('t'), '-1 [] (3)');
  assert.equal(reassign(cluster, null).errorCode, ErrorCode.INVALID_REPLICA_ASSIGNMENT);
  assert.equal(replicas(cluster), '4,5,6,1,2,3 +4,5,6 -1,2,3');
});

test('another target replaces the first; what is not needed goes at once', () => {
  const cluster = withTopic();
  move(cluster, [4, 5, 6]);
  cluster.isr('t', [1, 2, 3, 4]);
  move(cluster, [1, 2, 5]);
  assert.equal(replicas(cluster), '1,2,5,3,4 +5 -3,4');
  assert.equal(cluster.state('t'), '1 [1,2,3,4]');
  cluster.isr('t', [1, 2, 3, 4, 5]);
  assert.equal(replicas(cluster), '1,2,5');
});

test('the target of before is a target like others', () => {
  const cluster = withTopic();
  move(cluster, [4, 2, 3]);
  move(cluster, [1, 2, 3]);
  assert.equal(replicas(cluster), '1,2,3');
  assert.equal(cluster.state('t'), '1 [1,2,3]');
});

test('the death of a leader leaves a reassignment under way', () => {
  const cluster = withTopic();
  cluster.lose(5);
  move(cluster, [1, 5]);
  cluster.lose(1);
  assert.equal(replicas(cluster), '1,5,2,3 +5 -2,3');
  assert.equal(cluster.state('t'), '2 [2,3]');
});

const refusals: [string, readonly number[], object, number][] = [
  ['no replicas', [], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT],
  ['a broker twice', [1, 1], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT],
  ['an unknown broker', [1, 9], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT],
  ['an unknown topic', [1], { name: 'u' }, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
  ['an unknown partition', [1], { partitionIndex: 1 }, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
  [
    'another number of replicas where that is not allowed (KIP-860)',
    [1, 2],
    { allowReplicationFactorChange: false },
    ErrorCode.INVALID_REPLICATION_FACTOR,
  ],
];
for (const [what, target, overrides, errorCode] of refusals)
  test(`refused: ${what}`, () => {
    const cluster = withTopic();
    const before = cluster.partition('t');
    const outcome = reassign(cluster, target, overrides);
    assert.equal(outcome.errorCode, errorCode);
    assert.equal(typeof outcome.errorMessage, 'string');
    assert.equal(cluster.partition('t'), before);
  });

test('replicas on fenced brokers are waited for', () => {
  const cluster = withTopic();
  cluster.lose(4);
  move(cluster, [4, 1, 2]);
  assert.equal(replicas(cluster), '4,1,2,3 +4 -3');
  cluster.startWhole(4);
  cluster.isr('t', [1, 2, 3, 4]);
  assert.equal(replicas(cluster), '4,1,2');
  assert.equal(cluster.state('t'), '1 [1,2,4]');
});

test.run();
