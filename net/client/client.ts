/**
 * The client: `millrace/client`. It loads no part of the broker but the codec and the record batches.
 *
 * Thread: the caller's; everything happens on it.
 */
import { Admin } from './admin.ts';
import { Cluster, type ClusterOptions } from './cluster.ts';
import { Consumer } from './consumer/consumer.ts';
import type { ConsumerOptions } from './consumer/consumer_options.ts';
import { type Bytes, Producer } from './producer.ts';
import type { ProducerOptions } from './producer_options.ts';

export { Admin } from './admin.ts';
export type {
  ClusterDescription,
  LogDirectoryInfo,
  QuorumDescription,
  QuorumReplica,
} from './admin_cluster.ts';
export type { ConfigChanges, ConfigEntry, ConfigResource, ConfigSource } from './admin_configs.ts';
export type {
  GroupDescription,
  GroupListing,
  GroupMember,
  GroupOffset,
} from './admin_groups.ts';
export type { ListedOffset, OffsetSpec } from './admin_offsets.ts';
export type { RecordPosition } from './admin_times.ts';
export type { CreatedTopic, CreateTopicOptions } from './admin_topics.ts';
export type { ClusterOptions } from './cluster.ts';
export type { Strategy } from './consumer/assignors.ts';
export type { CommittedOffset, OffsetToCommit } from './consumer/committed_offsets.ts';
export { type ConsumedBatch, Consumer, type ConsumerMetrics } from './consumer/consumer.ts';
export type { ConsumerOptions, RebalanceEvent } from './consumer/consumer_options.ts';
export type { PartitionLag } from './consumer/lag.ts';
export type { Message, MessageHeader } from './consumer/message.ts';
export type { TopicPartition } from './consumer/topic_partition.ts';
export { type BatchEvent, type ClientEvents, observe, type RequestEvent } from './diagnostics.ts';
export { ClientCode, MillraceError } from './errors.ts';
export type { BrokerInfo, PartitionInfo, TopicInfo } from './metadata.ts';
export type { Partitioner } from './partitioner.ts';
export {
  type Bytes,
  Producer,
  type ProducerMessage,
  type ProducerMetrics,
  type SendOptions,
} from './producer.ts';
export type { Compression, ProducerOptions } from './producer_options.ts';
export type { RecordMetadata } from './record_batch.ts';
export type { Headers, HeaderValue } from './record_headers.ts';
export {
  bytesDeserializer,
  bytesSerializer,
  type Deserializer,
  jsonDeserializer,
  jsonSerializer,
  type Serializer,
  stringDeserializer,
  stringSerializer,
} from './serializers.ts';

export class Client implements AsyncDisposable {
  readonly #cluster: Cluster;

  /** Connects when something is asked for. Throws INVALID_ARGUMENT. */
  constructor(options: ClusterOptions) {
    this.#cluster = new Cluster(options);
  }

  /** The cluster's id, once a broker has told it: a first call to see whether anybody is there. */
  async clusterId(options: { signal?: AbortSignal } = {}): Promise<string | null> {
    if (this.#cluster.metadata.clusterId === null) await this.#cluster.allTopics(options);
    return this.#cluster.metadata.clusterId;
  }

  /** Topics, settings, groups, offsets, and the cluster itself. */
  admin(): Admin {
    return new Admin(this.#cluster);
  }

  /** Reads topics. Begins with the first loop over it. Throws INVALID_ARGUMENT. */
  consumer<K = Buffer, V = Buffer>(options: ConsumerOptions<K, V>): Consumer<K, V> {
    return new Consumer(this.#cluster, options);
  }

  /** Sends messages. Throws INVALID_ARGUMENT. */
  producer<K = Bytes, V = Bytes>(options: ProducerOptions<K, V> = {}): Producer<K, V> {
    return new Producer(this.#cluster, options);
  }

  /** Ends all connections. Producers and consumers are to be closed before: `await using` sees to that. */
  async close(): Promise<void> {
    this.#cluster.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
