/** The fault list's items that concern one log on one disk, each by its number. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import {
  filledWorld,
  LogWorld,
  logDir,
  partitionDir,
  splitBatches,
  startMs,
} from '../../sim/log_world.ts';

const test = suite('recovery.faults');

const logFile = `${partitionDir}/00000000000000000000.log`;
const indexFile = `${partitionDir}/00000000000000000000.index`;
const timeIndexFile = `${partitionDir}/00000000000000000000.timeindex`;

test('fault 1: killed before the write nothing is there, after it the batch is there whole', () => {
  const world = filledWorld(1);
  world.put();
  world.kill();
  world.reopen();
  assert.equal(world.log.logEndOffset, 1);
  world.put();
  world.endTurn();
  world.kill();
  world.open();
  assert.equal(world.log.logEndOffset, 2);
  assert.equal(world.log.flushedOffset, 0, 'what recovery keeps counts only after its flush');
  world.settle();
  assert.equal(world.log.flushedOffset, 2);
});

test('fault 6: after a failed flush nothing is acknowledged, tried again or taken', () => {
  const world = filledWorld(2);
  world.flushed.length = 0;
  world.put();
  world.disk.failingFlushes = 1;
  world.settle();
  assert.equal(world.failures.length, 1);
  assert.deepEqual(world.flushed, []);
  assert.equal(world.log.flushedOffset, 2);
  const flushes = world.disk.calls.get('flush');
  assert.equal(world.append().code, ErrorCode.KAFKA_STORAGE_ERROR);
  world.settle();
  assert.equal(world.disk.calls.get('flush'), flushes, 'no second try');
  assert.deepEqual(world.flushed, []);
});

test('fault 6: the unflushed range is read from the disk and not from the cache', () => {
  let hasDiffered = false;
  for (let seed = 1; seed <= 30; seed += 1) {
    const world = new LogWorld({}, { seed }).open();
    world.put();
    world.settle();
    for (let number = 0; number < 5; number += 1) world.put({ valueBytes: 700 });
    world.disk.failingFlushes = 1;
    world.settle();
    const cached = world.log.logEndOffset;
    world.kill();
    world.reopen();
    const kept = world.log.logEndOffset;
    assert.deepEqual(world.log.recovery.setAside, []);
    assert(kept >= 1);
    if (kept < cached) hasDiffered = true;
    world.crash();
    world.reopen();
    assert.equal(world.log.logEndOffset, kept, `seed ${seed}: what was offered is on the disk`);
  }
  assert(hasDiffered);
});

test('fault 7: a full disk leaves nothing half appended, and goes on when there is room', () => {
  const world = filledWorld(3);
  const before = world.disk.bytesOf(logFile);
  const { length } = before;
  world.put({ valueBytes: 300, producerId: 7, baseSequence: 0 });
  world.settle();
  const withFirst = world.disk.bytesOf(logFile);
  assert(withFirst.length > length);
  world.disk.capacityBytes = 0;
  world.written.length = 0;
  world.put({ valueBytes: 300, producerId: 7, baseSequence: 1 });
  world.put({ valueBytes: 300, producerId: 8, baseSequence: 0 });
  world.settle();
  assert.deepEqual(world.written, [{ from: 4, to: 6, error: ErrorCode.KAFKA_STORAGE_ERROR }]);
  assert.equal(world.log.logEndOffset, 4);
  assert.deepEqual(world.disk.bytesOf(logFile), withFirst);
  assert.equal(world.log.producers.get(7)?.lastSequence, 0);
  assert.equal(world.log.producers.get(8), undefined);
  assert.equal(splitBatches(world.readAll()).length, 4, 'reads go on');
  assert.deepEqual(world.failures, []);
  world.disk.capacityBytes = Number.POSITIVE_INFINITY;
  const again = world.put({ valueBytes: 300, producerId: 7, baseSequence: 1 });
  assert.equal(again.result.baseOffset, 4);
  world.settle();
  assert.equal(world.log.flushedOffset, 5);
});

test('fault 7: of a new producer whose first batch found no room, no later one is taken before it', () => {
  const world = filledWorld(1, { segmentBytes: 2000 });
  const put = (baseSequence: number, valueBytes = 300): ErrorCode =>
    world.append({ valueBytes, producerId: 7, baseSequence }).code;
  world.disk.capacityBytes = world.disk.usedBytes;
  assert.equal(put(0), ErrorCode.NONE);
  world.settle();
  assert.equal(world.written.at(-1)?.error, ErrorCode.KAFKA_STORAGE_ERROR);
  world.disk.capacityBytes = Number.POSITIVE_INFINITY;
  assert.equal(put(1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert.equal(put(0), ErrorCode.NONE);
  assert.equal(put(1), ErrorCode.NONE);
  world.settle();
  // The same where it is a new segment that finds no room, and then what is behind it in the turn.
  world.disk.capacityBytes = world.disk.usedBytes;
  const roll = { valueBytes: 1800, producerId: 8, baseSequence: 0 };
  assert.equal(world.append(roll).code, ErrorCode.KAFKA_STORAGE_ERROR);
  world.disk.capacityBytes = Number.POSITIVE_INFINITY;
  const next = { producerId: 8, baseSequence: 1 };
  assert.equal(world.append(next).code, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert.equal(world.append(roll).code, ErrorCode.NONE);
  assert.equal(world.append(next).code, ErrorCode.NONE);
});

test('fault 7: a write that the full disk cuts short is taken back', () => {
  const world = filledWorld(1);
  const before = world.disk.bytesOf(logFile);
  world.put({ valueBytes: 5000 });
  world.disk.capacityBytes = world.disk.usedBytes + 2000;
  world.settle();
  assert.deepEqual(world.disk.bytesOf(logFile), before);
  world.kill();
  world.reopen();
  assert.equal(world.log.logEndOffset, 1);
  assert.equal(world.log.recovery.cutBytes, 0);
});

test('fault 7: a segment that cannot be made refuses the batch and nothing else', () => {
  const world = filledWorld(1, { segmentBytes: 1000 });
  world.put({ valueBytes: 500 });
  world.settle();
  world.disk.capacityBytes = 0;
  assert.equal(world.append({ valueBytes: 800 }).code, ErrorCode.KAFKA_STORAGE_ERROR);
  assert.equal(world.log.logEndOffset, 2);
  world.disk.capacityBytes = Number.POSITIVE_INFINITY;
  assert.equal(world.put({ valueBytes: 800 }).result.baseOffset, 2);
  assert.equal(world.log.segmentCount, 2);
});

test('fault 7: a full disk in the middle of a turn fails what was pending and tells it apart', () => {
  const world = filledWorld(1, { segmentBytes: 1000 });
  world.written.length = 0;
  world.put({ valueBytes: 700 });
  world.disk.capacityBytes = 0;
  assert.equal(world.append({ valueBytes: 700 }).code, ErrorCode.KAFKA_STORAGE_ERROR);
  const late = { valueBytes: 1, producerId: 7, baseSequence: 0 };
  assert.equal(world.append(late).code, ErrorCode.KAFKA_STORAGE_ERROR);
  world.settle();
  assert.deepEqual(world.written, [{ from: 1, to: 2, error: ErrorCode.KAFKA_STORAGE_ERROR }]);
  world.disk.capacityBytes = Number.POSITIVE_INFINITY;
  assert.equal(
    world.append({ producerId: 7, baseSequence: 1 }).code,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
  );
  assert.equal(world.put(late).result.baseOffset, 1);
});

test('fault 8: while the disk stalls nothing is acknowledged, and later all in order', () => {
  const world = filledWorld(1);
  world.flushed.length = 0;
  world.put();
  world.endTurn();
  for (let second = 0; second < 30; second += 1) {
    world.monotonicMs += 1000;
    world.put();
    world.endTurn();
  }
  assert.deepEqual(world.flushed, []);
  assert.equal(world.disk.waitingFlushes, 1, 'one flush is under way, the rest waits for the next');
  world.settle();
  assert.deepEqual(world.flushed, [2, 32]);
});

for (const [what, damage] of Object.entries({
  'padded with zeros': (bytes: Uint8Array) => Buffer.concat([bytes, new Uint8Array(4096)]),
  'zeros alone': () => new Uint8Array(4096),
  'cut in an entry': (bytes: Uint8Array) => bytes.slice(0, bytes.length - 5),
  'full of noise': (bytes: Uint8Array) => bytes.map((byte, at) => byte ^ (at * 7 + 1)),
  'shifted by a byte': (bytes: Uint8Array) => Buffer.concat([Uint8Array.of(0), bytes]),
  empty: () => new Uint8Array(0),
})) {
  for (const stop of ['clean', 'unclean'] as const) {
    test(`fault 9: indexes that are ${what} are made again after a stop that was ${stop}`, () => {
      const world = filledWorld(200, { indexIntervalBytes: 200 });
      world.checkpoint();
      assert(world.disk.bytesOf(indexFile).length > 100);
      const files = [indexFile, timeIndexFile].map(
        (path) => [path, world.disk.bytesOf(path)] as const,
      );
      if (stop === 'clean') world.close();
      else world.kill();
      for (const [path, bytes] of files) world.disk.writeFile(path, damage(bytes));
      world.reopen();
      assert.equal(world.log.logEndOffset, 200);
      for (const offset of [0, 1, 57, 120, 199]) {
        const slice = world.log.read(offset, 1, 200, true);
        assert(typeof slice !== 'number');
        assert.equal(splitBatches(world.log.copy(slice))[0]?.baseOffset, offset);
        const found = world.log.offsetForTimestamp(BigInt(startMs + offset));
        assert.equal(found?.offset, offset);
      }
      world.put({ atMs: [500] });
      world.close();
      for (const [path, bytes] of files)
        assert.deepEqual(world.disk.bytesOf(path).slice(0, bytes.length), bytes);
    });
  }
}

test('fault 10: a power cut before the directory is flushed leaves the old state or the new', () => {
  const ends = new Set<number>();
  for (let seed = 1; seed <= 60; seed += 1) {
    const world = new LogWorld({ segmentBytes: 1000 }, { seed }).open();
    world.put({ valueBytes: 800 });
    world.settle();
    world.put({ valueBytes: 800 });
    world.endTurn();
    world.crash();
    world.reopen();
    ends.add(world.log.logEndOffset);
    assert.equal(world.put().result.baseOffset, world.log.logEndOffset - 1);
    world.settle();
    const { logEndOffset } = world.log;
    world.crash();
    world.reopen();
    assert.equal(world.log.logEndOffset, logEndOffset, `seed ${seed}: flushed with its name`);
  }
  assert.deepEqual(
    [...ends].sort((a, b) => a - b),
    [1, 2],
  );
});

test('fault 10: a checkpoint that is being replaced is the old one or the new one', () => {
  const points = new Set<number>();
  for (let seed = 1; seed <= 60; seed += 1) {
    const world = new LogWorld({}, { seed }).open();
    for (let number = 0; number < 5; number += 1) world.put();
    world.settle();
    world.checkpoint();
    for (let number = 0; number < 5; number += 1) world.put();
    world.settle();
    world.beginCheckpoint();
    const rounds = world.random.below(6);
    for (let round = 0; round < rounds; round += 1) world.disk.endFlushes();
    world.crash();
    world.open();
    assert.deepEqual(world.directory.warnings, []);
    points.add(world.directory.marksOf('orders', 0).recoveryPoint);
    assert.equal(world.log.logEndOffset, 10);
    assert.equal(world.log.endOffsetForEpoch(0).endOffset, 10);
  }
  assert.deepEqual(
    [...points].sort((a, b) => a - b),
    [5, 10],
  );
});

test('fault 10: a new partition whose directory the power cut took begins again, empty', () => {
  const world = new LogWorld().open();
  world.put();
  world.endTurn();
  world.disk.crash();
  world.disk.mkdir('/data');
  world.disk.mkdir(logDir);
  world.reopen();
  assert.equal(world.log.logEndOffset, 0);
});

test('fault 21: a clock that jumps an hour either way rolls no segment and forgets no producer', () => {
  const world = filledWorld(1, { segmentMs: 7 * 86_400_000 });
  world.put({ producerId: 7, baseSequence: 0 });
  for (const jumpMs of [3_600_000, -7_200_000, 3_600_000]) {
    world.wallMs += jumpMs;
    world.log.expireProducers(world.wallMs);
    const last = world.log.producers.get(7)?.lastSequence;
    assert(last !== undefined);
    world.put({ producerId: 7, baseSequence: last + 1 });
  }
  world.settle();
  assert.equal(world.log.segmentCount, 1);
  assert.equal(world.log.producers.get(7)?.lastSequence, 3);
});

test('fault 21: under LogAppendTime a clock that goes back leaves look-ups by time exact', () => {
  const world = new LogWorld({
    messageTimestampType: 'LogAppendTime',
    indexIntervalBytes: 50,
  }).open();
  const times = [0, 1000, 3_600_000, 500, 1500, 3_600_001].map((ms) => startMs + ms);
  for (const time of times) {
    world.wallMs = time;
    const { result } = world.put({ atMs: [5] });
    assert.equal(result.logAppendTimeMs, BigInt(time));
  }
  world.settle();
  const find = (time: number): unknown => world.log.offsetForTimestamp(BigInt(time))?.offset;
  assert.equal(find(startMs), 0);
  assert.equal(find(startMs + 1), 1);
  assert.equal(find(startMs + 1001), 2);
  assert.equal(find(startMs + 3_600_001), 5);
  assert.equal(find(startMs + 3_600_002), undefined);
  assert.equal(world.log.offsetOfMaxTimestamp()?.offset, 5);
});

test.run();
