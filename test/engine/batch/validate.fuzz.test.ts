/**
 * Random batches, whole and damaged. The oracle for the framing walk is the reader of records as objects, which shares
 * no code with it. `--seeds N` of the test runner runs more; a failure prints its seed.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { CompressionError } from '../../../engine/batch/compression_error.ts';
import { crc32c } from '../../../engine/batch/crc.ts';
import { encodeBatch } from '../../../engine/batch/encode.ts';
import {
  batchHeaderBytes,
  Codec,
  recordCountOf,
  writeInt32,
} from '../../../engine/batch/header.ts';
import { BatchFormatError, iterateRecords } from '../../../engine/batch/records.ts';
import { newBatchInfo } from '../../../engine/batch/rules.ts';
import { validateProduceBatch } from '../../../engine/batch/validate.ts';
import { newRecordWalk, RecordFault, walkRecords } from '../../../engine/batch/walk.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { seedsAtLeast } from '../../harness/budget.ts';
import { type Random, splitMix } from '../../harness/split_mix.ts';
import { easyRules, inSharedMemory, randomRecords } from './support.ts';

const test = suite('batch/validate.fuzz');
const codecs = [Codec.none, Codec.none, Codec.gzip, Codec.snappy, Codec.lz4, Codec.zstd];
const aroundMs = 1_700_000_000_000n;
const info = newBatchInfo();
const known = new Set<number>([
  ErrorCode.NONE,
  ErrorCode.CORRUPT_MESSAGE,
  ErrorCode.INVALID_RECORD,
  ErrorCode.MESSAGE_TOO_LARGE,
  ErrorCode.INVALID_TIMESTAMP,
  ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
]);

function randomBatch(random: Random, codec = codecs[random(codecs.length)]!): Uint8Array {
  const records = randomRecords(random, 1 + random(random(10) === 0 ? 9_000 : 150), aroundMs);
  // Few long batches, of short records.
  if (records.length > 500) for (const record of records) record.value = null;
  return encodeBatch({ records, codec });
}

function correctChecksum(batch: Uint8Array): void {
  writeInt32(batch, 17, crc32c(batch.subarray(21)) | 0);
}

/** Changes a few bytes, or moves the end, behind the fields that would only make the frame check fail. */
function mutate(random: Random, batch: Uint8Array): Uint8Array {
  let changed = batch.slice();
  const kind = random(8);
  if (kind === 0) changed = changed.slice(0, batchHeaderBytes + random(changed.length - 60));
  if (kind === 1) changed = Buffer.concat([changed, new Uint8Array(1 + random(20))]);
  if (kind > 0) {
    for (let k = 0; k <= random(3); k += 1) {
      const at = kind === 2 ? 21 + random(40) : batchHeaderBytes + random(changed.length - 61);
      const values = [random(256), 0xff, 0x80, 0, 1, changed[at]! + 2, changed[at]! - 2];
      if (at < changed.length) changed[at] = values[random(values.length)]!;
    }
  }
  writeInt32(changed, 8, changed.length - 12);
  correctChecksum(changed);
  return changed;
}

test('whatever a producer may send is taken, with the right max timestamp', () => {
  for (let seed = 1; seed <= seedsAtLeast(80); seed += 1) {
    const random = splitMix(seed);
    const batch = randomBatch(random);
    const { buf, start } = inSharedMemory(batch);
    const rules = { ...easyRules, maxMessageBytes: batch.length };
    const code = validateProduceBatch(buf, start, batch.length, rules, info);
    assert.equal(code, ErrorCode.NONE, `seed ${seed}: ${info.errorMessage}`);
    assert.equal(info.rewriteHeader, false, `seed ${seed}`);
    const records = [...iterateRecords(batch, 0, easyRules.decompressedMaxBytes)];
    const newest = records.find((record) => record.timestamp === info.maxTimestamp);
    const expected = info.maxTimestamp === -1n ? -1 : newest?.offsetDelta;
    assert.equal(info.offsetOfMaxTimestamp, expected, `seed ${seed}`);
  }
});

test('whatever is done to the bytes, the answer is a code', () => {
  for (let seed = 1; seed <= seedsAtLeast(1_500); seed += 1) {
    const random = splitMix(seed);
    const batch = encodeBatch({
      records: randomRecords(random, 1 + random(12), aroundMs),
      codec: codecs[random(codecs.length)]!,
    });
    const { buf, start } = inSharedMemory(mutate(random, batch));
    const length = buf.length - start - 7;
    const stated = random(4) === 0 ? random(length) : length;
    const code = validateProduceBatch(buf, start, stated, easyRules, info);
    assert(known.has(code), `seed ${seed}: code ${code}`);
    assert.equal(info.errorMessage === null, code === ErrorCode.NONE, `seed ${seed}`);
  }
});

test('the check takes a plain batch exactly if the reader reads it and its offsets count up', () => {
  let taken = 0;
  let refused = 0;
  for (let seed = 1; seed <= seedsAtLeast(4_000); seed += 1) {
    const random = splitMix(seed);
    const records = randomRecords(random, 1 + random(6), aroundMs);
    for (const record of records)
      record.value = random(3) === 0 ? null : new Uint8Array(random(80));
    const batch = mutate(random, encodeBatch({ records }));
    batch.set(encodeBatch({ records }).subarray(21, batchHeaderBytes), 21);
    correctChecksum(batch);
    const readable = isReadable(batch);
    const code = validateProduceBatch(batch, 0, batch.length, easyRules, info);
    assert.equal(code === ErrorCode.NONE, readable, `seed ${seed}: ${info.errorMessage}`);
    if (readable) taken += 1;
    else refused += 1;
  }
  assert(taken > 300 && refused > 300, `too one-sided to prove anything: ${taken}, ${refused}`);
});

function isReadable(batch: Uint8Array): boolean {
  try {
    let index = 0;
    for (const { offsetDelta } of iterateRecords(batch, 0, easyRules.decompressedMaxBytes)) {
      if (offsetDelta !== index) return false;
      index += 1;
    }
    return index === recordCountOf(batch, 0);
  } catch (error) {
    assert(error instanceof BatchFormatError || error instanceof CompressionError);
    return false;
  }
}

test('the walk reads nothing beyond the end that it is given', () => {
  const walk = newRecordWalk();
  for (let seed = 1; seed <= seedsAtLeast(400); seed += 1) {
    const random = splitMix(seed);
    const batch = mutate(random, encodeBatch({ records: randomRecords(random, 4, aroundMs) }));
    const records = batch.subarray(batchHeaderBytes);
    const end = random(records.length + 1);
    const seen = new Proxy(records, {
      get(target, property) {
        const index = typeof property === 'string' ? Number(property) : Number.NaN;
        assert(Number.isNaN(index) || (index >= 0 && index < end), `seed ${seed}: read ${index}`);
        return Reflect.get(target, property);
      },
    });
    walkRecords(seen, 0, end, 4, walk);
  }
});

test('a record count that the bytes cannot hold costs no more than the bytes', () => {
  const walk = newRecordWalk();
  const bytes = encodeBatch({ records: [{}, {}] }).subarray(batchHeaderBytes);
  assert.equal(walkRecords(bytes, 0, bytes.length, 2 ** 31 - 1, walk), RecordFault.cut);
  assert.equal(walk.index, 2);
});

test('a plain batch is checked without allocating for each record', () => {
  const random = splitMix(7);
  const batch = encodeBatch({ records: randomRecords(random, 2_000, aroundMs) });
  const rules = { ...easyRules, maxMessageBytes: batch.length };
  for (let k = 0; k < 200; k += 1) validateProduceBatch(batch, 0, batch.length, rules, info);
  const before = process.memoryUsage().heapUsed;
  const rounds = 200;
  for (let k = 0; k < rounds; k += 1) validateProduceBatch(batch, 0, batch.length, rules, info);
  const bytesPerBatch = (process.memoryUsage().heapUsed - before) / rounds;
  // One byte a record would be 2,000; a collection in between only makes it less.
  assert(bytesPerBatch < 2_000, `${bytesPerBatch} bytes a batch`);
});

test.run();
