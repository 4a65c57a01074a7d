/**
 * Which shard each partition lives on, as main has told this thread, and what this thread knows of those on others.
 *
 * Thread: one table on each shard, its own. Changed by main's messages and when a topic goes; main tells of a partition
 * before the metadata that creates it. Nothing of it is on disk: every start places anew.
 */
import assert from 'node:assert/strict';
import type { Awaited } from '../../engine/awaited.ts';

/** A partition on some shard. One object for the partition's life, so that requests can wait under it. */
export interface PlacedPartition extends Awaited {
  readonly topicId: string;
  readonly partition: number;
  readonly shard: number;
  /** What threads call it among themselves; unique while the process runs. */
  readonly number: number;
  /** How often its shard has said that there is more to read. */
  moves: number;
}

/** Of one topic, as it crosses threads: partition `partitions[k]` is on `shards[k]` under `numbers[k]`. */
export interface TopicPlacement {
  readonly topicId: string;
  readonly partitions: readonly number[];
  readonly shards: readonly number[];
  readonly numbers: readonly number[];
}

export class Placements {
  readonly shard: number;
  /** A lone shard owns everything, and main does not tell it so. */
  readonly #isAlone: boolean;
  readonly #byTopic = new Map<string, (PlacedPartition | undefined)[]>();
  readonly #byNumber = new Map<number, PlacedPartition>();

  /**
   * @param shard this thread's number, from 0
   * @param threadCount of the broker's fabric: its shards, and the replication thread where there is one
   */
  constructor(shard: number, threadCount: number) {
    this.shard = shard;
    this.#isAlone = threadCount === 1;
  }

  add(topics: readonly TopicPlacement[]): void {
    for (const { topicId, partitions, shards, numbers } of topics) {
      const placed = this.#byTopic.get(topicId) ?? [];
      this.#byTopic.set(topicId, placed);
      partitions.forEach((partition, k) => {
        assert(placed[partition] === undefined, `${topicId}-${partition} is placed twice`);
        const [shard, number] = [shards[k]!, numbers[k]!];
        const one = { topicId, partition, shard, number, moves: 0, waiters: null };
        placed[partition] = one;
        this.#byNumber.set(number, one);
      });
    }
  }

  /** The topic is deleted. */
  remove(topicId: string): void {
    for (const one of this.#byTopic.get(topicId) ?? [])
      if (one !== undefined) this.#byNumber.delete(one.number);
    this.#byTopic.delete(topicId);
  }

  find(topicId: string, partition: number): PlacedPartition | undefined {
    return this.#byTopic.get(topicId)?.[partition];
  }

  byNumber(number: number): PlacedPartition | undefined {
    return this.#byNumber.get(number);
  }

  isOurs(topicId: string, partition: number): boolean {
    return this.#isAlone || this.find(topicId, partition)?.shard === this.shard;
  }
}
