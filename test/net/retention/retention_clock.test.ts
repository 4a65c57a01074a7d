import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { RetentionClock } from '../../../net/retention/retention_clock.ts';

const test = suite('retention clock');
const hour = 3_600_000;

class Times {
  wall = 100 * hour;
  monotonic = 5;
  readonly clock: RetentionClock = new RetentionClock({
    wallMs: () => this.wall,
    monotonicMs: () => this.monotonic,
  });

  pass(ms: number): number {
    this.wall += ms;
    this.monotonic += ms;
    return this.clock.nowMs();
  }
}

test('it is the wall clock while that goes as it should', () => {
  const times = new Times();
  assert.equal(times.pass(0), 100 * hour);
  assert.equal(times.pass(hour), 101 * hour);
  assert.equal(times.clock.leapMs, 0);
});

test('a leap ahead is caught up with after as long again', () => {
  const times = new Times();
  times.wall += hour;
  assert.equal(times.pass(1_000), 100 * hour + 2_000);
  assert.equal(times.clock.leapMs, hour - 1_000);
  times.pass(hour / 2);
  assert(times.clock.leapMs > 0);
  times.pass(hour / 2);
  assert.equal(times.clock.leapMs, 0);
  assert.equal(times.clock.nowMs(), times.wall);
});

test('a leap back is followed at once, and so is its end only as the hours pass', () => {
  const times = new Times();
  times.wall -= hour;
  assert.equal(times.pass(0), 99 * hour);
  times.wall += hour;
  assert.equal(times.pass(10), 99 * hour + 20);
  times.pass(hour);
  assert.equal(times.clock.nowMs(), times.wall);
});

test.run();
