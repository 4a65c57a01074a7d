import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { ask, groupWorld, stableGroup } from '../groups/group_world.ts';

const test = suite('12 to 14: heartbeat, leave group, sync group');

for (let version = 0; version <= 4; version += 1)
  test(`heartbeat v${version}`, async () => {
    const world = await groupWorld();
    const { memberId, generationId } = await stableGroup(world, 'g');
    const beat = async (member: string, generation: number): Promise<number> =>
      (
        await ask(world, 'Heartbeat', version, {
          groupId: 'g',
          generationId: generation,
          memberId: member,
        })
      ).errorCode;
    assert.equal(await beat(memberId, generationId), 0);
    assert.equal(await beat(memberId, generationId + 1), ErrorCode.ILLEGAL_GENERATION);
    assert.equal(await beat('nobody', generationId), ErrorCode.UNKNOWN_MEMBER_ID);
  });

for (let version = 0; version <= 2; version += 1)
  test(`leave v${version}: the member's error is the answer's`, async () => {
    const world = await groupWorld();
    const { memberId } = await stableGroup(world, 'g');
    const leave = (member: string) =>
      ask(world, 'LeaveGroup', version, { groupId: 'g', memberId: member });
    assert.equal((await leave('nobody')).errorCode, ErrorCode.UNKNOWN_MEMBER_ID);
    assert.equal((await leave(memberId)).errorCode, 0);
    assert.equal((await leave(memberId)).errorCode, ErrorCode.UNKNOWN_MEMBER_ID);
  });

for (let version = 3; version <= 5; version += 1)
  test(`leave v${version}: each member has its own error`, async () => {
    const world = await groupWorld();
    const { memberId } = await stableGroup(world, 'g');
    const answer = await ask(world, 'LeaveGroup', version, {
      groupId: 'g',
      members: [
        { memberId, ...(version >= 5 ? { reason: 'done' } : {}) },
        { memberId: 'nobody' },
        { memberId: '', groupInstanceId: 'gone' },
      ],
    });
    assert.equal(answer.errorCode, 0);
    assert.deepEqual(
      answer.members.map((one) => [one.memberId, one.groupInstanceId, one.errorCode]),
      [
        [memberId, null, 0],
        ['nobody', null, ErrorCode.UNKNOWN_MEMBER_ID],
        ['', 'gone', ErrorCode.UNKNOWN_MEMBER_ID],
      ],
    );
  });

for (let version = 0; version <= 5; version += 1)
  test(`sync v${version}: what the leader handed in comes again`, async () => {
    const world = await groupWorld();
    const { memberId, generationId } = await stableGroup(world, 'g');
    const names = version >= 5 ? { protocolType: 'consumer', protocolName: 'range' } : {};
    const sync = (generation: number) =>
      ask(world, 'SyncGroup', version, {
        groupId: 'g',
        generationId: generation,
        memberId,
        ...names,
        assignments: [],
      });
    const answer = await sync(generationId);
    assert.deepEqual([answer.errorCode, [...answer.assignment]], [0, [7]]);
    if (version >= 5)
      assert.deepEqual([answer.protocolType, answer.protocolName], ['consumer', 'range']);
    assert.equal((await sync(generationId + 1)).errorCode, ErrorCode.ILLEGAL_GENERATION);
  });

test('sync v5: protocol type and name must be there, and be right', async () => {
  const world = await groupWorld();
  const { memberId, generationId } = await stableGroup(world, 'g');
  for (const [protocolType, protocolName] of [
    [null, 'range'],
    ['consumer', null],
    ['consumer', 'other'],
    ['other', 'range'],
  ] as const) {
    const answer = await ask(world, 'SyncGroup', 5, {
      groupId: 'g',
      generationId,
      memberId,
      protocolType,
      protocolName,
      assignments: [],
    });
    assert.equal(answer.errorCode, ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
  }
});

test.run();
