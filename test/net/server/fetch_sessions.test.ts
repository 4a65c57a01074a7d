import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import {
  type FetchPartition,
  type FetchSession,
  type FetchSessionResult,
  FetchSessions,
  moveToEnd,
  partitionKey,
} from '../../../net/server/fetch_sessions.ts';

const test = suite('fetch_sessions (KIP-227)');

function asked(partition: number, fetchOffset = 0): FetchPartition {
  return {
    topic: 't',
    topicId: 'AAAAAAAAAAAAAAAAAAAAAA',
    partition,
    fetchOffset,
    maxBytes: 100,
    currentLeaderEpoch: -1,
    lastFetchedEpoch: -1,
    toldHighWatermark: -1,
    toldLogStartOffset: -1,
    restsAt: null,
  };
}

function counter(): () => number {
  let id = 0;
  return () => {
    id += 1;
    return id;
  };
}

function request(
  sessionId: number,
  sessionEpoch: number,
  partitions: FetchPartition[],
  forgotten: string[] = [],
  usesTopicIds = false,
): Parameters<FetchSessions['resolve']>[0] {
  return { sessionId, sessionEpoch, usesTopicIds, isFollower: false, partitions, forgotten };
}

function ok(result: FetchSessionResult): Exclude<FetchSessionResult, { error: 1 }> & {
  session: FetchSession | null;
  partitions: Iterable<FetchPartition>;
  sessionId: number;
  incremental: boolean;
} {
  assert.equal(result.error, 0);
  return result as never;
}

const indexes = (partitions: Iterable<FetchPartition>) =>
  [...partitions].map((partition) => partition.partition);

test('epoch 0 makes a session, and an incremental request without partitions fetches all of it', () => {
  const sessions = new FetchSessions(10, counter());
  const first = ok(sessions.resolve(request(0, 0, [asked(0), asked(1)]), 0));
  assert.equal(first.sessionId, 1);
  assert.equal(first.incremental, false);
  const second = ok(sessions.resolve(request(1, 1, []), 1));
  assert.equal(second.incremental, true);
  assert.deepEqual(indexes(second.partitions), [0, 1]);
});

for (const isFollower of [false, true])
  test(`an incremental request adds, changes and forgets partitions; a ${isFollower ? 'follower' : 'client'}'s`, () => {
    const sessions = new FetchSessions(10, counter());
    const first = ok(sessions.resolve(request(0, 0, [asked(0), asked(1), asked(3)]), 0));
    for (const partition of first.partitions) partition.toldHighWatermark = 7;
    const changes = request(1, 1, [asked(1, 50), asked(2)], [partitionKey('t', '', 0)]);
    const next = ok(sessions.resolve({ ...changes, isFollower }, 1));
    const partitions = [...next.partitions];
    assert.deepEqual(indexes(partitions), [1, 3, 2]);
    assert.equal(partitions[0]?.fetchOffset, 50);
    assert.deepEqual(
      partitions.map(({ toldHighWatermark }) => toldHighWatermark),
      // A follower may have left aside an answer that crossed its request.
      [isFollower ? -1 : 7, 7, -1],
    );
  });

test('an unknown session and a wrong epoch are told apart, and change nothing', () => {
  const sessions = new FetchSessions(10, counter());
  ok(sessions.resolve(request(0, 0, [asked(0)]), 0));
  assert.deepEqual(sessions.resolve(request(99, 1, []), 1), {
    error: ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
  });
  assert.deepEqual(sessions.resolve(request(1, 2, []), 1), {
    error: ErrorCode.INVALID_FETCH_SESSION_EPOCH,
  });
  assert.deepEqual(indexes(ok(sessions.resolve(request(1, 1, []), 1)).partitions), [0]);
});

test('switching between names and ids within a session is refused', () => {
  const sessions = new FetchSessions(10, counter());
  ok(sessions.resolve(request(0, 0, [asked(0)]), 0));
  assert.deepEqual(sessions.resolve(request(1, 1, [], [], true), 1), {
    error: ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
  });
});

test('epoch -1 closes the session and answers without one', () => {
  const sessions = new FetchSessions(10, counter());
  ok(sessions.resolve(request(0, 0, [asked(0)]), 0));
  const last = ok(sessions.resolve(request(1, -1, [asked(3)]), 1));
  assert.equal(last.sessionId, 0);
  assert.deepEqual(indexes(last.partitions), [3]);
  assert.equal(sessions.size, 0);
});

test('epoch 0 with a session id replaces that session', () => {
  const sessions = new FetchSessions(10, counter());
  ok(sessions.resolve(request(0, 0, [asked(0)]), 0));
  const again = ok(sessions.resolve(request(1, 0, [asked(5)]), 1));
  assert.equal(again.sessionId, 2);
  assert.equal(sessions.size, 1);
});

test('the epoch wraps from 2^31 - 1 to 1, never to 0', () => {
  const sessions = new FetchSessions(10, counter());
  const first = ok(sessions.resolve(request(0, 0, [asked(0)]), 0));
  (first.session as FetchSession).epoch = 0x7fffffff;
  ok(sessions.resolve(request(1, 0x7fffffff, []), 1));
  assert.equal((first.session as FetchSession).epoch, 1);
});

test('a full cache answers without a session, and evicts only what is stale or smaller for long', () => {
  const sessions = new FetchSessions(1, counter());
  ok(sessions.resolve(request(0, 0, [asked(0)]), 0));
  assert.equal(ok(sessions.resolve(request(0, 0, [asked(0)]), 1_000)).sessionId, 0);
  ok(sessions.resolve(request(1, 1, []), 120_000));
  assert.equal(ok(sessions.resolve(request(0, 0, [asked(0)]), 120_001)).sessionId, 0);
  const larger = ok(sessions.resolve(request(0, 0, [asked(0), asked(1)]), 120_001));
  assert.equal(larger.sessionId, 2);
  assert.equal(sessions.size, 1);
  assert.equal(ok(sessions.resolve(request(0, 0, [asked(0)]), 240_002)).sessionId, 3);
});

test('a partition that gave data goes to the end of its session', () => {
  const sessions = new FetchSessions(1, counter());
  const first = ok(sessions.resolve(request(0, 0, [asked(0), asked(1), asked(2)]), 0));
  const session = first.session as FetchSession;
  moveToEnd(session, session.partitions.get(partitionKey('t', '', 0)) as FetchPartition);
  assert.deepEqual(indexes(ok(sessions.resolve(request(1, 1, []), 1)).partitions), [1, 2, 0]);
});

test.run();
