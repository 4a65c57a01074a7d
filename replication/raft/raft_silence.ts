/**
 * Since when the leader of the metadata quorum has been silent, for the node that takes its place: its controller counts
 * that time as silence of the broker there. Without it a host that stops answering would have a whole session on top of
 * the time that the quorum needs to replace it.
 *
 * Part of the Raft core: no IO, no clock.
 *
 * Invariant: only what this node has seen itself counts. A leader that it knows by hearsay alone (KIP-996), and one that
 * led while this node was not there, have not been silent.
 */
import type { SilentNode } from '../metadata/broker_sessions.ts';
import type { RaftRequest } from './messages.ts';
import type { RaftContext } from './raft_types.ts';

/**
 * In fetch time-outs, the longest that a follower bears silence before it stands, with the pause for its rank. A node that
 * has been without a leader for longer may have been cut off while the others still heard from it, and all that those
 * vouch for with a pre-vote is one fetch time-out.
 */
const patienceMax = 1.25;

export class RaftSilence {
  readonly #context: RaftContext;
  /** Another node; null before the first one, and once this node has led. */
  #leaderId: number | null = null;
  #heardAtMs = Number.NEGATIVE_INFINITY;

  constructor(context: RaftContext) {
    this.#context = context;
  }

  /** A leader is known; perhaps the one before, whom others still hear. */
  follow(leaderId: number): void {
    if (leaderId === this.#leaderId) return;
    this.#leaderId = leaderId;
    this.#heardAtMs = Number.NEGATIVE_INFINITY;
  }

  /** A message of that node has come, whatever it says. */
  heard(nodeId: number, nowMs: number): void {
    if (nodeId === this.#leaderId) this.#heardAtMs = nowMs;
  }

  heardRequest(request: RaftRequest, nowMs: number): void {
    const isLeaders = request.type === 'beginQuorumEpoch' || request.type === 'endQuorumEpoch';
    this.heard(isLeaders ? request.leaderId : request.replicaId, nowMs);
  }

  /** This node leads from now on. Returns who led before; null without one that this node has heard. */
  end(nowMs: number): SilentNode | null {
    const nodeId = this.#leaderId;
    const heardAtMs = this.#heardAtMs;
    this.#leaderId = null;
    if (nodeId === null || heardAtMs === Number.NEGATIVE_INFINITY) return null;
    const { fetchTimeoutMs } = this.#context.config.timeouts;
    return { nodeId, sinceMs: Math.max(heardAtMs, nowMs - fetchTimeoutMs * patienceMax) };
  }
}
