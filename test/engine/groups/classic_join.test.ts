/** JoinGroup of classic groups, rule by rule: KIP-394, KIP-345, KIP-814, and Kafka's own for everything older. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { CoordinatorDriver, groupId, subscription } from './coordinator_driver.ts';

const test = suite('JoinGroup');
const known = 'client-uuid1';

test('KIP-394: a dynamic member is told its id and must come back with it', () => {
  const driver = new CoordinatorDriver();
  const first = driver.join({ requireKnownMemberId: true }).body;
  assert.equal(first.errorCode, ErrorCode.MEMBER_ID_REQUIRED);
  assert.equal(first.memberId, known);
  const second = driver.join({ requireKnownMemberId: true, memberId: first.memberId }).body;
  assert.equal(second.errorCode, ErrorCode.NONE);
  assert.equal(second.memberId, first.memberId);
  assert.equal(second.generationId, 1);
  assert.equal(second.leader, first.memberId);
  assert.equal(second.members.length, 1);
});

test('KIP-394: an id that nobody comes back with is forgotten after the session time-out', () => {
  const driver = new CoordinatorDriver();
  const { memberId } = driver.join({ requireKnownMemberId: true }).body;
  driver.advance(10_000);
  assert.equal(driver.join({ memberId }).body.errorCode, ErrorCode.UNKNOWN_MEMBER_ID);
});

test('a static member is not told to come back', () => {
  const driver = new CoordinatorDriver();
  const { body } = driver.join({ requireKnownMemberId: true, groupInstanceId: 'i' });
  assert.deepEqual([body.errorCode, body.memberId], [ErrorCode.NONE, 'i-uuid1']);
});

test('refuses what no group could take', () => {
  const driver = new CoordinatorDriver();
  const errorOf = (more: Parameters<typeof driver.join>[0]): ErrorCode =>
    driver.join(more).body.errorCode;
  assert.equal(errorOf({ groupId: '' }), ErrorCode.INVALID_GROUP_ID);
  assert.equal(errorOf({ sessionTimeoutMs: 5_999 }), ErrorCode.INVALID_SESSION_TIMEOUT);
  assert.equal(errorOf({ sessionTimeoutMs: 1_800_001 }), ErrorCode.INVALID_SESSION_TIMEOUT);
  assert.equal(errorOf({ memberId: 'stranger' }), ErrorCode.UNKNOWN_MEMBER_ID);
  assert.equal(errorOf({ protocols: [] }), ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
  assert.equal(errorOf({ protocolType: '' }), ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
});

test('refuses another protocol type, and protocols that not all members know', () => {
  const driver = new CoordinatorDriver();
  driver.alone();
  const metadata = subscription('t');
  for (const more of [{ protocolType: 'connect' }, { protocols: [{ name: 'sticky', metadata }] }])
    assert.equal(driver.join(more).body.errorCode, ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
});

test('chooses the protocol that most members prefer among those that all know', () => {
  const driver = new CoordinatorDriver({ initialRebalanceDelayMs: 3_000 });
  const metadata = subscription('t');
  const protocols = (...names: string[]): { name: string; metadata: Uint8Array }[] =>
    names.map((name) => ({ name, metadata }));
  const joins = [
    driver.join({ protocols: protocols('only mine', 'range', 'sticky') }),
    driver.join({ protocols: protocols('sticky', 'range') }),
    driver.join({ protocols: protocols('sticky', 'range') }),
  ];
  driver.advance(6_000);
  for (const { body } of joins) assert.equal(body.protocolName, 'sticky');
});

test('the first rebalance waits for more members as long as they keep coming', () => {
  const driver = new CoordinatorDriver({ initialRebalanceDelayMs: 3_000 });
  const joins = [driver.join({ rebalanceTimeoutMs: 8_000 })];
  for (const delayMs of [2_000, 2_000, 2_000]) {
    driver.advance(delayMs);
    joins.push(driver.join());
    assert(joins.every(({ isAnswered }) => !isAnswered));
  }
  // The first member's rebalance time-out ends it.
  driver.advance(2_000);
  for (const { body } of joins) assert.equal(body.generationId, 1);
  assert.equal(joins.filter(({ body }) => body.members.length === 4).length, 1);
});

test('a later rebalance waits for all members, and at its time-out goes on without those that did not come', () => {
  const driver = new CoordinatorDriver();
  const { memberId } = driver.alone();
  const other = driver.join();
  assert.equal(other.isAnswered, false);
  assert.equal(driver.heartbeat(memberId, 1), ErrorCode.REBALANCE_IN_PROGRESS);
  // Its heartbeats keep its session, but it does not join.
  for (let index = 0; index < 6; index += 1) {
    assert.equal(other.isAnswered, false);
    driver.heartbeat(memberId, 1);
    driver.advance(5_000);
  }
  assert.equal(other.body.generationId, 2);
  assert.equal(other.body.members.length, 1);
  assert.equal(driver.heartbeat(memberId, 1), ErrorCode.UNKNOWN_MEMBER_ID);
});

test('a follower that repeats its join in a stable group gets the generation again; a leader brings about a new one', () => {
  const driver = new CoordinatorDriver({ initialRebalanceDelayMs: 1_000 });
  const first = driver.join();
  const second = driver.join();
  driver.advance(3_000);
  const leader = first.body.leader;
  const follower = first.body.memberId === leader ? second.body.memberId : first.body.memberId;
  driver.sync(leader, 1, { [leader]: 'a', [follower]: 'b' });
  driver.sync(follower, 1);
  const again = driver.join({ memberId: follower }).body;
  assert.deepEqual([again.generationId, again.leader, again.members], [1, leader, []]);
  assert.equal(driver.join({ memberId: leader }).isAnswered, false);
  assert.equal(driver.state(), 'PreparingRebalance');
});

test('a follower with another subscription brings about a new generation', () => {
  const driver = new CoordinatorDriver({ initialRebalanceDelayMs: 1_000 });
  const joins = [driver.join(), driver.join()];
  driver.advance(2_000);
  const leader = joins[0]?.body.leader ?? '';
  const follower = joins.map(({ body }) => body.memberId).find((id) => id !== leader);
  assert(follower);
  driver.sync(leader, 1, {});
  const protocols = [{ name: 'range', metadata: subscription('t', 'u') }];
  assert.equal(driver.join({ memberId: follower, protocols }).isAnswered, false);
  assert.equal(driver.state(), 'PreparingRebalance');
});

test('group.max.size', () => {
  const driver = new CoordinatorDriver({ maxSize: 1 });
  const { memberId } = driver.alone();
  const refused = driver.join().body;
  assert.equal(refused.errorCode, ErrorCode.GROUP_MAX_SIZE_REACHED);
  assert.equal(driver.heartbeat(memberId, 1), ErrorCode.NONE);
});

test('KIP-345: a static member that is back keeps its assignment, and nobody else notices', () => {
  const driver = new CoordinatorDriver();
  const { memberId: old } = driver.alone({ groupInstanceId: 'i' });
  const back = driver.join({ groupInstanceId: 'i' }).body;
  assert.equal(back.errorCode, ErrorCode.NONE);
  assert.equal(back.generationId, 1);
  assert.notEqual(back.memberId, old);
  assert.equal(driver.state(), 'Stable');
  const { assignment } = driver.sync(back.memberId, 1, {}, 'i').body;
  assert.equal(Buffer.from(assignment).toString(), 'all');
  // The old incarnation is fenced.
  assert.equal(driver.heartbeat(old, 1, 'i'), ErrorCode.FENCED_INSTANCE_ID);
  assert.equal(driver.sync(old, 1, {}, 'i').body.errorCode, ErrorCode.FENCED_INSTANCE_ID);
  assert.equal(
    driver.join({ memberId: old, groupInstanceId: 'i' }).body.errorCode,
    ErrorCode.FENCED_INSTANCE_ID,
  );
});

test('KIP-814: a static leader that is back is told to skip the assignment, an older client that it does not lead', () => {
  const driver = new CoordinatorDriver();
  const { memberId: old } = driver.alone({ groupInstanceId: 'i' });
  const newer = driver.join({ groupInstanceId: 'i' }).body;
  assert.deepEqual([newer.skipAssignment, newer.leader], [true, newer.memberId]);
  assert.equal(newer.members.length, 1);
  assert.notEqual(newer.memberId, old);
  const older = driver.join({ groupInstanceId: 'i', supportSkippingAssignment: false }).body;
  assert.deepEqual([older.skipAssignment, older.leader], [false, newer.memberId]);
});

test('KIP-345: a static member that is back is answered once its new id is stored', () => {
  const driver = new CoordinatorDriver();
  const { memberId: old } = driver.alone({ groupInstanceId: 'i' });
  driver.commitsAtOnce = false;
  const lost = driver.join({ groupInstanceId: 'i' });
  assert.equal(lost.isAnswered, false);
  driver.fail(ErrorCode.NOT_ENOUGH_REPLICAS);
  assert.equal(lost.body.errorCode, ErrorCode.UNKNOWN_MEMBER_ID);
  assert.equal(driver.heartbeat(old, 1, 'i'), ErrorCode.NONE);
});

test('KIP-345: a static member that changes the choice of the protocol brings about a rebalance', () => {
  const driver = new CoordinatorDriver();
  driver.alone({ groupInstanceId: 'i' });
  const protocols = [{ name: 'sticky', metadata: subscription('t') }];
  const back = driver.join({
    groupInstanceId: 'i',
    protocols: [...protocols, { name: 'range', metadata: subscription('t') }],
  }).body;
  assert.deepEqual([back.generationId, back.protocolName], [2, 'sticky']);
});

test('a join that waits is fenced by the same instance', () => {
  const driver = new CoordinatorDriver({ initialRebalanceDelayMs: 3_000 });
  const first = driver.join({ groupInstanceId: 'i' });
  const second = driver.join({ groupInstanceId: 'i' });
  assert.equal(first.body.errorCode, ErrorCode.FENCED_INSTANCE_ID);
  driver.advance(6_000);
  assert.equal(second.body.errorCode, ErrorCode.NONE);
});

test('a new member whose client is gone is forgotten after five minutes of waiting', () => {
  const driver = new CoordinatorDriver();
  const { memberId } = driver.alone({ rebalanceTimeoutMs: 1_000_000, sessionTimeoutMs: 1_000_000 });
  const lost = driver.join();
  driver.advance(5 * 60_000);
  assert.equal(lost.body.errorCode, ErrorCode.UNKNOWN_MEMBER_ID);
  assert.equal(driver.heartbeat(memberId, 1), ErrorCode.REBALANCE_IN_PROGRESS);
});

test('nobody joins a group while it is being deleted', () => {
  const driver = new CoordinatorDriver();
  driver.commitOffset(1n);
  driver.commitsAtOnce = false;
  const deletion = driver.ask('DeleteGroups', { groupId });
  assert.equal(driver.join().body.errorCode, ErrorCode.COORDINATOR_NOT_AVAILABLE);
  driver.commit();
  assert.equal(deletion.body.errorCode, ErrorCode.NONE);
  driver.commitsAtOnce = true;
  assert.equal(driver.join().body.errorCode, ErrorCode.NONE);
});

test.run();
