/**
 * What ListOffsets and OffsetForLeaderEpoch find in one partition.
 *
 * Thread: the partition's shard.
 */
import { ErrorCode } from '../engine/error_code.gen.ts';
import { ColdRead, DiskError } from '../engine/ports.ts';
import type { PartitionLeader } from '../replication/partition/leader.ts';
import type { ShardLogger } from './shard_context.ts';

/** Timestamps that stand for an end of the log. */
export const SpecialTimestamp = {
  latest: -1n,
  earliest: -2n,
  maxTimestamp: -3n,
  earliestLocal: -4n,
  latestTiered: -5n,
  earliestPendingUpload: -6n,
} as const;

const readCommitted = 1;
/** In place of an isolation level: a follower asks, for whom all that is in the log counts. */
export const followersIsolation = -1;

export interface OffsetAnswer {
  readonly errorCode: ErrorCode;
  /** -1: there is no such offset. */
  readonly offset: number;
  readonly timestamp: bigint;
  readonly leaderEpoch: number;
}

export interface EpochEndAnswer {
  readonly errorCode: ErrorCode;
  readonly leaderEpoch: number;
  readonly endOffset: number;
}

interface FoundOffset {
  readonly offset: number;
  readonly timestamp: bigint;
  readonly leaderEpoch: number;
}

/**
 * The first offset whose record is not older than `timestamp`, or what a special timestamp stands for.
 * OFFSET_NOT_AVAILABLE while the answer could be less than what clients have seen (KIP-207).
 * @param mayWait for the device
 * @throws ColdRead when it may not wait and has to
 */
export function findOffset(
  leader: PartitionLeader,
  currentLeaderEpoch: number,
  timestamp: bigint,
  isolationLevel: number,
  logger: ShardLogger,
  mayWait: boolean,
): OffsetAnswer {
  const errorCode = leader.checkEpoch(currentLeaderEpoch);
  if (errorCode !== ErrorCode.NONE) return refusedOffset(errorCode);
  let found: FoundOffset | null;
  const lookUp = (): FoundOffset | null => look(leader, timestamp, isolationLevel);
  try {
    found = mayWait ? lookUp() : leader.log.withoutWaiting(lookUp);
  } catch (error) {
    if (error instanceof ColdRead) throw error;
    return refusedOffset(unreadable(logger, leader, error));
  }
  const isSettled = leader.isCaughtUp || isolationLevel === followersIsolation;
  if (!isSettled && dependsOnEnd(timestamp, found))
    return refusedOffset(ErrorCode.OFFSET_NOT_AVAILABLE);
  return {
    errorCode,
    timestamp: found?.timestamp ?? -1n,
    offset: found?.offset ?? -1,
    leaderEpoch: found?.leaderEpoch ?? -1,
  };
}

export function refusedOffset(errorCode: ErrorCode): OffsetAnswer {
  return { errorCode, timestamp: -1n, offset: -1, leaderEpoch: -1 };
}

/** Where the log of a leader epoch ends (KIP-101, KIP-279). */
export function endOfEpoch(
  leader: PartitionLeader,
  currentLeaderEpoch: number,
  asked: number,
): EpochEndAnswer {
  const errorCode = leader.checkEpoch(currentLeaderEpoch);
  if (errorCode !== ErrorCode.NONE) return refusedEpoch(errorCode);
  const { epoch, endOffset } = leader.log.endOffsetForEpoch(asked);
  return { errorCode, leaderEpoch: epoch, endOffset };
}

export function refusedEpoch(errorCode: ErrorCode): EpochEndAnswer {
  return { errorCode, leaderEpoch: -1, endOffset: -1 };
}

/** Whether an answer could be another one once the high watermark has come up to the log's end (KIP-207). */
function dependsOnEnd(timestamp: bigint, found: FoundOffset | null): boolean {
  if (timestamp === SpecialTimestamp.latest || timestamp === SpecialTimestamp.maxTimestamp)
    return true;
  return timestamp >= 0n && found === null;
}

/** The file cannot be read, or not be understood: the other partitions and requests are not to suffer from it. */
function unreadable(logger: ShardLogger, leader: PartitionLeader, error: unknown): ErrorCode {
  const partition = `${leader.topic}-${leader.partition}`;
  logger.error({ partition, error }, 'offsets could not be looked up in the log');
  return error instanceof DiskError ? ErrorCode.KAFKA_STORAGE_ERROR : ErrorCode.CORRUPT_MESSAGE;
}

/** Null: there is no such offset. A record beyond what the client may read counts as not there. */
function look(
  leader: PartitionLeader,
  timestamp: bigint,
  isolationLevel: number,
): FoundOffset | null {
  const { log } = leader;
  const end = endFor(leader, isolationLevel);
  switch (timestamp) {
    case SpecialTimestamp.latest:
      return { offset: end, timestamp: -1n, leaderEpoch: leader.leaderEpoch };
    case SpecialTimestamp.earliest:
    case SpecialTimestamp.earliestLocal:
      return {
        offset: log.logStartOffset,
        timestamp: -1n,
        leaderEpoch: log.epochs.epochFor(log.logStartOffset),
      };
    // Without tiered storage nothing is tiered and nothing waits for its upload.
    case SpecialTimestamp.latestTiered:
    case SpecialTimestamp.earliestPendingUpload:
      return null;
    case SpecialTimestamp.maxTimestamp:
      return visible(log.offsetOfMaxTimestamp(), end);
    default:
      return visible(log.offsetForTimestamp(timestamp), end);
  }
}

function endFor(leader: PartitionLeader, isolationLevel: number): number {
  if (isolationLevel === followersIsolation) return leader.log.logEndOffset;
  return isolationLevel === readCommitted ? leader.lastStableOffset : leader.highWatermark;
}

function visible(found: FoundOffset | null, end: number): FoundOffset | null {
  return found !== null && found.offset < end ? found : null;
}
