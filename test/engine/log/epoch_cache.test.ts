/** LeaderEpochFileCache's rules (KIP-101, KIP-279). */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { EpochCache } from '../../../engine/log/epoch_cache.ts';

const test = suite('epoch_cache');

function cacheOf(...entries: Array<[number, number]>): EpochCache {
  const cache = new EpochCache();
  for (const [epoch, startOffset] of entries) cache.assign(epoch, startOffset);
  return cache;
}

const listOf = (cache: EpochCache): Array<[number, number]> =>
  cache.entries.map(({ epoch, startOffset }) => [epoch, startOffset]);

test('an epoch is noted at its first batch only', () => {
  const cache = cacheOf([0, 0], [0, 5], [3, 10], [3, 11]);
  assert.deepEqual(listOf(cache), [
    [0, 0],
    [3, 10],
  ]);
  assert.equal(cache.latestEpoch, 3);
});

test('an entry that conflicts with the end takes its place', () => {
  assert.deepEqual(listOf(cacheOf([1, 0], [2, 10], [3, 20], [4, 10])), [
    [1, 0],
    [4, 10],
  ]);
  assert.deepEqual(listOf(cacheOf([1, 0], [5, 10], [3, 20])), [
    [1, 0],
    [3, 20],
  ]);
  assert.deepEqual(listOf(cacheOf([-1, 0])), []);
});

test('where an epoch ends', () => {
  const cache = cacheOf([1, 10], [2, 20], [5, 50]);
  const end = (epoch: number): [number, number] => {
    const found = cache.endOffsetFor(epoch, 77);
    return [found.epoch, found.endOffset];
  };
  assert.deepEqual(end(5), [5, 77], 'the latest ends at the log’s end');
  assert.deepEqual(end(2), [2, 50]);
  assert.deepEqual(end(1), [1, 20]);
  assert.deepEqual(end(3), [2, 50], 'one that wrote nothing: the largest below it');
  assert.deepEqual(end(0), [0, 10], 'one before the first: where the first begins');
  assert.deepEqual(end(6), [-1, -1], 'one that is not known yet');
  assert.deepEqual(end(-1), [-1, -1]);
  assert.deepEqual(new EpochCache().endOffsetFor(0, 5), { epoch: -1, endOffset: -1 });
});

test('which epoch wrote an offset', () => {
  const cache = cacheOf([1, 10], [2, 20]);
  assert.deepEqual(
    [9, 10, 19, 20, 99].map((offset) => cache.epochFor(offset)),
    [-1, 1, 1, 2, 2],
  );
});

test('truncation from either side', () => {
  const cache = cacheOf([1, 10], [2, 20], [5, 50]);
  cache.truncateFromEnd(50);
  assert.deepEqual(listOf(cache), [
    [1, 10],
    [2, 20],
  ]);
  cache.truncateFromStart(15);
  assert.deepEqual(listOf(cache), [
    [1, 15],
    [2, 20],
  ]);
  cache.truncateFromStart(20);
  assert.deepEqual(listOf(cache), [[2, 20]]);
  cache.truncateFromStart(30);
  assert.deepEqual(listOf(cache), [[2, 30]]);
});

test('the file is Kafka’s, and damage to it is noticed', () => {
  const cache = cacheOf([0, 0], [4, 1234]);
  const bytes = cache.toFile();
  assert.equal(new TextDecoder().decode(bytes), '0\n2\n0 0\n4 1234\n');
  const other = new EpochCache();
  assert.equal(other.load(bytes), true);
  assert.deepEqual(listOf(other), listOf(cache));
  for (let length = 0; length < bytes.length; length += 1)
    assert.equal(new EpochCache().load(bytes.subarray(0, length)), false);
  assert.equal(new EpochCache().load(new TextEncoder().encode('0\n1\n0 x\n')), false);
  assert.equal(new EpochCache().load(new Uint8Array(100)), false);
});

test('a log reaches as far in an epoch as OffsetForLeaderEpoch says of it', () => {
  for (const cache of [cacheOf(), cacheOf([0, 0]), cacheOf([2, 5], [4, 5], [5, 9], [8, 12])])
    for (let epoch = 0; epoch < 10; epoch += 1)
      for (let offset = 0; offset < 20; offset += 1) {
        const end = cache.endOffsetFor(epoch, 15);
        const expected = end.epoch === epoch && end.endOffset >= offset;
        assert.equal(cache.reaches(epoch, offset, 15), expected, `${epoch} at ${offset}`);
      }
});

test.run();
