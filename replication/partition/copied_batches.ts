/** Batches that a follower has fetched: whether they are a copy of its leader's log that continues its own. */
import { crc32c } from '../../engine/batch/crc.ts';
import {
  baseOffsetOf,
  batchCrcStart,
  batchHeaderBytes,
  batchMagic,
  crcOf,
  lastOffsetDeltaOf,
  lastOffsetOf,
  leaderEpochOf,
  magicOf,
} from '../../engine/batch/header.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { PartitionLog } from '../../engine/log/partition_log.ts';

/** The leader's log starts in the middle of a batch (DeleteRecords), and this one is empty and begins there. */
export function beginsInside(
  { logStartOffset, logEndOffset }: PartitionLog,
  records: Uint8Array,
): boolean {
  if (logStartOffset < logEndOffset || records.length < batchHeaderBytes) return false;
  return baseOffsetOf(records, 0) < logEndOffset && lastOffsetOf(records, 0) >= logEndOffset;
}

/**
 * Appends the batch that lies from `at` to `end` as it is.
 * @param leaderEpoch of the leader that it was fetched from
 * @returns NONE; CORRUPT_MESSAGE for what is no batch, or none that follows; as `LogAppender.appendStamped`
 */
export function appendCopy(
  log: PartitionLog,
  records: Uint8Array,
  at: number,
  end: number,
  leaderEpoch: number,
  nowMs: number,
): ErrorCode {
  const isWhole =
    end - at >= batchHeaderBytes &&
    magicOf(records, at) === batchMagic &&
    lastOffsetDeltaOf(records, at) >= 0 &&
    crc32c(records.subarray(at + batchCrcStart, end)) === crcOf(records, at);
  if (!isWhole || baseOffsetOf(records, at) < log.logEndOffset) return ErrorCode.CORRUPT_MESSAGE;
  const epoch = leaderEpochOf(records, at);
  // No leader has batches of a later epoch than its own, and a log's epochs never go back.
  if (epoch > leaderEpoch || epoch < log.epochs.latestEpoch) return ErrorCode.CORRUPT_MESSAGE;
  return log.appender.appendStamped(records, at, end - at, nowMs);
}
