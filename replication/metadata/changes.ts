/** What a delta changed in a metadata image: the to-do list of the thread that applied it. */
import type { PartitionImage, TopicImage } from './image.ts';
import { ConfigResourceType } from './records.ts';

export interface PartitionReference {
  readonly topic: TopicImage;
  readonly partition: PartitionImage;
}

export interface ChangedPartition extends PartitionReference {
  /** As it was before the delta. */
  readonly previous: PartitionImage;
}

/** Deletions come first in meaning: a name may be deleted and created again (with another id) in one delta. */
export interface MetadataChanges {
  readonly deletedPartitions: readonly PartitionReference[];
  readonly createdPartitions: readonly PartitionReference[];
  readonly changedPartitions: readonly ChangedPartition[];
  readonly deletedTopics: readonly TopicImage[];
  readonly createdTopics: readonly TopicImage[];
  /** Names of topics that stood before the delta and whose overrides it changed. */
  readonly changedTopicConfigs: readonly string[];
  /** Resource names (broker ids as text, '' for the default of all) whose overrides changed. */
  readonly changedBrokerConfigs: readonly string[];
  readonly changedBrokers: readonly number[];
  readonly featuresChanged: boolean;
}

/** Hears of each change as it is made. */
export interface ChangeListener {
  topicCreated(topic: TopicImage): void;
  topicDeleted(topic: TopicImage): void;
  partitionCreated(topic: TopicImage, partitionId: number): void;
  partitionChanged(topic: TopicImage, previous: PartitionImage): void;
  configChanged(resourceType: number, resourceName: string): void;
  brokerChanged(brokerId: number): void;
  featuresChanged(): void;
}

const ignore = (): void => {};

/** For those who follow the metadata without acting on it. */
export const nobody: ChangeListener = {
  topicCreated: ignore,
  topicDeleted: ignore,
  partitionCreated: ignore,
  partitionChanged: ignore,
  configChanged: ignore,
  brokerChanged: ignore,
  featuresChanged: ignore,
};

/** Gathers the changes of one delta. Lives for one `MetadataImage.apply`. */
export class ChangeCollector implements ChangeListener {
  readonly #createdTopics = new Set<TopicImage>();
  readonly #deletedTopics: TopicImage[] = [];
  /** Partition ids by topic, both kinds exclusive: what was created in the delta does not also count as changed. */
  readonly #created = new Map<TopicImage, Set<number>>();
  readonly #previous = new Map<TopicImage, Map<number, PartitionImage>>();
  readonly #topicConfigs = new Set<string>();
  readonly #brokerConfigs = new Set<string>();
  readonly #brokers = new Set<number>();
  #features = false;

  topicCreated(topic: TopicImage): void {
    this.#createdTopics.add(topic);
  }

  topicDeleted(topic: TopicImage): void {
    this.#created.delete(topic);
    this.#previous.delete(topic);
    this.#topicConfigs.delete(topic.name);
    if (!this.#createdTopics.delete(topic)) this.#deletedTopics.push(topic);
  }

  partitionCreated(topic: TopicImage, partitionId: number): void {
    const ids = this.#created.get(topic);
    if (ids === undefined) this.#created.set(topic, new Set([partitionId]));
    else ids.add(partitionId);
  }

  partitionChanged(topic: TopicImage, previous: PartitionImage): void {
    if (this.#created.get(topic)?.has(previous.partitionId)) return;
    const changed = this.#previous.get(topic) ?? new Map<number, PartitionImage>();
    this.#previous.set(topic, changed);
    if (!changed.has(previous.partitionId)) changed.set(previous.partitionId, previous);
  }

  configChanged(resourceType: number, resourceName: string): void {
    if (resourceType === ConfigResourceType.topic) this.#topicConfigs.add(resourceName);
    if (resourceType === ConfigResourceType.broker) this.#brokerConfigs.add(resourceName);
  }

  brokerChanged(brokerId: number): void {
    this.#brokers.add(brokerId);
  }

  featuresChanged(): void {
    this.#features = true;
  }

  finish(): MetadataChanges {
    for (const topic of this.#createdTopics) this.#topicConfigs.delete(topic.name);
    return {
      deletedPartitions: this.#deletedTopics.flatMap((topic) =>
        topic.partitions.map((partition) => ({ topic, partition })),
      ),
      createdPartitions: [...this.#created].flatMap(([topic, ids]) =>
        [...ids].map((id) => ({ topic, partition: topic.partitions[id]! })),
      ),
      changedPartitions: [...this.#previous].flatMap(([topic, changed]) =>
        [...changed.values()].map((previous) => ({
          topic,
          partition: topic.partitions[previous.partitionId]!,
          previous,
        })),
      ),
      deletedTopics: this.#deletedTopics,
      createdTopics: [...this.#createdTopics],
      changedTopicConfigs: [...this.#topicConfigs],
      changedBrokerConfigs: [...this.#brokerConfigs],
      changedBrokers: [...this.#brokers],
      featuresChanged: this.#features,
    };
  }
}
