/** Throttled replicas at the follower (KIP-73): left out of the requests while the quota is exceeded, unless in sync. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { ReplicaFetch } from '../../../replication/partition/replica_fetch.ts';
import {
  LocalCounter,
  ReplicationQuota,
} from '../../../replication/partition/replication_quota.ts';
import { ReplicationThrottle } from '../../../replication/partition/replication_throttle.ts';
import { throttledReplicas } from '../../../replication/partition/throttled_replicas.ts';
import {
  answer,
  answered,
  asked,
  at,
  forgotten,
  next,
  options,
  records,
} from './follower_fetches.ts';

const test = suite('replica fetch with a throttle');
const { NONE } = ErrorCode;

/** Follows `a-0`, throttled to 1,000 bytes a second, and `b-0`; both are asked for. */
function throttled(): {
  fetch: ReplicaFetch;
  /** The leader has records of both up to 100, and these are the followers' next offsets. */
  takes: (
    nowMs: number,
    bytes: readonly [number, number],
    offsets: readonly [number, number],
  ) => void;
  limit: (rate: number) => void;
} {
  const quota = new ReplicationQuota({ windows: 11, windowMs: 1_000, counter: new LocalCounter() });
  const lists: Record<string, string> = { a: '0:1' };
  const throttle = new ReplicationThrottle(quota, (id) => throttledReplicas(lists[id], 1));
  throttle.limit(1_000);
  const fetch = new ReplicaFetch({ ...options, throttle });
  for (const topic of ['a', 'b']) fetch.follow(topic, 0, 3);
  for (const part of fetch.takeUnknown(0)) fetch.settled(part, NONE, at(0, -1), 0);
  assert.equal(next(fetch).partitions.length, 2);
  const topics = ['a', 'b'];
  const takes: ReturnType<typeof throttled>['takes'] = (nowMs, bytes, offsets) => {
    const answers = topics.map((topic, k) =>
      answer(topic, 0, { ...(bytes[k] === 0 ? {} : records(bytes[k]!)), highWatermark: 100 }),
    );
    for (const { followed, isAwaited } of answered(fetch, answers, nowMs))
      if (isAwaited) {
        const offset = offsets[topics.indexOf(followed.topicId)]!;
        fetch.settled(followed, NONE, at(offset), nowMs);
      }
  };
  return { fetch, takes, limit: (rate) => throttle.limit(rate) };
}

test('under the rate it is fetched as any other', () => {
  const { fetch, takes } = throttled();
  takes(0, [1_000, 9_000], [10, 10]);
  assert.deepEqual(asked(next(fetch)), [
    ['a', 0, 3, 10],
    ['b', 0, 3, 10],
  ]);
});

test('over the rate it is left out until the rate is kept, and the others go on', () => {
  const { fetch, takes } = throttled();
  takes(0, [2_500, 1_000], [10, 10]);
  const without = next(fetch, 0);
  assert.deepEqual([asked(without), forgotten(without)], [[['b', 0, 3, 10]], [['a', 0]]]);
  takes(0, [0, 0], [0, 0]);
  assert.equal(fetch.wakeAtMs(), 1_000, 'the quota is looked at again each second');
  next(fetch, 1_500);
  assert.equal(fetch.wakeAtMs(), 2_500);
  takes(1_600, [0, 10], [0, 11]);
  assert.deepEqual(asked(next(fetch, 1_600)), [['b', 0, 3, 11]]);
  takes(2_500, [0, 10], [0, 12]);
  assert.deepEqual(asked(next(fetch, 2_500)), [
    ['b', 0, 3, 12],
    ['a', 0, 3, 10],
  ]);
});

test('a replica that has all that is committed goes on, whatever the quota says', () => {
  const { fetch, takes } = throttled();
  takes(0, [50_000, 0], [100, 0]);
  assert.deepEqual(asked(next(fetch, 0)), [['a', 0, 3, 100]]);
});

test('a limit that is lifted lets go of what waits at the next look', () => {
  const { fetch, takes, limit } = throttled();
  takes(0, [9_000, 0], [10, 0]);
  assert.deepEqual(asked(next(fetch, 0)), []);
  limit(2 ** 63);
  takes(1_000, [0, 0], [0, 0]);
  assert.deepEqual(asked(next(fetch, 1_000)), [['a', 0, 3, 10]]);
});

test('the leader hears where a replica is that waited for the quota, also when no request went out meanwhile', () => {
  const { fetch, takes, limit } = throttled();
  takes(0, [9_000, 0], [10, 0]);
  limit(2 ** 63);
  assert.deepEqual(asked(next(fetch, 1_000)), [['a', 0, 3, 10]]);
});

test('what waits for the quota can be left, or followed anew', () => {
  const { fetch, takes } = throttled();
  takes(0, [9_000, 0], [10, 0]);
  fetch.follow('a', 0, 4);
  const [anew] = fetch.takeUnknown(0);
  assert.deepEqual([anew?.topicId, anew?.leaderEpoch], ['a', 4]);
  fetch.unfollow('a', 0);
  assert.equal(fetch.size, 1);
  assert.deepEqual(forgotten(next(fetch, 20_000)), [['a', 0]]);
});

test.run();
