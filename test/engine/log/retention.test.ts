import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { DeletableSegment } from '../../../engine/log/retention.ts';
import { LogWorld, startMs } from '../../sim/log_world.ts';

const test = suite('retention');

/** One batch of about 170 bytes to a segment. */
const oneEach = { segmentBytes: 200, retentionMs: -1, retentionBytes: -1 };
const hour = 3_600_000;

/** A flushed log of one record at each time (ms after the start). */
function logOf(times: readonly number[], config: object): LogWorld {
  const world = new LogWorld({ ...oneEach, ...config }).open();
  for (const ms of times) {
    world.put({ atMs: [ms], valueBytes: 100 });
    world.settle();
  }
  return world;
}

function find(world: LogWorld, nowMs: number, rules: object = {}): readonly DeletableSegment[] {
  const highWatermark = world.log.flushedOffset;
  return world.log.deletion.find({
    highWatermark,
    nowMs: startMs + nowMs,
    isIdle: false,
    ...rules,
  });
}

const bases = (found: readonly DeletableSegment[]): number[] =>
  found.map(({ baseOffset }) => baseOffset);

test('by time: from the front, as long as the largest timestamp is older than retention.ms', () => {
  const world = logOf([0, 10, 20, 30], { retentionMs: 100 });
  assert.deepEqual(bases(find(world, 100)), [], 'exactly as old is not older');
  assert.deepEqual(bases(find(world, 101)), [0]);
  assert.deepEqual(bases(find(world, 121)), [0, 1, 2]);
});

test('by time: a segment with a younger record keeps those behind it', () => {
  const world = logOf([0, 500, 1, 2, 3], { retentionMs: 100 });
  assert.deepEqual(bases(find(world, 300)), [0]);
  assert.deepEqual(bases(find(world, 601)), [0, 1, 2, 3]);
});

test('by time: the largest timestamp of a segment counts, wherever in it it stands', () => {
  const world = new LogWorld({ segmentBytes: 400, retentionMs: 100, retentionBytes: -1 }).open();
  for (const atMs of [[0], [70], [5], [6], [7]]) world.put({ atMs, valueBytes: 100 });
  world.settle();
  assert.equal(world.log.segmentCount, 3);
  assert.deepEqual(bases(find(world, 170)), []);
  assert.deepEqual(bases(find(world, 171)), [0, 2]);
});

test('records without a timestamp are as old as their file', () => {
  const world = new LogWorld({ ...oneEach, retentionMs: 100 }).open();
  world.wallMs = startMs + 50;
  for (let number = 0; number < 3; number += 1)
    world.put({ records: [{ timestamp: -1n, value: new Uint8Array(120) }] });
  world.settle();
  assert.deepEqual(bases(find(world, 150)), []);
  assert.deepEqual(bases(find(world, 151)), [0, 1]);
});

test('the segment that is written to goes only when the log is idle, and never an empty one', () => {
  const world = logOf([0, 10], { retentionMs: 100 });
  assert.deepEqual(bases(find(world, 2 * hour)), [0]);
  const found = find(world, 2 * hour, { isIdle: true });
  assert.deepEqual(
    found.map(({ baseOffset, isActive }) => [baseOffset, isActive]),
    [
      [0, false],
      [1, true],
    ],
  );
  assert(world.log.deletion.roll(startMs));
  assert.deepEqual(bases(find(world, 2 * hour, { isIdle: true })), [0, 1]);
  const empty = new LogWorld({ ...oneEach, retentionMs: 0, retentionBytes: 0 }).open();
  assert.deepEqual(find(empty, hour, { isIdle: true }), []);
});

test('by size: the oldest go while what is left is not less than retention.bytes', () => {
  const world = logOf([0, 1, 2, 3], {});
  const { size } = world.log;
  const each = size / 4;
  const after = (retentionBytes: number): number[] => {
    world.log.updateConfig({ ...world.config, retentionBytes });
    return bases(find(world, 0));
  };
  assert.deepEqual(after(-1), []);
  assert.deepEqual(after(size), []);
  assert.deepEqual(after(size - each + 1), []);
  assert.deepEqual(after(size - each), [0]);
  assert.deepEqual(after(1), [0, 1, 2]);
  assert.deepEqual(after(0), [0, 1, 2, 3]);
});

test('size and time together: time begins where size has ended', () => {
  const world = logOf([0, 10, 20, 500], { retentionMs: 100 });
  world.log.updateConfig({ ...world.config, retentionBytes: (world.log.size / 4) * 3 });
  assert.deepEqual(
    find(world, 115).map(({ baseOffset, reason }) => [baseOffset, reason]),
    [
      [0, 'bytes'],
      [1, 'time'],
    ],
  );
});

test('nothing past the high watermark goes', () => {
  const world = logOf([0, 1, 2, 3], { retentionMs: 100, retentionBytes: 0 });
  assert.deepEqual(bases(find(world, hour, { highWatermark: 2 })), [0, 1]);
  assert.deepEqual(bases(find(world, hour, { highWatermark: 1, isIdle: true })), [0]);
});

test('with cleanup.policy=compact only what lies below the log start goes', () => {
  const compact = { compact: true, delete: false };
  const world = logOf([0, 1, 2, 3], { retentionMs: 0, retentionBytes: 0, cleanupPolicy: compact });
  assert.deepEqual(find(world, hour), []);
  world.log.deletion.advanceLogStart(2);
  assert.deepEqual(
    find(world, hour).map(({ baseOffset, reason }) => [baseOffset, reason]),
    [
      [0, 'start'],
      [1, 'start'],
    ],
  );
  const both = { compact: true, delete: true };
  world.log.updateConfig({ ...world.config, cleanupPolicy: both });
  assert.deepEqual(bases(find(world, hour)), [0, 1, 2, 3]);
});

test('a time index that says too little is not believed', () => {
  const world = logOf([0, 1, 2], { retentionMs: 100 });
  world.close();
  const path = '/data/logs/orders-0/00000000000000000000.timeindex';
  const bytes = world.disk.bytesOf(path);
  bytes.set(new Uint8Array(new BigInt64Array([BigInt(startMs - 50_000)]).buffer).reverse(), 0);
  world.disk.writeFile(path, bytes);
  world.reopen();
  assert.deepEqual(bases(find(world, 60)), []);
  assert.deepEqual(bases(find(world, 101)), [0]);
});

test.run();
