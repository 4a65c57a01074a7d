/**
 * What the leader writes into a batch that a client sent, in place.
 *
 * Thread: the one that owns the memory at that moment (the partition's shard). Nothing here allocates per record.
 */
import { crc32c, crc32cAfterChange } from './crc.ts';
import {
  attributeBits,
  batchCrcStart,
  batchHeaderBytes,
  batchOffset,
  crcOf,
  writeInt32,
  writeInt64,
  writeInt64Number,
} from './header.ts';

export type TimestampType = 'CreateTime' | 'LogAppendTime';

/** Sets base offset and partition leader epoch, both outside the checksum. */
export function stampBatch(
  buf: Uint8Array,
  start: number,
  baseOffset: number,
  leaderEpoch: number,
): void {
  writeInt64Number(buf, start + batchOffset.baseOffset, baseOffset);
  writeInt32(buf, start + batchOffset.leaderEpoch, leaderEpoch);
}

/**
 * Sets the batch's timestamp type and max timestamp and corrects the checksum, which must have been right. Under
 * LogAppendTime every record of the batch reads as `maxTimestamp`, so this is all there is to rewrite. The records
 * are not read again: a batch of a megabyte costs what a small one costs.
 *
 * @param length size of the whole batch in bytes
 */
export function rewriteTimestamps(
  buf: Uint8Array,
  start: number,
  length: number,
  type: TimestampType,
  maxTimestamp: bigint,
): void {
  const changed = buf.subarray(start + batchCrcStart, start + batchHeaderBytes);
  const before = crc32c(changed);
  const flags = start + batchOffset.attributes + 1;
  const bits = (buf[flags] as number) & ~attributeBits.logAppendTime;
  buf[flags] = type === 'LogAppendTime' ? bits | attributeBits.logAppendTime : bits;
  writeInt64(buf, start + batchOffset.maxTimestamp, maxTimestamp);
  const after = crc32c(changed);
  const crc = crc32cAfterChange(crcOf(buf, start), before, after, length - batchHeaderBytes);
  writeInt32(buf, start + batchOffset.crc, crc | 0);
}
