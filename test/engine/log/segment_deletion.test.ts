import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { FlushSet } from '../../../engine/log/flush_set.ts';
import type { LogSlice } from '../../../engine/log/log_slice.ts';
import { cleanLog } from '../../sim/cleaning.ts';
import { LogWorld, partitionDir, splitBatches, startMs } from '../../sim/log_world.ts';

const test = suite('segment deletion');

/** Two records a batch, one batch a segment, and a producer for each segment. */
function logOf(segments: number, config: object = {}): LogWorld {
  const world = new LogWorld({ segmentBytes: 300, ...config }).open();
  for (let at = 0; at < segments; at += 1) {
    world.put({ atMs: [at * 10, at * 10 + 1], valueBytes: 80, producerId: at, baseSequence: 0 });
    world.settle();
  }
  assert.equal(world.log.segmentCount, segments);
  return world;
}

/** As a shard does it. */
function deleteUpTo(world: LogWorld, offset: number): string[] {
  const { deletion } = world.log;
  deletion.advanceLogStart(offset);
  const set = new FlushSet();
  const snapshotOffset = deletion.prepare(set);
  let names: string[] = [];
  world.group.flushFiles(set, (error) => {
    assert.equal(error, null);
    names = deletion.remove(snapshotOffset);
  });
  world.settle();
  return names;
}

const files = (world: LogWorld): string[] => (world.disk.list(partitionDir) ?? []).sort();
const at = (ms: number): bigint => BigInt(startMs + ms);

test('segments below the log start leave by another name, and with them their size and snapshots', () => {
  const world = logOf(4);
  world.checkpoint();
  const { size } = world.log;
  const names = deleteUpTo(world, 5);
  assert.deepEqual(
    names.filter((name) => name.includes('.log')),
    ['00000000000000000000.log.deleted', '00000000000000000002.log.deleted'],
  );
  assert.equal(names.length, 6);
  assert.equal(world.log.segmentCount, 2);
  assert.equal(world.log.size, size / 2);
  assert.equal(world.log.logStartOffset, 5);
  assert.deepEqual(
    files(world).filter((name) => name.endsWith('.snapshot')),
    [
      '00000000000000000004.snapshot',
      '00000000000000000006.snapshot',
      '00000000000000000008.snapshot',
    ],
  );
  assert.equal(world.log.read(4, 1_000, 8, true), ErrorCode.OFFSET_OUT_OF_RANGE);
  const first = splitBatches(world.readAll())[0];
  assert.deepEqual(
    [first?.baseOffset, first?.lastOffset],
    [4, 5],
    'the batch that holds the start',
  );
});

test('a reader that has a segment pinned reads on, and then the descriptor is closed', () => {
  const world = logOf(3);
  const slice = world.log.read(0, 1_000, 6, true) as LogSlice;
  slice.segment.pin();
  const before = world.log.copy(slice);
  const open = world.disk.openFiles;
  for (const name of deleteUpTo(world, 4)) world.disk.unlink(`${partitionDir}/${name}`);
  assert.deepEqual(world.log.copy(slice), before);
  slice.segment.unpin();
  assert(world.disk.openFiles < open);
});

test('what a stop leaves of deleted segments goes at the next start, indexes without their log too', () => {
  const world = logOf(4);
  world.checkpoint();
  deleteUpTo(world, 4);
  // As if the process had died between the renames of one segment.
  world.disk.rename(
    `${partitionDir}/00000000000000000004.log`,
    `${partitionDir}/00000000000000000004.log.deleted`,
  );
  world.kill();
  world.reopen();
  assert.deepEqual(
    files(world).filter((name) => /\.deleted$|^0{19}[024]\..*(log|index)/.test(name)),
    [],
  );
  assert.equal(world.log.logStartOffset, 6);
});

test('producers whose batches are deleted are remembered, over a power cut as well', () => {
  const world = logOf(4);
  deleteUpTo(world, 6);
  world.crash();
  world.reopen();
  for (const producerId of [0, 1, 2, 3])
    assert.equal(world.log.producers.get(producerId)?.lastSequence, 1, `producer ${producerId}`);
});

test('no segment goes while no snapshot can be made', () => {
  const world = logOf(2, { segmentBytes: 400 });
  for (const name of files(world).filter((one) => one.endsWith('.snapshot')))
    world.disk.unlink(`${partitionDir}/${name}`);
  world.kill();
  world.reopen();
  world.log.deletion.advanceLogStart(2);
  world.put({ valueBytes: 10 });
  assert.equal(world.log.deletion.prepare(new FlushSet()), -1, 'a batch is pending');
  world.settle();
  assert.equal(deleteUpTo(world, 2).length, 3);
});

test('leader epochs that have ended are forgotten, and the first begins at the log start', () => {
  const world = new LogWorld({ segmentBytes: 300 }).open();
  for (const epoch of [1, 1, 4, 6]) {
    world.leaderEpoch = epoch;
    world.put({ atMs: [0, 1], valueBytes: 80 });
    world.settle();
  }
  deleteUpTo(world, 5);
  assert.deepEqual(world.log.epochs.entries, [
    { epoch: 4, startOffset: 5 },
    { epoch: 6, startOffset: 6 },
  ]);
  assert.deepEqual(world.log.endOffsetForEpoch(1), { epoch: 1, endOffset: 5 });
});

test('an epoch that a failed write takes back is not confused by a start that moved meanwhile', () => {
  const world = new LogWorld({ segmentBytes: 300 }).open();
  for (const epoch of [1, 2, 3]) {
    world.leaderEpoch = epoch;
    world.put({ atMs: [0, 1], valueBytes: 80 });
    world.settle();
  }
  world.leaderEpoch = 9;
  world.put({ valueBytes: 10 });
  world.disk.writeError = 'ENOSPC';
  world.log.deletion.advanceLogStart(4);
  world.endTurn();
  assert.deepEqual(world.log.epochs.entries, [{ epoch: 3, startOffset: 4 }]);
});

test('times are looked up in what is left: out of order, equal, and in a batch that the start divides', () => {
  const world = new LogWorld({ segmentBytes: 400 }).open();
  for (const atMs of [[900], [5, 800, 30], [40], [40], [35, 40], [60]]) {
    world.put({ atMs, valueBytes: 60 });
    world.settle();
  }
  const find = (ms: number): number | undefined => world.log.offsetForTimestamp(at(ms))?.offset;
  assert.deepEqual([find(0), find(850), world.log.offsetOfMaxTimestamp()?.offset], [0, 0, 0]);
  world.log.deletion.advanceLogStart(2);
  assert.deepEqual([find(0), find(700), find(850)], [2, 2, undefined]);
  assert.equal(world.log.offsetOfMaxTimestamp()?.offset, 2);
  deleteUpTo(world, 3);
  // Offset 3 has 30: the batch's largest timestamp belongs to a record that is deleted.
  assert.deepEqual([find(0), find(31), find(41), find(61)], [3, 4, 8, undefined]);
  const largest = world.log.offsetOfMaxTimestamp();
  assert.deepEqual([largest?.offset, largest?.timestamp], [8, at(60)]);
  world.log.deletion.advanceLogStart(9);
  assert.deepEqual([find(0), world.log.offsetOfMaxTimestamp()], [undefined, null]);
});

test('all of a log can go: the next record gets the next offset, and a restart begins there', () => {
  const world = logOf(2);
  assert(world.log.deletion.roll(startMs));
  world.settle();
  deleteUpTo(world, 4);
  assert.deepEqual([world.log.logStartOffset, world.log.logEndOffset, world.log.size], [4, 4, 0]);
  world.checkpoint();
  world.crash();
  world.reopen();
  assert.deepEqual([world.log.logStartOffset, world.log.logEndOffset], [4, 4]);
  assert.equal(world.put().result.baseOffset, 4);
});

test('an empty segment is not followed by another one of the same name', () => {
  const world = logOf(2);
  for (let count = 0; count < 3; count += 1) assert(world.log.deletion.roll(startMs));
  assert.equal(world.log.segmentCount, 3);
  world.put();
  world.settle();
  assert.deepEqual(world.log.deletion.removeInPlace(4).length, 6);
  assert.equal(world.log.segmentCount, 1);
});

for (let seed = 1; seed <= 20; seed += 1)
  test(`records that were deleted unflushed and went with the power leave a log that begins at its start, seed ${seed}`, () => {
    const world = new LogWorld({ durability: 'os', segmentBytes: 300 }, { seed }).open();
    for (let number = 0; number < 4; number += 1) {
      world.put({ atMs: [0, 1], valueBytes: 80 });
      world.endTurn();
    }
    world.log.deletion.advanceLogStart(7);
    let isWritten = false;
    world.directory.writeLogStarts([world.marks()], () => {
      isWritten = true;
    });
    for (let turn = 0; !isWritten && turn < 10; turn += 1) world.disk.endFlushes();
    world.crash();
    world.reopen();
    // What is left of it depends on what the power cut spared: an end at or past the start.
    const { logStartOffset, logEndOffset } = world.log;
    assert.equal(logStartOffset, 7);
    assert(logEndOffset === 7 || logEndOffset === 8, `${logEndOffset}`);
    assert.equal(world.put().result.baseOffset, logEndOffset);
  });

test('without room for a checkpoint segments go one by one, and a power cut brings none back', () => {
  const world = logOf(4);
  world.checkpoint();
  world.disk.capacityBytes = 0;
  const names = world.log.deletion.removeInPlace(5);
  assert.equal(world.log.logStartOffset, 4);
  assert.deepEqual(world.log.deletion.removeInPlace(5), []);
  for (const name of names) world.disk.unlink(`${partitionDir}/${name}`);
  assert(world.disk.usedBytes < world.log.size + 4_000);
  world.crash();
  world.disk.capacityBytes = Number.POSITIVE_INFINITY;
  world.reopen();
  assert.deepEqual([world.log.logStartOffset, world.log.logEndOffset], [4, 8]);
  for (const producerId of [0, 1, 2, 3])
    assert.equal(world.log.producers.get(producerId)?.lastSequence, 1);
});

test('without room for a checkpoint, too, segments leave a few at a time', () => {
  const world = logOf(6);
  world.checkpoint();
  const starts: number[] = [];
  while (world.log.deletion.removeInPlace(10).length > 0) starts.push(world.log.logStartOffset);
  assert.deepEqual(starts, [4, 8, 10]);
});

test('bytes are counted from the batch that holds an offset', () => {
  const world = logOf(3);
  const each = world.log.size / 3;
  const { deletion } = world.log;
  assert.equal(deletion.bytesFrom(0, 6), 3 * each);
  assert.equal(deletion.bytesFrom(3, 6), 2 * each);
  assert.equal(deletion.bytesFrom(4, 6), each);
  deletion.advanceLogStart(4);
  assert.equal(deletion.bytesFrom(0, 6), each);
});

test('producers are remembered when the cleaner drops the snapshot that the deletion has chosen', () => {
  for (let seed = 1; seed <= 10; seed += 1) {
    const cleanupPolicy = { compact: true, delete: true };
    const world = new LogWorld({ segmentBytes: 300, cleanupPolicy }, { seed }).open();
    const put = (producerId: number): void => {
      world.put({ atMs: [0, 1], valueBytes: 80, producerId, baseSequence: 0 });
    };
    for (let at = 0; at < 4; at += 1) {
      put(at);
      world.settle();
    }
    // Two more segments, not flushed yet: the snapshot at 8 is the newest that a power cut cannot take.
    put(4);
    world.endTurn();
    put(5);
    world.endTurn();
    const { deletion } = world.log;
    deletion.advanceLogStart(6);
    const set = new FlushSet();
    const snapshotOffset = deletion.prepare(set);
    assert.equal(snapshotOffset, 8);
    set.flushSync(world.disk);
    world.settle();
    world.log.updateConfig({ ...world.config, segmentBytes: 900 });
    cleanLog(world.log, { disk: world.disk, nowMs: startMs });
    assert(!files(world).includes('00000000000000000008.snapshot'), 'its segment is another one');
    for (const name of deletion.remove(snapshotOffset))
      world.disk.unlink(`${partitionDir}/${name}`);
    world.settle();
    world.crash();
    world.reopen();
    for (const producerId of [0, 1, 2, 3, 4, 5])
      assert.equal(world.log.producers.get(producerId)?.lastSequence, 1, `producer ${producerId}`);
  }
});

test('many segments leave a few at a time, so that others have their turns', () => {
  const world = logOf(40);
  world.checkpoint();
  const { deletion } = world.log;
  deletion.advanceLogStart(78);
  const snapshotOffset = deletion.prepare(new FlushSet());
  const counts: number[] = [];
  while (deletion.countBelowStart > 0) {
    const before = world.log.segmentCount;
    deletion.remove(snapshotOffset);
    counts.push(before - world.log.segmentCount);
  }
  assert.deepEqual(counts, [8, 8, 8, 8, 7]);
});

test.run();
