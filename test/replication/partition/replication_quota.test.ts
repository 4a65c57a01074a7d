/** KIP-73's quota, claim by claim. Windows of 1 s, 11 of them, as `replication.quota.window.*` has them. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import {
  LocalCounter,
  ReplicationQuota,
} from '../../../replication/partition/replication_quota.ts';

const test = suite('replication quota');
const rate = 1_000;
const startMs = 5_000;

function quotaOf(counter = new LocalCounter()): ReplicationQuota {
  const quota = new ReplicationQuota({ windows: 11, windowMs: 1_000, counter });
  quota.limit(rate);
  return quota;
}

test('without a limit nothing exceeds it', () => {
  const quota = new ReplicationQuota({ windows: 11, windowMs: 1_000, counter: new LocalCounter() });
  quota.record(1e12, startMs);
  assert.equal(quota.freeAtMs(startMs), startMs);
});

test('in the first window as much goes as a whole one may have', () => {
  const quota = quotaOf();
  quota.record(rate, startMs);
  assert.equal(quota.freeAtMs(startMs), startMs);
  quota.record(1, startMs);
  assert.equal(quota.freeAtMs(startMs), startMs + 1_001);
});

test('an answer over the rate is waited for until the mean is the rate', () => {
  const quota = quotaOf();
  quota.record(4 * rate, startMs);
  assert.equal(quota.freeAtMs(startMs), startMs + 4_000);
  assert.equal(quota.freeAtMs(startMs + 3_999), startMs + 4_000);
  assert.equal(quota.freeAtMs(startMs + 4_000), startMs + 4_000);
});

test('what is older than all windows does not count', () => {
  const quota = quotaOf();
  quota.record(100 * rate, startMs);
  assert.equal(quota.freeAtMs(startMs + 10_999), startMs + 11_000);
  assert.equal(quota.freeAtMs(startMs + 11_000), startMs + 11_000);
  quota.record(rate, startMs + 11_000);
  assert.equal(quota.freeAtMs(startMs + 11_000), startMs + 11_000, 'the windows began anew');
});

test('idle time is not saved up beyond the windows', () => {
  const quota = quotaOf();
  quota.record(rate, startMs);
  const later = startMs + 60_000;
  quota.record(2 * rate, later);
  assert.equal(quota.freeAtMs(later), later + 2_000);
});

for (const answer of [100, 900, 5_000])
  test(`answers of ${answer} bytes as soon as it is free come down to the rate`, () => {
    const quota = quotaOf();
    let bytes = 0;
    const endMs = startMs + 120_000;
    for (let nowMs = startMs; nowMs < endMs; nowMs += 50) {
      if (quota.freeAtMs(nowMs) > nowMs) continue;
      quota.record(answer, nowMs);
      bytes += answer;
    }
    const mean = (bytes * 1_000) / (endMs - startMs);
    // Up to one answer more than the mean in each span of the windows, and what the clock's steps take.
    assert(mean > 0.9 * rate && mean < rate + answer / 9, `${mean} bytes per second`);
  });

test('a new limit counts at once', () => {
  const quota = quotaOf();
  quota.record(4 * rate, startMs);
  quota.limit(4 * rate);
  assert.equal(quota.freeAtMs(startMs), startMs);
  quota.limit(rate / 2);
  assert.equal(quota.freeAtMs(startMs), startMs + 8_000);
});

test('with a rate of nothing one answer goes, and the next when that has left the windows', () => {
  const quota = quotaOf();
  quota.limit(0);
  assert.equal(quota.freeAtMs(startMs), startMs);
  quota.record(1, startMs);
  assert.equal(quota.freeAtMs(startMs), startMs + 11_000);
});

test('several that share a counter have one rate together', () => {
  const counter = new LocalCounter();
  const [one, other] = [quotaOf(counter), quotaOf(counter)];
  one.record(2 * rate, startMs);
  assert.equal(other.freeAtMs(startMs), startMs + 2_000);
  other.record(rate, startMs);
  assert.equal(one.freeAtMs(startMs), startMs + 3_000);
  assert.equal(other.freeAtMs(startMs), startMs + 3_000);
  // What was there before it was made is none of its business.
  assert.equal(quotaOf(counter).freeAtMs(startMs), startMs);
});

test.run();
