import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { answerDescribeTopicPartitions } from '../../../net/handlers/75_describe_topic_partitions.ts';
import type { DescribeTopicPartitionsRequestInput } from '../../../net/protocol/messages.gen.ts';
import type { ShardContext } from '../../../net/shard_context.ts';
import { call, newCluster } from '../cluster_fixture.ts';

const test = suite('describe_topic_partitions');

function describe(shard: ShardContext, request: DescribeTopicPartitionsRequestInput) {
  return call('DescribeTopicPartitions', 0, request, (decoded, caller) =>
    answerDescribeTopicPartitions(shard, decoded, caller),
  );
}

const topics: [string, number][] = [
  ['b', 3],
  ['a', 2],
  ['c', 1],
];

test('no topics in the request: all of them, by name, without a cursor', async () => {
  const { shard } = await newCluster(topics);
  const response = await describe(shard, { topics: [] });
  assert.deepEqual(
    response.topics.map(({ name, partitions }) => [name, partitions.length]),
    [
      ['a', 2],
      ['b', 3],
      ['c', 1],
    ],
  );
  assert.equal(response.nextCursor, null);
  const [first] = response.topics;
  assert.equal(first?.topicId, shard.image.topic('a')?.id);
  assert.deepEqual(first?.partitions[0]?.eligibleLeaderReplicas, []);
  assert.equal(first?.topicAuthorizedOperations, 3_576);
});

for (const limit of [1, 2, 3, 4, 5, 6, 100])
  test(`pages of ${limit} put together are the whole`, async () => {
    const { shard } = await newCluster(topics);
    const seen: string[] = [];
    let cursor: { topicName: string; partitionIndex: number } | null = null;
    for (let page = 0; page < 20; page += 1) {
      const response: Awaited<ReturnType<typeof describe>> = await describe(shard, {
        topics: [],
        responsePartitionLimit: limit,
        cursor,
      });
      const count = response.topics.reduce((sum, topic) => sum + topic.partitions.length, 0);
      assert(count <= limit);
      for (const { name, partitions } of response.topics)
        for (const { partitionIndex } of partitions) seen.push(`${name}-${partitionIndex}`);
      cursor = response.nextCursor;
      if (cursor === null) break;
    }
    assert.deepEqual(seen, ['a-0', 'a-1', 'b-0', 'b-1', 'b-2', 'c-0']);
  });

test('the broker limits pages too, and a limit below one is one', async () => {
  const { shard } = await newCluster(topics, { maxRequestPartitionSizeLimit: 2 });
  const limited = await describe(shard, { topics: [] });
  assert.deepEqual(limited.nextCursor, { topicName: 'b', partitionIndex: 0 });
  const one = await describe(shard, { topics: [], responsePartitionLimit: 0 });
  assert.deepEqual(one.nextCursor, { topicName: 'a', partitionIndex: 1 });
});

test('a cursor at a topic that is gone goes on behind it', async () => {
  const { shard } = await newCluster(topics);
  const cursor = { topicName: 'aa', partitionIndex: 1 };
  const response = await describe(shard, { topics: [], cursor });
  assert.deepEqual(
    response.topics.map(({ name, partitions }) => [name, partitions.length]),
    [
      ['b', 3],
      ['c', 1],
    ],
  );
});

test('named topics: each once, unknown and invalid ones with their error', async () => {
  const { shard } = await newCluster(topics);
  const names = ['c', 'nope', 'a b', 'c'].map((name) => ({ name }));
  const response = await describe(shard, { topics: names });
  assert.deepEqual(
    response.topics.map(({ name, errorCode }) => [name, errorCode]),
    [
      ['a b', ErrorCode.INVALID_TOPIC_EXCEPTION],
      ['c', ErrorCode.NONE],
      ['nope', ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
    ],
  );
});

test('a negative partition in the cursor is an invalid request', async () => {
  const { shard } = await newCluster(topics);
  const cursor = { topicName: 'a', partitionIndex: -1 };
  const response = await describe(shard, { topics: [{ name: 'a' }], cursor });
  assert.equal(response.topics[0]?.errorCode, ErrorCode.INVALID_REQUEST);
});

test.run();
