/** Names in requests of groups that the records of `__consumer_offsets` cannot say: the broker must not end of them. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { ShardWorld } from '../data_path/shard_world.ts';
import {
  ask,
  commitRequest,
  committed,
  groupWorld,
  joinRequest,
  rest,
} from '../groups/group_world.ts';

const test = suite('long names in requests of groups');

/** A frame may hold these as 32,767 bytes that are no UTF-8; each takes three bytes when it is written. */
const threefold = '\ufffd'.repeat(10_923);

/** A test's client cannot encode such names, so the requests begin behind the decoder. */
const ctx = { clientId: 'c', connection: { remoteAddress: '127.0.0.1' } } as never;

async function othersAreServed(world: ShardWorld): Promise<void> {
  await ask(world, 'OffsetCommit', 8, commitRequest('g', [[0, 5]]));
  assert.deepEqual(await committed(world, 'g'), { 0: 5 });
}

test('a group id', async () => {
  const world = await groupWorld();
  const { groups } = world.services;
  const { topics } = await groups.ask(ctx, 'OffsetCommit', {
    groupId: threefold,
    apiVersion: 8,
    generationIdOrMemberEpoch: -1,
    memberId: '',
    groupInstanceId: null,
    retentionTimeMs: -1n,
    topics: [
      {
        name: 't',
        topicId: world.idOf('t'),
        partitions: [
          {
            partitionIndex: 0,
            committedOffset: 1n,
            committedLeaderEpoch: -1,
            committedMetadata: '',
          },
        ],
      },
    ],
  });
  assert.equal(topics[0]?.partitions[0]?.errorCode, ErrorCode.INVALID_GROUP_ID);
  await othersAreServed(world);
});

test('an instance id, which a member id begins with', async () => {
  const world = await groupWorld();
  const joined = await ask(world, 'JoinGroup', 9, joinRequest(9, 'g', '', 'i'.repeat(32_767)));
  assert.equal(joined.errorCode, 0);
  const { generationId, memberId } = joined;
  assert.match(memberId, /^i{10000}-[0-9a-f]{32}$/);
  const beat = { groupId: 'g', generationId, memberId };
  assert.equal((await ask(world, 'Heartbeat', 2, beat)).errorCode, 0);
});

test('a protocol, which stands in the record of a generation', async () => {
  const world = await groupWorld();
  const group: string = 'p';
  const { groups } = world.services;
  const joining = groups.ask(ctx, 'JoinGroup', {
    groupId: group,
    sessionTimeoutMs: 10_000,
    rebalanceTimeoutMs: 10_000,
    memberId: '',
    groupInstanceId: null,
    protocolType: 'consumer',
    protocols: [{ name: threefold, metadata: new Uint8Array(0) }],
    reason: null,
    requireKnownMemberId: false,
    supportSkippingAssignment: false,
  });
  await rest(world);
  const { memberId, generationId } = await joining;
  const syncing = groups.ask(ctx, 'SyncGroup', {
    groupId: group,
    generationId,
    memberId,
    groupInstanceId: null,
    protocolType: null,
    protocolName: null,
    assignments: [],
  });
  await rest(world);
  assert.equal((await syncing).errorCode, ErrorCode.UNKNOWN_SERVER_ERROR);
  await othersAreServed(world);
});

test.run();
