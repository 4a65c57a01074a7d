/**
 * Decides which shard owns a partition: the one with the fewest, when the partition appears.
 *
 * Thread: main. Follows the committed metadata; nothing of it is stored, so that a start with another number of shards
 * just places anew.
 */
import type { MetadataDelta } from '../../replication/metadata/records.ts';
import type { TopicPlacement } from './placements.ts';

interface MutablePlacement {
  readonly topicId: string;
  readonly partitions: number[];
  readonly shards: number[];
  readonly numbers: number[];
}

export class PartitionPlacer {
  /** Partitions on each shard. */
  readonly #loads: number[];
  readonly #isAlone: boolean;
  readonly #topics = new Map<string, MutablePlacement>();
  #nextNumber = 1;

  /** @param threadCount with the replication thread, which has no partitions but is told of them */
  constructor(shardCount: number, threadCount: number = shardCount) {
    this.#loads = new Array<number>(shardCount).fill(0);
    this.#isAlone = threadCount === 1;
  }

  /** All that is placed. */
  get all(): TopicPlacement[] {
    return [...this.#topics.values()];
  }

  /** Places what the delta creates, and returns it, for the threads. A lone one has nothing to be told. */
  follow({ records }: MetadataDelta): TopicPlacement[] {
    if (this.#isAlone) return [];
    const placed = new Map<string, MutablePlacement>();
    for (const record of records) {
      if (record.type === 'RemoveTopicRecord') {
        this.#remove(record.topicId);
        placed.delete(record.topicId);
      } else if (record.type === 'PartitionRecord') {
        const { topicId, partitionId } = record;
        const topic = of(this.#topics, topicId);
        if (isPlaced(topic, partitionId)) continue;
        const shard = this.#leastLoaded();
        this.#loads[shard]! += 1;
        const number = this.#nextNumber;
        this.#nextNumber += 1;
        push(topic, partitionId, shard, number);
        push(of(placed, topicId), partitionId, shard, number);
      }
    }
    return [...placed.values()];
  }

  #remove(topicId: string): void {
    for (const shard of this.#topics.get(topicId)?.shards ?? []) this.#loads[shard]! -= 1;
    this.#topics.delete(topicId);
  }

  #leastLoaded(): number {
    let best = 0;
    this.#loads.forEach((load, shard) => {
      if (load < this.#loads[best]!) best = shard;
    });
    return best;
  }
}

function of(topics: Map<string, MutablePlacement>, topicId: string): MutablePlacement {
  let topic = topics.get(topicId);
  if (topic === undefined) {
    topic = { topicId, partitions: [], shards: [], numbers: [] };
    topics.set(topicId, topic);
  }
  return topic;
}

/** Partitions come in ascending order, as a rule. */
function isPlaced({ partitions }: MutablePlacement, partition: number): boolean {
  return partition <= (partitions.at(-1) ?? -1) && partitions.includes(partition);
}

function push(topic: MutablePlacement, partition: number, shard: number, number: number): void {
  topic.partitions.push(partition);
  topic.shards.push(shard);
  topic.numbers.push(number);
}
