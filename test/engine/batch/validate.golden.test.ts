/** Batches written by Kafka's own classes: those that are right, and those that are damaged in one way each. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { type BatchInput, encodeBatch } from '../../../engine/batch/encode.ts';
import {
  attributesOf,
  baseOffsetOf,
  baseSequenceOf,
  baseTimestampOf,
  Codec,
  codecOf,
  crcOf,
  lastOffsetDeltaOf,
  leaderEpochOf,
  magicOf,
  maxTimestampOf,
  producerEpochOf,
  producerIdOf,
  readInt64,
  recordCountOf,
  sizeOf,
} from '../../../engine/batch/header.ts';
import { iterateRecords } from '../../../engine/batch/records.ts';
import { newBatchInfo } from '../../../engine/batch/rules.ts';
import { stampBatch } from '../../../engine/batch/stamp.ts';
import { validateProduceBatch } from '../../../engine/batch/validate.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import {
  easyRules,
  fromHex,
  type GoldenBatch,
  goldenBytes,
  inSharedMemory,
  readGoldenBatches,
} from './support.ts';

const test = suite('batch/validate.golden');
const golden = readGoldenBatches();
const maxBytes = 1024 * 1024;
const {
  NONE,
  CORRUPT_MESSAGE: corrupt,
  INVALID_RECORD: invalid,
  UNSUPPORTED_COMPRESSION_TYPE: codec,
} = ErrorCode;

for (const { name, note, batches, hex } of golden.valid) {
  const bytes = fromHex(hex);

  test(`${name} reads as written: ${note}`, () => {
    for (const batch of batches) {
      checkHeader(bytes, batch);
      checkRecords(bytes, batch);
    }
  });

  test(`${name} is written as Kafka writes it`, () => {
    for (const batch of batches) checkEncoding(bytes, batch);
  });
}

function checkHeader(bytes: Uint8Array, batch: GoldenBatch): void {
  const at = batch.position;
  assert.equal(sizeOf(bytes, at), batch.sizeInBytes);
  assert.equal(magicOf(bytes, at), batch.magic);
  assert.equal(readInt64(bytes, at), BigInt(batch.baseOffset));
  assert.equal(baseOffsetOf(bytes, at), Number(batch.baseOffset));
  assert.equal(leaderEpochOf(bytes, at), batch.partitionLeaderEpoch);
  assert.equal(crcOf(bytes, at), batch.crc);
  assert.equal(attributesOf(bytes, at), batch.attributes);
  assert.equal(codecOf(bytes, at), Codec[batch.compression]);
  assert.equal(lastOffsetDeltaOf(bytes, at), batch.lastOffsetDelta);
  if (batch.deleteHorizonMs === undefined) {
    assert.equal(baseTimestampOf(bytes, at), BigInt(batch.baseTimestamp));
  }
  assert.equal(maxTimestampOf(bytes, at), BigInt(batch.maxTimestamp));
  assert.equal(producerIdOf(bytes, at), Number(batch.producerId));
  assert.equal(producerEpochOf(bytes, at), batch.producerEpoch);
  assert.equal(baseSequenceOf(bytes, at), batch.baseSequence);
  assert.equal(recordCountOf(bytes, at), batch.count);
}

function checkRecords(bytes: Uint8Array, batch: GoldenBatch): void {
  const records = [...iterateRecords(bytes, batch.position, maxBytes)];
  assert.equal(records.length, batch.records.length);
  for (const [k, record] of records.entries()) {
    const expected = batch.records[k]!;
    assert.equal(BigInt(batch.baseOffset) + BigInt(record.offsetDelta), BigInt(expected.offset));
    assert.equal(record.timestamp, BigInt(expected.timestamp));
    assertBytes(record.key, goldenBytes(expected.key));
    assertBytes(record.value, goldenBytes(expected.value));
    assert.equal(record.headers.length, expected.headers.length);
    for (const [h, header] of record.headers.entries()) {
      assert.equal(Buffer.from(header.key).toString(), expected.headers[h]!.key);
      assertBytes(header.value, goldenBytes(expected.headers[h]!.value));
    }
  }
}

function assertBytes(actual: Uint8Array | null, expected: Uint8Array | null): void {
  if (actual === null || expected === null) assert.equal(actual, expected);
  else assert(Buffer.from(actual).equals(expected));
}

/** From what the batch was read as, the same bytes must come; with a codec, the same but for what it compresses. */
function checkEncoding(bytes: Uint8Array, batch: GoldenBatch): void {
  const at = batch.position;
  const records = [...iterateRecords(bytes, at, maxBytes)];
  const input: BatchInput = {
    records: batch.timestampType === 'LogAppendTime' ? asProduced(bytes, at) : records,
    baseOffset: BigInt(batch.baseOffset),
    leaderEpoch: batch.partitionLeaderEpoch,
    codec: Codec[batch.compression],
    timestampType: batch.timestampType,
    transactional: batch.transactional,
    control: batch.control,
    lastOffsetDelta: batch.lastOffsetDelta,
    maxTimestamp: BigInt(batch.maxTimestamp),
    producerId: BigInt(batch.producerId),
    producerEpoch: batch.producerEpoch,
    baseSequence: batch.baseSequence,
    ...((batch.attributes & 0x40) !== 0
      ? { deleteHorizonMs: baseTimestampOf(bytes, at) }
      : { baseTimestamp: baseTimestampOf(bytes, at) }),
  };
  const written = encodeBatch(input);
  if (batch.compression === 'none') {
    assertBytes(written, bytes.subarray(at, at + batch.sizeInBytes));
  } else {
    assert.deepEqual([...iterateRecords(written, 0, maxBytes)], records);
    assertBytes(written.subarray(21, 61), bytes.subarray(at + 21, at + 61));
  }
}

/** The records with their own timestamps, which a batch under LogAppendTime still holds. */
function asProduced(bytes: Uint8Array, at: number): BatchInput['records'] {
  const copy = bytes.slice(at);
  copy[22] = copy[22]! & ~0x08;
  return [...iterateRecords(copy, 0, maxBytes)];
}

/** Batches that are right in a log but not as a producer sends them; base offset and leader epoch are set aside. */
const notFromProducers: Record<string, ErrorCode> = {
  'offset-gaps': invalid,
  'last-offset-kept': invalid,
  'large-offset-delta': invalid,
  'commit-marker': invalid,
  'abort-marker': invalid,
  'leader-change': invalid,
  'snapshot-header': invalid,
  'snapshot-footer': invalid,
  'kraft-version': invalid,
  'kraft-voters': invalid,
  'log-append-time': ErrorCode.INVALID_TIMESTAMP,
  'log-append-time-gzip': ErrorCode.INVALID_TIMESTAMP,
  empty: invalid,
  'empty-control': invalid,
  'delete-horizon': invalid,
  'delete-horizon-snappy': invalid,
  'two-batches': invalid,
  'two-batches-and-a-part': invalid,
  'two-batches-and-a-short-part': invalid,
};

for (const { name, batches, hex } of golden.valid) {
  test(`produced, ${name} is ${name in notFromProducers ? 'refused' : 'taken'}`, () => {
    const { buf, start } = inSharedMemory(fromHex(hex));
    stampBatch(buf, start, 0, -1);
    const info = newBatchInfo();
    const code = validateProduceBatch(buf, start, hex.length / 2, easyRules, info);
    assert.equal(code, notFromProducers[name] ?? NONE, info.errorMessage ?? '');
    if (code !== NONE) return assert(info.errorMessage);
    const [batch] = batches;
    assert.equal(info.recordCount, batch!.count);
    assert.equal(info.lastOffsetDelta, batch!.lastOffsetDelta);
    assert.equal(info.baseTimestamp, BigInt(batch!.baseTimestamp));
    assert.equal(info.maxTimestamp, BigInt(batch!.maxTimestamp));
    assert.equal(info.rewriteHeader, false);
    assert.equal(info.producerId, Number(batch!.producerId));
    assert.equal(info.isTransactional, batch!.transactional);
    assert.equal(info.codec, Codec[batch!.compression]);
    const newest = batch!.records.findIndex((r) => r.timestamp === batch!.maxTimestamp);
    assert.equal(info.offsetOfMaxTimestamp, batch!.maxTimestamp === '-1' ? -1 : newest);
  });
}

/**
 * What we answer to each damaged batch. All that Kafka refuses is refused. Where Kafka takes an oddity, the column
 * `why` says why we take it too or do not.
 */
const verdicts: Record<string, { code: ErrorCode; why?: string }> = {
  'bad-crc': { code: corrupt },
  'bad-payload': { code: corrupt },
  'bad-attributes': { code: corrupt },
  'length-too-small': { code: corrupt },
  'length-zero': { code: corrupt },
  'length-negative': { code: corrupt },
  'length-short-by-one': { code: invalid },
  'length-too-large': { code: invalid },
  'header-only-no-records': { code: invalid },
  truncated: { code: invalid },
  'truncated-header': { code: invalid },
  'truncated-to-16': { code: invalid },
  nothing: { code: invalid },
  'trailing-byte': { code: invalid },
  'count-too-large': { code: invalid },
  'count-too-small': { code: invalid },
  'count-zero': { code: invalid },
  'count-negative': { code: invalid },
  'last-offset-delta-too-large': { code: invalid },
  'last-offset-delta-too-small': { code: invalid },
  'last-offset-delta-negative': { code: invalid },
  'gzip-count-too-large': { code: invalid },
  'gzip-count-too-small': { code: invalid },
  'codec-5': { code: codec },
  'codec-6': { code: codec },
  'codec-7': { code: codec },
  'says-gzip': { code: invalid },
  'says-snappy': { code: invalid },
  'says-lz4': { code: invalid },
  'says-zstd': { code: invalid },
  'says-none': { code: invalid },
  'gzip-cut': { code: invalid },
  'magic-3': { code: corrupt },
  'magic-negative': { code: corrupt },
  'magic-0': { code: invalid },
  'magic-0-gzip': { code: invalid },
  'magic-1': { code: invalid },
  'magic-1-gzip': { code: invalid },
  'varint-too-long': { code: invalid },
  'varint-unended': { code: invalid },
  'record-length-too-large': { code: invalid },
  'record-length-too-small': { code: invalid },
  'record-length-negative': { code: invalid },
  'record-length-huge': { code: invalid },
  'record-slack': { code: invalid },
  'key-length-too-large': { code: invalid },
  'value-length-too-large': { code: invalid },
  'key-length-minus-2': {
    code: invalid,
    why: 'refused: null is -1; what a consumer makes of another negative number is its own affair',
  },
  'header-count-negative': { code: invalid },
  'header-count-too-large': { code: invalid },
  'header-key-null': { code: invalid },
  'offset-delta-jump': {
    code: invalid,
    why: 'refused: the second record would lie beyond the offset at which the next batch starts',
  },
  'offset-delta-twice': { code: invalid, why: 'refused: two records with one offset' },
  'offset-delta-negative': {
    code: invalid,
    why: 'refused: the record would have the offset of an earlier batch',
  },
  'gzip-offset-delta-jump': { code: invalid },
  'gzip-record-length-too-large': {
    code: invalid,
    why: 'refused: Kafka skips over the content and stores what no consumer can read',
  },
  'gzip-varint-too-long': { code: invalid },
  'two-batches-produced': { code: invalid },
  'control-from-client': { code: invalid },
  'sequence-without-producer': {
    code: NONE,
    why: 'taken: without a producer id the sequence means nothing, and sarama sends 0',
  },
  'producer-without-sequence': { code: invalid },
  'producer-epoch-negative': {
    code: invalid,
    why: 'refused: a producer without an epoch could not be fenced',
  },
  'transactional-without-producer': {
    code: invalid,
    why: 'refused: nobody could commit or abort it',
  },
  'unused-attribute-bits': {
    code: NONE,
    why: 'taken and kept: consumers do not look at them, and a later format may use them',
  },
  'wrong-max-timestamp': { code: NONE, why: 'taken: max timestamp and checksum are corrected' },
  'first-good-second-bad-crc': { code: invalid },
};

for (const { name, wrong, kafka, hex } of golden.damaged) {
  const steps = [kafka.ensureValid, kafka.produceRequest, kafka.logValidator];
  const kafkaTakesIt = steps.every((step) => step === 'ok');
  const verdict = verdicts[name];

  test(`${name}: ${wrong}${verdict?.why === undefined ? '' : ` (${verdict.why})`}`, () => {
    assert(verdict, 'the table has no verdict');
    assert.equal(verdict.why !== undefined, kafkaTakesIt, 'a reason belongs where Kafka takes it');
    const { buf, start } = inSharedMemory(fromHex(hex));
    const info = newBatchInfo();
    const code = validateProduceBatch(buf, start, hex.length / 2, easyRules, info);
    assert.equal(code, verdict.code, info.errorMessage ?? '');
    assert.equal(info.errorMessage === null, code === NONE);
  });
}

test.run();
