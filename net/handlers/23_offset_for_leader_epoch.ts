/**
 * OffsetForLeaderEpoch: where the log of a leader epoch ends, so that a client can see whether its records
 * were cut off (KIP-101, KIP-279, KIP-320).
 *
 *   v2  current leader epoch    v3  replica id    v4  flexible
 *
 * Thread: the connection's shard.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type {
  OffsetForLeaderEpochRequestOffsetForLeaderPartition,
  OffsetForLeaderEpochResponseEpochEndOffsetInput,
} from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';

export function offsetForLeaderEpochHandler(services: ShardServices): Handler {
  return rpc('OffsetForLeaderEpoch', 2, 4, (request) => ({
    topics: request.topics.map(({ topic, partitions }) => ({
      topic,
      partitions: partitions.map((asked) => answer(services, topic, asked)),
    })),
  }));
}

function answer(
  services: ShardServices,
  topic: string,
  asked: OffsetForLeaderEpochRequestOffsetForLeaderPartition,
): OffsetForLeaderEpochResponseEpochEndOffsetInput {
  const { partition } = asked;
  const leader = services.partitions.byName(topic, partition);
  if (leader === undefined) {
    const errorCode =
      services.image.partition(topic, partition) === undefined
        ? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        : ErrorCode.NOT_LEADER_OR_FOLLOWER;
    return { errorCode, partition, leaderEpoch: -1, endOffset: -1 };
  }
  const errorCode = leader.checkEpoch(asked.currentLeaderEpoch);
  if (errorCode !== ErrorCode.NONE) return { errorCode, partition, leaderEpoch: -1, endOffset: -1 };
  const { epoch, endOffset } = leader.log.endOffsetForEpoch(asked.leaderEpoch);
  return { errorCode, partition, leaderEpoch: epoch, endOffset };
}
