import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { answerMetadata } from '../../../net/handlers/03_metadata.ts';
import type { MetadataRequestInput } from '../../../net/protocol/messages.gen.ts';
import type { ShardContext } from '../../../net/shard_context.ts';
import { uuidZero } from '../../../replication/metadata/records.ts';
import { clusterId, registration, uuids } from '../../replication/metadata/fixtures.ts';
import { call, newCluster } from '../cluster_fixture.ts';

const test = suite('metadata');

function metadata(shard: ShardContext, version: number, request: MetadataRequestInput) {
  return call('Metadata', version, request, (decoded, caller) =>
    answerMetadata(shard, decoded, caller),
  );
}

function named(...names: string[]): MetadataRequestInput {
  return { topics: names.map((name) => ({ name })) };
}

for (let version = 0; version <= 13; version += 1)
  test(`v${version}: a topic with its partitions and the broker's advertised address`, async () => {
    const { shard } = await newCluster([['a', 2]]);
    const response = await metadata(shard, version, named('a'));
    assert.deepEqual(
      response.brokers.map(({ nodeId, host, port }) => [nodeId, host, port]),
      [[1, '127.0.0.1', 9092]],
    );
    assert.equal(response.controllerId, version >= 1 ? 1 : -1);
    assert.equal(response.clusterId, version >= 2 ? clusterId : null);
    const [topic] = response.topics;
    assert.equal(topic?.errorCode, ErrorCode.NONE);
    assert.equal(topic?.name, 'a');
    assert.equal(topic?.topicId, version >= 10 ? shard.image.topic('a')?.id : uuidZero);
    assert.deepEqual(
      topic?.partitions.map(({ errorCode, partitionIndex, leaderId, replicaNodes, isrNodes }) => [
        errorCode,
        partitionIndex,
        leaderId,
        replicaNodes,
        isrNodes,
      ]),
      [0, 1].map((index) => [ErrorCode.NONE, index, 1, [1], [1]]),
    );
    assert.equal(topic?.partitions[0]?.leaderEpoch, version >= 7 ? 0 : -1);
  });

test('very many topics are answered as few are, each once, with turns for others in between', async () => {
  const { shard } = await newCluster([['a', 1]]);
  const names = Array.from({ length: 9_000 }, (_, index) => `unknown-${index % 8_000}`);
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 0);
  const request = { ...named(...names, 'a', 'a'), allowAutoTopicCreation: false };
  const { topics } = await metadata(shard, 12, request);
  clearInterval(timer);
  assert.equal(topics.length, 8_001);
  assert.equal(topics.at(-1)?.errorCode, ErrorCode.NONE);
  assert.equal(topics[0]?.errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  assert(turns > 0, 'nobody else had a turn');
});

test('v0: an empty list means all topics; from v1 it means none, and null all', async () => {
  const { shard } = await newCluster([
    ['a', 1],
    ['b', 1],
  ]);
  assert.equal((await metadata(shard, 0, { topics: [] })).topics.length, 2);
  assert.equal((await metadata(shard, 1, { topics: [] })).topics.length, 0);
  assert.equal((await metadata(shard, 1, { topics: null })).topics.length, 2);
  assert.equal((await metadata(shard, 13, { topics: null })).topics.length, 2);
  assert.equal((await metadata(shard, 1, { topics: [] })).brokers.length, 1);
});

test('an unknown topic is created and answered at once', async () => {
  const { shard } = await newCluster([], {}, { defaultPartitions: 3 });
  for (const version of [0, 4, 9, 13]) {
    const { topics } = await metadata(shard, version, named(`new${version}`));
    assert.equal(topics[0]?.errorCode, ErrorCode.NONE);
    assert.equal(topics[0]?.partitions.length, 3);
  }
});

test('two connections that ask for the same new topic both succeed', async () => {
  const { shard } = await newCluster();
  const both = await Promise.all([
    metadata(shard, 12, named('a')),
    metadata(shard, 12, named('a', 'b')),
  ]);
  for (const { topics } of both)
    for (const topic of topics) assert.equal(topic.errorCode, ErrorCode.NONE);
});

test('nothing is created against the will of client or broker: UNKNOWN_TOPIC_OR_PARTITION', async () => {
  const { shard } = await newCluster();
  const unwanted = { ...named('a'), allowAutoTopicCreation: false };
  const refused = await metadata(shard, 4, unwanted);
  assert.equal(refused.topics[0]?.errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  const off = await newCluster([], { autoCreateTopicsEnable: false });
  const { topics } = await metadata(off.shard, 12, named('a'));
  assert.equal(topics[0]?.errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  assert.equal(shard.image.topics.size, 0);
});

test('asking for all topics creates none', async () => {
  const { shard } = await newCluster();
  assert.deepEqual((await metadata(shard, 12, { topics: null })).topics, []);
  assert.equal(shard.image.topics.size, 0);
});

test('a bad name is invalid, a valid one never is', async () => {
  const { shard } = await newCluster();
  const { topics } = await metadata(shard, 12, named('a/b', '', '__consumer_offsets', 'x.y'));
  assert.deepEqual(
    topics.map(({ errorCode }) => errorCode),
    [
      ErrorCode.INVALID_TOPIC_EXCEPTION,
      ErrorCode.INVALID_TOPIC_EXCEPTION,
      ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
      ErrorCode.NONE,
    ],
  );
  assert.equal(topics[2]?.isInternal, true);
});

test('where the defaults cannot be met the client learns why, and the log too', async () => {
  const { shard } = await newCluster([], {}, { defaultReplicationFactor: 3 });
  const { topics } = await metadata(shard, 12, named('a'));
  assert.equal(topics[0]?.errorCode, ErrorCode.INVALID_REPLICATION_FACTOR);
  assert.equal(shard.warnings.length, 1);
});

test('a creation that takes too long is LEADER_NOT_AVAILABLE: ask again', async () => {
  const { shard } = await newCluster();
  const errorMessage = 'too late';
  const createTopics = () =>
    Promise.resolve({ errorCode: ErrorCode.REQUEST_TIMED_OUT, errorMessage, result: null });
  const slow = { ...shard, quorum: { ...shard.quorum, createTopics } as never };
  const { topics } = await metadata(slow, 12, named('a'));
  assert.equal(topics[0]?.errorCode, ErrorCode.LEADER_NOT_AVAILABLE);
});

test('v12: topics by id; an unknown id is UNKNOWN_TOPIC_ID without a name', async () => {
  const { shard } = await newCluster([['a', 1]]);
  const topicId = shard.image.topic('a')!.id;
  const unknown = uuids(77)();
  const { topics } = await metadata(shard, 12, {
    topics: [
      { topicId, name: null },
      { topicId: unknown, name: null },
    ],
  });
  assert.deepEqual(
    topics.map((topic) => [topic.errorCode, topic.name, topic.topicId]),
    [
      [ErrorCode.NONE, 'a', topicId],
      [ErrorCode.UNKNOWN_TOPIC_ID, null, unknown],
    ],
  );
});

test('v10 and v11 know the field for ids, but not what it means', async () => {
  const { shard } = await newCluster([['a', 1]]);
  const topicId = shard.image.topic('a')!.id;
  for (const version of [10, 11]) {
    const { topics } = await metadata(shard, version, { topics: [{ topicId, name: null }] });
    assert.equal(topics[0]?.errorCode, ErrorCode.INVALID_REQUEST);
    assert.equal(topics[0]?.name, '');
  }
});

test('authorised operations only where asked for', async () => {
  const { shard } = await newCluster([['a', 1]]);
  const plain = await metadata(shard, 8, named('a'));
  assert.equal(plain.clusterAuthorizedOperations, -2_147_483_648);
  assert.equal(plain.topics[0]?.topicAuthorizedOperations, -2_147_483_648);
  const asked = await metadata(shard, 8, {
    ...named('a'),
    includeClusterAuthorizedOperations: true,
    includeTopicAuthorizedOperations: true,
  });
  assert.equal(asked.clusterAuthorizedOperations, 8_096);
  assert.equal(asked.topics[0]?.topicAuthorizedOperations, 3_576);
});

test('a name asked for twice is answered once', async () => {
  const { shard } = await newCluster([['a', 1]]);
  assert.equal((await metadata(shard, 12, named('a', 'a'))).topics.length, 1);
});

test('clients see only what their listener reaches', async () => {
  const { host, shard } = await newCluster([['a', 1]]);
  await host.request(
    registration(1, {
      endPoints: [{ name: 'INTERNAL', host: 'inside', port: 1, securityProtocol: 0 }],
    }),
  );
  await shard.quorum.createTopics({ topics: [], validateOnly: true }, 1000);
  for (const [version, errorCode] of [
    [5, ErrorCode.LEADER_NOT_AVAILABLE],
    [6, ErrorCode.LISTENER_NOT_FOUND],
  ] as const) {
    const { brokers, topics } = await metadata(shard, version, named('a'));
    assert.deepEqual(brokers, []);
    assert.equal(topics[0]?.partitions[0]?.errorCode, errorCode);
    assert.equal(topics[0]?.partitions[0]?.leaderId, -1);
  }
});

test.run();
