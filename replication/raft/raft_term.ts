/**
 * The term and this node's vote in it. The term never falls; in a term there is one vote, and every change is handed out
 * as `persist` before anything that rests on it.
 *
 * Part of the Raft core: no IO, no clock.
 */
import assert from 'node:assert/strict';
import { uuidZero } from '../metadata/records.ts';
import type { ReplicaKey, VoteRequest } from './messages.ts';
import type { QuorumState } from './quorum_state.ts';
import type { RaftContext } from './raft_types.ts';

export class RaftTerm {
  readonly #context: RaftContext;
  #epoch: number;
  #voted: ReplicaKey | null;

  /** @param stored the vote file; the term of the log's last batch counts as well */
  constructor(context: RaftContext, stored: QuorumState) {
    const { leaderEpoch, votedId: id, votedDirectoryId: directoryId } = stored;
    this.#context = context;
    this.#epoch = Math.max(leaderEpoch, context.log.lastEpoch);
    this.#voted = id >= 0 && this.#epoch === leaderEpoch ? { id, directoryId } : null;
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** A later term, begun by somebody else. @param leaderId -1 while unknown */
  enter(epoch: number, leaderId: number): void {
    assert(epoch > this.#epoch, `from term ${this.#epoch} to term ${epoch}`);
    this.#epoch = epoch;
    this.#voted = null;
    this.#persist(leaderId);
  }

  /** The next term, with this node's vote for itself. @param leaderId its own when nobody else has a vote, else -1 */
  stand(leaderId: number): void {
    this.#epoch += 1;
    this.#voted = this.#context.config.self;
    this.#persist(leaderId);
  }

  hasVotedFor({ replicaId, replicaDirectoryId }: VoteRequest): boolean {
    return this.#voted?.id === replicaId && this.#voted.directoryId === replicaDirectoryId;
  }

  get hasVoted(): boolean {
    return this.#voted !== null;
  }

  voteFor({ replicaId: id, replicaDirectoryId: directoryId }: VoteRequest): void {
    assert(this.#voted === null, `a second vote in term ${this.#epoch}`);
    this.#voted = { id, directoryId };
    this.#persist(-1);
  }

  #persist(leaderId: number): void {
    this.#context.emit({
      type: 'persist',
      state: {
        leaderId,
        leaderEpoch: this.#epoch,
        votedId: this.#voted?.id ?? -1,
        votedDirectoryId: this.#voted?.directoryId ?? uuidZero,
      },
    });
  }
}
