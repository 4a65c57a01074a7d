/**
 * Administration: topics, settings, groups, offsets and the cluster itself. Every call goes to the broker that can answer
 * it, tries again while that may help, and throws a MillraceError otherwise.
 *
 * Thread: the client's. Keeps nothing of its own: it works as long as its client is open.
 */
import {
  type ClusterDescription,
  describeCluster,
  describeLogDirs,
  describeQuorum,
  type LogDirectoryInfo,
  type QuorumDescription,
} from './admin_cluster.ts';
import {
  alterConfig,
  type ConfigChanges,
  type ConfigEntry,
  type ConfigResource,
  describeConfig,
} from './admin_configs.ts';
import {
  alterGroupOffsets,
  deleteGroup,
  deleteGroupOffsets,
  describeGroup,
  type GroupDescription,
  type GroupListing,
  type GroupOffset,
  groupOffsets,
  listGroups,
} from './admin_groups.ts';
import { type ListedOffset, listOffsets, type OffsetSpec } from './admin_offsets.ts';
import type { AdminOptions } from './admin_options.ts';
import { type RecordPosition, timestampsAt } from './admin_times.ts';
import {
  addPartitions,
  type CreatedTopic,
  type CreateTopicOptions,
  createTopic,
  deleteRecords,
  deleteTopic,
  describeTopic,
  listTopics,
} from './admin_topics.ts';
import type { Cluster } from './cluster.ts';
import type { TopicPartition } from './consumer/topic_partition.ts';
import type { TopicInfo } from './metadata.ts';

type Validated = AdminOptions & { readonly validateOnly?: boolean | undefined };

export class Admin {
  readonly #cluster: Cluster;

  /** Made by `client.admin()`. */
  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Throws TOPIC_ALREADY_EXISTS, INVALID_REPLICATION_FACTOR, INVALID_CONFIG, … */
  createTopic(name: string, options?: CreateTopicOptions): Promise<CreatedTopic> {
    return createTopic(this.#cluster, name, options);
  }

  /** By name; with `internal` those of the brokers, too. */
  listTopics(
    options?: AdminOptions & { readonly internal?: boolean | undefined },
  ): Promise<TopicInfo[]> {
    return listTopics(this.#cluster, options);
  }

  /** Throws UNKNOWN_TOPIC_OR_PARTITION. */
  describeTopic(name: string, options?: AdminOptions): Promise<TopicInfo> {
    return describeTopic(this.#cluster, name, options);
  }

  /** With all its records. Throws UNKNOWN_TOPIC_OR_PARTITION. */
  deleteTopic(name: string, options?: AdminOptions): Promise<void> {
    return deleteTopic(this.#cluster, name, options);
  }

  /** @param total how many the topic is to have, with those that it has */
  addPartitions(name: string, total: number, options?: Validated): Promise<void> {
    return addPartitions(this.#cluster, name, total, options);
  }

  /** Deletes the records below an offset, or all that are there. Returns where the partition begins then. */
  deleteRecords(
    topic: string,
    partition: number,
    before: number | 'latest',
    options?: AdminOptions,
  ): Promise<number> {
    return deleteRecords(this.#cluster, topic, partition, before, options);
  }

  /** Where partitions begin or end, or what was first written at or after a time (milliseconds since 1970). */
  listOffsets(
    partitions: readonly TopicPartition[],
    spec: OffsetSpec,
    options?: AdminOptions & { readonly isReadCommitted?: boolean | undefined },
  ): Promise<ListedOffset[]> {
    return listOffsets(this.#cluster, partitions, spec, options);
  }

  /** When the record at each position was written, in milliseconds since 1970; -1 where there is none. */
  timestampsAt(positions: readonly RecordPosition[], options?: AdminOptions): Promise<number[]> {
    return timestampsAt(this.#cluster, positions, options);
  }

  /** All settings with where they come from. */
  describeConfig(resource: ConfigResource, options?: AdminOptions): Promise<ConfigEntry[]> {
    return describeConfig(this.#cluster, resource, options);
  }

  /** All of the changes or none. Throws INVALID_CONFIG, … */
  alterConfig(
    resource: ConfigResource,
    changes: ConfigChanges,
    options?: Validated,
  ): Promise<void> {
    return alterConfig(this.#cluster, resource, changes, options);
  }

  /** Of all brokers. */
  listGroups(options?: AdminOptions): Promise<GroupListing[]> {
    return listGroups(this.#cluster, options);
  }

  /** State and members. Throws GROUP_ID_NOT_FOUND. */
  describeGroup(groupId: string, options?: AdminOptions): Promise<GroupDescription> {
    return describeGroup(this.#cluster, groupId, options);
  }

  /** With its offsets. Throws NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND. */
  deleteGroup(groupId: string, options?: AdminOptions): Promise<void> {
    return deleteGroup(this.#cluster, groupId, options);
  }

  /** What the group has committed; nothing for one that is not there. */
  groupOffsets(groupId: string, options?: AdminOptions): Promise<GroupOffset[]> {
    return groupOffsets(this.#cluster, groupId, options);
  }

  /** Sets what a group without members has committed. */
  alterGroupOffsets(
    groupId: string,
    offsets: readonly (RecordPosition & { readonly metadata?: string })[],
    options?: AdminOptions,
  ): Promise<void> {
    return alterGroupOffsets(this.#cluster, groupId, offsets, options);
  }

  /** Forgets what was committed for these partitions. */
  deleteGroupOffsets(
    groupId: string,
    partitions: readonly TopicPartition[],
    options?: AdminOptions,
  ): Promise<void> {
    return deleteGroupOffsets(this.#cluster, groupId, partitions, options);
  }

  /** Its id, its brokers, and which one is the controller. */
  describeCluster(options?: AdminOptions): Promise<ClusterDescription> {
    return describeCluster(this.#cluster, options);
  }

  /** Where brokers keep their replicas, and how large those are. */
  describeLogDirs(
    options?: AdminOptions & { readonly brokerId?: number | undefined },
  ): Promise<LogDirectoryInfo[]> {
    return describeLogDirs(this.#cluster, options);
  }

  /** The quorum that holds the metadata. */
  describeQuorum(options?: AdminOptions): Promise<QuorumDescription> {
    return describeQuorum(this.#cluster, options);
  }
}
