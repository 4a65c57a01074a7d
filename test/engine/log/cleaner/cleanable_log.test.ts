import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { LogConfig } from '../../../../engine/log/log_config.ts';
import { cleanLog, FaultyDisk, Interrupted } from '../../../sim/cleaning.ts';
import { recordsIn } from '../../../sim/compacted_model.ts';
import { LogWorld, partitionDir, startMs } from '../../../sim/log_world.ts';

const test = suite('cleanable_log');
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const compact = { compact: true, delete: false } as const;

/** Batches of one record each, a minute apart, three to a segment; the last segment takes appends. */
function tableWorld(count: number, config: Partial<LogConfig> = {}): LogWorld {
  const world = new LogWorld({ segmentBytes: 300, cleanupPolicy: compact, ...config }).open();
  for (let number = 0; number < count; number += 1) put(world, number, `k${number % 2}`);
  world.settle();
  return world;
}

function put(world: LogWorld, number: number, key: string): void {
  const value = new Uint8Array(20);
  world.put({
    records: [{ key: bytesOf(key), value, timestamp: BigInt(startMs + number * 60_000) }],
  });
}

test('below the segment that takes appends, and below the last stable offset', () => {
  const { log } = tableWorld(10);
  const whole = log.cleaning.range(10, startMs);
  assert.equal(whole.firstDirtyOffset, 0);
  assert.equal(whole.uncleanableOffset, 9);
  assert.equal(whole.cleanBytes, 0);
  assert.equal(whole.dirtyRatio, 1);
  assert.equal(log.cleaning.range(8, startMs).uncleanableOffset, 6);
  const none = log.cleaning.range(2, startMs);
  assert.deepEqual([none.uncleanableOffset, none.dirtyBytes, none.dirtyRatio], [0, 0, 0]);
});

test('the ratio is that of the dirty bytes to all, and must be beyond what is set', () => {
  const { log } = tableWorld(10, { minCleanableDirtyRatio: 0.5 });
  log.cleaning.cleanedOffset = 3;
  const range = log.cleaning.range(10, startMs);
  assert.equal(range.firstDirtyOffset, 3);
  assert(range.dirtyRatio > 0.6 && range.dirtyRatio < 0.7);
  assert(log.cleaning.isWorthIt(range));
  log.cleaning.cleanedOffset = 6;
  assert(!log.cleaning.isWorthIt(log.cleaning.range(10, startMs)));
});

test('a cleaned offset that lies outside of the log counts for nothing', () => {
  const { log } = tableWorld(10);
  log.cleaning.cleanedOffset = 50;
  assert.equal(log.cleaning.range(10, startMs).firstDirtyOffset, 0);
});

test('min.compaction.lag.ms keeps young segments, max.compaction.lag.ms makes old ones urgent', () => {
  const config = { minCompactionLagMs: 300_000, maxCompactionLagMs: 600_000 };
  const { log } = tableWorld(10, { ...config, minCleanableDirtyRatio: 1 });
  const minute = (number: number): number => startMs + number * 60_000;
  // The segment of 3 to 5 has its youngest record at minute 5.
  assert.equal(log.cleaning.range(10, minute(9)).uncleanableOffset, 3);
  assert.equal(log.cleaning.range(10, minute(10)).uncleanableOffset, 6);
  assert(!log.cleaning.isWorthIt(log.cleaning.range(10, minute(10))));
  assert(log.cleaning.isWorthIt(log.cleaning.range(10, minute(10) + 1)));
});

test('max.compaction.lag.ms ends a segment as well (KIP-354)', () => {
  const { log } = tableWorld(10, { segmentBytes: 100_000, maxCompactionLagMs: 150_000 });
  assert.equal(log.segmentCount, 4);
});

test('a reader that has an old file goes on in it, and it is removed when the reader is done', () => {
  const world = tableWorld(13);
  const { log, disk } = world;
  const slice = log.read(0, 100_000, 13, true);
  assert(typeof slice === 'object');
  slice.segment.pin();
  const before = log.copy(slice);
  const open = disk.openFiles;
  cleanLog(log, { disk, nowMs: startMs });
  assert.deepEqual(log.copy(slice), before);
  assert.equal(log.segmentCount, 3 + 2);
  const left = (): string[] =>
    disk.list(partitionDir)!.filter((name) => name.endsWith('.log.deleted'));
  assert.deepEqual(left(), ['00000000000000000000.log.deleted']);
  slice.segment.unpin();
  assert.deepEqual(left(), []);
  assert(disk.openFiles <= open);
  assert.deepEqual(
    recordsIn(world.readAll()).map(({ offset }) => offset),
    [10, 11, 12],
  );
});

test('small segments become one, up to segment.bytes', () => {
  const world = tableWorld(31);
  world.log.updateConfig({ ...world.config, segmentBytes: 100_000 });
  const size = world.log.size;
  cleanLog(world.log, { disk: world.disk, nowMs: startMs });
  assert.equal(world.log.segmentCount, 2);
  assert(world.log.size < size);
  assert.deepEqual(world.log.cleaning.range(31, startMs).dirtyBytes, 0);
});

test('a job whose segments have changed meanwhile is not taken', () => {
  const world = tableWorld(10);
  const { log, disk } = world;
  assert.throws(
    () => cleanLog(log, { disk, nowMs: startMs, onStep: () => log.truncateTo(1) }),
    /has changed/,
  );
  assert.deepEqual(
    disk.list(partitionDir)!.filter((name) => /swap|cleaned/.test(name)),
    [],
  );
});

test('a disk that is full ends the cleaning, leaves nothing, and the next one succeeds', () => {
  const world = tableWorld(31);
  const { log, disk } = world;
  const files = disk.list(partitionDir)!.sort();
  disk.capacityBytes = disk.usedBytes + 30;
  assert.throws(() => cleanLog(log, { disk, nowMs: startMs }), /disk full/);
  assert.deepEqual(disk.list(partitionDir)!.sort(), files);
  disk.capacityBytes = Number.POSITIVE_INFINITY;
  cleanLog(log, { disk, nowMs: startMs });
  assert.equal(log.cleaning.cleanedOffset, 30);
});

test('a damaged batch is not cleaned over: the log is left as it is, and the reason is told', () => {
  const world = tableWorld(10);
  const path = `${partitionDir}/00000000000000000003.log`;
  world.disk.corrupt(path, 70, Uint8Array.of(0xff));
  const before = world.disk.bytesOf(path);
  assert.throws(
    () => cleanLog(world.log, { disk: world.disk, nowMs: startMs }),
    /byte 0 of 00000000000000000003.log is damaged: its checksum/,
  );
  assert.deepEqual(world.disk.bytesOf(path), before);
});

test('more keys than fit are cleaned in several goes; a batch that does not fit at all is told', () => {
  const world = new LogWorld({ segmentBytes: 300, cleanupPolicy: compact }).open();
  for (let number = 0; number < 30; number += 1) put(world, number, `k${number % 12}`);
  world.settle();
  const { log, disk } = world;
  const cleaned: number[] = [];
  for (;;) {
    const result = cleanLog(log, { disk, nowMs: startMs, mapBytes: 24 * 8 });
    if (result === null || log.cleaning.range(30, startMs).dirtyBytes === 0) break;
    cleaned.push(result.cleanedOffset);
  }
  assert(cleaned.length > 2, `${cleaned}`);
  const kept = recordsIn(world.readAll()).map(({ offset }) => offset);
  assert.equal(kept[0], 15);
  const many = Array.from({ length: 9 }, (_, at) => ({ key: bytesOf(`m${at}`), value: null }));
  world.put({ records: many });
  for (let number = 0; number < 4; number += 1) put(world, number, 'x');
  world.settle();
  const again = (): unknown => cleanLog(log, { disk, nowMs: startMs, mapBytes: 24 * 8 });
  assert.throws(() => {
    while (again() !== null);
  }, /log.cleaner.dedupe.buffer.size/);
});

test('an end in the middle of a swap is brought to its end by the next start', () => {
  for (let endAfter = 1; ; endAfter += 1) {
    const world = tableWorld(13, { segmentBytes: 300 });
    world.checkpoint();
    let isWhole = false;
    try {
      const { disk } = new FaultyDisk(world.disk, { endAfter });
      cleanLog(world.log, { disk, nowMs: startMs });
      isWhole = true;
    } catch (error) {
      if (!(error instanceof Interrupted)) throw error;
    }
    world.kill();
    world.reopen();
    const offsets = recordsIn(world.readAll()).map(({ offset }) => offset);
    assert.deepEqual(offsets.slice(-3), [10, 11, 12]);
    for (const kept of [10, 11]) assert(offsets.includes(kept));
    if (isWhole) return;
  }
});

test('what took the place of a removed record is on stable storage before the record goes', () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const world = new LogWorld({ segmentBytes: 300, cleanupPolicy: compact }, { seed }).open();
    put(world, 0, 'k');
    world.settle();
    world.config = { ...world.config, durability: 'os' };
    world.log.updateConfig(world.config);
    // The segment of 3 to 5 stays as it is.
    for (let number = 1; number < 10; number += 1) {
      put(world, number, number < 4 ? 'k' : `other ${number}`);
      world.settle();
    }
    assert.equal(world.log.flushedOffset, 1, 'nothing asked for a flush');
    cleanLog(world.log, { disk: world.disk, nowMs: startMs, stableOffset: 10 });
    world.crash();
    world.reopen();
    const offsets = recordsIn(world.readAll()).map(({ offset }) => offset);
    assert(offsets.includes(3), `seed ${seed}: ${offsets.join()}`);
  }
});

test('a log that lost its end is not clean past where it ends now', () => {
  const world = tableWorld(10);
  world.log.cleaning.cleanedOffset = 50;
  world.checkpoint();
  world.crash();
  world.reopen();
  assert.equal(world.log.logEndOffset, 10);
  for (let number = 10; number < 60; number += 1) put(world, number, 'k');
  world.settle();
  assert.equal(world.log.cleaning.range(60, startMs).firstDirtyOffset, 10);
});

test('the largest timestamp is that of a record, not of a batch that has none any more', () => {
  const world = new LogWorld({ segmentBytes: 300, cleanupPolicy: compact }).open();
  const { log, disk } = world;
  // The last batch of the first segment has the largest time, and stays without its record.
  for (const number of [0, 1, 99, 3, 4, 5, 6]) put(world, number, 'k');
  world.settle();
  assert.equal(log.offsetOfMaxTimestamp()?.offset, 2);
  const expected = { offset: 6, timestamp: BigInt(startMs + 6 * 60_000), leaderEpoch: 0 };
  cleanLog(log, { disk, nowMs: startMs });
  assert.deepEqual(
    recordsIn(world.readAll()).map(({ offset }) => offset),
    [5, 6],
  );
  assert.deepEqual(log.offsetOfMaxTimestamp(), expected);
  assert.equal(log.offsetForTimestamp(BigInt(startMs + 7 * 60_000)), null);
  for (const isIndexed of [true, false]) {
    world.close();
    for (const name of disk.list(partitionDir) ?? [])
      if (!isIndexed && name.endsWith('index')) disk.unlink(`${partitionDir}/${name}`);
    world.reopen();
    assert.deepEqual(world.log.offsetOfMaxTimestamp(), expected);
  }
  world.kill();
  world.reopen();
  assert.deepEqual(world.log.offsetOfMaxTimestamp(), expected);
});

test('what a look has to know of segments is asked of a few at a time, and once', () => {
  const config = { minCompactionLagMs: 1, maxCompactionLagMs: 1e12 };
  const world = tableWorld(90, config);
  world.checkpoint();
  world.close();
  world.reopen();
  const { log, disk } = world;
  const asked = (): number => {
    const { calls } = disk;
    return (calls.get('status') ?? 0) + (calls.get('open') ?? 0) + (calls.get('read') ?? 0);
  };
  const asks: number[] = [];
  for (let isKnown = false; !isKnown; ) {
    const before = asked();
    isKnown = log.cleaning.learn();
    asks.push(asked() - before);
  }
  assert.equal(asks.length, 4, `${log.segmentCount} segments`);
  assert(Math.max(...asks) < 8 * 8, `${asks}`);
  const before = asked();
  log.cleaning.range(90, world.wallMs);
  assert.equal(asked(), before);
  log.updateConfig({ ...log.config });
  assert(!log.cleaning.learn(), 'other settings may ask for more');
});

test.run();
