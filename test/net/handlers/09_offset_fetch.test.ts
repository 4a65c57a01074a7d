import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { ask, commitRequest, groupWorld } from '../groups/group_world.ts';

const test = suite('09 offset fetch');
const unknownId = 'b8tRS7h4TJ2Vt43Dp85v2A';

interface Partition {
  readonly partitionIndex: number;
  readonly committedOffset: bigint;
  readonly committedLeaderEpoch: number;
  readonly metadata: string | null;
  readonly errorCode: number;
}

function rows(topics: readonly { readonly partitions: readonly Partition[] }[]): unknown[] {
  return topics.flatMap(({ partitions }) =>
    partitions.map((one) => [
      one.partitionIndex,
      Number(one.committedOffset),
      one.committedLeaderEpoch,
      one.metadata,
      one.errorCode,
    ]),
  );
}

for (let version = 1; version <= 7; version += 1)
  test(`v${version}: one group; what was not committed, or does not exist, is -1`, async () => {
    const world = await groupWorld();
    await ask(world, 'OffsetCommit', 8, commitRequest('g', [[1, 7]]));
    const topics = [
      { name: 't', partitionIndexes: [0, 1, 9] },
      { name: 'nope', partitionIndexes: [0] },
    ];
    const answer = await ask(world, 'OffsetFetch', version, { groupId: 'g', topics });
    const epoch = version >= 5 ? 4 : -1;
    assert.equal(answer.errorCode, 0);
    assert.deepEqual(rows(answer.topics), [
      [0, -1, -1, '', 0],
      [1, 7, epoch, 'at 7', 0],
      [9, -1, -1, '', 0],
      [0, -1, -1, '', 0],
    ]);
    if (version < 2) return;
    const all = await ask(world, 'OffsetFetch', version, { groupId: 'g', topics: null });
    assert.deepEqual(rows(all.topics), [[1, 7, epoch, 'at 7', 0]]);
  });

for (let version = 8; version <= 10; version += 1)
  test(`v${version}: several groups`, async () => {
    const world = await groupWorld();
    const byId = version >= 10;
    await ask(world, 'OffsetCommit', 8, commitRequest('g', [[1, 7]]));
    await ask(world, 'OffsetCommit', 8, commitRequest('h', [[0, 1]]));
    const id = world.idOf('t');
    const wanted = { ...(byId ? { topicId: id } : { name: 't' }), partitionIndexes: [0, 1] };
    const { groups } = await ask(world, 'OffsetFetch', version, {
      groups: [
        { groupId: 'g', topics: [wanted] },
        { groupId: 'h', topics: null },
        { groupId: 'nobody', topics: null },
      ],
    });
    assert.deepEqual(
      groups.map(({ groupId, errorCode }) => [groupId, errorCode]),
      [
        ['g', 0],
        ['h', 0],
        ['nobody', 0],
      ],
    );
    assert.deepEqual(rows(groups[0]?.topics ?? []), [
      [0, -1, -1, '', 0],
      [1, 7, 4, 'at 7', 0],
    ]);
    assert.deepEqual(rows(groups[1]?.topics ?? []), [[0, 1, 4, 'at 1', 0]]);
    const [topic] = groups[1]?.topics ?? [];
    assert.equal(byId ? topic?.topicId : topic?.name, byId ? id : 't');
    assert.deepEqual(groups[2]?.topics, []);
  });

test('v10: a topic id that nobody knows is an error for each of its partitions', async () => {
  const world = await groupWorld();
  const { groups } = await ask(world, 'OffsetFetch', 10, {
    groups: [{ groupId: 'g', topics: [{ topicId: unknownId, partitionIndexes: [0, 3] }] }],
  });
  assert.equal(groups[0]?.topics[0]?.topicId, unknownId);
  assert.deepEqual(rows(groups[0]?.topics ?? []), [
    [0, -1, -1, '', ErrorCode.UNKNOWN_TOPIC_ID],
    [3, -1, -1, '', ErrorCode.UNKNOWN_TOPIC_ID],
  ]);
});

test('an error is told at the place that the version has for it', async () => {
  const world = await groupWorld();
  await world.deleteTopic('__consumer_offsets');
  const topics = [{ name: 't', partitionIndexes: [0, 1] }];
  const oldest = await ask(world, 'OffsetFetch', 1, { groupId: 'g', topics });
  const code = ErrorCode.NOT_COORDINATOR;
  assert.deepEqual(rows(oldest.topics), [
    [0, -1, -1, '', code],
    [1, -1, -1, '', code],
  ]);
  const old = await ask(world, 'OffsetFetch', 7, { groupId: 'g', topics });
  assert.deepEqual([old.errorCode, old.topics], [code, []]);
  const now = await ask(world, 'OffsetFetch', 8, { groups: [{ groupId: 'g', topics }] });
  assert.deepEqual([now.groups[0]?.errorCode, now.groups[0]?.topics], [code, []]);
});

test.run();
