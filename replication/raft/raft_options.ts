/** What a `RaftQuorum` is made with. */
import type { Random } from '../../engine/ports.ts';
import type { MetadataRecordCodec, Voter } from '../metadata/records.ts';
import type { RaftTransport } from './messages.ts';
import type { MetadataLogStore } from './metadata_log_store.ts';
import type { QuorumStateStore } from './quorum_state.ts';
import type { SnapshotSettings } from './raft_snapshots.ts';
import type { ConfiguredVoter, RaftRule, RaftTimeouts } from './raft_types.ts';

export interface RaftTimers {
  /** Monotonic ms. */
  now(): number;
  /** Calls `run` once, in a later turn. Returns what prevents it. */
  setTimer(ms: number, run: () => void): () => void;
}

export interface RaftQuorumOptions {
  /**
   * This node. Its directory id (`meta.properties`) must be on stable storage before: it tells the node from an empty
   * newcomer with the same number. Endpoints: where it serves the quorum's requests; none for a single voter.
   */
  readonly self: Voter;
  /** `controller.quorum.voters`; empty where the key is missing: then this node is the only voter. */
  readonly configuredVoters: readonly ConfiguredVoter[];
  /** Of the cluster that this node belongs to (`meta.properties`), '' for none yet. */
  readonly clusterId: string;
  /** Of a cluster that this node founds. */
  readonly newClusterId: string;
  /** Fulfilled when the id is on stable storage; called once, and only for a node without one and with an empty log. */
  readonly onClusterId: (clusterId: string) => Promise<void>;
  readonly store: MetadataLogStore;
  readonly stateStore: QuorumStateStore;
  /** null: none are written or taken, the log has everything. */
  readonly snapshots: SnapshotSettings | null;
  readonly codec: MetadataRecordCodec;
  /** null: none is needed, the node is its only voter. */
  readonly transport: RaftTransport | null;
  readonly timers: RaftTimers;
  readonly random: Pick<Random, 'next'>;
  readonly timeouts: RaftTimeouts;
  readonly wallMs: () => number;
  /** Something odd that does no harm, for the log. */
  readonly onWarning: (message: string) => void;
  readonly without?: RaftRule;
}
