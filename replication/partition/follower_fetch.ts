/** What a follower asks for of a partition, and what it is brought. */
import type { ErrorCode } from '../../engine/error_code.gen.ts';
import type { EpochEndOffset } from '../../engine/log/epoch_cache.ts';

/** What the next fetch of the partition says. */
export interface FollowerFetchState {
  /** -1: nobody leads. */
  readonly leaderId: number;
  readonly currentLeaderEpoch: number;
  /** All before it is as safe as the topic asks. */
  readonly fetchOffset: number;
  /** Epoch of the last batch, -1: there is none. */
  readonly lastFetchedEpoch: number;
  readonly logStartOffset: number;
  readonly highWatermark: number;
}

/** What a leader's answer says of the partition. */
export interface FetchedPartition {
  /** That the fetch was made with (`currentLeaderEpoch`). */
  readonly leaderEpoch: number;
  /** NONE, or OFFSET_OUT_OF_RANGE: what else a leader says, does not come here. */
  readonly errorCode: ErrorCode;
  /** The leader's; -1: not told. */
  readonly highWatermark: number;
  readonly logStartOffset: number;
  /** Where the follower's history leaves the leader's; null: it does not. */
  readonly diverging: EpochEndOffset | null;
  /** Whole batches, and perhaps a piece of another one. Null or empty: none. */
  readonly records: Uint8Array | null;
}

/** Who brought what was fetched. Both are called exactly once, `onWritten` first. */
export interface ReplicationWaiter {
  /** The records' memory is the caller's again. */
  onWritten(): void;
  /**
   * NONE: `fetchState` says what to fetch next. Otherwise the same fetch is to be made again, after a while: FENCED_LEADER_EPOCH
   * (there is another leader since), CORRUPT_MESSAGE (what came is no copy of the leader's log), KAFKA_STORAGE_ERROR (the
   * disk is full or broken); or no more: NOT_LEADER_OR_FOLLOWER (nothing to follow any more).
   */
  onReplicated(error: ErrorCode): void;
}
