/**
 * One round of asking for votes: a pre-vote (KIP-996), which binds nobody, or the vote of a new term.
 *
 * Part of the Raft core: no IO, no clock.
 */
import type { Voter } from '../metadata/records.ts';
import type { VoteReply } from './messages.ts';
import { majorityOf } from './raft_leader.ts';
import { isSameReplica, type RaftContext } from './raft_types.ts';

export class RaftElection {
  /** Who is asked, this node included. */
  readonly voters: readonly Voter[];
  readonly token: number;
  readonly untilMs: number;
  /** The very first term takes all voters: see `RaftFormation`. */
  readonly #needed: number;
  readonly #granted = new Set<number>();
  readonly #lost = new Set<number>();

  constructor(voters: readonly Voter[], token: number, untilMs: number, needed: number | null) {
    this.voters = voters;
    this.token = token;
    this.untilMs = untilMs;
    this.#needed = needed ?? majorityOf(voters.length);
  }

  get isWon(): boolean {
    return this.#granted.size >= this.#needed;
  }

  /** So many have refused or cannot be reached that it cannot be won any more. */
  get isLost(): boolean {
    return this.voters.length - this.#lost.size < this.#needed;
  }

  /** Asks the others. */
  begin(context: RaftContext, epoch: number, preVote: boolean): void {
    const { config, log, clusterId } = context;
    for (const voter of this.voters) {
      if (isSameReplica(voter, config.self)) continue;
      context.emit({
        type: 'send',
        to: voter.voterId,
        token: this.token,
        request: {
          type: 'vote',
          clusterId,
          voterId: voter.voterId,
          voterDirectoryId: voter.voterDirectoryId,
          replicaEpoch: epoch,
          replicaId: config.self.id,
          replicaDirectoryId: config.self.directoryId,
          lastOffsetEpoch: log.lastEpoch,
          lastOffset: log.endOffset,
          preVote,
        },
        timeoutMs: config.timeouts.requestTimeoutMs,
      });
    }
  }

  grant(voterId: number): void {
    this.#granted.add(voterId);
  }

  answered(voterId: number, reply: VoteReply | null): void {
    if (reply?.voteGranted) this.#granted.add(voterId);
    else this.#lost.add(voterId);
  }
}
