/**
 * Records as objects, for those who look inside: the metadata log, look-ups by timestamp, tools and tests. The produce
 * and fetch paths never do. A batch's checksum is not looked at here.
 */
import { decompress } from './compression.ts';
import {
  attributeBits,
  baseTimestampOf,
  batchHeaderBytes,
  Codec,
  codecOf,
  hasAttribute,
  maxTimestampOf,
  recordCountOf,
  sizeOf,
} from './header.ts';
import type { Scratch } from './scratch.ts';
import { VarintReader } from './varint.ts';

export interface RecordHeader {
  /** UTF-8. */
  key: Uint8Array;
  value: Uint8Array | null;
}

/** Its byte arrays are views of the batch's memory, or of what it was decompressed to. */
export interface BatchRecord {
  /** To be added to the batch's base offset. */
  offsetDelta: number;
  /** Milliseconds since 1970, or -1 for none. Under LogAppendTime the batch's, whatever the record says. */
  timestamp: bigint;
  key: Uint8Array | null;
  value: Uint8Array | null;
  headers: RecordHeader[];
}

/** What an unfit batch makes the functions of this file throw. Its text says what is wrong. */
export class BatchFormatError extends Error {}

/**
 * The bytes of a batch's records, decompressed.
 *
 * @param maxBytes most that they may decompress to
 * @throws CompressionError
 */
export function recordBytesOf(
  buf: Uint8Array,
  start: number,
  maxBytes: number,
  scratch?: Scratch,
): Uint8Array {
  const stored = buf.subarray(start + batchHeaderBytes, start + sizeOf(buf, start));
  const codec = codecOf(buf, start);
  if (codec === Codec.none) return stored;
  const bytes = decompress(codec, stored, maxBytes, scratch);
  // Not a Buffer: the code that goes over records is faster where it meets one kind of object alone.
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
}

/**
 * Goes over the records of the batch at `start`, which lies in `buf` whole.
 *
 * @param maxBytes most that they may decompress to
 * @throws BatchFormatError, CompressionError
 */
export function* iterateRecords(
  buf: Uint8Array,
  start: number,
  maxBytes: number,
): Generator<BatchRecord, void, undefined> {
  const appendTime = hasAttribute(buf, start, attributeBits.logAppendTime)
    ? maxTimestampOf(buf, start)
    : null;
  const bytes = recordBytesOf(buf, start, maxBytes);
  yield* iterateRecordBytes(
    bytes,
    recordCountOf(buf, start),
    baseTimestampOf(buf, start),
    appendTime,
  );
}

/**
 * Goes over `count` records that fill `bytes`.
 *
 * @param baseTimestamp what timestamp deltas count from
 * @param appendTime timestamp of every record, or null for each its own
 * @throws BatchFormatError
 */
export function* iterateRecordBytes(
  bytes: Uint8Array,
  count: number,
  baseTimestamp: bigint,
  appendTime: bigint | null,
): Generator<BatchRecord, void, undefined> {
  const reader = new VarintReader(bytes, 0, bytes.length);
  for (let index = 0; index < count; index += 1) {
    let record: BatchRecord;
    try {
      record = readRecord(reader, baseTimestamp, appendTime);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new BatchFormatError(`record ${index} of ${count}: ${error.message}`);
    }
    yield record;
  }
  if (reader.at !== bytes.length) {
    throw new BatchFormatError(`${bytes.length - reader.at} bytes follow the last record`);
  }
}

/** The first record at or after a point in time. */
export interface RecordAtTime {
  offsetDelta: number;
  timestamp: bigint;
}

/**
 * The first record in the batch at `start` whose timestamp is `target` or later and whose offset delta is
 * `fromOffsetDelta` or more (Kafka's ListOffsets by timestamp); null if there is none.
 *
 * @throws BatchFormatError, CompressionError
 */
export function findRecordByTimestamp(
  buf: Uint8Array,
  start: number,
  target: bigint,
  fromOffsetDelta: number,
  maxBytes: number,
): RecordAtTime | null {
  if (maxTimestampOf(buf, start) < target) return null;
  for (const { offsetDelta, timestamp } of iterateRecords(buf, start, maxBytes)) {
    if (timestamp >= target && offsetDelta >= fromOffsetDelta) return { offsetDelta, timestamp };
  }
  return null;
}

function readRecord(
  reader: VarintReader,
  baseTimestamp: bigint,
  appendTime: bigint | null,
): BatchRecord {
  const length = reader.varint();
  const end = reader.at + length;
  if (length < 0 || end > reader.end) throw new RangeError(`record of ${length} bytes`);
  reader.byte();
  const delta = reader.varlong();
  const timestamp = appendTime ?? BigInt.asIntN(64, baseTimestamp + delta);
  const offsetDelta = reader.varint();
  const key = reader.bytes(reader.varint());
  const value = reader.bytes(reader.varint());
  const headerCount = reader.varint();
  if (headerCount < 0 || headerCount > reader.end - reader.at) {
    throw new RangeError(`header count ${headerCount}`);
  }
  const headers: RecordHeader[] = [];
  for (let k = 0; k < headerCount; k += 1) {
    const headerKey = reader.bytes(reader.varint());
    if (headerKey === null) throw new RangeError('a header key is null');
    headers.push({ key: headerKey, value: reader.bytes(reader.varint()) });
  }
  if (reader.at !== end) throw new RangeError(`its length is ${length}, its content is not`);
  return { offsetDelta, timestamp, key, value, headers };
}
