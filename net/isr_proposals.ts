/**
 * Carries what a shard's leaders ask of the controller about their replicas in sync: all that comes in a turn, or while
 * a request is under way, in one request.
 *
 * Thread: the shard's own. Concurrency: one request at a time. A request without an answer is asked again by those who
 * are still interested.
 */
import { ErrorCode } from '../engine/error_code.gen.ts';
import type { Clock } from '../engine/ports.ts';
import type {
  AlteredPartition,
  AlterPartitionRequest,
  PartitionToAlter,
} from '../replication/metadata/controller_api.ts';
import type { IsrProposal } from '../replication/partition/isr.ts';
import type { PartitionLeader } from '../replication/partition/leader.ts';
import type { QuorumRequests } from './quorum_client.ts';

export interface IsrProposalsOptions {
  readonly quorum: Pick<QuorumRequests, 'alterPartition'>;
  readonly clock: Clock;
}

interface Asked {
  readonly leader: PartitionLeader;
  readonly proposal: IsrProposal;
}

const timeoutMs = 5_000;
/** Before what was not answered is asked again. */
const retryMs = 100;

export class IsrProposals {
  readonly #options: IsrProposalsOptions;
  #waiting: Asked[] = [];
  #isAsking: boolean = false;

  constructor(options: IsrProposalsOptions) {
    this.#options = options;
  }

  propose(leader: PartitionLeader, proposal: IsrProposal): void {
    this.#waiting.push({ leader, proposal });
    if (this.#isAsking) return;
    this.#isAsking = true;
    // The other partitions of a fetch come within this turn.
    queueMicrotask(() => void this.#askAll());
  }

  async #askAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const asked = this.#waiting;
      this.#waiting = [];
      await this.#ask(asked);
    }
    this.#isAsking = false;
  }

  async #ask(asked: readonly Asked[]): Promise<void> {
    const reply = await this.#options.quorum.alterPartition(topicsOf(asked), timeoutMs);
    const found = reply.errorCode === ErrorCode.NONE ? reply.result.topics : [];
    const answers = new Map<string, AlteredPartition>();
    for (const { topicId, partitions } of found)
      for (const one of partitions) answers.set(`${topicId}/${one.partitionIndex}`, one);
    const unanswered: Asked[] = [];
    for (const one of asked) {
      const { leader, proposal } = one;
      const answer = answers.get(`${proposal.topicId}/${proposal.partition}`) ?? null;
      if (answer === null) unanswered.push(one);
      leader.proposalAnswered(proposal, answer);
    }
    if (unanswered.length > 0) this.#retryLater(unanswered);
  }

  #retryLater(unanswered: readonly Asked[]): void {
    const timer = setTimeout(() => {
      const nowMs = this.#options.clock.monotonicMs();
      for (const { leader } of unanswered) leader.tick(nowMs);
    }, retryMs);
    timer.unref();
  }
}

function topicsOf(asked: readonly Asked[]): AlterPartitionRequest['topics'] {
  const topics = new Map<string, Map<number, PartitionToAlter>>();
  for (const { proposal } of asked) {
    const { topicId, partition, leaderEpoch, partitionEpoch, newIsr } = proposal;
    const partitions = topics.get(topicId) ?? new Map<number, PartitionToAlter>();
    topics.set(topicId, partitions);
    // Of two for a partition the later one counts.
    partitions.set(partition, {
      partitionIndex: partition,
      leaderEpoch,
      partitionEpoch,
      newIsr,
      leaderRecoveryState: 0,
    });
  }
  return [...topics].map(([topicId, partitions]) => ({
    topicId,
    partitions: [...partitions.values()],
  }));
}
