/** Faults 4 and 5 of the fault list: torn tails, and damage that is none. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { filledWorld, makeBatch, partitionDir, splitBatches } from '../../sim/log_world.ts';

const test = suite('recovery.damage');

const logFile = `${partitionDir}/00000000000000000000.log`;

test('fault 4: a torn tail is cut at the last valid batch, and what was flushed stays', () => {
  const world = filledWorld(3);
  const before = world.disk.bytesOf(logFile);
  const torn = world.put({ valueBytes: 2000 }).bytes;
  world.kill();
  for (const length of [1, 8, 12, 60, 61, 100, torn.length - 1]) {
    world.disk.corrupt(logFile, before.length, torn.subarray(0, length));
    world.open();
    assert.equal(world.log.logEndOffset, 3);
    assert.equal(world.log.recovery.cutBytes, length);
    assert.deepEqual(world.disk.bytesOf(logFile), before);
    assert.deepEqual(world.log.recovery.damage, []);
    world.kill();
  }
});

test('fault 4: a cut tail stays cut when the next stop comes at once', () => {
  const world = filledWorld(3);
  const { length } = world.disk.bytesOf(logFile);
  world.disk.corrupt(logFile, length, new Uint8Array(500).fill(7));
  world.kill();
  world.reopen();
  world.crash();
  world.reopen();
  assert.equal(world.log.logEndOffset, 3);
  assert.equal(world.put().result.baseOffset, 3);
});

test('fault 5: damage with valid batches behind it is not cut, and not served', () => {
  const world = filledWorld(10);
  world.setAsideDamage = false;
  const before = world.disk.bytesOf(logFile);
  const size = before.length / 10;
  world.disk.corrupt(logFile, 4 * size + 70, Uint8Array.of(0xff));
  world.kill();
  world.open();
  const { log } = world;
  assert.equal(world.disk.bytesOf(logFile).length, before.length, 'nothing is cut');
  assert.equal(log.logEndOffset, 10);
  assert.equal(log.isDamaged, true);
  const { position, fromOffset, toOffset } = log.recovery.damage[0] ?? {};
  assert.deepEqual(
    { position, fromOffset, toOffset },
    { position: 4 * size, fromOffset: 4, toOffset: 5 },
  );
  assert.equal(splitBatches(world.readAll(0, 10_000, 4)).length, 4);
  assert.equal(log.read(4, 10_000, 10, true), ErrorCode.CORRUPT_MESSAGE);
  const slice = log.read(2, 10_000, 10, true);
  assert(typeof slice !== 'number');
  assert.equal(slice.length, 2 * size, 'a read ends before the damage');
  assert.equal(world.append().code, ErrorCode.KAFKA_STORAGE_ERROR, 'nor is it led');
});

test('fault 5: with no other copy the damaged range goes into a file of its own', () => {
  const world = filledWorld(10);
  const before = world.disk.bytesOf(logFile);
  const size = before.length / 10;
  world.disk.corrupt(logFile, 4 * size + 70, Uint8Array.of(0xff));
  const damaged = world.disk.bytesOf(logFile).slice(4 * size, 5 * size);
  world.kill();
  world.open();
  const { log } = world;
  assert.equal(log.isDamaged, false);
  assert.equal(log.recovery.setAside.length, 1);
  const aside = `${partitionDir}/00000000000000000000-${4 * size}.damaged`;
  assert.deepEqual(world.disk.bytesOf(aside), damaged);
  const offsets = splitBatches(world.readAll()).map(({ baseOffset }) => baseOffset);
  assert.deepEqual(offsets, [0, 1, 2, 3, 5, 6, 7, 8, 9]);
  world.settle();
  assert.equal(world.put().result.baseOffset, 10);
  world.settle();
  world.crash();
  world.reopen();
  assert.equal(world.log.logEndOffset, 11);
  assert.deepEqual(world.log.recovery.setAside, [], 'once is enough');
});

test('fault 5: a batch that begins just before a sector’s end, with the zeros of its offset, is no lost sector', () => {
  const overhead = makeBatch({ valueBytes: 400 }).length - 400;
  for (let before = 1; before < 12; before += 1) {
    const world = filledWorld(0);
    const first = world.put({ valueBytes: 512 - before - overhead }).bytes;
    assert.equal(first.length, 512 - before);
    const { length } = world.put({ valueBytes: 300 }).bytes;
    world.put();
    world.settle();
    world.disk.corrupt(logFile, first.length + length - 2, Uint8Array.of(0xee));
    world.crash();
    world.reopen();
    const { recovery, logEndOffset } = world.log;
    assert.deepEqual([recovery.cutBytes, recovery.setAside.length, logEndOffset], [0, 1, 3]);
  }
});

test('fault 5: damage before the recovery point is none of a tail, even with nothing behind it', () => {
  const world = filledWorld(5);
  world.checkpoint();
  const size = world.disk.bytesOf(logFile).length / 5;
  world.disk.corrupt(logFile, 4 * size + 70, Uint8Array.of(0xff));
  world.crash();
  world.open();
  const { recovery } = world.log;
  assert.equal(recovery.cutBytes, 0);
  assert.equal(recovery.setAside[0]?.fromOffset, 4);
  assert.equal(world.log.logEndOffset, 5, 'no offset that was acknowledged is given again');
});

test('fault 5: a damaged base offset, which no checksum covers, costs its own batch and no other', () => {
  // The second is small enough to pass for a gap that compaction left; the third is no offset at all.
  for (const wrong of [7, 5_000, 2 ** 40]) {
    const world = filledWorld(10);
    const before = world.disk.bytesOf(logFile).length;
    const size = before / 10;
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigInt64(0, BigInt(wrong));
    world.disk.corrupt(logFile, 4 * size, bytes);
    for (const crash of [() => world.kill(), () => world.crash()]) {
      crash();
      world.reopen();
      const offsets = splitBatches(world.readAll()).map(({ baseOffset }) => baseOffset);
      assert.deepEqual(offsets, [0, 1, 2, 3, 5, 6, 7, 8, 9], `offset ${wrong} in place of 4`);
      assert.equal(world.log.recovery.cutBytes, 0);
    }
    const aside = world.disk.bytesOf(`${partitionDir}/00000000000000000000-${4 * size}.damaged`);
    assert.equal(aside.length, size);
  }
});

test('fault 4: an unflushed last batch whose base offset makes no sense is a torn tail', () => {
  const world = filledWorld(4);
  world.checkpoint();
  world.put();
  world.endTurn();
  const size = world.disk.bytesOf(logFile).length / 5;
  world.disk.corrupt(logFile, 4 * size, Uint8Array.of(0x64, 0x61, 0x6d, 0x61, 0x67, 0x65));
  world.kill();
  world.reopen();
  assert.equal(world.log.logEndOffset, 4);
  assert.equal(world.log.recovery.cutBytes, size);
});

test.run();
