import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { Scratch } from '../../../engine/batch/scratch.ts';

const test = suite('scratch');

test('what was written stays when the memory grows', () => {
  const scratch = new Scratch();
  scratch.reserve(100, 0).fill(7, 0, 100);
  const grown = scratch.reserve(1_000_000, 100);
  assert(grown.length >= 1_000_000);
  assert(grown.subarray(0, 100).every((byte) => byte === 7));
});

test('a result that grows by small steps is not copied with each of them', () => {
  const scratch = new Scratch();
  const memories = new Set<ArrayBufferLike>();
  for (let length = 0; length < 64 << 20; length += 32 << 10)
    memories.add(scratch.reserve(length + (32 << 10), length).buffer);
  assert(memories.size < 20, `${memories.size} allocations for 64 MiB`);
});

test('memory that is too large to keep is let go', () => {
  const scratch = new Scratch();
  const large = scratch.reserve(32 << 20, 0);
  scratch.trim();
  assert.notEqual(scratch.reserve(1, 0).buffer, large.buffer);
});

test.run();
