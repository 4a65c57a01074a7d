/** What those parts of the core that judge messages see of the node, and may have it do. */
import type { RaftElection } from './raft_election.ts';
import type { RaftFollower } from './raft_follower.ts';
import type { RaftFormation } from './raft_formation.ts';
import type { RaftLeader } from './raft_leader.ts';
import type { RaftPatience } from './raft_patience.ts';
import type { RaftTerm } from './raft_term.ts';
import type { RaftContext } from './raft_types.ts';

export interface RaftNode extends RaftContext {
  readonly term: RaftTerm;
  readonly epoch: number;
  /** -1 while unknown. */
  readonly leaderId: number;
  readonly patience: RaftPatience;
  readonly formation: RaftFormation;
  /** At most one of the four is not null or false: the present role. */
  readonly leader: RaftLeader | null;
  readonly follower: RaftFollower | null;
  readonly election: RaftElection | null;
  readonly isUnattached: boolean;
  /** Somebody names a leader (-1: none) in a term. */
  hearOf(leaderId: number, epoch: number, nowMs: number): void;
  /** A later term, begun by somebody else. */
  enterEpoch(epoch: number, leaderId: number, nowMs: number): void;
  /** Unattached until `standAtMs`. */
  wait(standAtMs: number): void;
  setLeader(leaderId: number): void;
  /** The leader is gone or silent, or says that it leads no longer. */
  leaderGone(nowMs: number): void;
  commitAsFollower(follower: RaftFollower): void;
  adoptCluster(clusterId: string): void;
}
