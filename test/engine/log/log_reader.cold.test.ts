/** Reads that must not wait for the device: they get where the others get, by way of what they say is missing. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { LogSlice } from '../../../engine/log/log_slice.ts';
import { ColdRead } from '../../../engine/ports.ts';
import { LogWorld, makeBatch, startMs } from '../../sim/log_world.ts';
import { SeededRandom } from '../../sim/seeded_random.ts';

const test = suite('log_reader: cold');

/** Closed segments, whose descriptors and indexes nobody has open. */
function coldWorld(seed: number): LogWorld {
  const random = new SeededRandom(seed);
  const world = new LogWorld({
    segmentBytes: 30_000,
    indexIntervalBytes: [100, 1000, 4096][random.below(3)] as number,
  }).open();
  for (let number = 0; number < 200; number += 1) {
    world.put({ atMs: [number * 10], valueBytes: random.below(2_000) });
    if (random.chance(0.3)) world.endTurn();
  }
  world.settle();
  world.close();
  world.reopen();
  world.disk.pageCache.drop();
  world.disk.pageCache.isFast = true;
  return world;
}

/** Brings in what is missing until the read gets through; returns how often that was. */
async function readWarm(
  world: LogWorld,
  offset: number,
  maxBytes: number,
): Promise<{ found: LogSlice | ErrorCode; missed: number }> {
  const { log, disk } = world;
  for (let missed = 0; ; missed += 1) {
    const found = log.readCached(offset, maxBytes, log.writtenOffset, true);
    if (!(found instanceof ColdRead)) return { found, missed };
    assert(missed < 8, 'makes no headway');
    assert(found.length > 0);
    await new Promise<void>((done) =>
      disk.pageCache.fill(found.fd, found.position, Math.max(found.length, 4096), done),
    );
    found.release?.();
  }
}

function placeOf(found: LogSlice | ErrorCode): unknown {
  if (typeof found === 'number') return found;
  return [found.segment.baseOffset, found.position, found.length, found.end];
}

test('a read that says what it misses finds the same in the end', async () => {
  for (let seed = 1; seed <= 10; seed += 1) {
    const random = new SeededRandom(seed);
    const cold = coldWorld(seed);
    const warm = coldWorld(seed);
    let missedTotal = 0;
    for (let round = 0; round < 40; round += 1) {
      const offset = random.below(cold.log.writtenOffset);
      const maxBytes = random.below(20_000);
      const { found, missed } = await readWarm(cold, offset, maxBytes);
      missedTotal += missed;
      const expected = warm.log.read(offset, maxBytes, warm.log.writtenOffset, true);
      assert.deepEqual(placeOf(found), placeOf(expected), `seed ${seed}: ${offset}, ${maxBytes}`);
    }
    assert(missedTotal > 0, 'nothing was cold');
  }
});

test('what is missing stays open until it is let go of, and not longer', () => {
  const { log, disk } = coldWorld(3);
  const before = disk.openFiles;
  for (const offset of [150, 100, 50, 7]) {
    const found = log.readCached(offset, 5_000, log.writtenOffset, true);
    assert(found instanceof ColdRead);
    assert.equal(disk.size(found.fd) > 0, true, 'the descriptor is open');
    assert(found.release !== null);
    found.release();
  }
  log.close();
  assert.equal(disk.openFiles, before - 1, 'only the active segment was open, and is closed');
});

test('a segment whose loading was broken off is loaded anew', async () => {
  const world = coldWorld(5);
  const { log, disk } = world;
  // The first thing missing is an index file; without more of it no read may take the index for empty.
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const found = log.readCached(60, 5_000, log.writtenOffset, true);
    assert(found instanceof ColdRead);
    found.release?.();
  }
  const reads = disk.calls.get('read') ?? 0;
  const { found } = await readWarm(world, 60, 5_000);
  assert(typeof found === 'object');
  assert((disk.calls.get('read') ?? 0) - reads < 20, 'it went over the whole segment');
});

test('look-ups by time say what they miss, and find the same in the end', async () => {
  const { log, disk } = coldWorld(4);
  const expected = coldWorld(4);
  for (const atMs of [0, 500, 1_234, 1_990, 5_000]) {
    const timestamp = BigInt(startMs + atMs);
    let missed = 0;
    for (;;) {
      try {
        const found = log.withoutWaiting(() => log.offsetForTimestamp(timestamp));
        assert.deepEqual(found, expected.log.offsetForTimestamp(timestamp));
        break;
      } catch (error) {
        assert(error instanceof ColdRead, String(error));
        missed += 1;
        assert(missed < 60, 'makes no headway');
        await new Promise<void>((done) =>
          disk.pageCache.fill(error.fd, error.position, error.length, done),
        );
        error.release?.();
      }
    }
    if (atMs === 0) assert(missed > 0);
  }
});

test('reads that may wait, and writes, care for no cache', () => {
  const world = coldWorld(6);
  const { log } = world;
  assert(typeof log.read(10, 5_000, log.writtenOffset, true) === 'object');
  world.put({ atMs: [9_000], valueBytes: 10 });
  world.settle();
  assert(makeBatch({ atMs: [0], valueBytes: 10 }).length > 0);
});

test.run();
