/** What handlers see of the shard that they run on. */
import type { ConfigEntry } from '../replication/metadata/controller_api.ts';
import type { MetadataImage } from '../replication/metadata/image.ts';
import type { QuorumRequests } from './quorum_client.ts';

/** A setting of a topic as CreateTopics v5+ returns it; `source` is Kafka's `ConfigSource` (1 topic … 5 default). */
export interface TopicConfigEntry {
  readonly name: string;
  readonly value: string | null;
  readonly source: number;
  readonly readOnly: boolean;
  readonly sensitive: boolean;
}

/** The part of the broker's configuration that the handlers of topics read; Kafka's keys in camel case. */
export interface TopicSettings {
  readonly autoCreateTopicsEnable: boolean;
  readonly deleteTopicEnable: boolean;
  /** `max.request.partition.size.limit`: partitions in one DescribeTopicPartitions answer. */
  readonly maxRequestPartitionSizeLimit: number;
  /** Every setting of a topic with these overrides, with where its value comes from. */
  readonly topicConfigEntries: (overrides: readonly ConfigEntry[]) => readonly TopicConfigEntry[];
}

export interface ShardLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** At most one line per `key` in `intervalMs`. See `Logger.logLimited`. */
  logLimited(key: string, intervalMs: number, level: 'warn', fields: object, message: string): void;
}

export interface ShardContext {
  readonly nodeId: number;
  readonly clusterId: string;
  readonly image: MetadataImage;
  readonly quorum: QuorumRequests;
  readonly settings: TopicSettings;
  readonly logger: ShardLogger;
}
