/**
 * What the leader checks of a batch before it stores it (Kafka's `ProduceRequest.validateRecords`, `LogValidator` and
 * the checksum of `UnifiedLog.append`, and beyond them that every consumer can read each record).
 *
 * Thread: any; each has its own scratch memory. Never throws. For plain batches nothing is allocated per record, and
 * per batch no more than a few BigInts and the view for the checksum.
 */
import { ErrorCode } from '../error_code.gen.ts';
import { CompressionError } from './compression_error.ts';
import { crc32c } from './crc.ts';
import {
  attributeBits,
  baseOffsetOf,
  baseSequenceOf,
  baseTimestampOf,
  batchCrcStart,
  batchHeaderBytes,
  batchMagic,
  batchMagicEndBytes,
  Codec,
  codecOf,
  crcOf,
  hasAttribute,
  lastOffsetDeltaOf,
  magicOf,
  maxTimestampOf,
  noProducerId,
  noTimestamp,
  producerEpochOf,
  producerIdOf,
  recordCountOf,
  sizeOf,
} from './header.ts';
import { judgeRecords } from './record_rules.ts';
import { recordBytesOf } from './records.ts';
import type { BatchInfo, BatchRules } from './rules.ts';
import { Scratch } from './scratch.ts';
import { newRecordWalk, RecordFault, walkRecords } from './walk.ts';

/** This thread's, for what batches decompress to while they are checked. */
const scratch = new Scratch();
const walk = newRecordWalk();

/** Beyond it base and delta may add up past 64 bits, where Kafka's sums wrap around. */
const timestampMagnitudeMax = 2n ** 62n;

const faultTexts: Record<RecordFault, string> = {
  [RecordFault.none]: 'is in order',
  [RecordFault.cut]: 'is missing: the bytes end before the stated record count',
  [RecordFault.length]: 'has a length that passes the end of the records or is too small',
  [RecordFault.offsetDelta]: 'has an offset delta other than its index',
  [RecordFault.key]: 'has a key length that passes its end or is below -1',
  [RecordFault.value]: 'has a value length that passes its end or is below -1',
  [RecordFault.headers]: 'has headers that pass its end, or with a null key',
  [RecordFault.slack]: 'has a length that is not what its content takes',
  [RecordFault.trailing]: 'is the last by the record count, but bytes follow it',
};

/**
 * Checks the batch that `buf` holds from `start` on and that must be `length` bytes long, and fills `out`.
 *
 * @returns NONE, or why the batch must not be stored, with `out.errorMessage` and perhaps `out.recordErrors`:
 *   CORRUPT_MESSAGE (damaged on the way, sending it again may help), INVALID_RECORD (made wrong), MESSAGE_TOO_LARGE
 *   (clients split the batch), INVALID_TIMESTAMP, UNSUPPORTED_COMPRESSION_TYPE
 */
export function validateProduceBatch(
  buf: Uint8Array,
  start: number,
  length: number,
  rules: BatchRules,
  out: BatchInfo,
): ErrorCode {
  out.errorMessage = null;
  out.recordErrors = null;
  let code = checkFrame(buf, start, length, rules, out);
  if (code !== ErrorCode.NONE) return code;
  readHeader(buf, start, rules, out);
  code = checkHeader(buf, start, out);
  if (code !== ErrorCode.NONE) return code;
  if (out.codec === Codec.none) {
    return checkRecords(buf, start + batchHeaderBytes, start + length, rules, out);
  }
  if (rules.trustProducers && !rules.compacted) return trustHeader(rules, out);
  code = checkCompressed(buf, start, rules, out);
  scratch.trim();
  return code;
}

function refuse(out: BatchInfo, code: ErrorCode, message: string): ErrorCode {
  out.errorMessage = message;
  return code;
}

/** Exactly one batch of format 2, not too large, with the checksum right. */
function checkFrame(
  buf: Uint8Array,
  start: number,
  length: number,
  rules: BatchRules,
  out: BatchInfo,
): ErrorCode {
  if (length < batchMagicEndBytes) {
    return refuse(out, ErrorCode.INVALID_RECORD, `no whole batch in ${length} bytes`);
  }
  const magic = magicOf(buf, start);
  if (magic === 0 || magic === 1) {
    const text = `message format ${magic} is not taken any more: the client must write format 2`;
    return refuse(out, ErrorCode.INVALID_RECORD, text);
  }
  if (magic !== batchMagic) return refuse(out, ErrorCode.CORRUPT_MESSAGE, `magic ${magic}`);
  const size = sizeOf(buf, start);
  if (size < batchHeaderBytes) {
    return refuse(out, ErrorCode.CORRUPT_MESSAGE, `batch of ${size} bytes, less than its header`);
  }
  if (size !== length) {
    const text = `one batch a partition: it says to be of ${size} bytes, there are ${length}`;
    return refuse(out, ErrorCode.INVALID_RECORD, text);
  }
  if (baseOffsetOf(buf, start) !== 0) {
    const text = `base offset ${baseOffsetOf(buf, start)}: a producer must send 0`;
    return refuse(out, ErrorCode.INVALID_RECORD, text);
  }
  if (size > rules.maxMessageBytes) {
    const text = `batch of ${size} bytes; max.message.bytes is ${rules.maxMessageBytes}`;
    return refuse(out, ErrorCode.MESSAGE_TOO_LARGE, text);
  }
  const crc = crc32c(buf.subarray(start + batchCrcStart, start + length));
  if (crc !== crcOf(buf, start)) {
    const text = `the checksum is ${crc}, the batch says ${crcOf(buf, start)}`;
    return refuse(out, ErrorCode.CORRUPT_MESSAGE, text);
  }
  return ErrorCode.NONE;
}

function readHeader(buf: Uint8Array, start: number, rules: BatchRules, out: BatchInfo): void {
  out.recordCount = recordCountOf(buf, start);
  out.lastOffsetDelta = lastOffsetDeltaOf(buf, start);
  out.producerId = producerIdOf(buf, start);
  out.producerEpoch = producerEpochOf(buf, start);
  out.baseSequence = baseSequenceOf(buf, start);
  out.isTransactional = hasAttribute(buf, start, attributeBits.transactional);
  out.codec = codecOf(buf, start);
  out.timestampType = rules.timestampType;
  out.baseTimestamp = baseTimestampOf(buf, start);
  // As the producer stated it; settled once the records have been seen.
  out.maxTimestamp = maxTimestampOf(buf, start);
}

function checkHeader(buf: Uint8Array, start: number, out: BatchInfo): ErrorCode {
  const invalid = ErrorCode.INVALID_RECORD;
  const { recordCount: count, lastOffsetDelta: last, producerId } = out;
  if (count <= 0) return refuse(out, invalid, `record count ${count}`);
  if (last !== count - 1) {
    return refuse(out, invalid, `last offset delta ${last} with ${count} records`);
  }
  if (hasAttribute(buf, start, attributeBits.control)) {
    return refuse(out, invalid, 'clients may not write control batches');
  }
  if (hasAttribute(buf, start, attributeBits.deleteHorizon)) {
    return refuse(out, invalid, 'the delete horizon is the log cleaner’s to set');
  }
  if (hasAttribute(buf, start, attributeBits.logAppendTime)) {
    const text = 'a producer must not set the timestamp type LogAppendTime';
    return refuse(out, ErrorCode.INVALID_TIMESTAMP, text);
  }
  if (out.codec > Codec.zstd) {
    const text = `compression codec ${out.codec} is not assigned`;
    return refuse(out, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, text);
  }
  if (producerId === noProducerId) {
    if (!out.isTransactional) return ErrorCode.NONE;
    return refuse(out, invalid, 'transactional without a producer id');
  }
  if (producerId < 0 || producerId > Number.MAX_SAFE_INTEGER) {
    return refuse(out, invalid, `producer id ${producerId}`);
  }
  if (out.producerEpoch < 0 || out.baseSequence < 0) {
    const text = `producer id ${producerId} with epoch ${out.producerEpoch} and sequence ${out.baseSequence}`;
    return refuse(out, invalid, text);
  }
  return ErrorCode.NONE;
}

function checkCompressed(
  buf: Uint8Array,
  start: number,
  rules: BatchRules,
  out: BatchInfo,
): ErrorCode {
  let bytes: Uint8Array;
  try {
    bytes = recordBytesOf(buf, start, rules.decompressedMaxBytes, scratch);
  } catch (error) {
    if (!(error instanceof CompressionError)) throw error;
    if (error.fault === 'tooLarge') return refuse(out, ErrorCode.MESSAGE_TOO_LARGE, error.message);
    return refuse(out, ErrorCode.INVALID_RECORD, error.message);
  }
  return checkRecords(bytes, 0, bytes.length, rules, out);
}

/** `bytes` from `from` to `end` are the records, not compressed. */
function checkRecords(
  bytes: Uint8Array,
  from: number,
  end: number,
  rules: BatchRules,
  out: BatchInfo,
): ErrorCode {
  const fault = walkRecords(bytes, from, end, out.recordCount, walk);
  if (fault !== RecordFault.none) {
    const text = `record ${walk.index} of ${out.recordCount} ${faultTexts[fault]}`;
    return refuse(out, ErrorCode.INVALID_RECORD, text);
  }
  const base = out.baseTimestamp;
  const max = base + BigInt(walk.maxDelta);
  if (
    walk.wide ||
    base > timestampMagnitudeMax ||
    base < -timestampMagnitudeMax ||
    (rules.compacted && walk.nullKeys > 0) ||
    isOutOfRange(rules, Number(base) + walk.minDelta, Number(max))
  ) {
    return checkRecordsSingly(bytes.subarray(from, end), rules, out);
  }
  settleTimestamps(rules, out, max, walk.maxDeltaIndex);
  return ErrorCode.NONE;
}

/** Rounding does no harm here: both limits and all timestamps near them are exact as doubles. */
function isOutOfRange(rules: BatchRules, minTimestamp: number, maxTimestamp: number): boolean {
  return (
    rules.timestampType === 'CreateTime' &&
    (minTimestamp < rules.nowMs - rules.timestampBeforeMaxMs ||
      maxTimestamp > rules.nowMs + rules.timestampAfterMaxMs)
  );
}

function checkRecordsSingly(bytes: Uint8Array, rules: BatchRules, out: BatchInfo): ErrorCode {
  const verdict = judgeRecords(bytes, out.recordCount, out.baseTimestamp, rules);
  if (verdict.errorCount > 0) {
    const [first] = verdict.errors;
    out.recordErrors = verdict.errors;
    return refuse(
      out,
      verdict.timestampsAtFault ? ErrorCode.INVALID_TIMESTAMP : ErrorCode.INVALID_RECORD,
      `${verdict.errorCount} of ${out.recordCount} records at fault, the first, ${first?.index}: ${first?.message}`,
    );
  }
  settleTimestamps(rules, out, verdict.maxTimestamp, verdict.maxTimestampIndex);
  return ErrorCode.NONE;
}

/** For compressed batches of producers that are trusted: what the header says is all that is known. */
function trustHeader(rules: BatchRules, out: BatchInfo): ErrorCode {
  const max = out.maxTimestamp;
  if (
    max !== noTimestamp &&
    isOutOfRange(rules, Math.min(Number(out.baseTimestamp), Number(max)), Number(max))
  ) {
    const text = `timestamps from ${out.baseTimestamp} to ${max} are out of range`;
    return refuse(out, ErrorCode.INVALID_TIMESTAMP, text);
  }
  settleTimestamps(rules, out, max, out.lastOffsetDelta);
  return ErrorCode.NONE;
}

/** @param max largest timestamp of the records, @param maxIndex the first record that has it */
function settleTimestamps(rules: BatchRules, out: BatchInfo, max: bigint, maxIndex: number): void {
  if (rules.timestampType === 'LogAppendTime') {
    out.maxTimestamp = BigInt(Math.floor(rules.nowMs));
    out.offsetOfMaxTimestamp = 0;
    out.rewriteHeader = true;
    return;
  }
  const settled = max > noTimestamp ? max : noTimestamp;
  out.rewriteHeader = settled !== out.maxTimestamp;
  out.maxTimestamp = settled;
  out.offsetOfMaxTimestamp = max > noTimestamp ? maxIndex : -1;
}
