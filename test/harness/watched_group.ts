/** A group that reads a topic while its coordinators die: whether its members read everything, and where they begin. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from './cluster.ts';
import { PositionWatch, type WatchedMember } from './position_watch.ts';

/** A member that leaves when it is told to. */
export interface GroupParticipant extends WatchedMember {
  /** Why it has ended before its time, if it has. */
  readonly failure: Error | null;
  /** How often what it has has changed. */
  readonly rebalances: number;
  /** Leaves in good order; rejects with `failure`. */
  leave(): Promise<void>;
  close(): Promise<void>;
}

export interface WatchedGroupOptions {
  readonly group: string;
  readonly topic: string;
  readonly partitions: number;
  /** How long the group may take to get anywhere. */
  readonly backMs: number;
}

export class WatchedGroup {
  readonly members: readonly GroupParticipant[];
  readonly #watch: PositionWatch;
  readonly #options: WatchedGroupOptions;
  readonly #offsets: readonly Set<number>[];
  readonly #ends: number[];
  /** Events of each member that are in those. */
  readonly #seen: number[];

  constructor(
    cluster: Cluster,
    members: readonly GroupParticipant[],
    options: WatchedGroupOptions,
  ) {
    const { group, topic, partitions } = options;
    this.members = members;
    this.#options = options;
    this.#watch = new PositionWatch(cluster, group, topic, members);
    this.#offsets = Array.from({ length: partitions }, () => new Set<number>());
    this.#ends = this.#offsets.map(() => 0);
    this.#seen = members.map(() => 0);
  }

  /** How often committed positions have been looked at. */
  get looks(): number {
    return this.#watch.looks;
  }

  /** Throws what a member has ended with, or what is wrong with the positions. */
  assertHealthy(): void {
    for (const { failure } of this.members) if (failure !== null) throw failure;
    this.#watch.assertHealthy();
  }

  /** Resolves when there is no record before `ends`, by partition, that nobody has processed. */
  async processedUntil(ends: readonly number[]): Promise<void> {
    const { group, backMs } = this.#options;
    const deadline = performance.now() + backMs;
    for (;;) {
      this.assertHealthy();
      const processed = this.#processed();
      if (ends.every((end, partition) => processed[partition]! >= end)) return;
      if (performance.now() > deadline)
        throw new Error(
          `${group}: all is processed up to ${processed}, not up to ${ends}:\n${this.members.map(({ state }) => state).join('\n')}`,
        );
      await sleep(100);
    }
  }

  /** All leave in good order, and everything is committed. */
  async finish(ends: readonly number[]): Promise<void> {
    await this.processedUntil(ends);
    await this.#watch.stop();
    this.assertHealthy();
    await Promise.all(this.members.map((member) => member.leave()));
    const committed = await this.#watch.committed();
    assert.deepEqual(
      ends.map((_, partition) => committed.get(partition)),
      ends,
    );
  }

  async close(): Promise<void> {
    await this.#watch.stop();
    await Promise.all(this.members.map((member) => member.close()));
  }

  /** Up to where, by partition, every record has been processed by some member. */
  #processed(): readonly number[] {
    for (const [at, { events }] of this.members.entries()) {
      for (const event of events.slice(this.#seen[at]))
        if ('partition' in event) this.#offsets[event.partition]?.add(event.offset);
      this.#seen[at] = events.length;
    }
    for (const [partition, offsets] of this.#offsets.entries())
      while (offsets.has(this.#ends[partition]!)) this.#ends[partition]! += 1;
    return this.#ends;
  }
}
