/** SyncGroup, Heartbeat, LeaveGroup and the time-outs of classic groups. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { GroupCoordinator } from '../../../engine/groups/group_coordinator.ts';
import { defaultGroupOptions } from '../../../engine/groups/group_options.ts';
import {
  type Asked,
  CoordinatorDriver,
  commitError,
  groupId,
  subscription,
} from './coordinator_driver.ts';

const test = suite('members of classic groups');
const changed = [{ name: 'range', metadata: subscription('t', 'u') }];

const text = ({ body }: Asked<'SyncGroup'>): string => Buffer.from(body.assignment).toString();

/** Two members after their joins, the first being the leader. */
function pair(driver: CoordinatorDriver): { leader: string; follower: string } {
  const joins = [driver.join(), driver.join()];
  driver.advance(2_000);
  const leader = joins[0]?.body.leader ?? '';
  const follower = joins.map(({ body }) => body.memberId).find((id) => id !== leader) ?? '';
  return { leader, follower };
}

function newPair(): { driver: CoordinatorDriver; leader: string; follower: string } {
  const driver = new CoordinatorDriver({ initialRebalanceDelayMs: 1_000 });
  return { driver, ...pair(driver) };
}

test('assignments are told once they are stored, to those who wait and to those who come later', () => {
  const { driver, leader, follower } = newPair();
  driver.commitsAtOnce = false;
  const leaders = driver.sync(leader, 1, { [leader]: 'a', [follower]: 'b' });
  assert.equal(leaders.isAnswered, false);
  assert.equal(driver.state(), 'CompletingRebalance');
  driver.commit();
  assert.equal(text(leaders), 'a');
  assert.equal(driver.state(), 'Stable');
  assert.equal(text(driver.sync(follower, 1)), 'b');
});

test('a leader that repeats its request does not change what is stored', () => {
  const { driver, leader, follower } = newPair();
  driver.commitsAtOnce = false;
  const lost = driver.sync(leader, 1, { [leader]: 'a', [follower]: 'b' });
  const again = driver.sync(leader, 1, { [leader]: 'b', [follower]: 'a' });
  assert.equal(lost.body.errorCode, ErrorCode.REBALANCE_IN_PROGRESS);
  assert.equal(driver.appends.length, 1);
  driver.commit();
  assert.equal(text(again), 'a');
});

test('a member that the leader has left out gets an empty assignment', () => {
  const { driver, leader, follower } = newPair();
  const waiting = driver.sync(follower, 1);
  driver.sync(leader, 1, { [leader]: 'a' });
  assert.deepEqual([waiting.body.errorCode, text(waiting)], [ErrorCode.NONE, '']);
});

test('if the assignments cannot be stored everybody joins again', () => {
  const { driver, leader, follower } = newPair();
  driver.commitsAtOnce = false;
  const waiting = [driver.sync(follower, 1), driver.sync(leader, 1, {})];
  driver.fail(ErrorCode.NOT_ENOUGH_REPLICAS);
  for (const { body } of waiting) assert.equal(body.errorCode, ErrorCode.COORDINATOR_NOT_AVAILABLE);
  assert.equal(driver.heartbeat(leader, 1), ErrorCode.REBALANCE_IN_PROGRESS);
});

test('SyncGroup is refused with what is wrong with it', () => {
  const { driver, leader } = newPair();
  const errorOf = (memberId: string, generationId: number, protocolName: string): ErrorCode =>
    driver.ask('SyncGroup', {
      groupId,
      generationId,
      memberId,
      groupInstanceId: null,
      protocolType: 'consumer',
      protocolName,
      assignments: [],
    }).body.errorCode;
  assert.equal(errorOf('stranger', 1, 'range'), ErrorCode.UNKNOWN_MEMBER_ID);
  assert.equal(errorOf(leader, 2, 'range'), ErrorCode.ILLEGAL_GENERATION);
  assert.equal(errorOf(leader, 1, 'sticky'), ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
  driver.join();
  assert.equal(errorOf(leader, 1, 'range'), ErrorCode.REBALANCE_IN_PROGRESS);
});

test('SyncGroup that waits ends with the generation', () => {
  const { driver, follower } = newPair();
  const waiting = driver.sync(follower, 1);
  driver.join();
  assert.equal(waiting.body.errorCode, ErrorCode.REBALANCE_IN_PROGRESS);
});

test('who does not send SyncGroup within the rebalance time-out is put out', () => {
  const { driver, leader, follower } = newPair();
  const waiting = driver.sync(follower, 1);
  for (let index = 0; index < 6; index += 1) {
    driver.heartbeat(leader, 1);
    driver.advance(5_000);
  }
  assert.equal(waiting.body.errorCode, ErrorCode.REBALANCE_IN_PROGRESS);
  assert.equal(driver.heartbeat(leader, 1), ErrorCode.UNKNOWN_MEMBER_ID);
});

test('heartbeats tell of everything that concerns a member', () => {
  const { driver, leader, follower } = newPair();
  assert.equal(driver.heartbeat(leader, 1), ErrorCode.NONE, 'before SyncGroup');
  driver.sync(leader, 1, {});
  driver.sync(follower, 1);
  assert.equal(driver.heartbeat(leader, 1), ErrorCode.NONE);
  assert.equal(driver.heartbeat(leader, 0), ErrorCode.ILLEGAL_GENERATION);
  assert.equal(driver.heartbeat('stranger', 1), ErrorCode.UNKNOWN_MEMBER_ID);
  assert.equal(driver.heartbeat(leader, 1, 'i'), ErrorCode.UNKNOWN_MEMBER_ID);
  const body = { groupId: 'none', generationId: 1, memberId: leader, groupInstanceId: null };
  assert.equal(driver.ask('Heartbeat', body).body.errorCode, ErrorCode.UNKNOWN_MEMBER_ID);
});

test('a session ends to the millisecond when nothing is heard', () => {
  const driver = new CoordinatorDriver();
  const { memberId } = driver.alone();
  driver.advance(9_999);
  assert.equal(driver.heartbeat(memberId, 1), ErrorCode.NONE);
  driver.advance(9_999);
  assert.equal(driver.state(), 'Stable');
  driver.advance(1);
  assert.equal(driver.state(), 'Empty');
  assert.equal(driver.heartbeat(memberId, 1), ErrorCode.UNKNOWN_MEMBER_ID);
});

test('a member that waits in a rebalance needs no heartbeats', () => {
  const { driver, leader, follower } = newPair();
  driver.sync(leader, 1, {});
  driver.sync(follower, 1);
  const waiting = driver.join({ memberId: leader });
  for (let index = 0; index < 5; index += 1) {
    driver.heartbeat(follower, 1);
    driver.advance(5_000);
  }
  assert.equal(waiting.isAnswered, false);
  driver.join({ memberId: follower });
  assert.equal(waiting.body.errorCode, ErrorCode.NONE);
});

test('a static member whose session ended while it waited in SyncGroup can still be lost', () => {
  const driver = new CoordinatorDriver({ initialRebalanceDelayMs: 1_000 });
  const joins = ['i', 'j'].map((groupInstanceId) =>
    driver.join({ groupInstanceId, rebalanceTimeoutMs: 40_000 }),
  );
  driver.advance(2_000);
  const leader = joins[0]?.body.leader ?? '';
  const follower = joins.map(({ body }) => body.memberId).find((id) => id !== leader) ?? '';
  const instance = joins[0]?.body.memberId === leader ? 'i' : 'j';
  const waiting = driver.sync(follower, 1, {}, instance === 'i' ? 'j' : 'i');
  for (let elapsed = 0; elapsed < 35_000; elapsed += 5_000) {
    driver.heartbeat(leader, 1, instance);
    driver.advance(5_000);
  }
  // The leader joins again instead, and nothing is heard of the follower any more.
  driver.join({ memberId: leader, groupInstanceId: instance, protocols: changed });
  assert.equal(waiting.body.errorCode, ErrorCode.REBALANCE_IN_PROGRESS);
  driver.advance(10_000);
  assert.equal(driver.state(), 'CompletingRebalance');
});

test('members leave in one request, each with its own answer', () => {
  const driver = new CoordinatorDriver({ initialRebalanceDelayMs: 1_000 });
  const joins = [driver.join(), driver.join({ groupInstanceId: 'i' })];
  const pending = driver.join({ requireKnownMemberId: true }).body.memberId;
  driver.advance(2_000);
  const dynamic = joins[0]?.body.memberId ?? '';
  const member = (memberId: string, groupInstanceId: string | null) => ({
    memberId,
    groupInstanceId,
    reason: 'test',
  });
  const { body } = driver.ask('LeaveGroup', {
    groupId,
    members: [
      member(dynamic, null),
      // As an administrator does it (KIP-345).
      member('', 'i'),
      member(pending, null),
      member('stranger', null),
      member('', 'j'),
    ],
  });
  assert.equal(body.errorCode, ErrorCode.NONE);
  assert.deepEqual(
    body.members.map(({ errorCode }) => errorCode),
    [0, 0, 0, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID],
  );
  assert.equal(driver.state(), 'Empty');
});

test('leaving under the id of an earlier incarnation is fenced', () => {
  const driver = new CoordinatorDriver();
  const { memberId: old } = driver.alone({ groupInstanceId: 'i' });
  driver.join({ groupInstanceId: 'i' });
  const members = [{ memberId: old, groupInstanceId: 'i', reason: null }];
  const { body } = driver.ask('LeaveGroup', { groupId, members });
  assert.equal(body.members[0]?.errorCode, ErrorCode.FENCED_INSTANCE_ID);
});

test('a static member that does not join in a rebalance stays until its session ends', () => {
  const driver = new CoordinatorDriver({ initialRebalanceDelayMs: 1_000 });
  const joins = [driver.join({ groupInstanceId: 'i', sessionTimeoutMs: 60_000 }), driver.join()];
  driver.advance(2_000);
  const [fixed, dynamic] = joins.map(({ body }) => body.memberId);
  assert(fixed && dynamic);
  driver.sync(fixed, 1, {}, 'i');
  driver.sync(dynamic, 1, {});
  const waiting = driver.join({ memberId: dynamic, protocols: [] });
  assert.equal(waiting.body.errorCode, ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
  const third = driver.join();
  driver.join({ memberId: dynamic });
  driver.advance(30_000);
  assert.equal(third.body.generationId, 2);
  assert.equal(driver.heartbeat(fixed, 2, 'i'), ErrorCode.NONE);
});

test('after a restart members go on in their generation', () => {
  const { driver, leader, follower } = newPair();
  driver.sync(leader, 1, { [leader]: 'a', [follower]: 'b' });
  driver.restart();
  assert.equal(driver.state(), 'Stable');
  assert.equal(driver.heartbeat(leader, 1), ErrorCode.NONE);
  assert.equal(text(driver.sync(follower, 1)), 'b');
  driver.advance(10_000);
  assert.equal(driver.state(), 'Empty');
});

test('after a restart a generation that was not stored is unknown', () => {
  const { driver, leader } = newPair();
  driver.restart();
  assert.equal(driver.heartbeat(leader, 1), ErrorCode.UNKNOWN_MEMBER_ID);
});

test('a group that is loaded with more members than are allowed now rebalances down to them', () => {
  const { driver, leader, follower } = newPair();
  driver.sync(leader, 1, {});
  const smaller = new CoordinatorDriver({ maxSize: 1 }, driver.log);
  assert.equal(smaller.heartbeat(leader, 1), ErrorCode.REBALANCE_IN_PROGRESS);
  const kept = smaller.join({ memberId: leader });
  const refused = smaller.join({ memberId: follower });
  assert.equal(refused.body.errorCode, ErrorCode.GROUP_MAX_SIZE_REACHED);
  assert.equal(kept.body.members.length, 1);
});

function loadingCoordinator(): GroupCoordinator {
  return new GroupCoordinator({
    options: defaultGroupOptions,
    newUuid: () => 'uuid',
    topics: { byName: () => undefined, nameOf: () => undefined },
  });
}

/** As in Kafka (GroupCoordinatorService): clients such as aiokafka take any other answer for the end. */
test('while it loads a heartbeat is taken on trust', () => {
  const body = { groupId, generationId: 1, memberId: 'm', groupInstanceId: null };
  const [effect] = loadingCoordinator().step(
    {
      type: 'request',
      token: 1,
      client: { clientId: 'client', clientHost: '/host' },
      request: { api: 'Heartbeat', body },
    },
    { monotonicMs: 0, wallMs: 0 },
  );
  assert(effect?.type === 'reply' && effect.reply.api === 'Heartbeat');
  assert.equal(effect.reply.body.errorCode, ErrorCode.NONE);
});

test('while it loads everything else is refused, and when it resigns everything that waits', () => {
  const loading = loadingCoordinator();
  const request = { api: 'ListGroups', body: { statesFilter: [], typesFilter: [] } } as const;
  const client = { clientId: 'client', clientHost: '/host' };
  const [effect] = loading.step(
    { type: 'request', token: 1, client, request },
    { monotonicMs: 0, wallMs: 0 },
  );
  assert(effect?.type === 'reply' && effect.reply.api === 'ListGroups');
  assert.equal(effect.reply.body.errorCode, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS);
  const driver = new CoordinatorDriver({ initialRebalanceDelayMs: 1_000 });
  driver.commitsAtOnce = false;
  const commit = driver.commitOffset(1n);
  const waiting = driver.join();
  driver.step({ type: 'resigned' });
  assert.equal(commitError(commit), ErrorCode.NOT_COORDINATOR);
  driver.commit();
  assert.equal(waiting.body.errorCode, ErrorCode.NOT_COORDINATOR);
  assert.equal(driver.heartbeat('any', 1), ErrorCode.NOT_COORDINATOR);
  assert.equal(driver.coordinator.nextDeadlineMs, Infinity);
});

test.run();
