/** Batches of the metadata log: plain record batches of Kafka's format 2, each appended as a whole or not at all. */
import { crc32c } from '../../engine/batch/crc.ts';
import { encodeBatch } from '../../engine/batch/encode.ts';
import {
  attributeBits,
  baseOffsetOf,
  batchCrcStart,
  batchHeaderBytes,
  batchMagic,
  crcOf,
  hasAttribute,
  lastOffsetOf,
  leaderEpochOf,
  magicOf,
  sizeOf,
} from '../../engine/batch/header.ts';
import { iterateRecords } from '../../engine/batch/records.ts';

/** Bound for batches that another product stored compressed. */
const decompressedBytesMax = 64 * 1024 * 1024;

/** A batch as it was read. Keys and values are views of the memory that it was read from. */
export interface StoredBatch {
  /** In bytes. */
  readonly size: number;
  readonly firstOffset: number;
  readonly lastOffset: number;
  readonly epoch: number;
  readonly isControl: boolean;
  readonly records: readonly { readonly key: Uint8Array; readonly value: Uint8Array }[];
}

/** One batch of data records; `values` as the codec encoded them, `timestampMs` since 1970. */
export function encodeDataBatch(
  values: readonly Uint8Array[],
  baseOffset: number,
  leaderEpoch: number,
  timestampMs: number,
): Uint8Array {
  const timestamp = BigInt(timestampMs);
  const records = values.map((value) => ({ value, timestamp }));
  return encodeBatch({ records, baseOffset, leaderEpoch });
}

/** One batch of the quorum's own records. */
export function encodeControlBatch(
  records: readonly { readonly key: Uint8Array; readonly value: Uint8Array }[],
  baseOffset: number,
  leaderEpoch: number,
  timestampMs: number,
): Uint8Array {
  const timestamp = BigInt(timestampMs);
  const timed = records.map(({ key, value }) => ({ key, value, timestamp }));
  return encodeBatch({ records: timed, baseOffset, leaderEpoch, control: true });
}

/**
 * Goes over whole batches, checksums included: what is replayed decides which data exists, so nothing in it is taken on
 * trust.
 * @throws Error with a text for people on damage, which `problem` makes of what is wrong
 */
export function forEachBatch(
  bytes: Uint8Array,
  visit: (batch: StoredBatch) => void,
  problem: (what: string) => Error = damaged,
): void {
  for (let start = 0; start < bytes.length; ) {
    const size = bytes.length - start < batchHeaderBytes ? 0 : sizeOf(bytes, start);
    if (size < batchHeaderBytes || start + size > bytes.length)
      throw problem(`${bytes.length - start} bytes that are no batch`);
    const firstOffset = baseOffsetOf(bytes, start);
    if (magicOf(bytes, start) !== batchMagic)
      throw problem(`a batch of format ${magicOf(bytes, start)} at offset ${firstOffset}`);
    if (crc32c(bytes.subarray(start + batchCrcStart, start + size)) !== crcOf(bytes, start))
      throw problem(`a wrong checksum at offset ${firstOffset}`);
    visit({
      size,
      firstOffset,
      lastOffset: lastOffsetOf(bytes, start),
      epoch: leaderEpochOf(bytes, start),
      isControl: hasAttribute(bytes, start, attributeBits.control),
      records: recordsOf(bytes, start),
    });
    start += size;
  }
}

const noBytes = new Uint8Array(0);

function recordsOf(bytes: Uint8Array, start: number): { key: Uint8Array; value: Uint8Array }[] {
  const records: { key: Uint8Array; value: Uint8Array }[] = [];
  for (const { key, value } of iterateRecords(bytes, start, decompressedBytesMax))
    records.push({ key: key ?? noBytes, value: value ?? noBytes });
  return records;
}

function damaged(what: string): Error {
  return new Error(
    `The metadata log is damaged: ${what}. Restore __cluster_metadata-0 from a copy.`,
  );
}
