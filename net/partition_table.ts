/**
 * The partitions that this shard owns, by what requests call them: topic name or topic id, and number. There is one table
 * of those that are led here, and one of those that are followed.
 *
 * Thread: the shard's own. Changed only when a metadata delta is applied, never while a request looks up.
 */
import assert from 'node:assert/strict';
import type { PartitionLeader } from '../replication/partition/leader.ts';

interface Placed {
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
}

export class PartitionTable<Replica extends Placed = PartitionLeader> {
  readonly #byName = new Map<string, (Replica | undefined)[]>();
  readonly #byId = new Map<string, (Replica | undefined)[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(replica: Replica): void {
    let topic = this.#byId.get(replica.topicId);
    if (topic === undefined) {
      topic = [];
      this.#byId.set(replica.topicId, topic);
      this.#byName.set(replica.topic, topic);
    }
    assert(topic[replica.partition] === undefined, `${replica.topic}-${replica.partition} twice`);
    topic[replica.partition] = replica;
    this.#size += 1;
  }

  /** Takes a partition out and returns it; undefined when this shard does not own it. */
  remove(topicId: string, partition: number): Replica | undefined {
    const topic = this.#byId.get(topicId);
    const replica = topic?.[partition];
    if (topic === undefined || replica === undefined) return undefined;
    topic[partition] = undefined;
    this.#size -= 1;
    if (topic.some((other) => other !== undefined)) return replica;
    this.#byId.delete(topicId);
    // A topic of the same name may have been created since, under another id.
    if (this.#byName.get(replica.topic) === topic) this.#byName.delete(replica.topic);
    return replica;
  }

  byName(topic: string, partition: number): Replica | undefined {
    return this.#byName.get(topic)?.[partition];
  }

  byId(topicId: string, partition: number): Replica | undefined {
    return this.#byId.get(topicId)?.[partition];
  }

  *values(): Generator<Replica> {
    for (const topic of this.#byId.values())
      for (const replica of topic) if (replica !== undefined) yield replica;
  }
}
