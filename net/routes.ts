/**
 * From the name or id in a request to where the partition is: its leader on this shard, its place on another one, or
 * the reason why there is none.
 *
 * Thread: the connection's shard.
 */
import { ErrorCode } from '../engine/error_code.gen.ts';
import type { MetadataImage, TopicImage } from '../replication/metadata/image.ts';
import { type FollowersWait, PartitionLeader } from '../replication/partition/leader.ts';
import type { PlacedPartition, Placements } from './fabric/placements.ts';
import type { PartitionTable } from './partition_table.ts';
import type { FetchSession } from './server/fetch_sessions.ts';

/** Where a partition is. */
export type Place = PartitionLeader | PlacedPartition;

/**
 * What a waiting fetch waits under: the partition, or, where a follower reads, what is written to it, and its session for
 * what rests in that.
 */
export type FetchWait = Place | FollowersWait | FetchSession;

/** Whether the partition is on this shard. */
export function isHere(place: Place): place is PartitionLeader {
  return place instanceof PartitionLeader;
}

export class Routes {
  readonly #partitions: PartitionTable;
  readonly #placements: Placements;
  readonly #image: MetadataImage;

  constructor(partitions: PartitionTable, placements: Placements, image: MetadataImage) {
    this.#partitions = partitions;
    this.#placements = placements;
    this.#image = image;
  }

  byName(name: string, partition: number): Place | ErrorCode {
    return (
      this.#partitions.byName(name, partition) ??
      this.#elsewhere(this.#image.topic(name), partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    );
  }

  byId(topicId: string, partition: number): Place | ErrorCode {
    return (
      this.#partitions.byId(topicId, partition) ??
      this.#elsewhere(this.#image.topicById(topicId), partition, ErrorCode.UNKNOWN_TOPIC_ID)
    );
  }

  #elsewhere(
    topic: TopicImage | undefined,
    partition: number,
    unknown: ErrorCode,
  ): PlacedPartition | ErrorCode {
    if (topic === undefined) return unknown;
    if (topic.partitions[partition] === undefined) return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
    const placed = this.#placements.find(topic.id, partition);
    // Ours, but another broker leads it, or its log could not be opened yet.
    if (placed === undefined || placed.shard === this.#placements.shard)
      return ErrorCode.NOT_LEADER_OR_FOLLOWER;
    return placed;
  }
}
