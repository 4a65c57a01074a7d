/** OffsetCommit, OffsetFetch, OffsetDelete, DeleteGroups and what expires (KIP-211, KIP-496). */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { CoordinatorDriver, commitError, groupId } from './coordinator_driver.ts';

const test = suite('offsets');
const hourMs = 3_600_000;
const weekMs = 7 * 24 * hourMs;

test('a commit is answered and seen once it is stored', () => {
  const driver = new CoordinatorDriver();
  driver.commitsAtOnce = false;
  const commit = driver.commitOffset(5n);
  assert.equal(commit.isAnswered, false);
  assert.deepEqual(driver.offsets(), {});
  driver.commit();
  assert.equal(commitError(commit), ErrorCode.NONE);
  assert.deepEqual(driver.offsets(), { 't-0': 5n });
  driver.restart();
  assert.deepEqual(driver.offsets(), { 't-0': 5n });
});

test('a commit that cannot be stored leaves the one before', () => {
  const driver = new CoordinatorDriver();
  driver.commitOffset(5n);
  driver.commitsAtOnce = false;
  const commits = [driver.commitOffset(6n), driver.commitOffset(7n)];
  driver.fail(ErrorCode.KAFKA_STORAGE_ERROR);
  for (const commit of commits) assert.equal(commitError(commit), ErrorCode.NOT_COORDINATOR);
  assert.deepEqual(driver.offsets(), { 't-0': 5n });
});

test('offsets are 64 bits wide', () => {
  const driver = new CoordinatorDriver();
  driver.commitOffset(2n ** 63n - 1n);
  assert.deepEqual(driver.offsets(), { 't-0': 2n ** 63n - 1n });
});

test('the metadata has a size limit of its own for each partition', () => {
  const driver = new CoordinatorDriver({ offsetMetadataMaxBytes: 4 });
  const partitions = ['four', 'fiver'].map((committedMetadata, partitionIndex) => ({
    partitionIndex,
    committedOffset: 1n,
    committedLeaderEpoch: 3,
    committedMetadata,
  }));
  const { body } = driver.commitOffset(0n, { topics: [{ name: 't', topicId: 'T', partitions }] });
  assert.deepEqual(
    body.topics[0]?.partitions.map(({ errorCode }) => errorCode),
    [ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE],
  );
  const topics = [{ name: 't', topicId: 'T', partitionIndexes: [0, 1] }];
  const fetched = driver.ask('OffsetFetch', { groupId, memberId: null, memberEpoch: -1, topics });
  assert.deepEqual(fetched.body.topics[0]?.partitions, [
    {
      partitionIndex: 0,
      committedOffset: 1n,
      committedLeaderEpoch: 3,
      metadata: 'four',
      errorCode: 0,
    },
    {
      partitionIndex: 1,
      committedOffset: -1n,
      committedLeaderEpoch: -1,
      metadata: '',
      errorCode: 0,
    },
  ]);
});

test('only members of the generation commit while there are members', () => {
  const driver = new CoordinatorDriver();
  const { memberId, generationId } = driver.alone();
  const errorOf = (more: Parameters<typeof driver.commitOffset>[1]): ErrorCode | undefined =>
    commitError(driver.commitOffset(1n, more));
  const member = { memberId, generationIdOrMemberEpoch: generationId };
  assert.equal(errorOf(member), ErrorCode.NONE);
  assert.equal(errorOf({}), ErrorCode.UNKNOWN_MEMBER_ID);
  assert.equal(errorOf({ ...member, memberId: 'stranger' }), ErrorCode.UNKNOWN_MEMBER_ID);
  assert.equal(errorOf({ ...member, generationIdOrMemberEpoch: 0 }), ErrorCode.ILLEGAL_GENERATION);
  assert.equal(errorOf({ ...member, groupInstanceId: 'i' }), ErrorCode.UNKNOWN_MEMBER_ID);
  // While members gather they may still commit what they have done; when the new generation begins, not any more.
  const joining = driver.join();
  assert.equal(errorOf(member), ErrorCode.NONE);
  driver.join({ memberId });
  assert.equal(joining.body.generationId, 2);
  assert.equal(
    errorOf({ memberId, generationIdOrMemberEpoch: 2 }),
    ErrorCode.REBALANCE_IN_PROGRESS,
  );
});

test('a static member that was replaced cannot commit', () => {
  const driver = new CoordinatorDriver();
  const { memberId, generationId } = driver.alone({ groupInstanceId: 'i' });
  driver.join({ groupInstanceId: 'i' });
  const request = { memberId, generationIdOrMemberEpoch: generationId, groupInstanceId: 'i' };
  assert.equal(commitError(driver.commitOffset(1n, request)), ErrorCode.FENCED_INSTANCE_ID);
});

test('a commit is a sign of life', () => {
  const driver = new CoordinatorDriver();
  const { memberId, generationId } = driver.alone();
  for (let index = 0; index < 4; index += 1) {
    driver.advance(9_000);
    driver.commitOffset(1n, { memberId, generationIdOrMemberEpoch: generationId });
  }
  assert.equal(driver.state(), 'Stable');
});

test('a generation of a group that does not exist', () => {
  const driver = new CoordinatorDriver();
  const request = { memberId: 'm', generationIdOrMemberEpoch: 1 };
  const errorOf = (apiVersion: number): ErrorCode | undefined =>
    commitError(driver.commitOffset(1n, { ...request, apiVersion }));
  assert.equal(errorOf(8), ErrorCode.ILLEGAL_GENERATION);
  assert.equal(errorOf(9), ErrorCode.GROUP_ID_NOT_FOUND);
});

test('a group that has only offsets is listed without a protocol type', () => {
  const driver = new CoordinatorDriver();
  driver.commitOffset(1n);
  const list = driver.ask('ListGroups', { statesFilter: ['EMPTY'], typesFilter: ['Classic'] });
  assert.deepEqual(list.body.groups, [
    { groupId, protocolType: '', groupState: 'Empty', groupType: 'classic' },
  ]);
  const none = driver.ask('ListGroups', { statesFilter: ['stable'], typesFilter: [] });
  assert.deepEqual(none.body.groups, []);
});

test('KIP-496: offsets of topics that nobody is subscribed to can be deleted', () => {
  const driver = new CoordinatorDriver();
  const { memberId, generationId } = driver.alone();
  for (const name of ['t', 'u'])
    driver.commitOffset(1n, {
      memberId,
      generationIdOrMemberEpoch: generationId,
      topics: [
        {
          name,
          topicId: name,
          partitions: [
            {
              partitionIndex: 0,
              committedOffset: 1n,
              committedLeaderEpoch: -1,
              committedMetadata: null,
            },
          ],
        },
      ],
    });
  const topics = ['t', 'u'].map((name) => ({ name, partitions: [{ partitionIndex: 0 }] }));
  const { body } = driver.ask('OffsetDelete', { groupId, topics });
  assert.deepEqual(
    body.topics.map(({ partitions }) => partitions[0]?.errorCode),
    [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE],
  );
  assert.deepEqual(driver.offsets(), { 't-0': 1n });
  const missing = driver.ask('OffsetDelete', { groupId: 'none', topics });
  assert.equal(missing.body.errorCode, ErrorCode.GROUP_ID_NOT_FOUND);
});

test('groups with members are not deleted, others with their offsets', () => {
  const driver = new CoordinatorDriver();
  const deletion = (id: string): ErrorCode =>
    driver.ask('DeleteGroups', { groupId: id }).body.errorCode;
  assert.equal(deletion(groupId), ErrorCode.GROUP_ID_NOT_FOUND);
  const { memberId, generationId } = driver.alone();
  driver.commitOffset(1n, { memberId, generationIdOrMemberEpoch: generationId });
  assert.equal(deletion(groupId), ErrorCode.NON_EMPTY_GROUP);
  driver.advance(10_000);
  assert.equal(deletion(groupId), ErrorCode.NONE);
  assert.equal(driver.state(), 'Dead');
  assert.deepEqual(driver.offsets(), {});
  driver.restart();
  assert.equal(driver.state(), 'Dead');
  assert.deepEqual(driver.offsets(), {});
});

test('a group of more offsets than a batch should hold is deleted in several', () => {
  const driver = new CoordinatorDriver();
  for (let partition = 0; partition < 1_200; partition += 1) driver.commitOffset(1n, { partition });
  driver.commitsAtOnce = false;
  const deletion = driver.ask('DeleteGroups', { groupId });
  assert(driver.appends.length > 1 && driver.appends.every(({ records }) => records.length <= 500));
  driver.commit();
  assert.equal(deletion.body.errorCode, ErrorCode.NONE);
  driver.restart();
  assert.equal(driver.state(), 'Dead');
});

test('a deletion that cannot be stored leaves the group as it was', () => {
  const driver = new CoordinatorDriver();
  driver.commitOffset(1n);
  driver.commitsAtOnce = false;
  const deletion = driver.ask('DeleteGroups', { groupId });
  driver.fail(ErrorCode.NOT_ENOUGH_REPLICAS);
  assert.equal(deletion.body.errorCode, ErrorCode.COORDINATOR_NOT_AVAILABLE);
  assert.equal(driver.state(), 'Empty');
  assert.deepEqual(driver.offsets(), { 't-0': 1n });
});

test('a commit that is on its way goes with its group', () => {
  const driver = new CoordinatorDriver();
  driver.commitOffset(1n);
  driver.commitsAtOnce = false;
  driver.commitOffset(2n, { partition: 1 });
  driver.ask('DeleteGroups', { groupId });
  driver.commit();
  driver.restart();
  assert.deepEqual(driver.offsets(), {});
});

test('KIP-211: offsets without members expire by their commit, those of a group when its last member has left', () => {
  const driver = new CoordinatorDriver();
  driver.commitOffset(1n);
  driver.advance(weekMs - hourMs);
  assert.deepEqual(driver.offsets(), { 't-0': 1n });
  driver.advance(2 * hourMs);
  assert.deepEqual([driver.offsets(), driver.state()], [{}, 'Dead']);

  const other = new CoordinatorDriver();
  const { memberId, generationId } = other.alone();
  other.commitOffset(1n, { memberId, generationIdOrMemberEpoch: generationId });
  for (let heartbeats = 0; heartbeats < weekMs / hourMs + 2; heartbeats += 1) {
    other.heartbeat(memberId, generationId);
    other.commitsAtOnce = true;
    other.advance(9_000);
  }
  other.advance(10_000);
  assert.equal(other.state(), 'Empty');
  other.advance(weekMs - hourMs);
  assert.deepEqual(other.offsets(), { 't-0': 1n });
  other.advance(2 * hourMs);
  assert.deepEqual([other.offsets(), other.state()], [{}, 'Dead']);
});

test('KIP-211: a stable group loses the offsets of topics that it is not subscribed to', () => {
  const driver = new CoordinatorDriver({ offsetsRetentionMs: hourMs });
  driver.commitOffset(1n);
  const partitions = [
    { partitionIndex: 0, committedOffset: 1n, committedLeaderEpoch: -1, committedMetadata: null },
  ];
  driver.commitOffset(1n, { topics: [{ name: 'u', topicId: 'U', partitions }] });
  const { memberId, generationId } = driver.alone();
  for (let elapsed = 0; elapsed < 2 * hourMs; elapsed += 9_000) {
    driver.heartbeat(memberId, generationId);
    driver.advance(9_000);
  }
  assert.deepEqual(driver.offsets(), { 't-0': 1n });
});

test('an offset of a topic that has been made anew is none of the new one', () => {
  const driver = new CoordinatorDriver();
  const none = 'AAAAAAAAAAAAAAAAAAAAAA';
  driver.commitOffset(5n);
  const offsetOf = (topicId: string) => {
    const topics = [{ name: 't', topicId, partitionIndexes: [0] }];
    const body = { groupId, memberId: null, memberEpoch: -1, topics };
    return driver.ask('OffsetFetch', body).body.topics[0]?.partitions[0]?.committedOffset;
  };
  assert.deepEqual([offsetOf('T'), offsetOf(none), offsetOf('U')], [5n, 5n, -1n]);
});

test('when thousands of groups expire, others have their turn in between', () => {
  const driver = new CoordinatorDriver({ offsetsRetentionMs: hourMs });
  const count = 5_000;
  for (let at = 0; at < count; at += 1) driver.commitOffset(1n, { groupId: `group ${at}` });
  driver.advance(hourMs - 1);
  driver.commitsAtOnce = false;
  let ticks = 0;
  const listed = () => driver.ask('ListGroups', { statesFilter: [], typesFilter: [] }).body.groups;
  for (; listed().length > 0 && ticks < count; ticks += 1) {
    const waitMs = driver.coordinator.nextDeadlineMs - driver.nowMs;
    assert(waitMs > 0, 'the next part comes in the same turn');
    driver.advance(waitMs);
    assert(driver.appends.length <= 200, `${driver.appends.length} appends in one turn`);
    driver.commit();
  }
  assert.equal(listed().length, 0);
  assert(driver.nowMs < 2 * hourMs);
});

test('a retention that the client asked for counts', () => {
  const driver = new CoordinatorDriver();
  driver.commitOffset(1n, { retentionTimeMs: BigInt(hourMs), apiVersion: 4 });
  driver.advance(2 * hourMs);
  assert.deepEqual(driver.offsets(), {});
});

test('offsets go with their topic, also when it went while loading', () => {
  const driver = new CoordinatorDriver();
  driver.commitOffset(1n);
  driver.step({ type: 'topics_changed', changed: [], deleted: ['t'] });
  assert.deepEqual(driver.offsets(), {});
  driver.restart();
  assert.deepEqual(driver.offsets(), {});
});

test.run();
