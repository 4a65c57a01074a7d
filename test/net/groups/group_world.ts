/** A world with the groups' topic, and clients of groups in short form. */
import assert from 'node:assert/strict';
import type {
  ApiName,
  JoinGroupResponse,
  MessageInputs,
} from '../../../net/protocol/messages.gen.ts';
import { type Sent, WorldConnection } from '../data_path/client.ts';
import { ShardWorld } from '../data_path/shard_world.ts';

const settings: readonly string[] = [
  'offsets.topic.num.partitions=3',
  'group.initial.rebalance.delay.ms=0',
];

/** Topics `t` (2 partitions) and `u`, and the topic of the groups' state. */
export async function groupWorld(more: readonly string[] = []): Promise<ShardWorld> {
  const world = await ShardWorld.start({
    topics: [
      ['t', 2],
      ['u', 1],
    ],
    settings: [...settings, ...more],
  });
  await new WorldConnection(world).callLater('FindCoordinator', 4, { coordinatorKeys: ['g'] });
  await rest(world);
  return world;
}

/** Turns, flushes and promises until nothing moves any more. */
export async function rest(world: ShardWorld): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) {
    world.settle();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** The request is answered only once the world has come to rest, or not at all. */
export async function ask<N extends ApiName>(
  world: ShardWorld,
  name: N,
  version: number,
  request: MessageInputs[`${N}Request`],
): Promise<ReturnType<Sent<N>['response']>> {
  return (await new WorldConnection(world).callLater(name, version, request)) as ReturnType<
    Sent<N>['response']
  >;
}

export function joinRequest(
  version: number,
  group: string,
  memberId = '',
  instance: string | null = null,
): MessageInputs['JoinGroupRequest'] {
  return {
    groupId: group,
    sessionTimeoutMs: 10_000,
    ...(version >= 1 ? { rebalanceTimeoutMs: 20_000 } : {}),
    memberId,
    ...(version >= 5 ? { groupInstanceId: instance } : {}),
    protocolType: 'consumer',
    protocols: [{ name: 'range', metadata: new Uint8Array([0, 1]) }],
  };
}

/** A dynamic member enters the group, alone or when the others have come back, too. */
async function join(world: ShardWorld, group: string): Promise<JoinGroupResponse> {
  const told = await ask(world, 'JoinGroup', 9, joinRequest(9, group));
  assert.equal(told.errorCode, 79, 'MEMBER_ID_REQUIRED');
  return ask(world, 'JoinGroup', 9, joinRequest(9, group, told.memberId));
}

/** The only member of a new group, with its assignment: the group is stable. */
export async function stableGroup(world: ShardWorld, group: string): Promise<JoinGroupResponse> {
  const joined = await join(world, group);
  assert.equal(joined.errorCode, 0);
  const { memberId, generationId, protocolType, protocolName } = joined;
  const synced = await ask(world, 'SyncGroup', 5, {
    groupId: group,
    generationId,
    memberId,
    protocolType,
    protocolName,
    assignments: [{ memberId, assignment: new Uint8Array([7]) }],
  });
  assert.deepEqual([synced.errorCode, [...synced.assignment]], [0, [7]]);
  return joined;
}

/** Commits offsets of topic `t` as an administrator. */
export function commitRequest(
  group: string,
  offsets: readonly (readonly [partition: number, offset: number])[],
): MessageInputs['OffsetCommitRequest'] {
  const partitions = offsets.map(([partitionIndex, offset]) => ({
    partitionIndex,
    committedOffset: BigInt(offset),
    committedLeaderEpoch: 4,
    committedMetadata: `at ${offset}`,
  }));
  return { groupId: group, topics: [{ name: 't', partitions }] };
}

/** What the group has committed of topic `t`, by partition. */
export async function committed(world: ShardWorld, group: string): Promise<Record<number, number>> {
  const { groups } = await ask(world, 'OffsetFetch', 8, {
    groups: [{ groupId: group, topics: null }],
  });
  assert.equal(groups[0]?.errorCode, 0);
  const partitions = groups[0].topics.flatMap((topic) =>
    topic.name === 't' ? topic.partitions : [],
  );
  return Object.fromEntries(
    partitions.map((one) => [one.partitionIndex, Number(one.committedOffset)]),
  );
}
