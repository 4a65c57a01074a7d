import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { OffsetCommitResponse } from '../../../net/protocol/messages.gen.ts';
import { WorldConnection } from '../data_path/client.ts';
import {
  ask,
  commitRequest,
  committed,
  groupWorld,
  rest,
  stableGroup,
} from '../groups/group_world.ts';

const test = suite('08 offset commit');
const unknownId = 'b8tRS7h4TJ2Vt43Dp85v2A';

/** Error codes by topic (name or id) and partition. */
function codes({ topics }: OffsetCommitResponse): Record<string, number> {
  return Object.fromEntries(
    topics.flatMap(({ name, topicId, partitions }) =>
      partitions.map((one) => [
        `${name === '' ? topicId : name} ${one.partitionIndex}`,
        one.errorCode,
      ]),
    ),
  );
}

for (let version = 2; version <= 10; version += 1)
  test(`v${version}: partitions that exist are stored, the others refused`, async () => {
    const world = await groupWorld();
    const byId = version >= 10;
    const id = world.idOf('t');
    const partitions = [0, 1, 2, -1].map((partitionIndex) => ({
      partitionIndex,
      committedOffset: 5n,
      ...(version >= 6 ? { committedLeaderEpoch: 3 } : {}),
      committedMetadata: 'text',
    }));
    const named = (name: string, topicId: string) => (byId ? { topicId } : { name });
    const answer = await ask(world, 'OffsetCommit', version, {
      groupId: 'g',
      topics: [
        { ...named('t', id), partitions },
        { ...named('nope', unknownId), partitions: partitions.slice(0, 1) },
      ],
    });
    const none = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
    const t = byId ? id : 't';
    assert.deepEqual(codes(answer), {
      [`${t} 0`]: 0,
      [`${t} 1`]: 0,
      [`${t} 2`]: none,
      [`${t} -1`]: none,
      [byId ? `${unknownId} 0` : 'nope 0']: byId ? ErrorCode.UNKNOWN_TOPIC_ID : none,
    });
    assert.equal(answer.topics.length, 2);
    assert.deepEqual(await committed(world, 'g'), { 0: 5, 1: 5 });
  });

test('the answer waits for the flush', async () => {
  const world = await groupWorld();
  const sent = new WorldConnection(world).send('OffsetCommit', 8, commitRequest('g', [[0, 9]]));
  await new Promise((resolve) => setImmediate(resolve));
  world.endTurn();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(sent.isAnswered, false);
  await rest(world);
  assert.deepEqual(codes(sent.response()), { 't 0': 0 });
});

test('a member of another generation, or nobody, commits nothing', async () => {
  const world = await groupWorld();
  const { memberId, generationId } = await stableGroup(world, 'g');
  const commit = (member: string, generation: number) =>
    ask(world, 'OffsetCommit', 8, {
      ...commitRequest('g', [[0, 5]]),
      memberId: member,
      generationIdOrMemberEpoch: generation,
    });
  const stale = await commit(memberId, generationId - 1);
  assert.deepEqual(codes(stale), { 't 0': ErrorCode.ILLEGAL_GENERATION });
  const stranger = await commit('stranger', generationId);
  assert.deepEqual(codes(stranger), { 't 0': ErrorCode.UNKNOWN_MEMBER_ID });
  assert.deepEqual(await committed(world, 'g'), {});
  assert.deepEqual(codes(await commit(memberId, generationId)), { 't 0': 0 });
  assert.deepEqual(await committed(world, 'g'), { 0: 5 });
});

test('what was committed is there after kill -9 and after a power cut', async () => {
  const world = await groupWorld();
  for (const offset of [1, 2, 3])
    await ask(world, 'OffsetCommit', 8, commitRequest('g', [[0, offset]]));
  world.kill();
  await world.open();
  const early = new WorldConnection(world).send('OffsetFetch', 8, {
    groups: [{ groupId: 'g', topics: null }],
  });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(early.response().groups[0]?.errorCode, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS);
  await rest(world);
  assert.deepEqual(await committed(world, 'g'), { 0: 3 });
  world.powerCut();
  await world.open();
  await rest(world);
  assert.deepEqual(await committed(world, 'g'), { 0: 3 });
});

test('before the topic of the offsets is there, nobody is the coordinator', async () => {
  const world = await groupWorld();
  await world.deleteTopic('__consumer_offsets');
  await rest(world);
  const answer = await ask(world, 'OffsetCommit', 8, commitRequest('g', [[0, 1]]));
  assert.deepEqual(codes(answer), { 't 0': ErrorCode.NOT_COORDINATOR });
});

test('a topic that is deleted takes its offsets along', async () => {
  const world = await groupWorld();
  await ask(world, 'OffsetCommit', 8, commitRequest('g', [[0, 1]]));
  await world.deleteTopic('t');
  await rest(world);
  assert.deepEqual(await committed(world, 'g'), {});
});

test.run();
