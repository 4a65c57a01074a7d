/** What the Raft core is told, what it wants done, and what it is set up with. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { SilentNode } from '../metadata/broker_sessions.ts';
import type { QuorumControlRecord, Voter } from '../metadata/records.ts';
import type {
  Endpoints,
  FetchReply,
  FetchSnapshotRequest,
  RaftFailure,
  RaftReply,
  RaftRequest,
  ReplicaKey,
  SnapshotId,
} from './messages.ts';
import type { VoterChange } from './quorum.ts';
import type { QuorumState } from './quorum_state.ts';

/** Rules that a test may switch off, to prove that it would notice if they were missing. */
export type RaftRule =
  | 'votes are persisted'
  | 'flush before fetch'
  | 'all voters form'
  | 'own term commits';

/** Kafka's `controller.quorum.…` settings, in ms. */
export interface RaftTimeouts {
  /** How long a follower bears a silent leader, and a leader a silent majority (half as long again). */
  readonly fetchTimeoutMs: number;
  /** How long an election may take. */
  readonly electionTimeoutMs: number;
  readonly electionBackoffMaxMs: number;
  readonly requestTimeoutMs: number;
}

export interface ConfiguredVoter {
  readonly voterId: number;
  readonly endpoints: Endpoints;
}

export interface RaftConfig {
  readonly self: ReplicaKey;
  /** Where this node serves the quorum's requests. */
  readonly endpoints: Endpoints;
  /** `controller.quorum.voters` in ascending order; this node alone where the key is missing. */
  readonly configuredVoters: readonly ConfiguredVoter[];
  readonly timeouts: RaftTimeouts;
  /** Of a snapshot, in one answer. */
  readonly snapshotBytesMax: number;
  /** From 0 up to, not including, 1. */
  readonly random: () => number;
  /** For a cluster that this node founds, when none of the founders belongs to one yet. */
  readonly newClusterId: string;
  readonly without: RaftRule | null;
}

/** The metadata log as the core sees it. All effects of a step have been applied to it before the next one. */
export interface RaftLogView {
  /** What is below is in a snapshot. */
  readonly startOffset: number;
  /** The newest one. Invariant: it ends at or behind `startOffset`, which is 0 without one. */
  readonly snapshotId: SnapshotId | null;
  readonly endOffset: number;
  /** Everything below is on stable storage here. */
  readonly flushedOffset: number;
  /** 0 when the log is empty. */
  readonly lastEpoch: number;
  /** The newest voter set in the log, committed or not. */
  readonly voters: readonly Voter[] | null;
  /** Offset of the record with it, -1 without one. */
  readonly votersOffset: number;
  endOffsetForEpoch(epoch: number): { readonly epoch: number; readonly endOffset: number };
}

export type RaftEvent =
  | { readonly type: 'start' }
  | { readonly type: 'tick' }
  | { readonly type: 'request'; readonly requestId: number; readonly request: RaftRequest }
  /** `token` as the `send` had it. */
  | {
      readonly type: 'reply';
      readonly from: number;
      readonly token: number;
      readonly request: RaftRequest;
      readonly reply: RaftReply | RaftFailure;
    }
  /** The newest `persist` is on stable storage. */
  | { readonly type: 'persisted' }
  /** `flushedOffset` of the log has grown. */
  | { readonly type: 'flushed' }
  /** A snapshot from the leader has taken the log's place… */
  | { readonly type: 'snapshotInstalled'; readonly id: SnapshotId }
  /** …or could not. */
  | { readonly type: 'snapshotFailed'; readonly id: SnapshotId }
  /** The disk had no room; the log has gone back to what it could keep. */
  | { readonly type: 'noRoom' }
  | { readonly type: 'resign' }
  | {
      readonly type: 'changeVoters';
      readonly changeId: number;
      readonly kind: 'add' | 'remove';
      readonly voter: Voter;
      readonly timeoutMs: number;
    };

/**
 * In this order. `send` and `reply` wait until every `persist` and `adoptCluster` before them is on stable storage; the
 * others are done at once.
 */
export type RaftEffect =
  | { readonly type: 'persist'; readonly state: QuorumState }
  | { readonly type: 'adoptCluster'; readonly clusterId: string }
  | {
      readonly type: 'send';
      readonly to: number;
      readonly token: number;
      readonly request: RaftRequest;
      readonly timeoutMs: number;
    }
  | { readonly type: 'reply'; readonly requestId: number; readonly reply: RaftReply }
  /** A reply that takes whole batches along, from `fromOffset` up to what is flushed, at most `maxBytes` but one batch. */
  | {
      readonly type: 'replyRecords';
      readonly requestId: number;
      readonly reply: FetchReply;
      readonly fromOffset: number;
      readonly maxBytes: number;
    }
  /** A reply that takes along the piece of a snapshot that is asked for, or says that there is none. */
  | {
      readonly type: 'replySnapshot';
      readonly requestId: number;
      readonly request: FetchSnapshotRequest;
    }
  /** The next piece of a snapshot of the leader; the last one ends at `size`, and has an event follow. */
  | {
      readonly type: 'keepSnapshot';
      readonly id: SnapshotId;
      readonly size: number;
      readonly position: number;
      readonly bytes: Uint8Array;
    }
  /** One batch of the quorum's own records, in the current epoch, at the log's end. */
  | { readonly type: 'appendControl'; readonly records: readonly QuorumControlRecord[] }
  /** Batches of the leader, which have not been looked at yet. */
  | { readonly type: 'appendFetched'; readonly records: Uint8Array }
  | { readonly type: 'truncate'; readonly endOffset: number }
  /** Everything below is committed. */
  | { readonly type: 'commit'; readonly endOffset: number }
  /** Leads, and has committed all that was in the log before; the next record stands at the log's end. */
  | { readonly type: 'elected'; readonly epoch: number; readonly silent: SilentNode | null }
  /** After `elected`. */
  | { readonly type: 'resigned' }
  | { readonly type: 'leaderChanged'; readonly leaderId: number; readonly epoch: number }
  | { readonly type: 'votersChanged'; readonly changeId: number; readonly result: VoterChange }
  | { readonly type: 'resignationTold' }
  | { readonly type: 'warn'; readonly message: string };

/** What the parts of the core share. */
export interface RaftContext {
  readonly config: RaftConfig;
  readonly log: RaftLogView;
  readonly clusterId: string;
  emit(effect: RaftEffect): void;
}

export function isSameReplica(voter: Voter, key: ReplicaKey): boolean {
  return voter.voterId === key.id && voter.voterDirectoryId === key.directoryId;
}

export function keyOf(voter: Voter): ReplicaKey {
  return { id: voter.voterId, directoryId: voter.voterDirectoryId };
}

export function changeOf(errorCode: ErrorCode, errorMessage: string | null): VoterChange {
  return { errorCode, errorMessage };
}

/** The outcome for whoever asks a node that does not lead. */
export const notLeading: VoterChange = changeOf(
  ErrorCode.NOT_LEADER_OR_FOLLOWER,
  'This node does not lead the metadata quorum.',
);
