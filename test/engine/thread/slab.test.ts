import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { type Region, regionView, SlabAllocator, slabLimits } from '../../../engine/thread/slab.ts';
import { splitMix } from '../../harness/split_mix.ts';

const test = suite('slab');

test('regions never overlap, and all memory merges again, whatever the order of calls', () => {
  for (let seed = 1; seed <= 60; seed += 1) checkRandomHistory(seed);
});

test('a region is shared memory of at least the size asked for', () => {
  const slabs = new SlabAllocator();
  for (const bytes of [1, 511, 512, 513, 65_536, 65_537, slabLimits.slabBytes]) {
    const region = slabs.alloc(bytes);
    assert(region.capacity >= bytes && region.capacity <= Math.max(512, 2 * bytes), `${bytes}`);
    assert(region.bytes.buffer instanceof SharedArrayBuffer);
    assert.equal(regionView(region).length, region.capacity);
    assert.equal(regionView(region, 1).byteOffset, region.offset);
    slabs.free(region);
  }
  assert(slabs.isPristine());
});

test('a region larger than a slab has one of its own, which goes with it', () => {
  const slabs = new SlabAllocator();
  const region = slabs.alloc(slabLimits.slabBytes + 1);
  assert.equal(slabs.reservedBytes, slabLimits.slabBytes + 1);
  slabs.free(region);
  assert.equal(slabs.reservedBytes, 0);
});

test('freeing twice and sizes without sense are refused', () => {
  const slabs = new SlabAllocator();
  const region = slabs.alloc(100);
  slabs.free(region);
  assert.throws(() => slabs.free(region), /freed twice/);
  for (const bytes of [0, -1, 1.5, Number.NaN, 4e9]) assert.throws(() => slabs.alloc(bytes));
});

test('only slabs that stay empty between two trims are given up', () => {
  const slabs = new SlabAllocator();
  const regions = [1, 2, 3].map(() => slabs.alloc(slabLimits.slabBytes));
  for (const region of regions) slabs.free(region);
  assert.equal(slabs.reservedBytes, 3 * slabLimits.slabBytes);
  slabs.trim(1);
  assert.equal(slabs.reservedBytes, 3 * slabLimits.slabBytes);
  slabs.trim(1);
  assert.equal(slabs.reservedBytes, slabLimits.slabBytes);
  slabs.trim(0);
  assert.equal(slabs.reservedBytes, 0);
  slabs.free(slabs.alloc(1));
});

function checkRandomHistory(seed: number): void {
  const random = splitMix(seed);
  const slabs = new SlabAllocator();
  const held: Region[] = [];
  for (let step = 0; step < 600; step += 1) {
    if (held.length > 0 && random(100) < (step < 400 ? 45 : 60)) {
      const [region] = held.splice(random(held.length), 1);
      slabs.free(region as Region);
    } else {
      held.push(slabs.alloc(1 + random(1 << (4 + random(18)))));
    }
    if (step % 50 === 0) checkDisjoint(held, seed);
  }
  const used = held.reduce((sum, region) => sum + region.capacity, 0);
  assert.equal(slabs.usedBytes, used, `seed ${seed}`);
  for (const region of held) slabs.free(region);
  assert(slabs.isPristine(), `seed ${seed}: free blocks did not merge`);
}

function checkDisjoint(held: readonly Region[], seed: number): void {
  const sorted = [...held].sort((a, b) => a.slabId - b.slabId || a.offset - b.offset);
  sorted.forEach((region, at) => {
    const next = sorted[at + 1];
    assert(region.offset + region.capacity <= region.bytes.length);
    if (next === undefined || next.slabId !== region.slabId) return;
    assert(region.offset + region.capacity <= next.offset, `seed ${seed}: regions overlap`);
  });
}

test.run();
