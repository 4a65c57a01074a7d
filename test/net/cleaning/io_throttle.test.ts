import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { IoThrottle } from '../../../net/cleaning/io_throttle.ts';

const test = suite('io_throttle');

test('bytes take the time that the rate gives them, and idle time is not saved up', () => {
  const throttle = new IoThrottle(1_000);
  assert.equal(throttle.spend(500, 0), 0);
  assert.equal(throttle.spend(500, 100), 400);
  assert.equal(throttle.spend(100, 600), 0);
  assert.equal(throttle.spend(1_000, 60_000), 0);
  assert.equal(throttle.spend(1_000, 60_000), 1_000);
});

test('without a rate there is no waiting', () => {
  const throttle = new IoThrottle(Number.MAX_VALUE);
  for (let second = 0; second < 5; second += 1) assert(throttle.spend(1e12, 0) < 1);
});

test.run();
