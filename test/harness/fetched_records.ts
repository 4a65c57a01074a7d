/** What a consumer makes of the bytes of a fetch: batches with their checksums, then records. */
import { crc32c } from '../../engine/batch/crc.ts';
import {
  baseOffsetOf,
  baseSequenceOf,
  batchCrcStart,
  batchHeaderBytes,
  batchMagic,
  batchOverheadBytes,
  crcOf,
  lastOffsetOf,
  leaderEpochOf,
  magicOf,
  producerIdOf,
  sizeOf,
} from '../../engine/batch/header.ts';
import { type BatchRecord, iterateRecords } from '../../engine/batch/records.ts';

const decompressedBytesMax = 64 << 20;

export interface FetchedRecord extends BatchRecord {
  readonly offset: number;
  readonly producerId: number;
  readonly baseSequence: number;
  readonly leaderEpoch: number;
}

export interface FetchedRecords {
  readonly records: FetchedRecord[];
  /** The offset behind the last whole batch, or what was given where there is none. */
  readonly nextOffset: number;
  readonly batches: number;
}

/**
 * Decodes whole batches and drops records before `fromOffset`, as consumers do. Throws when a batch is damaged, when
 * offsets do not rise, or when bytes are left over at the end: this broker never sends parts of batches.
 */
export function decodeRecords(bytes: Uint8Array, fromOffset: number): FetchedRecords {
  const records: FetchedRecord[] = [];
  let nextOffset = fromOffset;
  let batches = 0;
  let at = 0;
  while (at < bytes.length) {
    const left = bytes.length - at;
    const size = left < batchOverheadBytes ? Number.POSITIVE_INFINITY : sizeOf(bytes, at);
    if (size > left || size < batchHeaderBytes)
      throw new Error(
        `a batch of ${size} bytes where ${left} are left, behind offset ${nextOffset}`,
      );
    if (magicOf(bytes, at) !== batchMagic) throw new Error(`magic ${magicOf(bytes, at)}`);
    const base = baseOffsetOf(bytes, at);
    const found = crc32c(bytes.subarray(at + batchCrcStart, at + size)) >>> 0;
    if (found !== crcOf(bytes, at))
      throw new Error(`the checksum of the batch at ${base} is wrong`);
    if (lastOffsetOf(bytes, at) < nextOffset || (batches > 0 && base < nextOffset))
      throw new Error(
        `a batch from ${base} to ${lastOffsetOf(bytes, at)} where ${nextOffset} was due`,
      );
    const shared = {
      producerId: producerIdOf(bytes, at),
      baseSequence: baseSequenceOf(bytes, at),
      leaderEpoch: leaderEpochOf(bytes, at),
    };
    for (const one of iterateRecords(bytes, at, decompressedBytesMax)) {
      const offset = base + one.offsetDelta;
      if (offset >= fromOffset) records.push({ ...one, ...shared, offset });
    }
    nextOffset = lastOffsetOf(bytes, at) + 1;
    batches += 1;
    at += size;
  }
  return { records, nextOffset, batches };
}
