import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { MessageInputs } from '../../../net/protocol/messages.gen.ts';
import type { ShardWorld } from '../data_path/shard_world.ts';
import { ask, commitRequest, groupWorld, rest } from '../groups/group_world.ts';

const test = suite('68, 69: consumer groups');

type Heartbeat = MessageInputs['ConsumerGroupHeartbeatRequest'];

function beat(world: ShardWorld, version: number, change: Partial<Heartbeat>) {
  return ask(world, 'ConsumerGroupHeartbeat', version, {
    groupId: 'g',
    memberId: 'm',
    memberEpoch: 0,
    ...change,
  });
}

/** What a member says when it joins. */
const joining: Partial<Heartbeat> = {
  memberEpoch: 0,
  rebalanceTimeoutMs: 60_000,
  subscribedTopicNames: ['t'],
  topicPartitions: [],
};

test('a member alone gets everything, with its first heartbeat', async () => {
  const world = await groupWorld();
  const answer = await beat(world, 1, joining);
  assert.deepEqual(
    [answer.errorCode, answer.memberId, answer.memberEpoch, answer.heartbeatIntervalMs],
    [0, 'm', 2, 5_000],
  );
  const topicPartitions = [{ topicId: world.idOf('t'), partitions: [0, 1] }];
  assert.deepEqual(answer.assignment, { topicPartitions });
  // Nothing new: nothing is said.
  const again = await beat(world, 1, { memberEpoch: 2, topicPartitions });
  assert.deepEqual([again.errorCode, again.memberEpoch, again.assignment], [0, 2, null]);
});

test('v0: the broker names the member', async () => {
  const world = await groupWorld();
  const answer = await beat(world, 0, { ...joining, memberId: '' });
  assert.equal(answer.errorCode, 0);
  assert((answer.memberId ?? '').length > 0);
});

test('a second member gets what the first has let go of, and the first keeps the rest', async () => {
  const world = await groupWorld();
  const topicId = world.idOf('t');
  const first = await beat(world, 1, joining);
  assert.equal(first.memberEpoch, 2);
  const owned = [{ topicId, partitions: [0, 1] }];
  world.advance(2_000);
  const second = await beat(world, 1, { ...joining, memberId: 'n' });
  assert.deepEqual(second.assignment?.topicPartitions ?? [], []);
  world.advance(2_000);
  const told = await beat(world, 1, { memberEpoch: 2, topicPartitions: owned });
  const [kept] = told.assignment?.topicPartitions ?? [];
  assert.equal(kept?.partitions.length, 1);
  const letGo = await beat(world, 1, {
    memberEpoch: told.memberEpoch,
    topicPartitions: told.assignment?.topicPartitions ?? [],
  });
  assert.equal(letGo.errorCode, 0);
  const given = await beat(world, 1, { memberId: 'n', memberEpoch: second.memberEpoch });
  const [other] = given.assignment?.topicPartitions ?? [];
  const both = new Set([...(kept?.partitions ?? []), ...(other?.partitions ?? [])]);
  assert.deepEqual(both, new Set([0, 1]));
});

test('commits go by the epoch of the member', async () => {
  const world = await groupWorld();
  const { memberEpoch } = await beat(world, 1, joining);
  const commit = async (memberId: string, epoch: number): Promise<number | undefined> => {
    const answer = await ask(world, 'OffsetCommit', 9, {
      ...commitRequest('g', [[0, 5]]),
      memberId,
      generationIdOrMemberEpoch: epoch,
    });
    return answer.topics[0]?.partitions[0]?.errorCode;
  };
  assert.equal(await commit('m', memberEpoch), 0);
  assert.equal(await commit('m', memberEpoch + 1), ErrorCode.STALE_MEMBER_EPOCH);
  assert.equal(await commit('stranger', memberEpoch), ErrorCode.UNKNOWN_MEMBER_ID);
  const fetch = async (memberId: string, epoch: number) => {
    const { groups } = await ask(world, 'OffsetFetch', 9, {
      groups: [{ groupId: 'g', memberId, memberEpoch: epoch, topics: null }],
    });
    return [groups[0]?.errorCode, groups[0]?.topics[0]?.partitions[0]?.committedOffset];
  };
  assert.deepEqual(await fetch('m', memberEpoch), [0, 5n]);
  assert.equal((await fetch('m', memberEpoch + 1))[0], ErrorCode.STALE_MEMBER_EPOCH);
  assert.equal((await fetch('stranger', memberEpoch))[0], ErrorCode.UNKNOWN_MEMBER_ID);
});

for (const version of [0, 1])
  test(`describe v${version}; the group survives kill -9`, async () => {
    const world = await groupWorld();
    const topicId = world.idOf('t');
    const { memberEpoch, assignment } = await beat(world, 1, joining);
    await beat(world, 1, { memberEpoch, topicPartitions: assignment?.topicPartitions ?? null });
    world.kill();
    await world.open();
    await rest(world);
    const { groups } = await ask(world, 'ConsumerGroupDescribe', version, {
      groupIds: ['g', 'nobody'],
      includeAuthorizedOperations: true,
    });
    const [group, nobody] = groups;
    assert(group !== undefined);
    assert.deepEqual(
      [group.errorCode, group.groupState, group.groupEpoch, group.assignorName],
      [0, 'Stable', 2, 'uniform'],
    );
    const [member] = group.members;
    const everything = { topicPartitions: [{ topicId, topicName: 't', partitions: [0, 1] }] };
    assert.deepEqual([member?.memberId, member?.memberEpoch], ['m', 2]);
    assert.deepEqual([member?.assignment, member?.targetAssignment], [everything, everything]);
    assert.equal(member?.memberType, version >= 1 ? 1 : -1);
    assert.equal(nobody?.errorCode, ErrorCode.GROUP_ID_NOT_FOUND);
    const alive = await beat(world, 1, { memberEpoch });
    assert.equal(alive.errorCode, 0);
  });

test('a member that leaves is gone at once', async () => {
  const world = await groupWorld();
  const { memberEpoch } = await beat(world, 1, joining);
  const left = await beat(world, 1, { memberEpoch: -1 });
  assert.deepEqual([left.errorCode, left.memberEpoch], [0, -1]);
  assert.equal((await beat(world, 1, { memberEpoch })).errorCode, ErrorCode.UNKNOWN_MEMBER_ID);
});

test('the list has it under its type', async () => {
  const world = await groupWorld();
  await beat(world, 1, joining);
  const { groups } = await ask(world, 'ListGroups', 5, { typesFilter: ['consumer'] });
  assert.deepEqual(
    groups.map((one) => [one.groupId, one.protocolType, one.groupType]),
    [['g', 'consumer', 'consumer']],
  );
});

test('without consumer in group.coordinator.rebalance.protocols its members are refused', async () => {
  const world = await groupWorld(['group.coordinator.rebalance.protocols=classic']);
  const answer = await beat(world, 1, joining);
  assert.equal(answer.errorCode, ErrorCode.UNSUPPORTED_VERSION);
  const { groups } = await ask(world, 'ConsumerGroupDescribe', 1, {
    groupIds: ['g'],
    includeAuthorizedOperations: false,
  });
  assert.deepEqual(
    groups.map(({ groupId, errorCode }) => [groupId, errorCode]),
    [['g', ErrorCode.UNSUPPORTED_VERSION]],
  );
  const classic = await ask(world, 'OffsetCommit', 8, commitRequest('g', [[0, 5]]));
  assert.equal(classic.topics[0]?.partitions[0]?.errorCode, 0);
});

test.run();
