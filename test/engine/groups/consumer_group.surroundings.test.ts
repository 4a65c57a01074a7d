/** What consumer groups have to do with offsets, with the other protocol and with administrators; and their size. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { beat, describe, newDriver, owning, told } from './consumer_driver.ts';
import { type Asked, commitError, groupId } from './coordinator_driver.ts';

const test = suite('consumer groups and their surroundings');

const errorOf = (asked: Asked<'ConsumerGroupHeartbeat'>): ErrorCode => asked.body.errorCode;

test('commits carry the member epoch', () => {
  const driver = newDriver(2);
  beat(driver, 'a', 0);
  const errorAt = (epoch: number, partition: number, apiVersion = 9): ErrorCode | undefined =>
    commitError(
      driver.commitOffset(1n, {
        memberId: 'a',
        generationIdOrMemberEpoch: epoch,
        partition,
        apiVersion,
      }),
    );
  assert.equal(errorAt(2, 0), ErrorCode.NONE);
  assert.equal(errorAt(2, 0, 8), ErrorCode.UNSUPPORTED_VERSION);
  assert.equal(errorAt(3, 0), ErrorCode.STALE_MEMBER_EPOCH);
  assert.equal(commitError(driver.commitOffset(1n)), ErrorCode.UNKNOWN_MEMBER_ID);
  beat(driver, 'b', 0);
  const [kept] = told(beat(driver, 'a', 2).body) ?? [];
  assert(kept !== undefined);
  beat(driver, 'a', 2, owning(kept));
  // KIP-1251: what it has had since that epoch it may still commit with it.
  assert.equal(errorAt(2, kept), ErrorCode.NONE);
  assert.equal(errorAt(2, 1 - kept), ErrorCode.STALE_MEMBER_EPOCH);
});

test('a fetch of offsets that names a member is checked', () => {
  const driver = newDriver(1);
  beat(driver, 'a', 0);
  const errorAt = (memberId: string | null, memberEpoch: number): ErrorCode =>
    driver.ask('OffsetFetch', { groupId, memberId, memberEpoch, topics: null }).body.errorCode;
  assert.equal(errorAt('a', 2), ErrorCode.NONE);
  assert.equal(errorAt(null, -1), ErrorCode.NONE);
  assert.equal(errorAt('a', 3), ErrorCode.STALE_MEMBER_EPOCH);
  assert.equal(errorAt('b', 2), ErrorCode.UNKNOWN_MEMBER_ID);
});

test('the two protocols do not meet in a group with members, and an empty group changes over with its offsets', () => {
  const driver = newDriver(1);
  const { memberId, generationId } = driver.alone();
  driver.commitOffset(7n, { memberId, generationIdOrMemberEpoch: generationId });
  assert.equal(errorOf(beat(driver, 'a', 0)), ErrorCode.GROUP_ID_NOT_FOUND);
  assert.equal(describe(driver).errorCode, ErrorCode.GROUP_ID_NOT_FOUND);
  driver.advance(10_000);
  assert.equal(errorOf(beat(driver, 'a', 0)), ErrorCode.NONE);
  assert.deepEqual(driver.offsets(), { 't-0': 7n });
  assert.equal(driver.join().body.errorCode, ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
  assert.equal(driver.state(), 'Dead', 'DescribeGroups knows classic groups only');
  driver.restart();
  assert.equal(describe(driver).groupState, 'Stable');
  beat(driver, 'a', -1);
  assert.equal(driver.join().body.errorCode, ErrorCode.NONE);
  assert.deepEqual(driver.offsets(), { 't-0': 7n });
  driver.restart();
  assert.deepEqual(driver.offsets(), { 't-0': 7n });
});

test('nobody joins a group while it is being deleted, in either protocol', () => {
  const driver = newDriver(1);
  driver.commitOffset(1n);
  driver.commitsAtOnce = false;
  driver.ask('DeleteGroups', { groupId });
  assert.equal(errorOf(beat(driver, 'a', 0)), ErrorCode.COORDINATOR_NOT_AVAILABLE);
  driver.commit();
  driver.commitsAtOnce = true;
  assert.equal(errorOf(beat(driver, 'a', 0)), ErrorCode.NONE);
  beat(driver, 'a', -1);
  driver.commitsAtOnce = false;
  const deletion = driver.ask('DeleteGroups', { groupId });
  assert.equal(errorOf(beat(driver, 'a', 0)), ErrorCode.COORDINATOR_NOT_AVAILABLE);
  assert.equal(driver.join().body.errorCode, ErrorCode.COORDINATOR_NOT_AVAILABLE);
  driver.fail(ErrorCode.NOT_ENOUGH_REPLICAS);
  assert.equal(deletion.body.errorCode, ErrorCode.COORDINATOR_NOT_AVAILABLE);
  assert.equal(describe(driver).groupState, 'Empty');
});

test('ListGroups, DeleteGroups and OffsetDelete treat them as Kafka does', () => {
  const driver = newDriver(1);
  beat(driver, 'a', 0);
  driver.commitOffset(1n, { memberId: 'a', generationIdOrMemberEpoch: 2 });
  const { groups } = driver.ask('ListGroups', { statesFilter: [], typesFilter: ['consumer'] }).body;
  assert.deepEqual(groups, [
    { groupId, protocolType: 'consumer', groupState: 'Stable', groupType: 'consumer' },
  ]);
  const deletion = (): ErrorCode => driver.ask('DeleteGroups', { groupId }).body.errorCode;
  assert.equal(deletion(), ErrorCode.NON_EMPTY_GROUP);
  const topics = [{ name: 't', partitions: [{ partitionIndex: 0 }] }];
  const refused = driver.ask('OffsetDelete', { groupId, topics }).body.topics[0]?.partitions[0];
  assert.equal(refused?.errorCode, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC);
  beat(driver, 'a', -1);
  assert.equal(deletion(), ErrorCode.NONE);
  driver.restart();
  assert.equal(describe(driver).errorCode, ErrorCode.GROUP_ID_NOT_FOUND);
  assert.deepEqual(driver.offsets(), {});
});

test('1,000 members over 1,000 partitions settle within two heartbeat intervals of the last join', () => {
  const driver = newDriver(1_000, { consumerAssignmentIntervalMs: 1_000 });
  const members = Array.from({ length: 1_000 }, (_, index) => ({
    memberId: `m${index}`,
    epoch: 0,
    owned: [] as readonly number[],
  }));
  const heartbeat = (member: (typeof members)[number], mustTell: boolean): void => {
    const { memberId, epoch } = member;
    const { body } = beat(driver, memberId, epoch, mustTell ? owning(...member.owned) : {});
    assert.equal(body.errorCode, ErrorCode.NONE);
    member.epoch = body.memberEpoch;
    const assigned = told(body);
    if (assigned === null) return;
    member.owned = assigned;
    // A client that has given up something says so at once.
    if (!mustTell && epoch !== 0) heartbeat(member, true);
  };
  for (const member of members) {
    heartbeat(member, false);
    driver.advance(10);
  }
  for (let round = 0; round < 2; round += 1) {
    for (const member of members) {
      driver.advance(5);
      heartbeat(member, false);
    }
  }
  assert.equal(describe(driver).groupState, 'Stable');
  assert(members.every(({ owned }) => owned.length === 1));
});

test.run();
