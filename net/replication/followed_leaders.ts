/**
 * Which partitions this broker follows, and whom: what the metadata say, and what each change of them means.
 *
 * Thread: the replication thread.
 */
import type { MetadataChanges, PartitionReference } from '../../replication/metadata/changes.ts';

/** The part of a `ReplicaFetch` that is used here. */
export interface Follows {
  follow(topicId: string, partition: number, leaderEpoch: number): void;
  unfollow(topicId: string, partition: number): void;
}

export interface FollowedLeadersOptions {
  readonly nodeId: number;
  /** The fetches from a broker, made when it is first needed. */
  readonly fetchOf: (leaderId: number) => Follows;
}

export class FollowedLeaders {
  readonly #options: FollowedLeadersOptions;
  /** By topic id, then by partition: whom we follow. */
  readonly #leaders = new Map<string, (number | undefined)[]>();

  constructor(options: FollowedLeadersOptions) {
    this.#options = options;
  }

  /** Acts on a metadata delta. */
  apply(changes: MetadataChanges): void {
    for (const { topic, partition } of changes.deletedPartitions)
      this.#leave(topic.id, partition.partitionId);
    for (const { id } of changes.deletedTopics) this.#leaders.delete(id);
    for (const created of changes.createdPartitions) this.#follow(created);
    for (const changed of changes.changedPartitions) this.#follow(changed);
  }

  #follow({ topic, partition }: PartitionReference): void {
    const { nodeId, fetchOf } = this.#options;
    const { partitionId, replicas, leader, leaderEpoch } = partition;
    const isFollowed = leader >= 0 && leader !== nodeId && replicas.includes(nodeId);
    const before = this.#leaders.get(topic.id)?.[partitionId];
    if (before !== undefined && (!isFollowed || before !== leader))
      this.#leave(topic.id, partitionId);
    if (!isFollowed) return;
    let leaders = this.#leaders.get(topic.id);
    if (leaders === undefined) {
      leaders = [];
      this.#leaders.set(topic.id, leaders);
    }
    leaders[partitionId] = leader;
    fetchOf(leader).follow(topic.id, partitionId, leaderEpoch);
  }

  #leave(topicId: string, partition: number): void {
    const leaders = this.#leaders.get(topicId);
    const leader = leaders?.[partition];
    if (leaders === undefined || leader === undefined) return;
    leaders[partition] = undefined;
    this.#options.fetchOf(leader).unfollow(topicId, partition);
  }
}
