/**
 * What the client knows of the cluster: its brokers, and the topics that somebody has asked for. An answer never takes
 * back what is newer: partitions keep the leader with the higher epoch, as long as the topic is the same (KIP-320).
 *
 * Thread: the client's. What is handed out is never changed; updates put new objects in its place.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type {
  MetadataResponse,
  MetadataResponseMetadataResponseTopic,
} from '../protocol/messages.gen.ts';

export interface BrokerInfo {
  readonly id: number;
  readonly host: string;
  readonly port: number;
  readonly rack: string | null;
}

export interface PartitionInfo {
  readonly topic: string;
  readonly partition: number;
  /** -1 while there is none. */
  readonly leaderId: number;
  /** -1 where the broker does not tell it. */
  readonly leaderEpoch: number;
  readonly replicas: readonly number[];
  readonly inSyncReplicas: readonly number[];
  readonly offlineReplicas: readonly number[];
  /** Kafka's error code; 0 for none. */
  readonly errorCode: number;
}

export interface TopicInfo {
  readonly name: string;
  /** In Kafka's text form; null where the broker has no topic ids. */
  readonly topicId: string | null;
  readonly isInternal: boolean;
  /** Ordered by number, without gaps. */
  readonly partitions: readonly PartitionInfo[];
  /** When the broker was asked, by `performance.now()`. */
  readonly askedAtMs: number;
}

const zeroUuid = 'AAAAAAAAAAAAAAAAAAAAAA';

export class MetadataCache {
  #brokers: ReadonlyMap<number, BrokerInfo> = new Map();
  readonly #topics = new Map<string, TopicInfo>();
  readonly #namesById = new Map<string, string>();
  #clusterId: string | null = null;
  #controllerId = -1;
  #updatedAtMs = Number.NEGATIVE_INFINITY;

  /** Null until a broker has answered. */
  get clusterId(): string | null {
    return this.#clusterId;
  }

  /** -1 while it is not known. */
  get controllerId(): number {
    return this.#controllerId;
  }

  /** By `performance.now()`. */
  get updatedAtMs(): number {
    return this.#updatedAtMs;
  }

  get brokers(): ReadonlyMap<number, BrokerInfo> {
    return this.#brokers;
  }

  topic(name: string): TopicInfo | undefined {
    return this.#topics.get(name);
  }

  topicName(topicId: string): string | undefined {
    return this.#namesById.get(topicId);
  }

  topics(): Iterable<TopicInfo> {
    return this.#topics.values();
  }

  partition(topic: string, partition: number): PartitionInfo | undefined {
    return this.#topics.get(topic)?.partitions[partition];
  }

  /**
   * Takes an answer in. Returns the error codes of the topics that have one: what was known of those is kept, but for
   * topics that are not there any more.
   */
  update(answer: MetadataResponse, askedAtMs: number): Map<string, number> {
    // An answer of a broker that has only just started may name no brokers yet.
    if (answer.brokers.length > 0)
      this.#brokers = new Map(
        answer.brokers.map(({ nodeId: id, host, port, rack }) => [id, { id, host, port, rack }]),
      );
    this.#clusterId = answer.clusterId ?? this.#clusterId;
    this.#controllerId = answer.controllerId;
    this.#updatedAtMs = askedAtMs;
    const errors = new Map<string, number>();
    for (const topic of answer.topics) {
      if (topic.name === null) continue;
      if (topic.errorCode === ErrorCode.NONE || topic.partitions.length > 0)
        this.#put(topic, topic.name, askedAtMs);
      if (topic.errorCode === ErrorCode.NONE) continue;
      errors.set(topic.name, topic.errorCode);
      if (topic.errorCode === ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) this.forget(topic.name);
    }
    return errors;
  }

  /** A broker has named a partition's new leader beside an error (KIP-951). */
  setLeader(topic: string, partition: number, leaderId: number, leaderEpoch: number): void {
    const known = this.#topics.get(topic);
    const old = known?.partitions[partition];
    if (leaderId < 0 || leaderEpoch <= (old?.leaderEpoch ?? -1)) return;
    if (known === undefined || old === undefined) return;
    const partitions = known.partitions.with(partition, { ...old, leaderId, leaderEpoch });
    this.#topics.set(topic, { ...known, partitions });
  }

  setBrokers(brokers: readonly BrokerInfo[]): void {
    if (brokers.length === 0) return;
    const merged = new Map(this.#brokers);
    for (const broker of brokers) merged.set(broker.id, broker);
    this.#brokers = merged;
  }

  forget(topic: string): void {
    const known = this.#topics.get(topic);
    if (known === undefined) return;
    if (known.topicId !== null) this.#namesById.delete(known.topicId);
    this.#topics.delete(topic);
  }

  #put(topic: MetadataResponseMetadataResponseTopic, name: string, askedAtMs: number): void {
    const topicId = topic.topicId === zeroUuid ? null : topic.topicId;
    const known = this.#topics.get(name);
    const isSame = known !== undefined && known.topicId === topicId;
    if (known !== undefined && !isSame) this.forget(name);
    const partitions = topic.partitions
      .map((one): PartitionInfo => {
        const old = isSame ? known.partitions[one.partitionIndex] : undefined;
        const isOlder =
          old !== undefined && one.leaderEpoch >= 0 && one.leaderEpoch < old.leaderEpoch;
        return {
          topic: name,
          partition: one.partitionIndex,
          leaderId: isOlder ? old.leaderId : one.leaderId,
          leaderEpoch: isOlder ? old.leaderEpoch : one.leaderEpoch,
          replicas: one.replicaNodes,
          inSyncReplicas: one.isrNodes,
          offlineReplicas: one.offlineReplicas,
          errorCode: one.errorCode,
        };
      })
      .sort((a, b) => a.partition - b.partition);
    const { isInternal } = topic;
    this.#topics.set(name, { name, topicId, isInternal, partitions, askedAtMs });
    if (topicId !== null) this.#namesById.set(topicId, name);
  }
}
