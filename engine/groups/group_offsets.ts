/**
 * The committed offsets of one group.
 *
 * Thread and concurrency: as `GroupCoordinator`. Durability: only what is committed to the log is in here; what is on its
 * way is counted, so that it is neither expired nor forgotten when the group is deleted.
 */
import assert from 'node:assert/strict';
import type { OffsetCommitKey, OffsetCommitValue } from './group_records.ts';

export class GroupOffsets {
  readonly groupId: string;
  /** Invariant: no empty maps within. */
  readonly #topics = new Map<string, Map<number, OffsetCommitValue>>();
  /** How many commits of a partition are on their way. Invariant: all above 0, no empty maps within. */
  readonly #underWay = new Map<string, Map<number, number>>();

  #count = 0;

  constructor(groupId: string) {
    this.groupId = groupId;
  }

  /** How many partitions have an offset. */
  get count(): number {
    return this.#count;
  }

  get hasUnderWay(): boolean {
    return this.#underWay.size > 0;
  }

  get topics(): ReadonlyMap<string, ReadonlyMap<number, OffsetCommitValue>> {
    return this.#topics;
  }

  get(topic: string, partition: number): OffsetCommitValue | undefined {
    return this.#topics.get(topic)?.get(partition);
  }

  isUnderWay(topic: string, partition: number): boolean {
    return this.#underWay.get(topic)?.has(partition) ?? false;
  }

  /** Takes over a record that is committed; null: the offset is gone. */
  apply({ topic, partition }: OffsetCommitKey, value: OffsetCommitValue | null): void {
    const partitions = this.#topics.get(topic);
    if (value !== null) {
      if (partitions?.has(partition) !== true) this.#count += 1;
      if (partitions === undefined) this.#topics.set(topic, new Map([[partition, value]]));
      else partitions.set(partition, value);
      return;
    }
    if (partitions?.delete(partition) === true) this.#count -= 1;
    if (partitions?.size === 0) this.#topics.delete(topic);
  }

  begin({ topic, partition }: OffsetCommitKey): void {
    let counts = this.#underWay.get(topic);
    if (counts === undefined) {
      counts = new Map();
      this.#underWay.set(topic, counts);
    }
    counts.set(partition, (counts.get(partition) ?? 0) + 1);
  }

  end({ topic, partition }: OffsetCommitKey): void {
    const counts = this.#underWay.get(topic);
    const count = counts?.get(partition);
    assert(counts && count, `no commit of ${topic}-${partition} is under way`);
    if (count > 1) {
      counts.set(partition, count - 1);
      return;
    }
    counts.delete(partition);
    if (counts.size === 0) this.#underWay.delete(topic);
  }

  /** All partitions that have an offset or are about to; of one topic, or of all. */
  keys(topic: string | null): OffsetCommitKey[] {
    const group = this.groupId;
    const keys: OffsetCommitKey[] = [];
    const names =
      topic === null ? new Set([...this.#topics.keys(), ...this.#underWay.keys()]) : [topic];
    for (const name of names) {
      const stored = this.#topics.get(name);
      for (const partition of stored?.keys() ?? []) keys.push({ group, topic: name, partition });
      for (const partition of this.#underWay.get(name)?.keys() ?? [])
        if (stored?.has(partition) !== true) keys.push({ group, topic: name, partition });
    }
    return keys;
  }
}
