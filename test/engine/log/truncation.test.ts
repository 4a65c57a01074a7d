import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { LogWorld, splitBatches, startMs } from '../../sim/log_world.ts';

const test = suite('truncation');

/** 40 batches of two records, in segments, a leader epoch for each ten. */
function filled(): LogWorld {
  const world = new LogWorld({ segmentBytes: 2000, indexIntervalBytes: 200 }).open();
  for (let number = 0; number < 40; number += 1) {
    world.leaderEpoch = Math.floor(number / 10);
    world.put({
      atMs: [number * 2, number * 2 + 1],
      valueBytes: 50,
      producerId: 5,
      baseSequence: number * 2,
    });
    world.settle();
  }
  assert(world.log.segmentCount > 3);
  return world;
}

for (const offset of [79, 78, 51, 50, 21, 20, 1, 0]) {
  test(`cut to ${offset}: as if what was past it had never been`, () => {
    const world = filled();
    if (offset % 3 === 0) world.checkpoint();
    const before = splitBatches(world.readAll());
    assert.equal(world.log.truncateTo(offset), ErrorCode.NONE);
    const end = offset - (offset % 2);
    assert.equal(world.log.logEndOffset, end);
    assert.equal(world.log.flushedOffset, end);
    assert.equal(world.log.epochs.latestEpoch, end === 0 ? -1 : Math.floor((end - 1) / 20));
    assert.equal(world.log.producers.get(5)?.lastSequence, end === 0 ? undefined : end - 1);
    const kept = splitBatches(world.readAll());
    assert.deepEqual(
      kept,
      before.filter(({ lastOffset }) => lastOffset < end),
    );
    const found = world.log.offsetForTimestamp(BigInt(startMs + 30));
    assert.equal(found?.offset, end > 30 ? 30 : undefined);
    world.leaderEpoch = 9;
    world.put({ producerId: 5, baseSequence: end, atMs: [1000] });
    world.settle();
    assert.equal(world.log.flushedOffset, end + 1);
    world.crash();
    world.reopen();
    assert.equal(world.log.logEndOffset, end + 1);
    assert.equal(world.log.producers.get(5)?.lastSequence, end);
    assert.deepEqual(world.log.endOffsetForEpoch(9), { epoch: 9, endOffset: end + 1 });
  });
}

test('an epoch that was cut off does not come back with its file', () => {
  const world = filled();
  world.checkpoint();
  // As for a follower, whose cut goes below what the checkpoint says.
  let isLowered = false;
  world.directory.writeCheckpoints([{ ...world.marks(), recoveryPoint: 50 }], () => {
    isLowered = true;
  });
  world.settle();
  assert(isLowered);
  assert.equal(world.log.truncateTo(50), ErrorCode.NONE);
  for (const [leaderEpoch, atMs] of [
    [2, Array.from({ length: 20 }, (_, at) => at)],
    [5, [20]],
  ] as const) {
    world.leaderEpoch = leaderEpoch;
    world.put({ atMs });
    world.settle();
  }
  const expected = [0, 20, 40, 70].map((startOffset, at) => ({
    epoch: [0, 1, 2, 5][at],
    startOffset,
  }));
  assert.deepEqual(world.log.epochs.entries, expected);
  world.kill();
  world.reopen();
  assert.deepEqual(world.log.epochs.entries, expected, 'epoch 3 began at 60');
});

test('an offset at or past the end cuts nothing', () => {
  const world = filled();
  assert.equal(world.log.truncateTo(80), ErrorCode.NONE);
  assert.equal(world.log.truncateTo(1000), ErrorCode.NONE);
  assert.equal(world.log.logEndOffset, 80);
});

test('a flush under way does not count what was cut meanwhile', () => {
  const world = filled();
  world.put({ producerId: 5, baseSequence: 80 });
  world.endTurn();
  assert.equal(world.log.truncateTo(40), ErrorCode.NONE);
  world.put({ producerId: 5, baseSequence: 40, atMs: [0, 1, 2] });
  world.endTurn();
  world.disk.endFlushes();
  assert.equal(world.log.flushedOffset, 40);
  world.settle();
  assert.equal(world.log.flushedOffset, 43);
});

test.run();
