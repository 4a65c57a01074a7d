/** With ListPartitionReassignments (46), on a cluster of three brokers. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { answerAlterReassignments } from '../../../net/handlers/45_alter_partition_reassignments.ts';
import { answerListReassignments } from '../../../net/handlers/46_list_partition_reassignments.ts';
import { registration } from '../../replication/metadata/fixtures.ts';
import { call, newCluster, type TestShard } from '../cluster_fixture.ts';

const test = suite('45 and 46, reassignments of partitions');

async function threeBrokers(): Promise<TestShard> {
  const { host, shard } = await newCluster([['t', 2]]);
  for (const id of [2, 3]) await host.request(registration(id));
  return shard;
}

function alter(
  shard: TestShard,
  replicas: number[] | null,
  partitionIndex = 0,
  allowReplicationFactorChange = true,
) {
  const topics = [{ name: 't', partitions: [{ partitionIndex, replicas }] }];
  const request = { topics, timeoutMs: 1_000, allowReplicationFactorChange };
  return call('AlterPartitionReassignments', 1, request, (decoded) =>
    answerAlterReassignments(shard, decoded),
  );
}

function list(shard: TestShard, topics: { name: string; partitionIndexes: number[] }[] | null) {
  return call('ListPartitionReassignments', 0, { topics }, (decoded) =>
    answerListReassignments(shard, decoded),
  );
}

test('what moves is listed, until it is cancelled', async () => {
  const shard = await threeBrokers();
  assert.deepEqual((await list(shard, null)).topics, []);
  const altered = await alter(shard, [2, 3]);
  assert.equal(altered.errorCode, ErrorCode.NONE);
  assert.deepEqual(altered.responses, [
    {
      name: 't',
      partitions: [{ partitionIndex: 0, errorCode: ErrorCode.NONE, errorMessage: null }],
    },
  ]);
  const moving = {
    partitionIndex: 0,
    replicas: [2, 3, 1],
    addingReplicas: [2, 3],
    removingReplicas: [1],
  };
  const expected = [{ name: 't', partitions: [moving] }];
  assert.deepEqual((await list(shard, null)).topics, expected);
  const asked = [
    { name: 't', partitionIndexes: [0, 1, 9] },
    { name: 'u', partitionIndexes: [0] },
  ];
  assert.deepEqual((await list(shard, asked)).topics, expected);
  assert.deepEqual((await list(shard, [{ name: 't', partitionIndexes: [1] }])).topics, []);
  await alter(shard, null);
  assert.deepEqual((await list(shard, null)).topics, []);
});

test('errors come with each partition, and say why', async () => {
  const shard = await threeBrokers();
  const errorOf = async (
    ...args: Parameters<typeof alter> extends [unknown, ...infer R] ? R : never
  ) => {
    const response = await alter(shard, ...args);
    const [partition] = response.responses[0]!.partitions;
    assert.equal(typeof partition?.errorMessage, 'string');
    return partition?.errorCode;
  };
  assert.equal(await errorOf([1, 9]), ErrorCode.INVALID_REPLICA_ASSIGNMENT);
  assert.equal(await errorOf([1, 2], 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  assert.equal(await errorOf(null), ErrorCode.NO_REASSIGNMENT_IN_PROGRESS);
  assert.equal(await errorOf([1, 2], 0, false), ErrorCode.INVALID_REPLICATION_FACTOR);
});

test.run();
