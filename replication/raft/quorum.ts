/**
 * The seam between the metadata log's replication and those who use it.
 *
 * Thread: that of the caller, all calls and callbacks. Concurrency: callbacks run to their end before the next one;
 * they may call `append`. Durability: what `onCommitted` hands out is on stable storage on a majority of the voters.
 */
import type { ErrorCode } from '../../engine/error_code.gen.ts';
import type { SilentNode } from '../metadata/broker_sessions.ts';
import type {
  MetadataBatch,
  MetadataRecord,
  MetadataSnapshot,
  Voter,
} from '../metadata/records.ts';

export interface QuorumListener {
  /** Batches in log order, each once; during `start` everything that is known to be committed by then. */
  onCommitted(batch: MetadataBatch): void;
  /**
   * Everything up to `lastOffset` is committed, and this is what it comes to: at the start instead of the batches before,
   * or later, when this node was away for too long. Where there are snapshots.
   */
  onSnapshot?(snapshot: MetadataSnapshot): void;
  /** All that has been reported, as records; they are read later, when the state is another one already. */
  snapshotRecords?(): Iterable<MetadataRecord>;
  /**
   * This node leads from now on; the record that it appends next takes `nextOffset`. All data records before it have
   * been reported as committed.
   * @param silent who led before, and since when nothing of it has come here; null when that is not known
   */
  onElected(epoch: number, nextOffset: number, silent: SilentNode | null): void;
  /** This node leads no longer: what it appended and did not see committed may vanish. */
  onResigned(): void;
  /**
   * Who leads, as far as this node knows (-1: nobody), itself included; before `onElected`, and again with every change.
   */
  onLeaderChanged?(leaderId: number, epoch: number): void;
  /** The log's storage failed: nothing will be committed any more. The process should stop with this reason. */
  onFailed(error: Error): void;
}

/** What the leader knows of a replica of the metadata log; times are wall-clock ms, -1 when it never happened. */
export interface ReplicaProgress {
  readonly replicaId: number;
  readonly replicaDirectoryId: string;
  /** -1 while unknown. */
  readonly logEndOffset: number;
  readonly lastFetchTimestamp: number;
  readonly lastCaughtUpTimestamp: number;
}

/** For DescribeQuorum. Only the leader knows about the others. */
export interface QuorumDescription {
  readonly leaderId: number;
  readonly leaderEpoch: number;
  /** Offset behind the last committed record, -1 while unknown. */
  readonly highWatermark: number;
  readonly currentVoters: readonly ReplicaProgress[];
  readonly observers: readonly ReplicaProgress[];
  /** Endpoints of the voters. */
  readonly voters: readonly Voter[];
}

/** The outcome of a change of the voters: NONE once it is committed. */
export interface VoterChange {
  readonly errorCode: ErrorCode;
  readonly errorMessage: string | null;
}

export interface MetadataQuorum {
  readonly nodeId: number;
  /** -1 while unknown. This node's own only from `onElected` to `onResigned`. */
  readonly leaderId: number;
  readonly epoch: number;
  /** Offset of the last record that is known to be committed, -1 when there is none. */
  readonly committedOffset: number;
  /** The newest voter set in this node's log, or without one the configured voters, with `uuidZero` as directory ids. */
  readonly voters: readonly Voter[];
  /**
   * Replays what is known to be committed, then takes part in the quorum. Resolves once the replay is done: a single
   * voter is the leader by then, one of several may not even know who is. Rejects with a text for people when the log or
   * the vote file cannot be used.
   */
  start(listener: QuorumListener): Promise<void>;
  /**
   * Appends records as one atomic batch and returns the offset of the last one; `onCommitted` reports it when it
   * counts. Leader only (asserts), at least one record. The caller keeps a batch below the log's size limit.
   */
  append(records: readonly MetadataRecord[]): number;
  describe(): QuorumDescription;
  /**
   * Makes an observer that has caught up a voter (KIP-853). Leader only: NOT_LEADER_OR_FOLLOWER; one change at a time.
   * Never rejects.
   */
  addVoter(voter: Voter, timeoutMs: number): Promise<VoterChange>;
  /** Takes a voter out; a leader that takes out itself resigns when that is committed. Never rejects. */
  removeVoter(voterId: number, voterDirectoryId: string, timeoutMs: number): Promise<VoterChange>;
  /**
   * Gives up leadership, if this node has it, and lets the voter that has most of the log stand for election at once
   * (EndQuorumEpoch); does not stand again before a restart. Resolves when the others have answered or cannot.
   */
  resign(): Promise<void>;
  /** Lets a flush under way finish and closes the log. Uncommitted appends may or may not survive. */
  close(): Promise<void>;
}
