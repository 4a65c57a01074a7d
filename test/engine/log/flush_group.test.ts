import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { newAppendResult } from '../../../engine/log/append_result.ts';
import { PartitionLog } from '../../../engine/log/partition_log.ts';
import { SegmentCache } from '../../../engine/log/segment_cache.ts';
import { LogWorld, logDir, makeBatch, topicId } from '../../sim/log_world.ts';

const test = suite('flush_group');

/** Another log in the world's directory and flush group. */
function anotherLog(world: LogWorld, partition: number): PartitionLog {
  const { disk, clock, random, config } = world;
  const log = PartitionLog.open({
    disk,
    clock,
    random,
    cache: new SegmentCache(4),
    dir: `${logDir}/orders-${partition}`,
    topic: 'orders',
    partition,
    topicId,
    config,
    recoveryPoint: 0,
    logStartOffset: 0,
    cleanShutdown: false,
    afterPowerLoss: false,
    dropCache: false,
    setAsideDamage: true,
  });
  world.group.adopt(log);
  return log;
}

function put(world: LogWorld, log: PartitionLog): void {
  const bytes = makeBatch({});
  const info = world.validate(bytes);
  const code = log.appender.append(
    bytes,
    0,
    bytes.length,
    info,
    0,
    world.wallMs,
    newAppendResult(),
  );
  assert.equal(code, ErrorCode.NONE);
  world.group.markDirty(log, true);
}

test('the write is reported at the end of the turn, the flush when it has ended', () => {
  const world = new LogWorld().open();
  world.put();
  world.put();
  assert.deepEqual(world.written, []);
  world.endTurn();
  assert.deepEqual(world.written, [{ from: 0, to: 2, error: ErrorCode.NONE }]);
  assert.deepEqual(world.flushed, []);
  world.disk.endFlushes();
  assert.deepEqual(world.flushed, [2]);
});

test('what arrives during a flush joins the next one, and only one runs at a time', () => {
  const world = new LogWorld().open();
  world.put();
  world.settle();
  world.flushed.length = 0;
  const flushes = world.group.flushCount;
  world.put();
  world.endTurn();
  for (let number = 0; number < 50; number += 1) {
    world.put();
    world.endTurn();
    assert.equal(world.disk.waitingFlushes, 1);
  }
  world.settle();
  assert.deepEqual(world.flushed, [2, 52]);
  assert.equal(world.group.flushCount - flushes, 2);
});

test('a few bytes that only wait for a flush are written when the one under way has ended', () => {
  const world = new LogWorld().open();
  world.isUrgent = () => false;
  world.put();
  world.endTurn();
  assert.equal(world.log.writtenOffset, 1, 'no flush is under way');
  world.put();
  world.endTurn();
  world.put();
  world.endTurn();
  assert.equal(world.log.writtenOffset, 1);
  const writes = world.disk.calls.get('write') ?? 0;
  world.disk.endFlushes();
  assert.equal(world.log.writtenOffset, 3);
  assert.equal((world.disk.calls.get('write') ?? 0) - writes, 1);
  assert.equal(world.disk.waitingFlushes, 1);
  world.settle();
  assert.deepEqual(world.flushed, [1, 3]);
});

test('a write that somebody waits for takes along what was kept back; so do many bytes', () => {
  const world = new LogWorld().open();
  world.isUrgent = () => false;
  world.put();
  world.endTurn();
  world.put();
  world.endTurn();
  world.isUrgent = () => true;
  world.put();
  world.endTurn();
  assert.equal(world.log.writtenOffset, 3);
  world.isUrgent = () => false;
  world.put();
  world.endTurn();
  assert.equal(world.log.writtenOffset, 3);
  world.put({ valueBytes: 20_000 });
  world.endTurn();
  assert.equal(world.log.writtenOffset, 5);
});

test('what was kept back is written although the flush could not be tried, and told of when it fails', () => {
  const world = new LogWorld().open();
  world.isUrgent = () => false;
  world.put();
  world.endTurn();
  world.put();
  world.endTurn();
  world.disk.hasNoDescriptors = true;
  world.settle();
  world.disk.hasNoDescriptors = false;
  world.group.tick();
  world.settle();
  assert.equal(world.flushed.at(-1), 2);
  world.put();
  world.endTurn();
  world.put();
  world.endTurn();
  world.disk.failingFlushes = 1;
  world.settle();
  assert.equal(world.failures.length, 1);
  assert.equal(world.flushed.at(-1), 2);
});

test('a flush covers what was written before it began and no more', () => {
  const world = new LogWorld().open();
  world.put();
  world.endTurn();
  world.put();
  world.endTurn();
  world.disk.endFlushes();
  assert.equal(world.log.flushedOffset, 1);
  world.crash();
  world.reopen();
  assert(world.log.logEndOffset >= 1);
});

test('many dirty files are flushed by one call for the file system, few one by one', () => {
  const world = new LogWorld().open();
  const logs = [1, 2, 3, 4, 5, 6].map((partition) => anotherLog(world, partition));
  for (const log of logs) put(world, log);
  world.settle();
  assert.equal(world.disk.calls.get('flushFileSystem'), 1);
  for (const log of logs) put(world, log);
  const flushes = world.disk.calls.get('flush') ?? 0;
  world.settle();
  assert.equal(world.disk.calls.get('flushFileSystem'), 1);
  assert.equal((world.disk.calls.get('flush') ?? 0) - flushes, 6);
  for (const log of logs) assert.equal(log.flushedOffset, 2);
});

test('where there is no such call, every file and every new name is flushed', () => {
  // Each partition has its batches and its partition.metadata.
  const world = new LogWorld({}, { hasSyncfs: false }).open();
  const logs = [1, 2, 3, 4, 5, 6].map((partition) => anotherLog(world, partition));
  for (const log of logs) put(world, log);
  world.settle();
  assert.equal(world.disk.calls.get('flush'), 12);
  for (const log of logs) assert.equal(log.flushedOffset, 1);
});

test('a failed flush of several logs takes all of the directory’s logs offline, once', () => {
  const world = new LogWorld().open();
  const logs = [1, 2, 3].map((partition) => anotherLog(world, partition));
  for (const log of logs) put(world, log);
  world.disk.failingFlushes = 1;
  world.settle();
  assert.equal(world.failures.length, 1);
  for (const log of [...logs, world.log]) assert.notEqual(log.failure, null);
  assert.deepEqual(world.flushed, []);
});

test('a flush that cannot be tried for want of descriptors is tried again, and acknowledges nothing', () => {
  const world = new LogWorld().open();
  world.disk.hasNoDescriptors = true;
  world.put();
  world.settle();
  world.put();
  world.settle();
  assert.deepEqual(world.flushed, []);
  assert.deepEqual(world.failures, []);
  world.disk.hasNoDescriptors = false;
  world.group.tick();
  world.settle();
  assert.deepEqual(world.flushed, [2]);
  world.crash();
  world.reopen();
  assert.equal(world.log.logEndOffset, 2);
});

test('a failed flush does not hide behind one that could not be tried', () => {
  const world = new LogWorld().open();
  world.disk.hasNoDescriptors = true;
  world.disk.failingFlushes = 1;
  world.put();
  world.settle();
  assert.equal(world.failures.length, 1);
  assert.equal(world.failures[0]?.isFlushFailure, true);
});

test('a write that fails for another reason than a full disk takes the directory offline', () => {
  const world = new LogWorld().open();
  world.put();
  world.disk.writeError = 'EIO';
  world.settle();
  assert.equal(world.failures.length, 1);
  assert.deepEqual(world.written, []);
});

test('durability os: the write acknowledges, and flush.messages flushes', () => {
  const world = new LogWorld({ durability: 'os', flushMessages: 3 }).open();
  world.put();
  world.settle();
  world.put();
  world.settle();
  assert.equal(world.written.length, 2);
  assert.equal(world.log.flushedOffset, 0);
  world.put();
  world.settle();
  assert.equal(world.log.flushedOffset, 3);
});

test('durability os: flush.ms flushes what is old enough', () => {
  const world = new LogWorld({ durability: 'os', flushMs: 1000 }).open();
  world.put();
  world.settle();
  world.monotonicMs = 999;
  world.group.tick();
  world.settle();
  assert.equal(world.log.flushedOffset, 0);
  world.monotonicMs = 1000;
  world.group.tick();
  world.settle();
  assert.equal(world.log.flushedOffset, 1);
});

test('durability os: write-back is asked for as the bytes pile up', () => {
  const world = new LogWorld({ durability: 'os' }).open();
  for (let number = 0; number < 10; number += 1) {
    world.put({ valueBytes: 1_000_000 });
    world.settle();
  }
  assert.equal(world.disk.calls.get('startWriteBack'), 2);
});

test('what passes is written back at once, and leaves the page cache when it is flushed', () => {
  const world = new LogWorld().open();
  world.settle();
  const counts = (): unknown[] =>
    ['startWriteBack', 'dropCache'].map((call) => world.disk.calls.get(call) ?? 0);
  world.put({ valueBytes: 1_000_000 });
  world.settle();
  assert.deepEqual(counts(), [0, 0], 'others may read it');
  const passing = world.put({ valueBytes: 1_000_000 });
  world.group.markCopied(world.log, true);
  world.endTurn();
  assert.deepEqual(counts(), [1, 0]);
  world.disk.endFlushes();
  assert.deepEqual(counts(), [1, 1]);
  world.put({ valueBytes: 1_000_000 });
  world.settle();
  assert.deepEqual(counts(), [1, 1], 'that was for one write');
  const slice = world.log.read(1, 2_000_000, 2, true);
  assert(typeof slice === 'object');
  assert.equal(slice.length, passing.bytes.length);
});

test('what passes stays in the page cache when its flush fails', () => {
  const world = new LogWorld().open();
  world.settle();
  world.put({ valueBytes: 1_000_000 });
  world.group.markCopied(world.log, true);
  world.endTurn();
  world.disk.failingFlushes = 1;
  world.disk.endFlushes();
  assert.equal(world.failures.length, 1);
  assert.equal(world.disk.calls.get('dropCache'), undefined);
});

test('a checkpoint moves the recovery point to what was flushed when it began', () => {
  const world = new LogWorld().open();
  for (let number = 0; number < 5; number += 1) world.put();
  world.settle();
  world.beginCheckpoint();
  assert.equal(world.log.recoveryPoint, 0, 'not before its files are flushed');
  world.put();
  world.settle();
  assert.equal(world.log.recoveryPoint, 5);
  assert.equal(world.directory.marksOf('orders', 0).recoveryPoint, 0);
  world.kill();
  world.open();
  assert.equal(world.directory.marksOf('orders', 0).recoveryPoint, 5);
  assert.equal(world.log.logEndOffset, 6);
});

test('a checkpoint on a full disk is no failure, and leaves the recovery point', () => {
  const world = new LogWorld().open();
  world.put();
  world.settle();
  world.disk.capacityBytes = 0;
  world.beginCheckpoint();
  world.settle();
  assert.deepEqual(world.failures, []);
  assert.equal(world.log.recoveryPoint, 0);
  world.disk.capacityBytes = Number.POSITIVE_INFINITY;
  world.checkpoint();
  assert.equal(world.log.recoveryPoint, 1);
});

test('closing during a flush waits for it, and writes what is pending', () => {
  const world = new LogWorld().open();
  world.put();
  world.endTurn();
  world.put();
  world.close();
  world.open();
  assert.equal(world.directory.cleanShutdown, true);
  assert.equal(world.log.logEndOffset, 2);
});

test.run();
