/**
 * How long a node without a leader waits before it stands for election: longer the more often it has failed, and by its
 * rank among the voters, so that those who lose a leader at the same time do not take each other's votes.
 *
 * Part of the Raft core: no IO, no clock.
 */
import { isSameReplica, type RaftContext } from './raft_types.ts';

/** From rank to rank: enough for a pre-vote and a vote with its flush. */
export const rankPauseMs = 30;
const backoffFirstMs = 10;

export class RaftPatience {
  readonly #context: RaftContext;
  /** Elections lost and leaders found gone since a leader was last heard of. */
  #failures = 0;

  constructor(context: RaftContext) {
    this.#context = context;
  }

  failed(): void {
    this.#failures += 1;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  /** @param goneLeaderId who led until now and will not stand, or -1 */
  pauseMs(goneLeaderId: number): number {
    const { config, log } = this.#context;
    const { electionBackoffMaxMs } = config.timeouts;
    const left = (log.voters ?? []).filter(({ voterId }) => voterId !== goneLeaderId);
    const rank = left.findIndex((voter) => isSameReplica(voter, config.self));
    const jitterMs = (config.random() * rankPauseMs) / 2;
    const backoffMs = this.#failures === 0 ? 0 : backoffFirstMs * 2 ** Math.min(this.#failures, 16);
    const cappedMs = Math.min(electionBackoffMaxMs, backoffMs) * (0.5 + config.random() / 2);
    return Math.max(0, rank) * rankPauseMs + jitterMs + cappedMs;
  }

  /** While somebody else's election is under way. */
  othersTurnMs(): number {
    const { config } = this.#context;
    return config.timeouts.electionTimeoutMs * (0.5 + config.random() / 2);
  }
}
