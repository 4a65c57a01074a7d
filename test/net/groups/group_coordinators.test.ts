import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ask, commitRequest, groupWorld, stableGroup } from './group_world.ts';

const test = suite('coordinators of a shard');

test('groups behind an offset are told with where they are and how many members they have', async () => {
  const world = await groupWorld();
  const { memberId, generationId } = await stableGroup(world, 'live');
  await ask(world, 'OffsetCommit', 8, {
    ...commitRequest('live', [[0, 10]]),
    memberId,
    generationIdOrMemberEpoch: generationId,
  });
  await ask(world, 'OffsetCommit', 8, commitRequest('empty', [[0, 20]]));
  await ask(world, 'OffsetCommit', 8, commitRequest('ahead', [[0, 50]]));
  await ask(world, 'OffsetCommit', 8, commitRequest('elsewhere', [[1, 1]]));
  const behind = async (endOffset: number) =>
    new Map(
      (await world.groups.behind({ topic: 't', partition: 0, endOffset })).map((one) => [
        one.groupId,
        [one.committedOffset, one.members],
      ]),
    );
  assert.deepEqual(
    await behind(50),
    new Map([
      ['live', [10, 1]],
      ['empty', [20, 0]],
    ]),
  );
  assert.deepEqual(await behind(11), new Map([['live', [10, 1]]]));
  assert.deepEqual(await behind(10), new Map());
});

test('a topic of the groups that is deleted and made again begins anew', async () => {
  const world = await groupWorld();
  await ask(world, 'OffsetCommit', 8, commitRequest('g', [[0, 10]]));
  await world.deleteTopic('__consumer_offsets');
  const { groups } = await ask(world, 'ListGroups', 4, {});
  assert.deepEqual(groups, []);
  await ask(world, 'FindCoordinator', 4, { coordinatorKeys: ['g'] });
  await ask(world, 'OffsetCommit', 8, commitRequest('h', [[0, 1]]));
  const after = await ask(world, 'ListGroups', 4, {});
  assert.deepEqual(
    after.groups.map(({ groupId }) => groupId),
    ['h'],
  );
});

test.run();
