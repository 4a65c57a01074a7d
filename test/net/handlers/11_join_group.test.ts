import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { JoinGroupResponse } from '../../../net/protocol/messages.gen.ts';
import { type Sent, WorldConnection } from '../data_path/client.ts';
import type { ShardWorld } from '../data_path/shard_world.ts';
import { ask, groupWorld, joinRequest, rest, stableGroup } from '../groups/group_world.ts';

const test = suite('11 join group');

for (let version = 0; version <= 9; version += 1)
  test(`v${version}: a new member alone leads its group`, async () => {
    const world = await groupWorld();
    let answer = await ask(world, 'JoinGroup', version, joinRequest(version, 'g'));
    if (version >= 4) {
      assert.equal(answer.errorCode, ErrorCode.MEMBER_ID_REQUIRED);
      assert.equal(answer.protocolName, version >= 7 ? null : '');
      const { memberId } = answer;
      answer = await ask(world, 'JoinGroup', version, joinRequest(version, 'g', memberId));
      assert.equal(answer.memberId, memberId);
    }
    assert.deepEqual([answer.errorCode, answer.generationId], [0, 1]);
    assert.equal(answer.leader, answer.memberId);
    assert.match(answer.memberId, /^test-/);
    assert.equal(answer.protocolName, 'range');
    assert.equal(answer.protocolType, version >= 7 ? 'consumer' : null);
    assert.deepEqual(
      answer.members.map((member) => [member.memberId, [...member.metadata]]),
      [[answer.memberId, [0, 1]]],
    );
  });

test('v5: a static member needs no second try', async () => {
  const world = await groupWorld();
  const answer = await ask(world, 'JoinGroup', 5, joinRequest(5, 'g', '', 'instance'));
  assert.equal(answer.errorCode, 0);
  assert.equal(answer.members[0]?.groupInstanceId, 'instance');
});

test('what cannot be is refused', async () => {
  const world = await groupWorld();
  const valid = joinRequest(9, 'g');
  const refused = async (change: Partial<typeof valid>): Promise<number> =>
    (await ask(world, 'JoinGroup', 9, { ...valid, ...change })).errorCode;
  assert.equal(await refused({ groupId: '' }), ErrorCode.INVALID_GROUP_ID);
  assert.equal(await refused({ sessionTimeoutMs: 5_999 }), ErrorCode.INVALID_SESSION_TIMEOUT);
  assert.equal(await refused({ sessionTimeoutMs: 1_800_001 }), ErrorCode.INVALID_SESSION_TIMEOUT);
  assert.equal(await refused({ memberId: 'nobody' }), ErrorCode.UNKNOWN_MEMBER_ID);
  assert.equal(await refused({ protocols: [] }), ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
});

/** A second member that waits for the first to come back. */
async function waiting(world: ShardWorld): Promise<Sent<'JoinGroup'>> {
  const told = await ask(world, 'JoinGroup', 9, joinRequest(9, 'g'));
  const connection = new WorldConnection(world);
  const sent = connection.send('JoinGroup', 9, joinRequest(9, 'g', told.memberId));
  await rest(world);
  assert.equal(sent.isAnswered, false);
  return sent;
}

test('a member that waits holds up nobody, and is answered when all have come', async () => {
  const world = await groupWorld();
  const first = await stableGroup(world, 'g');
  const second = await waiting(world);
  const heartbeat = { groupId: 'g', generationId: 1, memberId: first.memberId };
  const { errorCode } = await ask(world, 'Heartbeat', 4, heartbeat);
  assert.equal(errorCode, ErrorCode.REBALANCE_IN_PROGRESS);
  const again = await ask(world, 'JoinGroup', 9, joinRequest(9, 'g', first.memberId));
  await rest(world);
  const answers: JoinGroupResponse[] = [again, second.response()];
  assert.deepEqual(
    answers.map((one) => [one.errorCode, one.generationId]),
    [
      [0, 2],
      [0, 2],
    ],
  );
  assert.deepEqual(new Set(answers.map(({ members }) => members.length)), new Set([0, 2]));
});

test('who does not come back within the rebalance timeout is left out', async () => {
  const world = await groupWorld();
  await stableGroup(world, 'g');
  const second = await waiting(world);
  world.advance(10_001);
  await rest(world);
  const answer = second.response();
  assert.deepEqual([answer.errorCode, answer.generationId, answer.members.length], [0, 2, 1]);
});

test('a connection that dies while its member waits takes nothing with it', async () => {
  const world = await groupWorld();
  const first = await stableGroup(world, 'g');
  const told = await ask(world, 'JoinGroup', 9, joinRequest(9, 'g'));
  const connection = new WorldConnection(world);
  connection.send('JoinGroup', 9, joinRequest(9, 'g', told.memberId));
  await rest(world);
  connection.die();
  const again = await ask(world, 'JoinGroup', 9, joinRequest(9, 'g', first.memberId));
  assert.deepEqual([again.errorCode, again.generationId], [0, 2]);
});

test('a broker that stops sends those who wait to another one', async () => {
  const world = await groupWorld();
  await stableGroup(world, 'g');
  const second = await waiting(world);
  world.groups.stop();
  await rest(world);
  assert.equal(second.response().errorCode, ErrorCode.NOT_COORDINATOR);
  const { errorCode } = await ask(world, 'JoinGroup', 9, joinRequest(9, 'g'));
  assert.equal(errorCode, ErrorCode.NOT_COORDINATOR);
});

test('group.max.size is a limit', async () => {
  const world = await groupWorld(['group.max.size=1']);
  await stableGroup(world, 'g');
  const { errorCode } = await ask(world, 'JoinGroup', 3, joinRequest(3, 'g'));
  assert.equal(errorCode, ErrorCode.GROUP_MAX_SIZE_REACHED);
});

test.run();
