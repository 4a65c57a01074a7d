/**
 * What a follower asks its leader for and what it gets: Fetch (KIP-227, KIP-320, KIP-595, KIP-903) as plain objects, in
 * which the names of its fields are Kafka's. `net/replication` puts them on the wire, a simulator hands them over.
 */
import type { ErrorCode } from '../../engine/error_code.gen.ts';

/** Where a follower's log ends: what it asks for next, and a statement about its disk. */
export interface FetchPosition {
  /** All below it is on this replica's stable storage (`log.durability=fsync`) or in its page cache (`os`). */
  readonly fetchOffset: number;
  /** Of the last batch below it, so that the leader finds where histories part; -1: there is none. */
  readonly lastFetchedEpoch: number;
  readonly logStartOffset: number;
}

export interface AskedPartition extends FetchPosition {
  readonly topicId: string;
  readonly partition: number;
  readonly currentLeaderEpoch: number;
  readonly maxBytes: number;
}

export interface ForgottenPartition {
  readonly topicId: string;
  readonly partition: number;
}

export interface ReplicaFetchRequest {
  /** 0: there is none yet. */
  readonly sessionId: number;
  /** 0: a full request, which begins a session and ends the one with that id. */
  readonly sessionEpoch: number;
  readonly maxWaitMs: number;
  readonly minBytes: number;
  /** Of the whole answer; the first batch comes whatever its size. */
  readonly maxBytes: number;
  /** All that is asked for, or, within a session, what is new in it or has moved. */
  readonly partitions: readonly AskedPartition[];
  readonly forgotten: readonly ForgottenPartition[];
}

/** What the leader says of one partition, as its follower's owner takes it. */
export interface LeaderAnswer {
  /** NONE, OFFSET_OUT_OF_RANGE or OFFSET_MOVED_TO_TIERED_STORAGE: the others are dealt with before. */
  readonly errorCode: ErrorCode;
  /** -1: not told. */
  readonly highWatermark: number;
  /** Of the leader; -1: not told. */
  readonly logStartOffset: number;
  /** Where the follower's history leaves the leader's (KIP-595); null: it does not. */
  readonly diverging: { readonly epoch: number; readonly endOffset: number } | null;
  /** Whole batches from the asked offset on; null or empty: there are none. */
  readonly records: Uint8Array | null;
}

export interface AnsweredPartition extends LeaderAnswer {
  readonly topicId: string;
  readonly partition: number;
}

export interface ReplicaFetchResponse {
  /** Of the whole request: mostly of its session. */
  readonly errorCode: ErrorCode;
  /** 0: the leader keeps no session. */
  readonly sessionId: number;
  /** Within a session those without news are left out. */
  readonly partitions: readonly AnsweredPartition[];
}
