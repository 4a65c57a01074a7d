import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { answerDeleteTopics } from '../../../net/handlers/20_delete_topics.ts';
import type { DeleteTopicsRequestInput } from '../../../net/protocol/messages.gen.ts';
import type { ShardContext } from '../../../net/shard_context.ts';
import { uuidZero } from '../../../replication/metadata/records.ts';
import { uuids } from '../../replication/metadata/fixtures.ts';
import { call, newCluster } from '../cluster_fixture.ts';

const test = suite('delete_topics');

function remove(shard: ShardContext, version: number, request: Partial<DeleteTopicsRequestInput>) {
  const full = { timeoutMs: 5000, ...request };
  return call('DeleteTopics', version, full as DeleteTopicsRequestInput, (decoded, caller) =>
    answerDeleteTopics(shard, decoded, caller),
  );
}

for (let version = 1; version <= 5; version += 1)
  test(`v${version}: by name`, async () => {
    const { shard } = await newCluster([
      ['a', 1],
      ['b', 1],
    ]);
    const { responses } = await remove(shard, version, { topicNames: ['a', 'missing'] });
    assert.deepEqual(
      responses.map(({ name, errorCode }) => [name, errorCode]),
      [
        ['a', ErrorCode.NONE],
        ['missing', ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
      ],
    );
    assert.equal(typeof responses[1]?.errorMessage, version >= 5 ? 'string' : 'object');
    assert.deepEqual([...shard.image.topics.keys()], ['b']);
  });

test('v6: by name and by id, each answered with both where known', async () => {
  const { shard } = await newCluster([
    ['a', 1],
    ['b', 1],
  ]);
  const [a, b] = ['a', 'b'].map((name) => shard.image.topic(name)!.id);
  const unknown = uuids(50)();
  const { responses } = await remove(shard, 6, {
    topics: [
      { name: 'a', topicId: uuidZero },
      { name: null, topicId: b! },
      { name: null, topicId: unknown },
    ],
  });
  assert.deepEqual(
    responses.map(({ name, topicId, errorCode }) => [name, topicId, errorCode]),
    [
      ['a', a, ErrorCode.NONE],
      ['b', b, ErrorCode.NONE],
      [null, unknown, ErrorCode.UNKNOWN_TOPIC_ID],
    ],
  );
  assert.equal(shard.image.topics.size, 0);
});

test('v6: requests that contradict themselves delete nothing', async () => {
  const { shard } = await newCluster([
    ['a', 1],
    ['b', 1],
    ['c', 1],
  ]);
  const [a, b, c] = ['a', 'b', 'c'].map((name) => shard.image.topic(name)!.id);
  const { responses } = await remove(shard, 6, {
    topics: [
      { name: null, topicId: uuidZero },
      { name: 'a', topicId: a! },
      { name: null, topicId: b! },
      { name: null, topicId: b! },
      { name: 'c', topicId: uuidZero },
      { name: null, topicId: c! },
    ],
  });
  const refused = responses.filter(({ errorCode }) => errorCode === ErrorCode.INVALID_REQUEST);
  assert.equal(refused.length, 4);
  assert.deepEqual([...shard.image.topics.keys()], ['a', 'b']);
  assert.equal(responses.at(-1)?.errorCode, ErrorCode.NONE, 'c is deleted by its id');
});

test('a name given twice is refused', async () => {
  const { shard } = await newCluster([['a', 1]]);
  const { responses } = await remove(shard, 5, { topicNames: ['a', 'a'] });
  assert.deepEqual(
    responses.map(({ errorCode }) => errorCode),
    [ErrorCode.INVALID_REQUEST],
  );
  assert.equal(shard.image.topics.size, 1);
});

test('deletion switched off: TOPIC_DELETION_DISABLED from v3, INVALID_REQUEST before', async () => {
  const { shard } = await newCluster([['a', 1]], { deleteTopicEnable: false });
  const old = await remove(shard, 2, { topicNames: ['a'] });
  assert.equal(old.responses[0]?.errorCode, ErrorCode.INVALID_REQUEST);
  const newer = await remove(shard, 3, { topicNames: ['a'] });
  assert.equal(newer.responses[0]?.errorCode, ErrorCode.TOPIC_DELETION_DISABLED);
  assert.equal(shard.image.topics.size, 1);
});

test.run();
