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

const test = suite('fetches of a follower');

test('nothing is asked for before its owner has said where its log ends', () => {
  const fetch = new ReplicaFetch(options);
  assert.equal(fetch.next(0), null);
  fetch.follow('a', 0, 3);
  fetch.follow('a', 1, 4);
  assert.equal(fetch.next(0), null);
  const [first, second] = fetch.takeUnknown(0);
  assert.deepEqual([first?.partition, second?.partition], [0, 1]);
  assert.deepEqual(fetch.takeUnknown(0), [], 'an owner is asked once');
  fetch.settled(
    first!,
    ErrorCode.NONE,
    { fetchOffset: 5, lastFetchedEpoch: 2, logStartOffset: 1 },
    0,
  );
  const request = next(fetch);
  assert.deepEqual(request.partitions, [
    {
      topicId: 'a',
      partition: 0,
      currentLeaderEpoch: 3,
      fetchOffset: 5,
      lastFetchedEpoch: 2,
      logStartOffset: 1,
      maxBytes: 1_000,
    },
  ]);
  assert.equal(fetch.next(0), null, 'one request at a time');
});

test('a partition whose records are not flushed is not fetched; when it is, the end of the flush is told', () => {
  const { fetch, parts } = following(1);
  next(fetch);
  answered(fetch, [answer('a', 0, records(10))]);
  assert.equal(fetch.next(0), null);
  assert.equal(fetch.next(1_000), null, 'however long it takes');
  fetch.settled(parts[0]!, ErrorCode.NONE, at(4, 3), 1_000);
  assert.deepEqual(asked(next(fetch, 1_000)), [['a', 0, 3, 4]]);
});

test('what has been flushed is told at once, without waiting at the leader for what has not', () => {
  const { fetch, parts } = following(3);
  next(fetch);
  answered(fetch, [answer('a', 0, records(10)), answer('a', 1, records(10))]);
  assert.equal(fetch.next(0), null, 'nothing to tell yet');
  fetch.settled(parts[1]!, ErrorCode.NONE, at(4), 1);
  const request = next(fetch, 1);
  assert.equal(request.maxWaitMs, 0);
  assert.deepEqual(asked(request), [['a', 1, 3, 4]]);
  assert.deepEqual(forgotten(request), [['a', 0]], 'the leader must not send it again');
  fetch.settled(parts[0]!, ErrorCode.NONE, at(6), 2);
  answered(fetch, [], 3);
  const after = next(fetch, 3);
  assert.deepEqual([after.maxWaitMs, asked(after), forgotten(after)], [500, [['a', 0, 3, 6]], []]);
});

test('who has cut its log takes the high watermark anew, though the leader has told it before', () => {
  const { fetch, parts } = following(1);
  next(fetch);
  const diverging = { epoch: 2, endOffset: 4 };
  const told = answered(fetch, [answer('a', 0, { diverging, highWatermark: 9 })]);
  assert.equal(told.length, 1);
  fetch.settled(parts[0]!, ErrorCode.NONE, at(4, 2), 1);
  next(fetch, 1);
  const again = answered(fetch, [answer('a', 0, { highWatermark: 9 })], 2);
  assert.deepEqual(
    again.map((handover) => [handover.answer.highWatermark, handover.isAwaited]),
    [[9, false]],
  );
  next(fetch, 2);
  assert.deepEqual(answered(fetch, [answer('a', 0, { highWatermark: 9 })], 3), []);
});

test('while an answer that was full is flushed, the next one brings what found no room in it', () => {
  const { fetch, parts } = following(3);
  next(fetch);
  answered(fetch, [answer('a', 0, records(options.maxBytes))]);
  const others = next(fetch);
  assert.deepEqual([others.maxWaitMs, forgotten(others)], [0, [['a', 0]]]);
  answered(fetch, [answer('a', 1, records(options.maxBytes))]);
  fetch.settled(parts[0]!, ErrorCode.NONE, at(4), 1);
  const third = next(fetch, 1);
  assert.deepEqual(
    [third.maxWaitMs, asked(third), forgotten(third)],
    [0, [['a', 0, 3, 4]], [['a', 1]]],
  );
  answered(fetch, [answer('a', 2, records(10))], 1);
  assert.equal(fetch.next(1), null, 'there was room for all');
});

test('a slow disk under one partition does not hold up the others for long', () => {
  const { fetch } = following(2);
  next(fetch);
  answered(fetch, [answer('a', 0, records(10))], 100);
  assert.equal(fetch.next(101), null);
  const wakeAtMs = fetch.wakeAtMs();
  assert(wakeAtMs > 101 && wakeAtMs < 200, `woken at ${wakeAtMs}`);
  const request = next(fetch, wakeAtMs);
  assert.deepEqual(forgotten(request), [['a', 0]]);
  assert(request.maxWaitMs > 0 && request.maxWaitMs < 100, `waits for ${request.maxWaitMs} ms`);
  const [handover] = answered(fetch, [answer('a', 1, records(10))], wakeAtMs + 1);
  assert.equal(handover?.followed.partition, 1);
});

for (const error of [
  ErrorCode.NOT_LEADER_OR_FOLLOWER,
  ErrorCode.UNKNOWN_LEADER_EPOCH,
  ErrorCode.FENCED_LEADER_EPOCH,
  ErrorCode.UNKNOWN_TOPIC_ID,
])
  test(`error ${error} of a leader: again soon, then less and less often, the others go on`, () => {
    const { fetch } = following(2);
    let nowMs = 0;
    let before = 0;
    next(fetch);
    for (let k = 0; k < 10; k += 1) {
      assert.deepEqual(answered(fetch, [answer('a', 1, { errorCode: error })], nowMs), []);
      const request = next(fetch, nowMs);
      assert.deepEqual(forgotten(request), [['a', 1]]);
      assert.deepEqual(fetch.takeUnknown(nowMs), [], 'where its log ends is known');
      answered(fetch, [], nowMs);
      const pauseMs = fetch.wakeAtMs() - nowMs;
      assert(pauseMs >= before && pauseMs <= options.backoffMs, `${pauseMs} ms after ${before}`);
      if (k === 0) assert(pauseMs <= 20, `${pauseMs} ms at first`);
      before = pauseMs;
      nowMs += pauseMs;
      assert.deepEqual(asked(next(fetch, nowMs)), [['a', 1, 3, 0]]);
    }
  });

test('a broken disk of the leader is not asked again at once', () => {
  const { fetch } = following(1);
  next(fetch);
  answered(fetch, [answer('a', 0, { errorCode: ErrorCode.KAFKA_STORAGE_ERROR })], 5);
  assert.equal(fetch.wakeAtMs(), 5 + options.backoffMs);
});

test('what is about its log goes to the owner: divergence, and offsets that the leader does not have', () => {
  const { fetch, parts } = following(2);
  next(fetch);
  const handovers = answered(fetch, [
    answer('a', 0, { diverging: { epoch: 1, endOffset: 4 } }),
    answer('a', 1, { errorCode: ErrorCode.OFFSET_OUT_OF_RANGE, logStartOffset: 90 }),
  ]);
  assert.deepEqual(
    handovers.map(({ isAwaited, answer: { errorCode, diverging, logStartOffset } }) => [
      isAwaited,
      errorCode,
      diverging?.endOffset,
      logStartOffset,
    ]),
    [
      [true, ErrorCode.NONE, 4, 0],
      [true, ErrorCode.OFFSET_OUT_OF_RANGE, undefined, 90],
    ],
  );
  fetch.settled(parts[0]!, ErrorCode.NONE, at(2, 1), 0);
  fetch.settled(parts[1]!, ErrorCode.NONE, at(90, -1), 0);
  assert.deepEqual(asked(next(fetch)), [
    ['a', 0, 3, 2],
    ['a', 1, 3, 90],
  ]);
});

test('a high watermark alone is passed on once, and nothing waits for that', () => {
  const { fetch } = following(1);
  next(fetch);
  const [handover] = answered(fetch, [answer('a', 0, { highWatermark: 5 })]);
  assert.deepEqual([handover?.isAwaited, handover?.answer.highWatermark], [false, 5]);
  assert.deepEqual(asked(next(fetch)), []);
  assert.deepEqual(answered(fetch, [answer('a', 0, { highWatermark: 5 })]), []);
});

test('an owner that cannot take what came is asked for its position again, after a while', () => {
  const { fetch, parts } = following(1);
  next(fetch);
  answered(fetch, [answer('a', 0, records(10))]);
  fetch.settled(parts[0]!, ErrorCode.CORRUPT_MESSAGE, null, 50);
  assert.equal(fetch.next(50), null);
  assert.deepEqual(fetch.takeUnknown(50), []);
  const dueMs = fetch.wakeAtMs();
  assert.equal(dueMs, 50 + options.backoffMs);
  assert.deepEqual(fetch.takeUnknown(dueMs), parts);
  fetch.settled(parts[0]!, ErrorCode.NONE, at(0, -1), dueMs);
  assert.deepEqual(asked(next(fetch, dueMs)), [['a', 0, 3, 0]]);
});

test('under a new leader epoch everything begins anew, and what belongs to the old one is ignored', () => {
  const { fetch, parts } = following(2);
  next(fetch);
  fetch.follow('a', 0, 4);
  fetch.follow('a', 1, 3);
  assert.deepEqual(answered(fetch, [answer('a', 0, records(10))]), [], 'asked for under epoch 3');
  const [fresh, ...others] = fetch.takeUnknown(0);
  assert.deepEqual([fresh?.partition, fresh?.leaderEpoch, others], [0, 4, []]);
  fetch.settled(parts[0]!, ErrorCode.NONE, at(99), 0);
  const without = next(fetch);
  assert.deepEqual([asked(without), forgotten(without)], [[], [['a', 0]]]);
  answered(fetch);
  fetch.settled(fresh!, ErrorCode.NONE, at(1), 0);
  assert.deepEqual(asked(next(fetch)), [['a', 0, 4, 1]]);
});

test('records under way to the owner when the epoch changes do not count for the new one', () => {
  const { fetch, parts } = following(1);
  next(fetch);
  answered(fetch, [answer('a', 0, records(10))]);
  fetch.follow('a', 0, 4);
  const [fresh] = fetch.takeUnknown(0);
  fetch.settled(parts[0]!, ErrorCode.NONE, at(10), 0);
  assert.equal(fetch.next(0), null);
  fetch.settled(fresh!, ErrorCode.NONE, at(8), 0);
  assert.deepEqual(asked(next(fetch)), [['a', 0, 4, 8]]);
});

test('a follower far behind asks for more at a time, up to a whole answer', () => {
  const { fetch, parts } = following(1);
  let request = next(fetch);
  let size = options.partitionMaxBytes;
  for (let k = 1; k < 8; k += 1) {
    answered(fetch, [answer('a', 0, records(size))]);
    fetch.settled(parts[0]!, ErrorCode.NONE, at(k), 0);
    request = next(fetch);
    size = request.partitions[0]!.maxBytes;
  }
  assert.equal(size, options.maxBytes);
  answered(fetch, [answer('a', 0, records(10))]);
  fetch.settled(parts[0]!, ErrorCode.NONE, at(9), 0);
  assert.equal(next(fetch).partitions[0]?.maxBytes, options.partitionMaxBytes);
});

test.run();
test.run();
