/**
 * The header of a record batch, format 2 (Kafka's message format since 0.11, KIP-98), big-endian:
 *
 *   offset  size  field
 *        0     8  base offset                       outside the checksum
 *        8     4  length: bytes that follow it      outside
 *       12     4  partition leader epoch            outside
 *       16     1  magic: 2                          outside
 *       17     4  CRC-32C of all that follows it
 *       21     2  attributes
 *       23     4  last offset delta
 *       27     8  base timestamp (delete horizon where that bit is set)
 *       35     8  max timestamp
 *       43     8  producer id
 *       51     2  producer epoch
 *       53     4  base sequence
 *       57     4  record count
 *       61        records, compressed as one block where the attributes name a codec
 *
 * Accessors read from a `Uint8Array` at the batch's position `start`, without a DataView, so that reading a
 * header allocates nothing. None checks bounds: the caller knows that the whole header lies inside.
 */
import assert from 'node:assert/strict';

export const batchOffset = {
  baseOffset: 0,
  length: 8,
  leaderEpoch: 12,
  magic: 16,
  crc: 17,
  attributes: 21,
  lastOffsetDelta: 23,
  baseTimestamp: 27,
  maxTimestamp: 35,
  producerId: 43,
  producerEpoch: 51,
  baseSequence: 53,
  recordCount: 57,
  records: 61,
} as const;

/** Bytes before the first record. */
export const batchHeaderBytes = 61;
/** Base offset and length: what the length field does not count. */
export const batchOverheadBytes = 12;
/** Bytes up to and with the magic, the least that tells formats apart. */
export const batchMagicEndBytes = 17;
/** The first byte that the checksum covers. */
export const batchCrcStart = 21;
export const batchMagic = 2;
/** The smallest record: a length byte and six fields of one byte each. */
export const recordBytesMin = 7;
assert(batchHeaderBytes === batchOffset.records);
assert(batchCrcStart === batchOffset.attributes);

export const attributeBits = {
  codecMask: 0x07,
  logAppendTime: 0x08,
  transactional: 0x10,
  control: 0x20,
  deleteHorizon: 0x40,
} as const;

export const Codec = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 } as const;
export type Codec = (typeof Codec)[keyof typeof Codec];

export const noTimestamp = -1n;
export const noProducerId = -1;
export const noProducerEpoch = -1;
export const noSequence = -1;

const scratch = new BigInt64Array(1);
const scratchWords = new Int32Array(scratch.buffer);
/** Index of the low half of an int64 in `scratchWords`, by this machine's byte order. */
const lowWord = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? 0 : 1;

export function readInt16(buf: Uint8Array, at: number): number {
  return (((buf[at] as number) << 24) | ((buf[at + 1] as number) << 16)) >> 16;
}

export function readInt32(buf: Uint8Array, at: number): number {
  return (
    ((buf[at] as number) << 24) |
    ((buf[at + 1] as number) << 16) |
    ((buf[at + 2] as number) << 8) |
    (buf[at + 3] as number)
  );
}

/** An int64 as a number: exact up to 2^53 either way, rounded beyond. */
export function readInt64Number(buf: Uint8Array, at: number): number {
  return readInt32(buf, at) * 0x1_0000_0000 + (readInt32(buf, at + 4) >>> 0);
}

/** An int64 with all its bits; allocates one BigInt. */
export function readInt64(buf: Uint8Array, at: number): bigint {
  scratchWords[1 - lowWord] = readInt32(buf, at);
  scratchWords[lowWord] = readInt32(buf, at + 4);
  return scratch[0] as bigint;
}

export function writeInt16(buf: Uint8Array, at: number, value: number): void {
  buf[at] = value >> 8;
  buf[at + 1] = value;
}

export function writeInt32(buf: Uint8Array, at: number, value: number): void {
  buf[at] = value >> 24;
  buf[at + 1] = value >> 16;
  buf[at + 2] = value >> 8;
  buf[at + 3] = value;
}

/** `value` is an integer that a double holds exactly. */
export function writeInt64Number(buf: Uint8Array, at: number, value: number): void {
  writeInt32(buf, at, Math.floor(value / 0x1_0000_0000));
  writeInt32(buf, at + 4, value | 0);
}

export function writeInt64(buf: Uint8Array, at: number, value: bigint): void {
  scratch[0] = value;
  writeInt32(buf, at, scratchWords[1 - lowWord] as number);
  writeInt32(buf, at + 4, scratchWords[lowWord] as number);
}

export function baseOffsetOf(buf: Uint8Array, start: number): number {
  return readInt64Number(buf, start);
}

/** Size of the whole batch in bytes, by its length field, which nothing has checked yet. */
export function sizeOf(buf: Uint8Array, start: number): number {
  return readInt32(buf, start + batchOffset.length) + batchOverheadBytes;
}

export function leaderEpochOf(buf: Uint8Array, start: number): number {
  return readInt32(buf, start + batchOffset.leaderEpoch);
}

export function magicOf(buf: Uint8Array, start: number): number {
  return ((buf[start + batchOffset.magic] as number) << 24) >> 24;
}

/** The stored checksum, unsigned. */
export function crcOf(buf: Uint8Array, start: number): number {
  return readInt32(buf, start + batchOffset.crc) >>> 0;
}

export function attributesOf(buf: Uint8Array, start: number): number {
  return readInt16(buf, start + batchOffset.attributes);
}

/** The codec's number, 0 to 7; 5 to 7 are not assigned. */
export function codecOf(buf: Uint8Array, start: number): number {
  return (buf[start + batchOffset.attributes + 1] as number) & attributeBits.codecMask;
}

/** @param bit one of `attributeBits` */
export function hasAttribute(buf: Uint8Array, start: number, bit: number): boolean {
  return ((buf[start + batchOffset.attributes + 1] as number) & bit) !== 0;
}

export function lastOffsetDeltaOf(buf: Uint8Array, start: number): number {
  return readInt32(buf, start + batchOffset.lastOffsetDelta);
}

export function lastOffsetOf(buf: Uint8Array, start: number): number {
  return baseOffsetOf(buf, start) + lastOffsetDeltaOf(buf, start);
}

export function baseTimestampOf(buf: Uint8Array, start: number): bigint {
  return readInt64(buf, start + batchOffset.baseTimestamp);
}

export function maxTimestampOf(buf: Uint8Array, start: number): bigint {
  return readInt64(buf, start + batchOffset.maxTimestamp);
}

export function producerIdOf(buf: Uint8Array, start: number): number {
  return readInt64Number(buf, start + batchOffset.producerId);
}

export function producerEpochOf(buf: Uint8Array, start: number): number {
  return readInt16(buf, start + batchOffset.producerEpoch);
}

export function baseSequenceOf(buf: Uint8Array, start: number): number {
  return readInt32(buf, start + batchOffset.baseSequence);
}

export function recordCountOf(buf: Uint8Array, start: number): number {
  return readInt32(buf, start + batchOffset.recordCount);
}

/** Largest timestamp of the batch's records, -1 where compaction has left it none: its header tells of what it had. */
export function recordTimestampOf(buf: Uint8Array, start: number): bigint {
  return recordCountOf(buf, start) === 0 ? -1n : maxTimestampOf(buf, start);
}
