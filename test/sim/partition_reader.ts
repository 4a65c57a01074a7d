/**
 * What a simulated consumer does with the partitions that it owns: reads on from what is committed, and commits. One
 * commit is under way at a time, unless everything before has been abandoned.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { ClientProcess } from './client_process.ts';
import type { ReplyTo } from './group_world.ts';

/** In whose name it commits. */
export interface Committer {
  readonly groupId: string;
  readonly topic: string;
  readonly apiVersion: number;
  readonly instanceId: string | null;
  readonly memberId: string;
  readonly generationId: number;
}

export class PartitionReader {
  /** Next offset to read of each partition that is owned; -1 until it is known. */
  readonly positions: Map<number, bigint> = new Map();
  /** Commits that were acknowledged since it was last set to 0. */
  commits = 0;
  readonly #process: ClientProcess;
  readonly #committer: () => Committer;
  readonly #onError: (error: ErrorCode) => void;
  #isCommitting: boolean = false;
  #life = 0;

  constructor(
    process: ClientProcess,
    committer: () => Committer,
    onError: (error: ErrorCode) => void,
  ) {
    this.#process = process;
    this.#committer = committer;
    this.#onError = onError;
  }

  /** Forgets all that it owns and all that is under way. */
  abandon(): void {
    this.positions.clear();
    this.#isCommitting = false;
    this.#life += 1;
  }

  /** Begins to work with nothing. */
  begin(): void {
    this.abandon();
    this.#work(this.#life);
  }

  add(partitions: readonly number[]): void {
    for (const partition of partitions) this.positions.set(partition, -1n);
    if (partitions.length > 0) this.#fetch(this.#life, partitions);
  }

  remove(partition: number): void {
    this.positions.delete(partition);
  }

  #fetch(life: number, partitions: readonly number[]): void {
    if (life !== this.#life) return;
    const { groupId, topic } = this.#committer();
    const topics = [{ name: topic, topicId: '', partitionIndexes: partitions }];
    const body = { groupId, memberId: null, memberEpoch: -1, topics };
    this.#process.ask({ api: 'OffsetFetch', body }, (answer) => {
      if (life !== this.#life) return;
      const reply = answer as ReplyTo<'OffsetFetch'> | null;
      if (reply === null || reply.errorCode !== ErrorCode.NONE) {
        this.#process.later(100, () => this.#fetch(life, partitions));
        return;
      }
      for (const { partitionIndex, committedOffset } of reply.topics[0]?.partitions ?? [])
        if (this.positions.get(partitionIndex) === -1n)
          this.positions.set(partitionIndex, committedOffset < 0n ? 0n : committedOffset);
    });
  }

  #work(life: number): void {
    if (life !== this.#life) return;
    const { random } = this.#process.world;
    this.#process.later(200 + random.below(2_000), () => this.#work(life));
    const known = [...this.positions].filter(([, position]) => position >= 0n);
    if (this.#isCommitting || known.length === 0) return;
    const partitions = known.map(([partitionIndex, position]) => {
      const committedOffset = position + BigInt(random.below(10));
      this.positions.set(partitionIndex, committedOffset);
      return { partitionIndex, committedOffset, committedLeaderEpoch: -1, committedMetadata: null };
    });
    const committer = this.#committer();
    const body = {
      groupId: committer.groupId,
      apiVersion: committer.apiVersion,
      generationIdOrMemberEpoch: committer.generationId,
      memberId: committer.memberId,
      groupInstanceId: committer.instanceId,
      retentionTimeMs: -1n,
      topics: [{ name: committer.topic, topicId: '', partitions }],
    };
    this.#isCommitting = true;
    this.#process.ask({ api: 'OffsetCommit', body }, (answer) => {
      if (life !== this.#life) return;
      this.#isCommitting = false;
      const reply = answer as ReplyTo<'OffsetCommit'> | null;
      const error = reply?.topics[0]?.partitions[0]?.errorCode;
      if (error === ErrorCode.NONE) this.commits += 1;
      else if (error !== undefined) this.#onError(error);
    });
  }
}
