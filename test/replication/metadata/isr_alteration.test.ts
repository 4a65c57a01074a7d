import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { PartitionToAlter } from '../../../replication/metadata/controller_api.ts';
import { uuids } from './fixtures.ts';
import { TestCluster } from './test_cluster.ts';

const test = suite('changes of the ISR');

function withTopic(configs = {}): TestCluster {
  const cluster = new TestCluster([1, 2, 3, 4]);
  cluster.create('t', [[1, 2, 3]], configs);
  return cluster;
}

test('a shrink keeps the leader’s epoch and raises the partition’s', () => {
  const cluster = withTopic();
  assert.deepEqual(cluster.askIsr('t', [1, 3]), {
    partitionIndex: 0,
    errorCode: ErrorCode.NONE,
    leaderId: 1,
    leaderEpoch: 0,
    isr: [1, 3],
    leaderRecoveryState: 0,
    partitionEpoch: 1,
  });
  assert.equal(cluster.state('t'), '1 [1,3]');
  assert.equal(cluster.askIsr('t', [1, 3]).partitionEpoch, 1, 'what stands already costs nothing');
});

type Case = [
  string,
  readonly number[],
  (cluster: TestCluster) => Partial<PartitionToAlter>,
  number,
];
const refusals: Case[] = [
  ['an older leader epoch', [1, 2], () => ({ leaderEpoch: 0 }), ErrorCode.FENCED_LEADER_EPOCH],
  [
    'an older partition epoch',
    [1, 2],
    (cluster) => ({ partitionEpoch: cluster.partition('t').partitionEpoch - 1 }),
    ErrorCode.INVALID_UPDATE_VERSION,
  ],
  ['a newer leader epoch', [1, 2], () => ({ leaderEpoch: 9 }), ErrorCode.NOT_CONTROLLER],
  ['a newer partition epoch', [1, 2], () => ({ partitionEpoch: 9 }), ErrorCode.NOT_CONTROLLER],
  ['no members', [], () => ({}), ErrorCode.INVALID_REQUEST],
  ['an ISR without the leader', [2, 3], () => ({}), ErrorCode.INVALID_REQUEST],
  ['a member twice', [1, 2, 2], () => ({}), ErrorCode.INVALID_REQUEST],
  ['a member that is no replica', [1, 4], () => ({}), ErrorCode.INVALID_REQUEST],
  ['recovery again', [1], () => ({ leaderRecoveryState: 1 }), ErrorCode.INVALID_REQUEST],
  ['an unknown recovery state', [1], () => ({ leaderRecoveryState: 2 }), ErrorCode.INVALID_REQUEST],
  ['a fenced member', [1, 3], () => ({}), ErrorCode.INELIGIBLE_REPLICA],
  [
    'a member of an earlier run (KIP-903)',
    [1, 2],
    (cluster) => ({
      newIsr: [1, 2].map((brokerId) => ({
        brokerId,
        brokerEpoch: cluster.broker(brokerId).epoch - (brokerId === 2 ? 1 : 0),
      })),
    }),
    ErrorCode.INELIGIBLE_REPLICA,
  ],
];
for (const [what, isr, overrides, errorCode] of refusals)
  test(`refused: ${what}`, () => {
    const cluster = withTopic();
    cluster.lose(3);
    // Leadership goes to 2 and back: leader epoch 2.
    cluster.lose(1);
    cluster.startWhole(1);
    cluster.isr('t', [2, 1]);
    cluster.lose(2);
    cluster.startWhole(2);
    const before = cluster.partition('t');
    assert.equal(before.leader, 1);
    const answer = cluster.askIsr('t', isr, overrides(cluster));
    assert.deepEqual(answer, {
      partitionIndex: 0,
      errorCode,
      leaderId: -1,
      leaderEpoch: -1,
      isr: [],
      leaderRecoveryState: 0,
      partitionEpoch: -1,
    });
    assert.equal(cluster.partition('t'), before);
  });

test('a member whose epoch the leader does not know is taken on its id', () => {
  const cluster = withTopic();
  cluster.isr('t', [1]);
  const newIsr = [1, 2].map((brokerId) => ({ brokerId, brokerEpoch: -1 }));
  assert.equal(cluster.askIsr('t', [1, 2], { newIsr }).errorCode, ErrorCode.NONE);
});

test('only the leader may ask, in its own run, for what exists', () => {
  const cluster = withTopic();
  assert.equal(cluster.askIsr('t', [1, 2], {}, 2).errorCode, ErrorCode.INVALID_REQUEST);
  const { node } = cluster;
  const partition: PartitionToAlter = {
    partitionIndex: 0,
    leaderEpoch: 0,
    partitionEpoch: 0,
    leaderRecoveryState: 0,
    newIsr: [{ brokerId: 1, brokerEpoch: cluster.broker(1).epoch }],
  };
  const ask = (brokerId: number, brokerEpoch: number, topicId: string, partitionIndex: number) =>
    node.ask<'alterPartition'>({
      type: 'alterPartition',
      brokerId,
      brokerEpoch,
      topics: [{ topicId, partitions: [{ ...partition, partitionIndex }] }],
    }).reply;
  const { id } = node.controller.image.topic('t')!;
  const { epoch } = cluster.broker(1);
  assert.equal(ask(1, epoch - 1, id, 0).errorCode, ErrorCode.STALE_BROKER_EPOCH);
  assert.equal(ask(9, 1, id, 0).errorCode, ErrorCode.STALE_BROKER_EPOCH);
  const errorOf = (topicId: string, partitionIndex: number) =>
    ask(1, epoch, topicId, partitionIndex).result?.topics[0]?.partitions[0]?.errorCode;
  assert.equal(errorOf(uuids(998)(), 0), ErrorCode.UNKNOWN_TOPIC_ID);
  assert.equal(errorOf(id, 1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
});

test('each partition of a request is judged on its own, and a second change of one is stale', () => {
  const cluster = new TestCluster([1, 2]);
  cluster.create('t', [
    [1, 2],
    [2, 1],
  ]);
  const { node } = cluster;
  const partition = (partitionIndex: number): PartitionToAlter => ({
    partitionIndex,
    leaderEpoch: 0,
    partitionEpoch: 0,
    leaderRecoveryState: 0,
    newIsr: [{ brokerId: 1, brokerEpoch: cluster.broker(1).epoch }],
  });
  const { topics } = node.result<'alterPartition'>({
    type: 'alterPartition',
    brokerId: 1,
    brokerEpoch: cluster.broker(1).epoch,
    topics: [
      {
        topicId: node.controller.image.topic('t')!.id,
        partitions: [partition(0), partition(1), partition(0)],
      },
    ],
  });
  assert.deepEqual(
    topics[0]?.partitions.map(({ errorCode }) => errorCode),
    [ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_UPDATE_VERSION],
  );
});

test('a leader that recovers from an unclean election recovers alone', () => {
  const cluster = withTopic({ 'unclean.leader.election.enable': 'true' });
  cluster.isr('t', [1]);
  cluster.lose(1);
  assert.equal(cluster.state('t'), '2 [2]');
  assert.equal(cluster.partition('t').leaderRecoveryState, 1);
  const recovering = { leaderRecoveryState: 1 };
  assert.equal(cluster.askIsr('t', [2, 3], recovering).errorCode, ErrorCode.INVALID_REQUEST);
  assert.equal(cluster.askIsr('t', [2], recovering).errorCode, ErrorCode.NONE);
  cluster.isr('t', [2, 3]);
  assert.equal(cluster.partition('t').leaderRecoveryState, 0);
});

test.run();
