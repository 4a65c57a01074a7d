/** Reads and look-ups compared with what a plain list of the batches says. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { LogWorld, makeBatch, startMs } from '../../sim/log_world.ts';
import { SeededRandom } from '../../sim/seeded_random.ts';

const test = suite('log_reader');

interface Stored {
  readonly baseOffset: number;
  readonly lastOffset: number;
  readonly bytes: Uint8Array;
  readonly timestamps: readonly number[];
}

function fill(world: LogWorld, random: SeededRandom, count: number): Stored[] {
  const stored: Stored[] = [];
  for (let number = 0; number < count; number += 1) {
    const timestamps = Array.from(
      { length: 1 + random.below(3) },
      () => random.below(500) + number,
    );
    const codec = random.below(5) as 0 | 1 | 2 | 3 | 4;
    const { result, bytes } = world.put({
      atMs: timestamps,
      codec,
      valueBytes: random.chance(0.05) ? 3000 : random.below(200),
    });
    stored.push({ ...result, bytes, timestamps });
    if (random.chance(0.3)) world.endTurn();
  }
  world.settle();
  return stored;
}

function worldFor(random: SeededRandom): LogWorld {
  return new LogWorld({
    segmentBytes: 20_000,
    indexIntervalBytes: [0, 100, 1000, 4096][random.below(4)] as number,
  }).open();
}

test('a read gives whole batches from the one with the offset, up to the limits', () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const random = new SeededRandom(seed);
    const world = worldFor(random);
    const stored = fill(world, random, 150);
    const end = world.log.writtenOffset;
    for (let round = 0; round < 150; round += 1) {
      const offset = random.below(end);
      const boundary = stored[random.below(stored.length)] as Stored;
      const upTo = random.chance(0.5) ? end : boundary.baseOffset;
      const maxBytes = random.below(random.chance(0.3) ? 200 : 8000);
      const minOne = random.chance(0.5);
      const got = world.log.read(offset, maxBytes, upTo, minOne);
      const expected = stored.filter(({ lastOffset }) => lastOffset >= offset && lastOffset < upTo);
      const note = `seed ${seed}: read(${offset}, ${maxBytes}, ${upTo}, ${minOne})`;
      if (typeof got === 'number') {
        assert.equal(got, ErrorCode.NONE, note);
        const first = expected[0];
        assert(first === undefined || (!minOne && first.bytes.length > maxBytes), note);
        continue;
      }
      const bytes = world.log.copy(got);
      const whole = Buffer.concat(expected.map((batch) => batch.bytes));
      assert(Buffer.compare(bytes, whole.subarray(0, bytes.length)) === 0, note);
      const taken = expected.filter(
        (_batch, at) =>
          Buffer.concat(expected.slice(0, at + 1).map((one) => one.bytes)).length <= bytes.length,
      );
      assert.equal(Buffer.concat(taken.map((one) => one.bytes)).length, bytes.length, note);
      const isLarge = taken.length === 1 && minOne;
      assert(bytes.length <= maxBytes || isLarge, note);
      // No batch more would have fitted, within the segment.
      const next = expected[taken.length];
      const fits = next !== undefined && bytes.length + next.bytes.length <= maxBytes;
      assert(!fits || isFirstOfSegment(world, next.baseOffset), note);
    }
  }
});

function isFirstOfSegment(world: LogWorld, offset: number): boolean {
  const name = `${String(offset).padStart(20, '0')}.log`;
  return (world.disk.list('/data/logs/orders-0') ?? []).includes(name);
}

test('reads one after another need no index and no scan', () => {
  const world = new LogWorld({ indexIntervalBytes: 100_000_000 }).open();
  for (let number = 0; number < 200; number += 1) {
    world.put({ valueBytes: 100 });
    world.settle();
    const reads = world.disk.calls.get('read') ?? 0;
    const slice = world.log.read(number, 100_000, number + 1, true);
    assert(typeof slice !== 'number' && slice.length > 0);
    assert.equal(world.disk.calls.get('read') ?? 0, reads);
  }
});

test('offsets outside the log are out of range, its end is not', () => {
  const world = new LogWorld().open();
  world.put();
  world.settle();
  assert.equal(world.log.read(-1, 100, 1, true), ErrorCode.OFFSET_OUT_OF_RANGE);
  assert.equal(world.log.read(2, 100, 1, true), ErrorCode.OFFSET_OUT_OF_RANGE);
  assert.equal(world.log.read(1, 100, 1, true), ErrorCode.NONE);
});

test('what is not written yet cannot be read', () => {
  const world = new LogWorld().open();
  world.put();
  assert.equal(world.log.logEndOffset, 1);
  assert.equal(world.log.read(0, 100, 1, true), ErrorCode.NONE);
});

test('the first record at or after a time is found, with its own timestamp', () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const random = new SeededRandom(seed);
    const world = worldFor(random);
    const stored = fill(world, random, 150);
    const records = stored.flatMap(({ baseOffset, timestamps }) =>
      timestamps.map((ms, index) => ({ offset: baseOffset + index, ms })),
    );
    for (let ms = -1; ms < 660; ms += 1 + random.below(9)) {
      const expected = records.find((record) => record.ms >= ms);
      const found = world.log.offsetForTimestamp(BigInt(startMs + ms));
      assert.equal(found?.offset, expected?.offset, `seed ${seed}: ${ms}`);
      if (found === null || expected === undefined) continue;
      assert.equal(found.timestamp, BigInt(startMs + expected.ms));
      assert.equal(found.leaderEpoch, 0);
    }
    const max = Math.max(...records.map(({ ms }) => ms));
    const found = world.log.offsetOfMaxTimestamp();
    assert.equal(found?.timestamp, BigInt(startMs + max));
    assert.equal(found.offset, records.find(({ ms }) => ms === max)?.offset);
  }
});

test('timestamps beyond 2^53 are kept and found', () => {
  const world = new LogWorld().open();
  const nanoseconds = 1_700_000_000_000_000_001n;
  const bytes = makeBatch({ records: [{ timestamp: nanoseconds, value: new Uint8Array(3) }] });
  assert.equal(world.log.appender.appendStamped(bytes, 0, bytes.length, startMs), ErrorCode.NONE);
  world.group.markDirty(world.log, true);
  world.settle();
  assert.deepEqual(world.log.offsetForTimestamp(nanoseconds), {
    offset: 0,
    timestamp: nanoseconds,
    leaderEpoch: -1,
  });
  assert.equal(world.log.offsetForTimestamp(nanoseconds + 1n), null);
});

test('a log whose records have no timestamps has no maximum', () => {
  const world = new LogWorld().open();
  world.put({ records: [{ timestamp: -1n, value: new Uint8Array(3) }] });
  world.settle();
  assert.equal(world.log.offsetOfMaxTimestamp(), null);
});

test('an entry in the middle of an index that has rotted is noticed when it is used', () => {
  const world = new LogWorld({ indexIntervalBytes: 0, segmentBytes: 20_000 }).open();
  for (let number = 0; number < 400; number += 1) world.put({ atMs: [number], valueBytes: 30 });
  world.close();
  const dir = '/data/logs/orders-0/00000000000000000000';
  const index = world.disk.bytesOf(`${dir}.index`);
  assert(index.length > 1000);
  // Positions a few bytes off, still growing.
  for (let entry = 50; entry < 60; entry += 1)
    world.disk.corrupt(
      `${dir}.index`,
      entry * 8 + 7,
      Uint8Array.of((index[entry * 8 + 7] as number) ^ 1),
    );
  world.open();
  for (let offset = 0; offset < 100; offset += 1) {
    const slice = world.log.read(offset, 1, 400, true);
    assert(typeof slice !== 'number', `offset ${offset}`);
    assert.equal(new DataView(world.log.copy(slice).buffer).getBigInt64(0), BigInt(offset));
  }
  assert.equal(world.log.offsetForTimestamp(BigInt(startMs + 55))?.offset, 55);
});

test.run();
