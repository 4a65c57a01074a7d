import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { answerCreateTopics } from '../../../net/handlers/19_create_topics.ts';
import type {
  CreateTopicsRequestCreatableTopicInput,
  CreateTopicsRequestInput,
} from '../../../net/protocol/messages.gen.ts';
import type { ShardContext } from '../../../net/shard_context.ts';
import { uuidZero } from '../../../replication/metadata/records.ts';
import { call, newCluster } from '../cluster_fixture.ts';

const test = suite('create_topics');

function create(shard: ShardContext, version: number, request: CreateTopicsRequestInput) {
  return call('CreateTopics', version, request, (decoded, caller) =>
    answerCreateTopics(shard, decoded, caller),
  );
}

function topic(
  name: string,
  overrides: Partial<CreateTopicsRequestCreatableTopicInput> = {},
): CreateTopicsRequestCreatableTopicInput {
  return {
    name,
    numPartitions: 2,
    replicationFactor: 1,
    assignments: [],
    configs: [],
    ...overrides,
  };
}

for (let version = 2; version <= 7; version += 1)
  test(`v${version}: created, and known to the thread that answers`, async () => {
    const { shard } = await newCluster();
    const configs = [{ name: 'retention.ms', value: '7' }];
    const { topics } = await create(shard, version, { topics: [topic('a', { configs })] });
    const [result] = topics;
    assert.equal(result?.errorCode, ErrorCode.NONE);
    assert.equal(result?.errorMessage, null);
    const created = shard.image.topic('a');
    assert.equal(created?.partitions.length, 2);
    assert.equal(result?.numPartitions, version >= 5 ? 2 : -1);
    assert.equal(result?.replicationFactor, version >= 5 ? 1 : -1);
    assert.equal(result?.topicId, version >= 7 ? created?.id : uuidZero);
    const [config] = result?.configs ?? [];
    assert.equal(config?.value, version >= 5 ? '7' : undefined);
    assert.equal(config?.configSource, version >= 5 ? 1 : undefined);
  });

test('-1 partitions and replicas mean the defaults', async () => {
  const { shard } = await newCluster([], {}, { defaultPartitions: 5 });
  const { topics } = await create(shard, 5, {
    topics: [topic('a', { numPartitions: -1, replicationFactor: -1 })],
  });
  assert.equal(topics[0]?.numPartitions, 5);
  assert.equal(topics[0]?.replicationFactor, 1);
});

test('a manual assignment decides the partitions', async () => {
  const { shard } = await newCluster();
  const assignments = [0, 1, 2].map((partitionIndex) => ({ partitionIndex, brokerIds: [1] }));
  const { topics } = await create(shard, 5, {
    topics: [topic('a', { numPartitions: -1, replicationFactor: -1, assignments })],
  });
  assert.equal(topics[0]?.numPartitions, 3);
});

test('each topic has its own error, with a text; the others are created', async () => {
  const { shard } = await newCluster([['old', 1]]);
  const { topics } = await create(shard, 7, {
    topics: [
      topic('ok'),
      topic('old'),
      topic('a b'),
      topic('rf', { replicationFactor: 3 }),
      topic('cfg', { configs: [{ name: 'bad.key', value: '' }] }),
      topic('twice'),
      topic('twice'),
    ],
  });
  const codes = Object.fromEntries(topics.map(({ name, errorCode }) => [name, errorCode]));
  assert.deepEqual(codes, {
    ok: ErrorCode.NONE,
    old: ErrorCode.TOPIC_ALREADY_EXISTS,
    'a b': ErrorCode.INVALID_TOPIC_EXCEPTION,
    rf: ErrorCode.INVALID_REPLICATION_FACTOR,
    cfg: ErrorCode.INVALID_CONFIG,
    twice: ErrorCode.INVALID_REQUEST,
  });
  assert.equal(topics.length, 6);
  for (const { errorCode, errorMessage, configs } of topics) {
    assert.equal(errorMessage === null, errorCode === ErrorCode.NONE);
    assert.deepEqual(configs, []);
  }
  assert.deepEqual([...shard.image.topics.keys()], ['old', 'ok']);
});

test('validate-only answers as if, and creates nothing', async () => {
  const { shard } = await newCluster();
  const { topics } = await create(shard, 7, { topics: [topic('a')], validateOnly: true });
  assert.equal(topics[0]?.errorCode, ErrorCode.NONE);
  assert.equal(topics[0]?.numPartitions, 2);
  assert.equal(shard.image.topics.size, 0);
});

test('a request refused as a whole tells every topic so', async () => {
  const { shard } = await newCluster();
  const { topics } = await create(shard, 7, {
    topics: [topic('a', { numPartitions: 20_000 }), topic('b')],
  });
  assert.deepEqual(
    topics.map(({ name, errorCode }) => [name, errorCode]),
    [
      ['a', ErrorCode.POLICY_VIOLATION],
      ['b', ErrorCode.POLICY_VIOLATION],
    ],
  );
});

test('a time limit of zero is over at once', async () => {
  const { shard } = await newCluster();
  const { topics } = await create(shard, 7, { topics: [topic('a')], timeoutMs: 0 });
  assert.equal(topics[0]?.errorCode, ErrorCode.REQUEST_TIMED_OUT);
});

test.run();
