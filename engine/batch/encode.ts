/** Writes batches: control batches, the metadata log's, and those of tests. */
import { compress } from './compression.ts';
import { crc32c } from './crc.ts';
import {
  attributeBits,
  batchCrcStart,
  batchHeaderBytes,
  batchMagic,
  batchOffset,
  batchOverheadBytes,
  Codec,
  noProducerEpoch,
  noProducerId,
  noSequence,
  noTimestamp,
  writeInt16,
  writeInt32,
  writeInt64,
} from './header.ts';
import type { BatchRecord, RecordHeader } from './records.ts';
import type { TimestampType } from './stamp.ts';
import { varintBytes, varlongBytes, writeVarint, writeVarlong } from './varint.ts';

/** What may be left out of a record: its offset delta is then its index, and the rest null, none or empty. */
export type RecordInput = Partial<BatchRecord>;

export interface BatchInput {
  records: readonly RecordInput[];
  baseOffset?: number | bigint;
  leaderEpoch?: number;
  codec?: Codec;
  timestampType?: TimestampType;
  transactional?: boolean;
  control?: boolean;
  /** Milliseconds; stands in the base timestamp's place, and sets the bit that says so. */
  deleteHorizonMs?: bigint;
  /** Offset delta of the last record, where compaction has left it behind; default that of the last in `records`. */
  lastOffsetDelta?: number;
  /** Default: that of the first record. */
  baseTimestamp?: bigint;
  /** Default: the largest of the records. */
  maxTimestamp?: bigint;
  producerId?: number | bigint;
  producerEpoch?: number;
  baseSequence?: number;
}

const noHeaders: readonly RecordHeader[] = [];

/** One batch with its checksum. Default: offset 0, no producer, leader epoch -1, CreateTime, not compressed. */
export function encodeBatch(input: BatchInput): Uint8Array {
  const { records } = input;
  const first = records[0]?.timestamp ?? noTimestamp;
  const base = input.deleteHorizonMs ?? input.baseTimestamp ?? first;
  const body = compress(input.codec ?? Codec.none, encodeRecords(records, base));
  const batch = new Uint8Array(batchHeaderBytes + body.length);
  batch.set(body, batchHeaderBytes);
  writeInt64(batch, batchOffset.baseOffset, BigInt(input.baseOffset ?? 0));
  writeInt32(batch, batchOffset.length, batch.length - batchOverheadBytes);
  writeInt32(batch, batchOffset.leaderEpoch, input.leaderEpoch ?? -1);
  batch[batchOffset.magic] = batchMagic;
  writeInt16(batch, batchOffset.attributes, attributesOf(input));
  const last = input.lastOffsetDelta ?? records.at(-1)?.offsetDelta ?? records.length - 1;
  writeInt32(batch, batchOffset.lastOffsetDelta, last);
  writeInt64(batch, batchOffset.baseTimestamp, base);
  writeInt64(batch, batchOffset.maxTimestamp, input.maxTimestamp ?? largestTimestamp(records));
  writeInt64(batch, batchOffset.producerId, BigInt(input.producerId ?? noProducerId));
  writeInt16(batch, batchOffset.producerEpoch, input.producerEpoch ?? noProducerEpoch);
  writeInt32(batch, batchOffset.baseSequence, input.baseSequence ?? noSequence);
  writeInt32(batch, batchOffset.recordCount, records.length);
  writeInt32(batch, batchOffset.crc, crc32c(batch.subarray(batchCrcStart)) | 0);
  return batch;
}

function attributesOf(input: BatchInput): number {
  let attributes: number = input.codec ?? Codec.none;
  if (input.timestampType === 'LogAppendTime') attributes |= attributeBits.logAppendTime;
  if (input.transactional === true) attributes |= attributeBits.transactional;
  if (input.control === true) attributes |= attributeBits.control;
  if (input.deleteHorizonMs !== undefined) attributes |= attributeBits.deleteHorizon;
  return attributes;
}

function largestTimestamp(records: readonly RecordInput[]): bigint {
  let largest = noTimestamp;
  for (const { timestamp } of records) {
    if (timestamp !== undefined && timestamp > largest) largest = timestamp;
  }
  return largest;
}

/** The records alone, not compressed. */
function encodeRecords(records: readonly RecordInput[], baseTimestamp: bigint): Uint8Array {
  let total = 0;
  const lengths: number[] = [];
  for (const [index, record] of records.entries()) {
    const length = recordLength(record, index, baseTimestamp);
    lengths.push(length);
    total += varintBytes(length) + length;
  }
  const out = new Uint8Array(total);
  let at = 0;
  for (const [index, record] of records.entries()) {
    at = writeVarint(out, at, lengths[index] as number);
    at = writeRecord(out, at, record, index, baseTimestamp);
  }
  return out;
}

function recordLength(record: RecordInput, index: number, baseTimestamp: bigint): number {
  const headers = record.headers ?? noHeaders;
  let length =
    1 +
    varlongBytes(BigInt.asIntN(64, (record.timestamp ?? noTimestamp) - baseTimestamp)) +
    varintBytes(record.offsetDelta ?? index) +
    fieldBytes(record.key ?? null) +
    fieldBytes(record.value ?? null) +
    varintBytes(headers.length);
  for (const header of headers) length += fieldBytes(header.key) + fieldBytes(header.value);
  return length;
}

function writeRecord(
  out: Uint8Array,
  start: number,
  record: RecordInput,
  index: number,
  baseTimestamp: bigint,
): number {
  const headers = record.headers ?? noHeaders;
  // A record's own attributes have no meaning yet: the byte is zero.
  let at = start + 1;
  const delta = BigInt.asIntN(64, (record.timestamp ?? noTimestamp) - baseTimestamp);
  at = writeVarlong(out, at, delta);
  at = writeVarint(out, at, record.offsetDelta ?? index);
  at = writeField(out, at, record.key ?? null);
  at = writeField(out, at, record.value ?? null);
  at = writeVarint(out, at, headers.length);
  for (const header of headers) {
    at = writeField(out, at, header.key);
    at = writeField(out, at, header.value);
  }
  return at;
}

function fieldBytes(bytes: Uint8Array | null): number {
  return bytes === null ? 1 : varintBytes(bytes.length) + bytes.length;
}

function writeField(out: Uint8Array, start: number, bytes: Uint8Array | null): number {
  if (bytes === null) return writeVarint(out, start, -1);
  const at = writeVarint(out, start, bytes.length);
  out.set(bytes, at);
  return at + bytes.length;
}
