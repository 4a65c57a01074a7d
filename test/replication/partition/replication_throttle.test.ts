import assert from 'node:assert/strict';
import { suite } from 'uvu';
import {
  LocalCounter,
  ReplicationQuota,
} from '../../../replication/partition/replication_quota.ts';
import { ReplicationThrottle } from '../../../replication/partition/replication_throttle.ts';
import { throttledReplicas } from '../../../replication/partition/throttled_replicas.ts';

const test = suite('replication throttle');

/** Topic `a` has partition 0 throttled at broker 1, as long as `lists` says so. */
function throttleOf(lists: Record<string, string> = { a: '0:1,1:2' }): ReplicationThrottle {
  const quota = new ReplicationQuota({ windows: 11, windowMs: 1_000, counter: new LocalCounter() });
  const throttle = new ReplicationThrottle(quota, (id) => throttledReplicas(lists[id], 1));
  throttle.limit(1_000);
  return throttle;
}

test('only throttled replicas wait, and only their bytes count', () => {
  const throttle = throttleOf();
  throttle.record('a', 1, 50_000, 0);
  throttle.record('b', 0, 50_000, 0);
  assert.equal(throttle.freeAtMs('a', 0, 0), 0);
  throttle.record('a', 0, 3_000, 0);
  const due = [
    throttle.freeAtMs('a', 0, 0),
    throttle.freeAtMs('a', 1, 0),
    throttle.freeAtMs('b', 0, 0),
  ];
  assert.deepEqual(due, [3_000, 0, 0]);
});

test('a list that has changed is read again when the topic is to be forgotten', () => {
  const lists: Record<string, string> = { a: '0:1' };
  const throttle = throttleOf(lists);
  throttle.record('a', 0, 3_000, 0);
  lists['a'] = '1:1';
  throttle.forget('a');
  assert.deepEqual([throttle.freeAtMs('a', 0, 0), throttle.freeAtMs('a', 1, 0)], [0, 3_000]);
});

test("Kafka's default of the rates is no limit, and nothing counts under it", () => {
  const throttle = throttleOf();
  throttle.limit(Number('9223372036854775807'));
  throttle.record('a', 0, 1e9, 0);
  throttle.limit(1_000);
  assert.equal(throttle.freeAtMs('a', 0, 0), 0);
});

test.run();
