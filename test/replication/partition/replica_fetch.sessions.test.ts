import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { ReplicaFetch } from '../../../replication/partition/replica_fetch.ts';
import {
  answer,
  answered,
  asked,
  at,
  following,
  forgotten,
  next,
  options,
  records,
} from './follower_fetches.ts';

const test = suite('fetch sessions of a follower');

test('the first request is full, the next ones carry the epochs of the session and what has moved', () => {
  const fetch = new ReplicaFetch(options);
  fetch.follow('a', 0, 3);
  fetch.follow('b', 2, 3);
  const [a, b] = fetch.takeUnknown(0);
  fetch.settled(a!, ErrorCode.NONE, at(0), 0);
  fetch.settled(b!, ErrorCode.NONE, at(9), 0);
  const full = next(fetch);
  assert.deepEqual([full.sessionId, full.sessionEpoch], [0, 0]);
  assert.deepEqual(asked(full), [
    ['a', 0, 3, 0],
    ['b', 2, 3, 9],
  ]);
  const [handover] = answered(fetch, [answer('b', 2, records(100))]);
  assert.equal(handover?.followed, b);
  assert.equal(handover?.isAwaited, true);
  fetch.settled(b!, ErrorCode.NONE, at(12), 0);
  const second = next(fetch);
  assert.deepEqual([second.sessionId, second.sessionEpoch, second.maxWaitMs], [7, 1, 500]);
  assert.deepEqual(asked(second), [['b', 2, 3, 12]]);
  answered(fetch);
  const third = next(fetch);
  assert.deepEqual([third.sessionEpoch, asked(third), forgotten(third)], [2, [], []]);
});

for (const [name, error, sessionId] of [
  ['the leader has forgotten', ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0],
  ['is at another epoch', ErrorCode.INVALID_FETCH_SESSION_EPOCH, 7],
  ['names topics in another way', ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 7],
] as const)
  test(`a session that ${name} begins anew with a full request`, () => {
    const { fetch } = following(2);
    next(fetch);
    assert.deepEqual(fetch.answered({ errorCode: error, sessionId: 0, partitions: [] }, 0), []);
    const full = next(fetch);
    assert.deepEqual([full.sessionId, full.sessionEpoch], [sessionId, 0]);
    assert.equal(asked(full).length, 2);
    answered(fetch, [], 0, 8);
    const request = next(fetch);
    assert.deepEqual([request.sessionId, request.sessionEpoch], [8, 1]);
  });

test('a leader that refuses whole requests is left alone for longer and longer', () => {
  const { fetch } = following(1);
  let nowMs = 0;
  let before = 0;
  next(fetch);
  for (let k = 0; k < 12; k += 1) {
    const refusal = { errorCode: ErrorCode.UNKNOWN_SERVER_ERROR, sessionId: 0, partitions: [] };
    fetch.answered(refusal, nowMs);
    assert.equal(fetch.next(nowMs), null);
    const pauseMs = fetch.wakeAtMs() - nowMs;
    assert(pauseMs >= before && pauseMs > 0 && pauseMs <= options.backoffMs, `${pauseMs} ms`);
    before = pauseMs;
    nowMs += pauseMs;
    next(fetch, nowMs);
  }
  assert.equal(before, options.backoffMs);
});

test('a leader without room for a session gets full requests, which wait', () => {
  const fetch = new ReplicaFetch(options);
  fetch.follow('a', 0, 3);
  const [part] = fetch.takeUnknown(0);
  fetch.settled(part!, ErrorCode.NONE, at(0), 0);
  assert.equal(next(fetch).maxWaitMs, 0, 'the first one finds out');
  for (let k = 0; k < 3; k += 1) {
    answered(fetch, [], 0, 0);
    const request = next(fetch);
    assert.deepEqual([request.sessionId, request.sessionEpoch, request.maxWaitMs], [0, 0, 500]);
    assert.deepEqual(asked(request), [['a', 0, 3, 0]]);
  }
});

test('a partition that is not followed any more is forgotten at the leader, unless it comes back before', () => {
  const { fetch } = following(3);
  fetch.unfollow('a', 1);
  fetch.unfollow('a', 2);
  assert.equal(fetch.size, 1);
  fetch.follow('a', 2, 5);
  const [again] = fetch.takeUnknown(0);
  fetch.settled(again!, ErrorCode.NONE, at(0), 0);
  const request = next(fetch);
  assert.deepEqual([asked(request), forgotten(request)], [[['a', 2, 5, 0]], [['a', 1]]]);
  fetch.unfollow('a', 7);
  fetch.unfollow('b', 0);
});

test('what becomes ready while a request only waits at the leader goes out behind it', () => {
  const { fetch } = following(1);
  next(fetch);
  fetch.follow('b', 0, 1);
  const [part] = fetch.takeUnknown(0);
  assert.equal(fetch.next(0), null);
  fetch.settled(part!, ErrorCode.NONE, at(0), 0);
  const behind = next(fetch);
  assert.deepEqual([behind.sessionEpoch, asked(behind)], [2, [['b', 0, 1, 0]]]);
  fetch.follow('b', 1, 1);
  const [later] = fetch.takeUnknown(0);
  fetch.settled(later!, ErrorCode.NONE, at(0), 0);
  assert.equal(fetch.next(0), null, 'two under way are enough');
  // The first answer was made before the leader knew of `b`, and what it has for `a` the second one has, too.
  assert.equal(answered(fetch, [answer('a', 0, records(10))]).length, 1);
  assert.equal(
    answered(fetch, [answer('a', 0, records(10)), answer('b', 0, records(5))]).length,
    1,
  );
});

test('an answer to a request before the one that told the new leader epoch is not taken for the new epoch', () => {
  const { fetch } = following(1);
  next(fetch);
  fetch.follow('a', 0, 4);
  const [fresh] = fetch.takeUnknown(0);
  fetch.settled(fresh!, ErrorCode.NONE, at(0), 0);
  assert.deepEqual(asked(next(fetch)), [['a', 0, 4, 0]]);
  assert.deepEqual(answered(fetch, [answer('a', 0, records(10))]), [], 'made under epoch 3');
  const [handover] = answered(fetch, [answer('a', 0, records(10))]);
  assert.equal(handover?.followed, fresh);
});

test('after a lost connection the session is ended and begun anew; owners go on', () => {
  const { fetch, parts } = following(2);
  next(fetch);
  answered(fetch, [answer('a', 0, records(10))]);
  fetch.disconnected();
  const full = next(fetch);
  assert.deepEqual([full.sessionId, full.sessionEpoch, asked(full)], [7, 0, [['a', 1, 3, 0]]]);
  fetch.settled(parts[0]!, ErrorCode.NONE, at(3), 0);
  answered(fetch, [], 0, 8);
  assert.deepEqual(asked(next(fetch)), [['a', 0, 3, 3]]);
});

test.run();
