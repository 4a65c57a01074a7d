/**
 * The partitions that this shard owns, by what requests call them: topic name or topic id, and number.
 *
 * Thread: the shard's own. Changed only when a metadata delta is applied, never while a request looks up.
 */
import assert from 'node:assert/strict';
import type { PartitionLeader } from '../replication/partition/leader.ts';

type Topic = (PartitionLeader | undefined)[];

export class PartitionTable {
  readonly #byName = new Map<string, Topic>();
  readonly #byId = new Map<string, Topic>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(leader: PartitionLeader): void {
    let topic = this.#byId.get(leader.topicId);
    if (topic === undefined) {
      topic = [];
      this.#byId.set(leader.topicId, topic);
      this.#byName.set(leader.topic, topic);
    }
    assert(topic[leader.partition] === undefined, `${leader.topic}-${leader.partition} twice`);
    topic[leader.partition] = leader;
    this.#size += 1;
  }

  /** Takes a partition out and returns it; undefined when this shard does not own it. */
  remove(topicId: string, partition: number): PartitionLeader | undefined {
    const topic = this.#byId.get(topicId);
    const leader = topic?.[partition];
    if (topic === undefined || leader === undefined) return undefined;
    topic[partition] = undefined;
    this.#size -= 1;
    if (topic.some((other) => other !== undefined)) return leader;
    this.#byId.delete(topicId);
    // A topic of the same name may have been created since, under another id.
    if (this.#byName.get(leader.topic) === topic) this.#byName.delete(leader.topic);
    return leader;
  }

  byName(topic: string, partition: number): PartitionLeader | undefined {
    return this.#byName.get(topic)?.[partition];
  }

  byId(topicId: string, partition: number): PartitionLeader | undefined {
    return this.#byId.get(topicId)?.[partition];
  }

  *values(): Generator<PartitionLeader> {
    for (const topic of this.#byId.values())
      for (const leader of topic) if (leader !== undefined) yield leader;
  }
}
