/**
 * The state that the metadata log describes: brokers, topics, partitions, config overrides, features, producer ids.
 *
 * Thread: one instance per thread that needs it, owned by that thread; threads are kept alike by applying the same
 * deltas in the same order. Concurrency: none, `apply` runs to its end. Durability: none of its own: only committed
 * deltas are applied, except in the controller's copy, which runs ahead of the log by what it has appended itself.
 *
 * `TopicImage`s keep their identity for a topic's whole life; `PartitionImage`s and `BrokerImage`s are replaced when
 * they change and never mutated, so that a holder of an old one sees a consistent old state.
 */
import assert from 'node:assert/strict';
import { ChangeCollector, type ChangeListener, type MetadataChanges, nobody } from './changes.ts';
import { brokerOf, changedPartition, partitionOf, registrationOf } from './image_parts.ts';
import {
  type BrokerEndpoint,
  type BrokerRegistrationChangeRecord,
  type ConfigRecord,
  ConfigResourceType,
  type FeatureRange,
  type MetadataBatch,
  type MetadataDelta,
  type MetadataRecord,
  type MetadataSnapshot,
  type PartitionChangeRecord,
  type PartitionRecord,
  type ProducerIdsRecord,
} from './records.ts';

export interface PartitionImage {
  readonly partitionId: number;
  readonly replicas: readonly number[];
  readonly isr: readonly number[];
  readonly removingReplicas: readonly number[];
  readonly addingReplicas: readonly number[];
  /** -1: no leader. */
  readonly leader: number;
  readonly leaderRecoveryState: number;
  readonly leaderEpoch: number;
  readonly partitionEpoch: number;
  /** Directory ids, parallel to `replicas`. */
  readonly directories: readonly string[];
  readonly eligibleLeaderReplicas: readonly number[];
  readonly lastKnownElr: readonly number[];
}

export interface TopicImage {
  readonly name: string;
  readonly id: string;
  /** Index = partition id. Invariant: without holes once a whole delta has been applied. */
  readonly partitions: readonly PartitionImage[];
}

export interface BrokerImage {
  readonly id: number;
  readonly epoch: number;
  readonly incarnationId: string;
  readonly endpoints: readonly BrokerEndpoint[];
  readonly features: readonly FeatureRange[];
  readonly rack: string | null;
  readonly fenced: boolean;
  readonly inControlledShutdown: boolean;
  readonly logDirs: readonly string[];
}

interface MutableTopic extends TopicImage {
  readonly partitions: PartitionImage[];
}

const noConfigs: ReadonlyMap<string, string> = new Map();

export class MetadataImage {
  readonly clusterId: string;
  readonly #topicsByName = new Map<string, MutableTopic>();
  readonly #topicsById = new Map<string, MutableTopic>();
  readonly #brokers = new Map<number, BrokerImage>();
  readonly #features = new Map<string, number>();
  /** Resource type → resource name → overrides. Invariant: no empty inner maps. */
  readonly #configs = new Map<number, Map<string, Map<string, string>>>();
  #producerIds: ProducerIdsRecord | null = null;
  #featuresEpoch = -1;
  #offset = -1;
  #epoch = 0;
  #leaderId = -1;
  #partitionCount = 0;

  constructor(clusterId: string) {
    this.clusterId = clusterId;
  }

  /** Offset of the last record applied, -1 before the first. */
  get offset(): number {
    return this.#offset;
  }

  /** Term of the last record applied. */
  get epoch(): number {
    return this.#epoch;
  }

  /** The quorum's leader, -1 while unknown. */
  get leaderId(): number {
    return this.#leaderId;
  }

  /**
   * The broker that clients are told to be the controller, -1 without any live broker. Every broker forwards to the
   * real one, so any live broker will do (KIP-590); the leader is named where it is one.
   */
  get controllerId(): number {
    if (this.isAlive(this.#leaderId)) return this.#leaderId;
    for (const broker of this.#brokers.values()) if (!broker.fenced) return broker.id;
    return -1;
  }

  get features(): ReadonlyMap<string, number> {
    return this.#features;
  }

  /** Offset of the last change of a feature: the epoch that ApiVersions announces; -1 when there are none. */
  get featuresEpoch(): number {
    return this.#featuresEpoch;
  }

  get brokers(): ReadonlyMap<number, BrokerImage> {
    return this.#brokers;
  }

  /** By name. */
  get topics(): ReadonlyMap<string, TopicImage> {
    return this.#topicsByName;
  }

  get partitionCount(): number {
    return this.#partitionCount;
  }

  /** What was last said of producer ids; null: nothing yet. */
  get producerIds(): ProducerIdsRecord | null {
    return this.#producerIds;
  }

  /** The first producer id that no broker has been given. */
  get nextProducerId(): number {
    return this.#producerIds?.nextProducerId ?? 0;
  }

  topic(name: string): TopicImage | undefined {
    return this.#topicsByName.get(name);
  }

  topicById(id: string): TopicImage | undefined {
    return this.#topicsById.get(id);
  }

  partition(name: string, partitionId: number): PartitionImage | undefined {
    return this.#topicsByName.get(name)?.partitions[partitionId];
  }

  broker(id: number): BrokerImage | undefined {
    return this.#brokers.get(id);
  }

  isAlive(brokerId: number): boolean {
    return this.#brokers.get(brokerId)?.fenced === false;
  }

  /** Whether the broker may be given partitions to lead. */
  isActive(brokerId: number): boolean {
    const broker = this.#brokers.get(brokerId);
    return broker !== undefined && !broker.fenced && !broker.inControlledShutdown;
  }

  /** Where clients of the listener reach a broker; undefined when it has no such listener or is not registered. */
  endpoint(brokerId: number, listener: string): BrokerEndpoint | undefined {
    return this.#brokers.get(brokerId)?.endpoints.find((endpoint) => endpoint.name === listener);
  }

  topicConfigs(name: string): ReadonlyMap<string, string> {
    return this.configs(ConfigResourceType.topic, name);
  }

  /** Overrides of any resource; a broker's resource name is its id, '' the default of all brokers. */
  configs(resourceType: number, resourceName: string): ReadonlyMap<string, string> {
    return this.#configs.get(resourceType)?.get(resourceName) ?? noConfigs;
  }

  /**
   * Applies a committed delta and says what is different now, net of what came and went inside it.
   * Asserts that deltas arrive in order and that a snapshot meets an empty image.
   */
  apply(delta: MetadataDelta): MetadataChanges {
    const collector = new ChangeCollector();
    this.#apply(delta, collector);
    return collector.finish();
  }

  /** As `apply`, for those who need no list of what is different: a replay of a long log is twice as fast. */
  follow(delta: MetadataDelta, listener: ChangeListener = nobody): void {
    this.#apply(delta, listener);
  }

  #apply(delta: MetadataDelta, listener: ChangeListener): void {
    assert(
      delta.snapshot ? this.#offset === -1 : delta.lastOffset > this.#offset,
      `metadata delta up to offset ${delta.lastOffset} (snapshot: ${delta.snapshot}) does not follow ${this.#offset}`,
    );
    for (const record of delta.records) this.#applyRecord(record, listener);
    if (delta.snapshot) this.#featuresEpoch = delta.featuresEpoch;
    else this.#featuresEpoch = lastFeatureOffset(delta) ?? this.#featuresEpoch;
    this.#offset = delta.lastOffset;
    this.#epoch = delta.epoch;
    this.#leaderId = delta.leaderId;
  }

  /** An image that goes its own way from here. Shares what is never mutated, so its cost is that of the topics' maps. */
  copy(): MetadataImage {
    const copy = new MetadataImage(this.clusterId);
    for (const { name, id, partitions } of this.#topicsByName.values()) {
      const topic = { name, id, partitions: [...partitions] };
      copy.#topicsByName.set(name, topic);
      copy.#topicsById.set(id, topic);
    }
    for (const [id, broker] of this.#brokers) copy.#brokers.set(id, broker);
    for (const [name, level] of this.#features) copy.#features.set(name, level);
    for (const [type, resources] of this.#configs) {
      const copied = [...resources].map(([name, entries]) => [name, new Map(entries)] as const);
      copy.#configs.set(type, new Map(copied));
    }
    copy.#producerIds = this.#producerIds;
    copy.#featuresEpoch = this.#featuresEpoch;
    copy.#offset = this.#offset;
    copy.#epoch = this.#epoch;
    copy.#leaderId = this.#leaderId;
    copy.#partitionCount = this.#partitionCount;
    return copy;
  }

  /** Everything as one delta, for a thread that joins late. `apply` of it to an empty image gives an equal image. */
  snapshot(): MetadataSnapshot {
    const records = [...this.records()];
    return {
      snapshot: true,
      lastOffset: this.#offset,
      epoch: this.#epoch,
      leaderId: this.#leaderId,
      featuresEpoch: this.#featuresEpoch,
      records,
    };
  }

  /** The same records one by one. The image must not change meanwhile. */
  *records(): Generator<MetadataRecord, void, void> {
    for (const [name, featureLevel] of this.#features)
      yield { type: 'FeatureLevelRecord', name, featureLevel };
    for (const broker of this.#brokers.values()) yield registrationOf(broker);
    for (const topic of this.#topicsByName.values()) {
      yield { type: 'TopicRecord', name: topic.name, topicId: topic.id };
      for (const partition of topic.partitions)
        yield { type: 'PartitionRecord', topicId: topic.id, ...partition };
    }
    yield* this.configRecords();
    if (this.#producerIds !== null) yield this.#producerIds;
  }

  /** All overrides. */
  *configRecords(): Generator<ConfigRecord, void, void> {
    for (const [resourceType, resources] of this.#configs)
      for (const [resourceName, entries] of resources)
        for (const [name, value] of entries)
          yield { type: 'ConfigRecord', resourceType, resourceName, name, value };
  }

  #applyRecord(record: MetadataRecord, listener: ChangeListener): void {
    switch (record.type) {
      case 'TopicRecord':
        this.#addTopic(record.name, record.topicId, listener);
        break;
      case 'PartitionRecord':
        this.#putPartition(record, listener);
        break;
      case 'PartitionChangeRecord':
        this.#changePartition(record, listener);
        break;
      case 'ConfigRecord':
        this.#setConfig(record, listener);
        break;
      case 'RemoveTopicRecord':
        this.#removeTopic(record.topicId, listener);
        break;
      case 'RegisterBrokerRecord':
        this.#brokers.set(record.brokerId, brokerOf(record));
        listener.brokerChanged(record.brokerId);
        break;
      case 'BrokerRegistrationChangeRecord':
        this.#changeBroker(record, listener);
        break;
      case 'UnregisterBrokerRecord':
        this.#brokers.delete(record.brokerId);
        listener.brokerChanged(record.brokerId);
        break;
      case 'FeatureLevelRecord':
        if (record.featureLevel === 0) this.#features.delete(record.name);
        else this.#features.set(record.name, record.featureLevel);
        listener.featuresChanged();
        break;
      case 'ProducerIdsRecord':
        this.#producerIds = record;
        break;
      case 'NoOpRecord':
      case 'UnknownRecord':
        break;
    }
  }

  #addTopic(name: string, id: string, listener: ChangeListener): void {
    assert(!this.#topicsByName.has(name), `metadata log: topic ${name} is created twice`);
    assert(!this.#topicsById.has(id), `metadata log: topic id ${id} is used twice`);
    const topic: MutableTopic = { name, id, partitions: [] };
    this.#topicsByName.set(name, topic);
    this.#topicsById.set(id, topic);
    listener.topicCreated(topic);
  }

  #putPartition(record: PartitionRecord, listener: ChangeListener): void {
    const topic = this.#topicOf(record.topicId, record.type);
    const previous = topic.partitions[record.partitionId];
    topic.partitions[record.partitionId] = partitionOf(record);
    if (previous === undefined) {
      this.#partitionCount += 1;
      listener.partitionCreated(topic, record.partitionId);
    } else listener.partitionChanged(topic, previous);
  }

  #changePartition(record: PartitionChangeRecord, listener: ChangeListener): void {
    const topic = this.#topicOf(record.topicId, record.type);
    const previous = topic.partitions[record.partitionId];
    assert(
      previous !== undefined,
      `metadata log: change of unknown partition ${topic.name}-${record.partitionId}`,
    );
    topic.partitions[record.partitionId] = changedPartition(previous, record);
    listener.partitionChanged(topic, previous);
  }

  #removeTopic(topicId: string, listener: ChangeListener): void {
    const topic = this.#topicOf(topicId, 'RemoveTopicRecord');
    this.#topicsByName.delete(topic.name);
    this.#topicsById.delete(topicId);
    this.#partitionCount -= topic.partitions.length;
    this.#configs.get(ConfigResourceType.topic)?.delete(topic.name);
    listener.topicDeleted(topic);
  }

  #topicOf(topicId: string, recordType: string): MutableTopic {
    const topic = this.#topicsById.get(topicId);
    assert(topic !== undefined, `metadata log: ${recordType} for unknown topic id ${topicId}`);
    return topic;
  }

  #setConfig(record: ConfigRecord, listener: ChangeListener): void {
    const resources = this.#configs.get(record.resourceType) ?? new Map();
    this.#configs.set(record.resourceType, resources);
    const entries: Map<string, string> = resources.get(record.resourceName) ?? new Map();
    if (record.value === null) entries.delete(record.name);
    else entries.set(record.name, record.value);
    if (entries.size === 0) resources.delete(record.resourceName);
    else resources.set(record.resourceName, entries);
    listener.configChanged(record.resourceType, record.resourceName);
  }

  #changeBroker(record: BrokerRegistrationChangeRecord, listener: ChangeListener): void {
    const broker = this.#brokers.get(record.brokerId);
    assert(
      broker !== undefined && broker.epoch === record.brokerEpoch,
      `metadata log: change of broker ${record.brokerId} at epoch ${record.brokerEpoch}, registered is ${broker?.epoch}`,
    );
    this.#brokers.set(record.brokerId, {
      ...broker,
      fenced: record.fenced === 0 ? broker.fenced : record.fenced > 0,
      inControlledShutdown: broker.inControlledShutdown || record.inControlledShutdown > 0,
      logDirs: record.logDirs.length === 0 ? broker.logDirs : record.logDirs,
    });
    listener.brokerChanged(record.brokerId);
  }
}

function lastFeatureOffset(batch: MetadataBatch): number | null {
  const index = batch.records.findLastIndex((record) => record.type === 'FeatureLevelRecord');
  return index === -1 ? null : batch.firstOffset + index;
}
