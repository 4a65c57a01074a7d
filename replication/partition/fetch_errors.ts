/** What an error in a leader's answer, or of the owner of a followed partition, means for the next fetch of it. */
import { ErrorCode } from '../../engine/error_code.gen.ts';

export type Remedy =
  /** It is about this replica's log: its owner decides where to go on. */
  | 'owner'
  /** One of both has metadata that the other lacks, a matter of milliseconds: soon again, then less and less often. */
  | 'soon'
  /** Something is broken, or not understood: it is not going to be better at once. */
  | 'late';

/** Of a partition's error, which is not NONE. */
export function remedyFor(error: ErrorCode): Remedy {
  switch (error) {
    case ErrorCode.OFFSET_OUT_OF_RANGE:
    case ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE:
      return 'owner';
    case ErrorCode.NOT_LEADER_OR_FOLLOWER:
    case ErrorCode.FENCED_LEADER_EPOCH:
    case ErrorCode.UNKNOWN_LEADER_EPOCH:
    case ErrorCode.UNKNOWN_TOPIC_ID:
    case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
    case ErrorCode.REPLICA_NOT_AVAILABLE:
    case ErrorCode.LEADER_NOT_AVAILABLE:
    case ErrorCode.OFFSET_NOT_AVAILABLE:
      return 'soon';
    default:
      return 'late';
  }
}

/** Whether the error of a whole answer is about its session alone: a full request is the remedy (KIP-227). */
export function isSessionError(error: ErrorCode): boolean {
  return (
    error === ErrorCode.FETCH_SESSION_ID_NOT_FOUND ||
    error === ErrorCode.INVALID_FETCH_SESSION_EPOCH ||
    error === ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR ||
    error === ErrorCode.INCONSISTENT_TOPIC_ID
  );
}

/** How long to leave something alone that has failed `failures` times in a row, milliseconds. */
export function backOffMs(
  remedy: Remedy,
  failures: number,
  firstMs: number,
  mostMs: number,
): number {
  if (remedy === 'late') return mostMs;
  return Math.min(mostMs, firstMs * 2 ** Math.min(failures - 1, 30));
}
