/** Groups of the consumer protocol, claim by claim of KIP-848. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { ConsumerGroupHeartbeatRequest } from '../../../engine/groups/group_api.ts';
import { beat, describe, newDriver, owning, told } from './consumer_driver.ts';
import { type Asked, CoordinatorDriver } from './coordinator_driver.ts';

const test = suite('consumer groups');
const sessionMs = 45_000;

const errorOf = (asked: Asked<'ConsumerGroupHeartbeat'>): ErrorCode => asked.body.errorCode;

test('the first member gets everything at once', () => {
  const driver = newDriver(3);
  const { body } = beat(driver, 'a', 0);
  assert.deepEqual([body.errorCode, body.memberId, body.memberEpoch], [ErrorCode.NONE, 'a', 2]);
  assert.equal(body.heartbeatIntervalMs, 5_000);
  assert.deepEqual(told(body), [0, 1, 2]);
});

test('version 0 has the coordinator name the member', () => {
  const driver = newDriver(1);
  assert.equal(beat(driver, '', 0, { apiVersion: 0 }).body.memberId, 'uuid1');
  assert.equal(errorOf(beat(driver, '', 0)), ErrorCode.INVALID_REQUEST);
});

test('nothing is told before it is stored, and what failed is undone', () => {
  const driver = newDriver(2);
  driver.commitsAtOnce = false;
  const joining = beat(driver, 'a', 0);
  assert.equal(joining.isAnswered, false);
  driver.fail(ErrorCode.NOT_ENOUGH_REPLICAS);
  assert.equal(errorOf(joining), ErrorCode.COORDINATOR_NOT_AVAILABLE);
  assert.equal(errorOf(beat(driver, 'a', 2)), ErrorCode.GROUP_ID_NOT_FOUND);
  const again = beat(driver, 'a', 0);
  driver.commit();
  assert.deepEqual(told(again.body), [0, 1]);
});

test('of several changes that fail the last is undone first', () => {
  const driver = newDriver(4);
  beat(driver, 'a', 0);
  const before = describe(driver);
  driver.commitsAtOnce = false;
  const waiting = [
    beat(driver, 'b', 0, { instanceId: 'i' }),
    beat(driver, 'a', 2),
    beat(driver, 'a', 2, owning(0, 1)),
    beat(driver, 'b', 3, { instanceId: 'i' }),
    beat(driver, 'b', -2, { instanceId: 'i' }),
    beat(driver, 'c', 0, { instanceId: 'i' }),
    beat(driver, 'a', -1),
  ];
  driver.fail(ErrorCode.NOT_ENOUGH_REPLICAS);
  for (const asked of waiting) assert.equal(errorOf(asked), ErrorCode.COORDINATOR_NOT_AVAILABLE);
  assert.deepEqual(describe(driver), before);
  driver.commitsAtOnce = true;
  assert.deepEqual(told(beat(driver, 'a', 2, owning(0, 1, 2, 3)).body), null);
  driver.advance(sessionMs);
  assert.equal(describe(driver).groupState, 'Empty');
});

test('an answer that has seen what is not stored waits for it', () => {
  const driver = newDriver(2);
  beat(driver, 'a', 0);
  driver.commitsAtOnce = false;
  beat(driver, 'b', 0);
  const waiting = beat(driver, 'a', 2, { ...owning(0, 1) });
  assert.equal(waiting.isAnswered, false);
  driver.fail(ErrorCode.NOT_ENOUGH_REPLICAS);
  assert.equal(errorOf(waiting), ErrorCode.COORDINATOR_NOT_AVAILABLE);
  const { body } = beat(driver, 'a', 2);
  assert.deepEqual([body.errorCode, body.memberEpoch, told(body)], [ErrorCode.NONE, 2, null]);
});

test('partitions are given up before they are given to others, and what is kept never pauses', () => {
  const driver = newDriver(3);
  beat(driver, 'a', 0);
  const second = beat(driver, 'b', 0).body;
  // Nothing is free yet.
  assert.deepEqual([second.memberEpoch, told(second)], [3, []]);
  const revoking = beat(driver, 'a', 2).body;
  assert.deepEqual([revoking.memberEpoch, told(revoking)?.length], [2, 2]);
  const kept = told(revoking) ?? [];
  // Until it says so, it has not given anything up.
  assert.deepEqual(told(beat(driver, 'b', 3).body), null);
  assert.equal(beat(driver, 'a', 2).body.memberEpoch, 2);
  const done = beat(driver, 'a', 2, owning(...kept)).body;
  assert.equal(done.memberEpoch, 3);
  const free = [0, 1, 2].filter((partition) => !kept.includes(partition));
  assert.deepEqual(told(beat(driver, 'b', 3).body), free);
  assert.equal(describe(driver).groupState, 'Stable');
});

test('who does not give up partitions within the rebalance time-out is put out', () => {
  const driver = newDriver(2);
  beat(driver, 'a', 0);
  beat(driver, 'b', 0);
  beat(driver, 'a', 2);
  for (let index = 0; index < 6; index += 1) {
    driver.advance(5_000);
    beat(driver, 'a', 2);
    beat(driver, 'b', 3);
  }
  assert.equal(errorOf(beat(driver, 'a', 2)), ErrorCode.UNKNOWN_MEMBER_ID);
  const { body } = beat(driver, 'b', 3, { ...owning() });
  assert.equal(body.memberEpoch, 4);
});

test('a member is put out when its session ends, and its partitions go to the others', () => {
  const driver = newDriver(2);
  beat(driver, 'a', 0);
  driver.advance(sessionMs - 1);
  assert.equal(errorOf(beat(driver, 'a', 2)), ErrorCode.NONE);
  driver.advance(sessionMs);
  assert.equal(errorOf(beat(driver, 'a', 2)), ErrorCode.UNKNOWN_MEMBER_ID);
  assert.deepEqual(told(beat(driver, 'b', 0).body), [0, 1]);
});

test('a member that leaves frees its partitions at once', () => {
  const driver = newDriver(2);
  beat(driver, 'a', 0);
  assert.equal(beat(driver, 'a', -1).body.memberEpoch, -1);
  assert.equal(describe(driver).groupState, 'Empty');
  assert.deepEqual(told(beat(driver, 'b', 0).body), [0, 1]);
  assert.equal(errorOf(beat(driver, 'a', -1)), ErrorCode.UNKNOWN_MEMBER_ID);
});

test('epochs fence', () => {
  const driver = newDriver(2);
  beat(driver, 'a', 0);
  assert.equal(errorOf(beat(driver, 'a', 3)), ErrorCode.FENCED_MEMBER_EPOCH);
  assert.equal(errorOf(beat(driver, 'stranger', 2)), ErrorCode.UNKNOWN_MEMBER_ID);
  beat(driver, 'b', 0);
  beat(driver, 'a', 2);
  beat(driver, 'a', 2, owning(0));
  // The answer with epoch 3 may have been lost: the epoch before is taken with what it still has.
  assert.equal(errorOf(beat(driver, 'a', 2, owning(0))), ErrorCode.NONE);
  assert.equal(errorOf(beat(driver, 'a', 2, owning(0, 1))), ErrorCode.FENCED_MEMBER_EPOCH);
  assert.equal(errorOf(beat(driver, 'a', 2)), ErrorCode.FENCED_MEMBER_EPOCH);
});

test('a member that joins again under its id is told what it has', () => {
  const driver = newDriver(2);
  beat(driver, 'a', 0);
  const { body } = beat(driver, 'a', 0);
  assert.deepEqual([body.errorCode, body.memberEpoch, told(body)], [ErrorCode.NONE, 2, [0, 1]]);
});

test('a static member that is away keeps its partitions until its session ends, and takes over under a new id', () => {
  const driver = newDriver(2);
  const instance = { instanceId: 'i' };
  beat(driver, 'a', 0, instance);
  assert.equal(errorOf(beat(driver, 'b', 0, instance)), ErrorCode.UNRELEASED_INSTANCE_ID);
  assert.equal(beat(driver, 'a', -2, instance).body.memberEpoch, -2);
  const epochBefore = describe(driver).groupEpoch;
  const back = beat(driver, 'b', 0, instance).body;
  assert.deepEqual([back.memberEpoch, told(back)], [2, [0, 1]]);
  assert.equal(describe(driver).groupEpoch, epochBefore);
  assert.equal(errorOf(beat(driver, 'a', 2, instance)), ErrorCode.FENCED_INSTANCE_ID);
  beat(driver, 'b', -2, instance);
  driver.advance(sessionMs);
  assert.equal(describe(driver).groupState, 'Empty');
});

test('KIP-345: an administrator takes a static member out by its instance id', () => {
  const driver = newDriver(1);
  beat(driver, 'a', 0, { instanceId: 'i' });
  beat(driver, 'b', 0);
  driver.commitsAtOnce = false;
  const members = [
    { memberId: '', groupInstanceId: 'i', reason: null },
    { memberId: 'b', groupInstanceId: null, reason: null },
  ];
  const leaving = driver.ask('LeaveGroup', { groupId: 'group', members });
  assert.equal(leaving.isAnswered, false);
  driver.commit();
  assert.deepEqual(
    leaving.body.members.map(({ errorCode }) => errorCode),
    [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID],
  );
  assert.deepEqual(
    describe(driver).members.map(({ memberId }) => memberId),
    ['b'],
  );
});

test('requests that cannot be taken say why', () => {
  const driver = newDriver(1);
  const refused: readonly (readonly [Partial<ConsumerGroupHeartbeatRequest>, ErrorCode])[] = [
    [{ groupId: '' }, ErrorCode.INVALID_REQUEST],
    [{ instanceId: '' }, ErrorCode.INVALID_REQUEST],
    [{ rackId: '' }, ErrorCode.INVALID_REQUEST],
    [{ rebalanceTimeoutMs: -1 }, ErrorCode.INVALID_REQUEST],
    [{ topicPartitions: null }, ErrorCode.INVALID_REQUEST],
    [owning(0), ErrorCode.INVALID_REQUEST],
    [{ subscribedTopicNames: null }, ErrorCode.INVALID_REQUEST],
    [{ memberEpoch: -3 }, ErrorCode.INVALID_REQUEST],
    [{ memberEpoch: -2 }, ErrorCode.INVALID_REQUEST],
    [{ serverAssignor: 'sticky' }, ErrorCode.UNSUPPORTED_ASSIGNOR],
    [{ subscribedTopicRegex: 't.*' }, ErrorCode.INVALID_REGULAR_EXPRESSION],
    [{ memberEpoch: 1 }, ErrorCode.GROUP_ID_NOT_FOUND],
  ];
  for (const [more, error] of refused) {
    const { body } = beat(driver, 'a', 0, more);
    assert.equal(body.errorCode, error, JSON.stringify(more));
    assert(body.errorMessage, JSON.stringify(more));
  }
  assert.equal(describe(driver).errorCode, ErrorCode.GROUP_ID_NOT_FOUND);
});

test('group.consumer.max.size', () => {
  const driver = newDriver(1, { consumerMaxSize: 1 });
  beat(driver, 'a', 0);
  assert.equal(errorOf(beat(driver, 'b', 0)), ErrorCode.GROUP_MAX_SIZE_REACHED);
});

test('new partitions are given out with the next heartbeat, also when they came while loading', () => {
  const driver = newDriver(1);
  beat(driver, 'a', 0);
  driver.topics.set('t', { topicId: 'T', partitionCount: 2 });
  assert.equal(told(beat(driver, 'a', 2).body), null);
  driver.step({ type: 'topics_changed', changed: ['t'], deleted: [] });
  assert.deepEqual(told(beat(driver, 'a', 2).body), [0, 1]);
  driver.topics.set('t', { topicId: 'T', partitionCount: 3 });
  driver.restart();
  assert.deepEqual(told(beat(driver, 'a', 3).body), [0, 1, 2]);
});

test('partitions of a topic that is deleted are taken away, with their offsets', () => {
  const driver = newDriver(1);
  beat(driver, 'a', 0);
  driver.commitOffset(3n, { memberId: 'a', generationIdOrMemberEpoch: 2 });
  driver.topics.delete('t');
  driver.step({ type: 'topics_changed', changed: [], deleted: ['t'] });
  assert.deepEqual(driver.offsets(), {});
  assert.deepEqual(told(beat(driver, 'a', 2).body), []);
  assert.equal(beat(driver, 'a', 2, owning()).body.memberEpoch, 3);
});

test('a topic that does not exist yet is taken up when it comes', () => {
  const driver = new CoordinatorDriver({ consumerAssignmentIntervalMs: 0 });
  assert.deepEqual(told(beat(driver, 'a', 0).body), []);
  driver.topics.set('t', { topicId: 'T', partitionCount: 1 });
  driver.step({ type: 'topics_changed', changed: ['t'], deleted: [] });
  assert.deepEqual(told(beat(driver, 'a', 2).body), [0]);
});

test('a changed subscription moves partitions', () => {
  const driver = newDriver(1);
  driver.topics.set('u', { topicId: 'U', partitionCount: 1 });
  beat(driver, 'a', 0);
  const { body } = beat(driver, 'a', 2, { subscribedTopicNames: ['u'] });
  assert.deepEqual([body.memberEpoch, body.assignment], [2, { topicPartitions: [] }]);
  const moved = beat(driver, 'a', 2, owning()).body;
  assert.deepEqual(moved.assignment, { topicPartitions: [{ topicId: 'U', partitions: [0] }] });
});

test('a changed subscription does not wait for the assignment interval', () => {
  const driver = newDriver(1, { consumerAssignmentIntervalMs: 1_000 });
  driver.topics.set('u', { topicId: 'U', partitionCount: 1 });
  beat(driver, 'a', 0);
  const { body } = beat(driver, 'a', 2, { subscribedTopicNames: ['u'] });
  assert.deepEqual(body.assignment, { topicPartitions: [] });
});

test('members that join one after the other share the computation of the target', () => {
  const driver = newDriver(2, { consumerAssignmentIntervalMs: 1_000 });
  beat(driver, 'a', 0);
  for (const memberId of ['b', 'c', 'd'])
    assert.equal(beat(driver, memberId, 0).body.memberEpoch, 2);
  assert.equal(describe(driver).assignmentEpoch, 2);
  driver.advance(1_000);
  beat(driver, 'b', 2);
  assert.equal(describe(driver).assignmentEpoch, 5);
});

test('who waits for partitions is told to come again soon', () => {
  const driver = newDriver(2, { consumerAssignmentIntervalMs: 1_000 });
  const intervalOf = (asked: Asked<'ConsumerGroupHeartbeat'>): number =>
    asked.body.heartbeatIntervalMs;
  assert.equal(intervalOf(beat(driver, 'a', 0)), 5_000);
  // The assignment with this member is not computed yet.
  assert.equal(intervalOf(beat(driver, 'b', 0)), 1_000);
  driver.advance(1_000);
  // It is now, but its partition is still another's.
  assert.equal(intervalOf(beat(driver, 'b', 2)), 1_000);
  const [kept = 0] = told(beat(driver, 'a', 2).body) ?? [];
  assert.equal(intervalOf(beat(driver, 'a', 2, owning(kept))), 5_000);
  assert.equal(intervalOf(beat(driver, 'b', 3)), 5_000);
});

test('an epoch without members has nothing to assign', () => {
  const driver = newDriver(2);
  beat(driver, 'a', 0);
  beat(driver, 'a', -1);
  const { groupEpoch, assignmentEpoch } = describe(driver);
  assert.deepEqual([groupEpoch, assignmentEpoch], [3, 3]);
  assert.deepEqual(told(beat(driver, 'b', 0).body), [0, 1]);
});

test('after a restart everything is as it was', () => {
  const driver = newDriver(3);
  beat(driver, 'a', 0);
  beat(driver, 'b', 0, { instanceId: 'i' });
  beat(driver, 'a', 2);
  const before = describe(driver);
  assert.equal(before.groupState, 'Reconciling');
  driver.restart();
  assert.deepEqual(describe(driver), before);
  // Also of a log of which the cleaner has kept the last record of each key.
  const last = new Map(
    driver.log.map((record) => [JSON.stringify([record.type, record.key]), record]),
  );
  const cleaned = new CoordinatorDriver({}, [...last.values()].reverse());
  cleaned.topics.set('t', { topicId: 'T', partitionCount: 3 });
  const after = describe(cleaned);
  const byId = (a: { memberId: string }, b: { memberId: string }): number =>
    a.memberId < b.memberId ? -1 : 1;
  assert.deepEqual([...after.members].sort(byId), [...before.members].sort(byId));
});

test('sessions begin anew after a restart', () => {
  const driver = newDriver(1);
  beat(driver, 'a', 0);
  driver.advance(sessionMs - 1);
  driver.restart();
  driver.advance(sessionMs - 1);
  assert.equal(errorOf(beat(driver, 'a', 2)), ErrorCode.NONE);
});

test.run();
