import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { Histogram } from '../../tools/histogram.ts';

const test = suite('bench/compare/histogram');

test('an empty histogram has no percentiles', () => {
  const histogram = new Histogram();
  assert.equal(histogram.count, 0);
  assert.ok(Number.isNaN(histogram.percentile(50)));
  assert.equal(histogram.maxMs, 0);
});

test('percentiles are the nearest rank, within 0.1 %', () => {
  const histogram = new Histogram();
  // 0.01 ms … 1,000 ms, recorded from the largest to the smallest.
  for (let step = 100_000; step >= 1; step -= 1) histogram.record(step / 100);
  for (const percent of [0.1, 1, 10, 50, 90, 99, 99.9, 100]) {
    const exact = (Math.ceil((percent / 100) * 100_000 - 1e-9) / 100) as number;
    const found = histogram.percentile(percent);
    assert.ok(
      found >= exact && found <= exact * 1.001 + 0.0001,
      `${percent} %: ${found}, ${exact}`,
    );
  }
  assert.equal(histogram.maxMs, 1_000);
});

test('one slow request in a thousand shows in the last percentile only', () => {
  const histogram = new Histogram();
  for (let count = 0; count < 999; count += 1) histogram.record(0.2);
  histogram.record(25);
  assert.ok(histogram.percentile(99.9) < 0.201);
  assert.equal(histogram.percentile(100), 25);
});

test('negative and huge durations are kept at the ends of the range', () => {
  const histogram = new Histogram();
  histogram.record(-1);
  histogram.record(1e9);
  assert.equal(histogram.percentile(50), 0);
  assert.ok(histogram.maxMs > 429_000 && histogram.maxMs < 430_000);
});

test('a merge is the same as recording everything in one', () => {
  const [one, other, both] = [new Histogram(), new Histogram(), new Histogram()];
  for (let step = 1; step <= 5_000; step += 1) {
    const ms = (step * 7_919) % 1_013;
    (step % 3 === 0 ? one : other).record(ms);
    both.record(ms);
  }
  one.merge(other);
  assert.equal(one.count, both.count);
  assert.equal(one.maxMs, both.maxMs);
  for (const percent of [1, 50, 99])
    assert.equal(one.percentile(percent), both.percentile(percent));
});

test.run();
