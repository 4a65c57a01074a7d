/**
 * A leader's resignation: EndQuorumEpoch to all voters, with those first who have most of the log.
 *
 * Part of the Raft core: no IO, no clock.
 */
import type { Voter } from '../metadata/records.ts';
import type { RaftLeader } from './raft_leader.ts';
import { isSameReplica, keyOf, type RaftContext } from './raft_types.ts';

export class RaftFarewell {
  #token = -1;
  #awaited = 0;

  /** Everybody has answered, or never will. */
  get isTold(): boolean {
    return this.#awaited === 0;
  }

  say(context: RaftContext, leader: RaftLeader, token: number): void {
    const { config, log, clusterId } = context;
    const others = (log.voters ?? []).filter((voter) => !isSameReplica(voter, config.self));
    const endOf = (voter: Voter): number => leader.progressOf(keyOf(voter))?.endOffset ?? -1;
    const best = [...others].sort((one, other) => endOf(other) - endOf(one));
    const preferredCandidates = best.map(({ voterId, voterDirectoryId }) => ({
      candidateId: voterId,
      candidateDirectoryId: voterDirectoryId,
    }));
    this.#token = token;
    this.#awaited = others.length;
    for (const { voterId } of others)
      context.emit({
        type: 'send',
        to: voterId,
        token,
        request: {
          type: 'endQuorumEpoch',
          clusterId,
          leaderId: config.self.id,
          leaderEpoch: leader.epoch,
          preferredCandidates,
          leaderEndpoints: config.endpoints,
        },
        timeoutMs: config.timeouts.requestTimeoutMs,
      });
  }

  /** @returns whether that was the last answer */
  answered(token: number): boolean {
    if (token !== this.#token || this.#awaited === 0) return false;
    this.#awaited -= 1;
    return this.isTold;
  }
}
