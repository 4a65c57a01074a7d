/**
 * What the members of a metadata quorum say to each other: Kafka's RPCs (KIP-595, KIP-853, KIP-996) as plain objects,
 * fields named as in the newest version of their schemas, the one partition that there is left out.
 *
 * Offsets are numbers below 2^53, ids of directories and clusters Kafka's 22-character texts, times milliseconds. A
 * cluster id is '' (null in Kafka's messages) while the node belongs to no cluster.
 */
import type { ErrorCode } from '../../engine/error_code.gen.ts';
import type { Voter } from '../metadata/records.ts';

export type Endpoints = Voter['endpoints'];

/** A replica is known by its number and the id of the directory that its log lies in. */
export interface ReplicaKey {
  readonly id: number;
  readonly directoryId: string;
}

export interface VoteRequest {
  readonly type: 'vote';
  readonly clusterId: string;
  /** The receiver: who is asked under a directory id that is not its own does not vote. */
  readonly voterId: number;
  readonly voterDirectoryId: string;
  readonly replicaEpoch: number;
  readonly replicaId: number;
  readonly replicaDirectoryId: string;
  readonly lastOffsetEpoch: number;
  /** End offset of the candidate's log, as Kafka has it. */
  readonly lastOffset: number;
  readonly preVote: boolean;
}

export interface BeginQuorumEpochRequest {
  readonly type: 'beginQuorumEpoch';
  readonly clusterId: string;
  readonly voterId: number;
  readonly voterDirectoryId: string;
  readonly leaderId: number;
  readonly leaderEpoch: number;
  readonly leaderEndpoints: Endpoints;
}

export interface EndQuorumEpochRequest {
  readonly type: 'endQuorumEpoch';
  readonly clusterId: string;
  readonly leaderId: number;
  readonly leaderEpoch: number;
  /** Who should stand for election, the best first. */
  readonly preferredCandidates: readonly {
    readonly candidateId: number;
    readonly candidateDirectoryId: string;
  }[];
  readonly leaderEndpoints: Endpoints;
}

export interface FetchRequest {
  readonly type: 'fetch';
  readonly clusterId: string;
  readonly replicaId: number;
  readonly replicaDirectoryId: string;
  readonly currentLeaderEpoch: number;
  /** Everything below is on the follower's stable storage. */
  readonly fetchOffset: number;
  /** Epoch of the record before `fetchOffset`, 0 when there is none. */
  readonly lastFetchedEpoch: number;
  /** What the follower knows (KIP-1166): news of it is worth an answer without records. -1 when it knows none. */
  readonly highWatermark: number;
  readonly maxWaitMs: number;
  readonly maxBytes: number;
}

export interface SnapshotId {
  readonly endOffset: number;
  readonly epoch: number;
}

export interface FetchSnapshotRequest {
  readonly type: 'fetchSnapshot';
  readonly clusterId: string;
  readonly replicaId: number;
  readonly replicaDirectoryId: string;
  readonly currentLeaderEpoch: number;
  readonly snapshotId: SnapshotId;
  /** In bytes. */
  readonly position: number;
  readonly maxBytes: number;
}

/**
 * A node with an empty log asks the others who they are (not one of Kafka's RPCs). Only when all of the configured
 * voters have answered and all are empty does one of them stand for the first election.
 */
export interface FormationRequest {
  readonly type: 'formation';
  readonly replicaId: number;
  readonly replicaDirectoryId: string;
  readonly clusterId: string;
  /** `controller.quorum.voters` of the asker, in ascending order. */
  readonly voterIds: readonly number[];
}

export type RaftRequest =
  | VoteRequest
  | BeginQuorumEpochRequest
  | EndQuorumEpochRequest
  | FetchRequest
  | FetchSnapshotRequest
  | FormationRequest;

interface LeaderNews {
  readonly errorCode: ErrorCode;
  /** -1 while unknown. */
  readonly leaderId: number;
  readonly leaderEpoch: number;
}

export interface VoteReply extends LeaderNews {
  readonly type: 'vote';
  readonly voteGranted: boolean;
}

export interface BeginQuorumEpochReply extends LeaderNews {
  readonly type: 'beginQuorumEpoch';
}

export interface EndQuorumEpochReply extends LeaderNews {
  readonly type: 'endQuorumEpoch';
}

/** With an error code of its own, or one of: where histories part, the snapshot to begin with, records (may be empty). */
export interface FetchReply extends LeaderNews {
  readonly type: 'fetch';
  /** Offset behind the last committed record; -1 when the leader does not know it yet. */
  readonly highWatermark: number;
  readonly logStartOffset: number;
  readonly divergingEpoch: { readonly epoch: number; readonly endOffset: number } | null;
  readonly snapshotId: SnapshotId | null;
  /** Whole batches from the fetch offset on. The receiver of the reply owns the memory. */
  readonly records: Uint8Array;
}

export interface FetchSnapshotReply extends LeaderNews {
  readonly type: 'fetchSnapshot';
  readonly snapshotId: SnapshotId;
  /** Of the whole snapshot, in bytes. */
  readonly size: number;
  readonly position: number;
  readonly unalignedRecords: Uint8Array;
}

export interface FormationReply extends LeaderNews {
  readonly type: 'formation';
  readonly replicaId: number;
  readonly replicaDirectoryId: string;
  readonly clusterId: string;
  readonly voterIds: readonly number[];
  /** The log has nothing in it: the answering node belongs to no cluster yet. */
  readonly isEmpty: boolean;
}

export type RaftReply =
  | VoteReply
  | BeginQuorumEpochReply
  | EndQuorumEpochReply
  | FetchReply
  | FetchSnapshotReply
  | FormationReply;

/** 'refused': nobody listens there, so the process is gone; 'closed': the connection broke; 'timeout': silence. */
export interface RaftFailure {
  readonly type: 'failure';
  readonly reason: 'refused' | 'closed' | 'timeout';
}

export interface RaftTransport {
  /**
   * One reply or failure for each request, in any order, in a later turn. A request whose reply names another type than
   * its own is a failure. `timeoutMs` counts from the call.
   */
  send(
    toNodeId: number,
    request: RaftRequest,
    timeoutMs: number,
    done: (reply: RaftReply | RaftFailure) => void,
  ): void;
  /** Where voters listen that the configuration does not name, as the log says. */
  learn(voters: readonly Voter[]): void;
}
