import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { crc32c } from '../../../engine/batch/crc.ts';
import {
  baseOffsetOf,
  crcOf,
  leaderEpochOf,
  maxTimestampOf,
} from '../../../engine/batch/header.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { newAppendResult } from '../../../engine/log/append_result.ts';
import {
  LogWorld,
  makeBatch,
  partitionDir,
  splitBatches,
  startMs,
  topicId,
} from '../../sim/log_world.ts';

const test = suite('partition_log');

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const names = (world: LogWorld): string[] =>
  (world.disk.list(partitionDir) ?? []).sort((a, b) => a.localeCompare(b));

test('a new log is an empty segment and the topic id, in Kafka’s form', () => {
  const world = new LogWorld().open();
  assert.deepEqual(names(world), ['00000000000000000000.log', 'partition.metadata']);
  assert.equal(
    text(world.disk.bytesOf(`${partitionDir}/partition.metadata`)),
    `version: 0\ntopic_id: ${topicId}`,
  );
  assert.equal(world.log.logEndOffset, 0);
  assert.equal(world.log.recovery.isNew, true);
});

test('making a log flushes nothing; its first flush covers the names', () => {
  const world = new LogWorld().open();
  const before = world.disk.calls.get('flushDirectory') ?? 0;
  world.settle();
  assert.equal(world.disk.calls.get('flush'), undefined);
  world.put();
  world.settle();
  assert.equal((world.disk.calls.get('flushDirectory') ?? 0) - before, 2);
  world.put();
  world.settle();
  assert.equal((world.disk.calls.get('flushDirectory') ?? 0) - before, 2, 'once is enough');
});

test('batches are stamped in place with offset and epoch and stored as they are', () => {
  const world = new LogWorld().open();
  world.leaderEpoch = 5;
  world.put({ atMs: [0, 1, 2] });
  const { bytes, result } = world.put({ atMs: [7] });
  assert.equal(result.baseOffset, 3);
  assert.equal(result.lastOffset, 3);
  assert.equal(result.logAppendTimeMs, -1n);
  assert.equal(baseOffsetOf(bytes, 0), 3);
  assert.equal(leaderEpochOf(bytes, 0), 5);
  world.settle();
  assert.deepEqual(splitBatches(world.readAll())[1]?.bytes, bytes);
});

test('a turn’s batches are one write, whatever their number', () => {
  const world = new LogWorld().open();
  for (let number = 0; number < 10; number += 1) world.put();
  const writes = world.disk.calls.get('write') ?? 0;
  world.settle();
  assert.equal((world.disk.calls.get('write') ?? 0) - writes, 1);
  for (let number = 0; number < 10; number += 1) world.put({ valueBytes: 50_000 });
  world.settle();
  assert.equal(world.disk.calls.get('writev'), 1);
  assert.equal(splitBatches(world.readAll()).length, 20);
});

test('under LogAppendTime the batch gets the broker’s time and says so', () => {
  const world = new LogWorld({ messageTimestampType: 'LogAppendTime' }).open();
  world.wallMs = startMs + 99;
  const { bytes, result } = world.put({ atMs: [1, 2] });
  assert.equal(result.logAppendTimeMs, BigInt(startMs + 99));
  assert.equal(maxTimestampOf(bytes, 0), BigInt(startMs + 99));
  world.settle();
  assert.equal(crc32c(bytes.subarray(21)), crcOf(bytes, 0), 'the checksum is right again');
});

test('segments roll by size, and no segment is larger than it may be', () => {
  const world = new LogWorld({ segmentBytes: 1000 }).open();
  for (let number = 0; number < 20; number += 1) {
    world.put({ valueBytes: 200 });
    if (number % 3 === 0) world.endTurn();
  }
  world.settle();
  const logs = names(world).filter((name) => name.endsWith('.log'));
  assert.equal(logs.length, 7);
  for (const name of logs) assert(world.disk.bytesOf(`${partitionDir}/${name}`).length <= 1000);
  assert.equal(splitBatches(world.readAll()).length, 20);
  assert.equal(
    world.append({ valueBytes: 1001 }).code,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    'a batch that fits into no segment is refused',
  );
});

test('segments roll by the records’ time, less the jitter', () => {
  const world = new LogWorld({ segmentMs: 1000 }).open();
  world.put({ atMs: [0] });
  world.put({ atMs: [1000] });
  assert.equal(world.log.segmentCount, 1);
  world.put({ atMs: [1001] });
  assert.equal(world.log.segmentCount, 2);
  world.put({ atMs: [900] });
  assert.equal(world.log.segmentCount, 2, 'late records roll nothing');
  const jittery = new LogWorld({ segmentMs: 1000, segmentJitterMs: 1000 }).open();
  let rolls = 0;
  for (let ms = 0; ms < 100_000; ms += 10) jittery.put({ atMs: [ms] });
  rolls = jittery.log.segmentCount;
  assert(rolls > 110, `about twice as many with the jitter: ${rolls}`);
});

test('segments roll when an index is full', () => {
  const world = new LogWorld({ segmentIndexBytes: 80, indexIntervalBytes: 0 }).open();
  for (let number = 0; number < 100; number += 1) world.put({ atMs: [number] });
  world.settle();
  assert(world.log.segmentCount > 10);
  for (const name of names(world).filter((one) => /index$/.test(one)))
    assert(world.disk.bytesOf(`${partitionDir}/${name}`).length <= 80, name);
});

test('segments roll before a relative offset leaves 31 bits', () => {
  const world = new LogWorld().open();
  world.put();
  const far = makeBatch({ atMs: [0] });
  new DataView(far.buffer).setBigInt64(0, 2n ** 31n - 1n);
  assert.equal(world.log.appender.appendStamped(far, 0, far.length, startMs), ErrorCode.NONE);
  assert.equal(world.log.segmentCount, 1);
  world.put();
  assert.equal(world.log.segmentCount, 2);
  assert(names(world).includes('00000000002147483648.log'));
});

test('a stamped batch keeps its offset and epoch, and may not go back', () => {
  const world = new LogWorld().open();
  const batch = makeBatch({ atMs: [0, 1] });
  const view = new DataView(batch.buffer);
  view.setBigInt64(0, 10n);
  view.setInt32(12, 3);
  assert.equal(world.log.appender.appendStamped(batch, 0, batch.length, startMs), ErrorCode.NONE);
  assert.equal(world.log.logEndOffset, 12);
  assert.deepEqual(world.log.endOffsetForEpoch(3), { epoch: 3, endOffset: 12 });
  assert.equal(
    world.log.appender.appendStamped(batch, 0, batch.length, startMs),
    ErrorCode.INVALID_RECORD,
  );
});

test('a clean stop leaves files that a start needs not look behind', () => {
  const world = new LogWorld({ segmentBytes: 2000 }).open();
  world.leaderEpoch = 2;
  for (let number = 0; number < 30; number += 1)
    world.put({ atMs: [number], valueBytes: 100, producerId: 9, baseSequence: number });
  world.close();
  assert.equal(text(world.disk.bytesOf(`${partitionDir}/leader-epoch-checkpoint`)), '0\n1\n2 0\n');
  assert(names(world).includes('00000000000000000030.snapshot'));
  assert.equal(
    text(world.disk.bytesOf('/data/logs/recovery-point-offset-checkpoint')),
    '0\n1\norders 0 30\n',
  );
  world.open();
  assert.equal(world.log.recovery.scannedBytes, 0);
  assert.equal(world.log.logEndOffset, 30);
  assert.equal(world.log.flushedOffset, 30);
  assert.equal(world.log.producers.get(9)?.lastSequence, 29);
  assert.deepEqual(world.log.endOffsetForEpoch(2), { epoch: 2, endOffset: 30 });
  assert.equal(splitBatches(world.readAll()).length, 30);
});

test('a log whose start has not come through the stop has the leader epochs from there on', () => {
  const world = new LogWorld().open();
  for (let number = 0; number < 12; number += 1) {
    world.leaderEpoch = 1 + Math.floor(number / 4);
    world.put({ atMs: [number] });
  }
  const entries = world.log.epochs.entries;
  world.settle();
  world.log.deletion.advanceLogStart(6);
  world.close();
  assert.equal(
    text(world.disk.bytesOf(`${partitionDir}/leader-epoch-checkpoint`)),
    '0\n2\n2 6\n3 8\n',
  );
  world.disk.unlink('/data/logs/log-start-offset-checkpoint');
  world.open();
  assert.equal(world.log.logStartOffset, 0);
  assert.deepEqual(world.log.epochs.entries, entries);
  assert.deepEqual(world.log.endOffsetForEpoch(1), { epoch: 1, endOffset: 4 });
});

test('producer snapshots are kept at segments’ beginnings, and the newest', () => {
  const world = new LogWorld({ segmentBytes: 1000 }).open();
  for (let number = 0; number < 20; number += 1) {
    world.put({ valueBytes: 200, producerId: 9, baseSequence: number });
    world.settle();
    if (number % 2 === 1) world.checkpoint();
  }
  const bases = names(world)
    .filter((name) => name.endsWith('.log'))
    .map((name) => name.slice(0, 20));
  const snapshots = names(world)
    .filter((name) => name.endsWith('.snapshot'))
    .map((name) => name.slice(0, 20));
  assert.deepEqual(snapshots, [...bases.slice(1), '00000000000000000020']);
});

test('a duplicate gets the first one’s offsets and is stored once', () => {
  const world = new LogWorld().open();
  const shape = { atMs: [0, 1], producerId: 4, producerEpoch: 1, baseSequence: 0 };
  world.put({ atMs: [0] });
  const first = world.put(shape);
  const again = world.put(shape);
  assert.equal(again.result.duplicate, true);
  assert.equal(again.result.baseOffset, first.result.baseOffset);
  assert.equal(again.result.lastOffset, 2);
  assert.equal(again.result.logAppendTimeMs, BigInt(startMs + 1));
  world.settle();
  assert.equal(world.log.logEndOffset, 3);
});

test('a refused sequence says what was expected', () => {
  const world = new LogWorld().open();
  world.put({ producerId: 4, baseSequence: 0 });
  const { code, result } = world.append({ producerId: 4, baseSequence: 2 });
  assert.equal(code, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert.match(result.errorMessage ?? '', /sequence 2 where 1 was next/);
  assert.equal(world.log.logEndOffset, 1);
});

test('deleting renames the directory as Kafka does, and pinned readers finish', () => {
  const world = new LogWorld().open();
  world.put();
  world.settle();
  const slice = world.log.read(0, 1000, 1, true);
  assert(typeof slice !== 'number');
  slice.segment.pin();
  const path = world.log.delete();
  assert.match(path, /^\/data\/logs\/orders-0\.[0-9a-f]{32}-delete$/);
  assert.equal(world.log.copy(slice).length, slice.length);
  assert.equal(world.disk.openFiles, 1);
  slice.segment.unpin();
  assert.equal(world.disk.openFiles, 0);
  const bytes = makeBatch({});
  const info = world.validate(bytes);
  const code = world.log.appender.append(
    bytes,
    0,
    bytes.length,
    info,
    0,
    startMs,
    newAppendResult(),
  );
  assert.equal(code, ErrorCode.KAFKA_STORAGE_ERROR);
});

test('segments that are only read hold no more open than the cache allows', () => {
  const world = new LogWorld({ segmentBytes: 1000 }).open();
  for (let number = 0; number < 100; number += 1) world.put({ valueBytes: 400 });
  world.settle();
  assert.equal(world.log.segmentCount, 50);
  assert.equal(splitBatches(world.readAll()).length, 100);
  assert.equal(splitBatches(world.readAll()).length, 100);
  assert(world.disk.openFiles <= 6, `${world.disk.openFiles} files are open`);
});

test('the log of a directory without checkpoints is recovered from its start', () => {
  const world = new LogWorld({ segmentBytes: 1000 }).open();
  for (let number = 0; number < 20; number += 1)
    world.put({ valueBytes: 200, producerId: 9, baseSequence: number });
  world.settle();
  for (const name of names(world).filter((one) => !one.endsWith('.log')))
    world.disk.unlink(`${partitionDir}/${name}`);
  world.crash();
  world.reopen();
  assert.equal(world.log.logEndOffset, 20);
  assert.equal(world.log.producers.get(9)?.lastSequence, 19);
  assert.deepEqual(world.log.endOffsetForEpoch(0), { epoch: 0, endOffset: 20 });
});

test('the directory of another topic of that name is moved out of the way, not opened', () => {
  const world = new LogWorld().open();
  world.put();
  world.close();
  const other = new TextEncoder().encode('version: 0\ntopic_id: BBBBBBBBBBBBBBBBBBBBBQ');
  world.disk.writeFile(`${partitionDir}/partition.metadata`, other);
  world.open();
  assert.equal(world.log.logEndOffset, 0);
  assert.equal(world.log.recovery.isNew, true);
  const stray = world.log.recovery.strayPath ?? '';
  assert.match(stray, /orders-0\.[0-9a-f]{32}-stray$/);
  assert(world.disk.bytesOf(`${stray}/00000000000000000000.log`).length > 0);
  world.put();
});

test('what Kafka’s cleaner and deleter left behind is brought to an end', () => {
  const world = new LogWorld({ segmentBytes: 1000 }).open();
  for (let number = 0; number < 20; number += 1) world.put({ valueBytes: 200 });
  world.close();
  const first = world.disk.bytesOf(`${partitionDir}/00000000000000000000.log`);
  world.disk.writeFile(`${partitionDir}/00000000000000000000.log.swap`, first);
  world.disk.writeFile(`${partitionDir}/00000000000000000009.log.deleted`, first);
  world.disk.writeFile(`${partitionDir}/00000000000000000015.index.cleaned`, first);
  world.open();
  assert(!names(world).some((name) => /\.(swap|deleted|cleaned)$/.test(name)));
  assert.equal(splitBatches(world.readAll()).length, 20);
});

test.run();
