/** CreatePartitions at the controller: KIP-195, and the texts of Kafka's ReplicationControlManager. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type {
  CreatePartitionsResult,
  TopicGrowth,
} from '../../../replication/metadata/controller_api.ts';
import type { MetadataRecord, PartitionRecord } from '../../../replication/metadata/records.ts';
import { newTopic, TestController } from './fixtures.ts';

const test = suite('partition_creation');

function withTopic(brokers = 3, replicationFactor = 2): TestController {
  const controller = new TestController();
  for (let id = 1; id <= brokers; id += 1) controller.register(id);
  controller.result<'createTopics'>({
    type: 'createTopics',
    topics: [newTopic('orders', { numPartitions: 2, replicationFactor })],
    validateOnly: false,
  });
  return controller;
}

function grow(
  controller: TestController,
  growth: Partial<TopicGrowth>,
  validateOnly = false,
): { result: CreatePartitionsResult['topics'][number]; records: MetadataRecord[] } {
  const topics = [{ name: 'orders', count: 4, assignments: null, ...growth }];
  const { reply, records } = controller.ask<'createPartitions'>({
    type: 'createPartitions',
    topics,
    validateOnly,
  });
  assert(reply.result !== null);
  return { result: reply.result.topics[0]!, records };
}

test('new partitions go on where the old ones end, with as many replicas as those have', () => {
  const controller = withTopic();
  const { result, records } = grow(controller, {});
  assert.deepEqual(result, { name: 'orders', errorCode: ErrorCode.NONE, errorMessage: null });
  const made = records as PartitionRecord[];
  assert.deepEqual(
    made.map(({ type, partitionId, replicas, isr, leaderEpoch }) => [
      type,
      partitionId,
      replicas.length,
      isr.length,
      leaderEpoch,
    ]),
    [
      ['PartitionRecord', 2, 2, 2, 0],
      ['PartitionRecord', 3, 2, 2, 0],
    ],
  );
  assert.equal(controller.controller.image.topic('orders')?.partitions.length, 4);
});

test('a topic never shrinks, and an increase must be one', () => {
  const controller = withTopic();
  const cases: [number, string][] = [
    [2, 'Topic already has 2 partition(s).'],
    [1, 'The topic orders currently has 2 partition(s); 1 would not be an increase.'],
    [0, 'The topic orders currently has 2 partition(s); 0 would not be an increase.'],
    [-3, 'The topic orders currently has 2 partition(s); -3 would not be an increase.'],
  ];
  for (const [count, errorMessage] of cases) {
    const { result, records } = grow(controller, { count });
    assert.deepEqual(
      [result.errorCode, result.errorMessage, records.length],
      [ErrorCode.INVALID_PARTITIONS, errorMessage, 0],
    );
  }
});

test('a topic that is not there, or is named twice, is refused', () => {
  const controller = withTopic();
  assert.equal(
    grow(controller, { name: 'nobody' }).result.errorCode,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
  );
  const growth = { name: 'orders', count: 4, assignments: null };
  const { topics } = controller.result<'createPartitions'>({
    type: 'createPartitions',
    topics: [growth, growth],
    validateOnly: false,
  });
  assert.deepEqual(topics, [
    {
      name: 'orders',
      errorCode: ErrorCode.INVALID_REQUEST,
      errorMessage: 'Duplicate topic name.',
    },
  ]);
});

test('brokers can be chosen by the client, first the leader', () => {
  const { result, records } = grow(withTopic(), {
    assignments: [
      [3, 1],
      [2, 3],
    ],
  });
  assert.equal(result.errorCode, ErrorCode.NONE);
  assert.deepEqual(
    (records as PartitionRecord[]).map(({ leader, replicas }) => [leader, replicas]),
    [
      [3, [3, 1]],
      [2, [2, 3]],
    ],
  );
});

test('a choice that cannot be kept is refused, with what is wrong with it', () => {
  const cases: [number[][], RegExp][] = [
    [[[1, 2]], /add 2 additional partition\(s\), but only 1 assignment\(s\) were specified/],
    [[], /only 0 assignment/],
    [[[1, 2], []], /an empty replica list/],
    [
      [
        [1, 2],
        [2, 9],
      ],
      /broker 9, but no such broker is registered/,
    ],
    [
      [
        [1, 1],
        [1, 2],
      ],
      /the broker 1 more than once/,
    ],
    [[[1, 2], [3]], /1 replica\(s\), but .* previous partitions, which have 2 replica/],
  ];
  for (const [assignments, pattern] of cases) {
    const { result, records } = grow(withTopic(), { assignments });
    assert.equal(result.errorCode, ErrorCode.INVALID_REPLICA_ASSIGNMENT);
    assert.match(result.errorMessage ?? '', pattern);
    assert.equal(records.length, 0);
  }
});

test('validate only checks everything and changes nothing', () => {
  const controller = withTopic();
  const { result, records } = grow(controller, {}, true);
  assert.deepEqual([result.errorCode, records.length], [ErrorCode.NONE, 0]);
  assert.equal(grow(controller, { count: 1 }, true).result.errorCode, ErrorCode.INVALID_PARTITIONS);
  assert.equal(controller.controller.image.topic('orders')?.partitions.length, 2);
});

test('one request makes a bounded number of partitions', () => {
  const { result, records } = grow(withTopic(), { count: 10_003 });
  assert.deepEqual([result.errorCode, records.length], [ErrorCode.POLICY_VIOLATION, 0]);
  assert.equal(grow(withTopic(), { count: 10_002 }).records.length, 10_000);
});

test.run();
