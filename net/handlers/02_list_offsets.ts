/**
 * ListOffsets: offsets by timestamp, or the log's ends.
 *
 *   v1   one offset a timestamp           v5   OFFSET_NOT_AVAILABLE (KIP-207)   v8   -4: earliest local (KIP-405)
 *   v2   isolation level                  v6   flexible                         v9   -5: latest tiered (KIP-1005)
 *   v3   throttling after the answer      v7   -3: max timestamp (KIP-734)      v10  timeout, v11 -6: earliest
 *   v4   leader epochs (KIP-320)                                                     pending upload (KIP-1023)
 *
 * Thread: the connection's shard.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { DiskError } from '../../engine/ports.ts';
import type { PartitionLeader } from '../../replication/partition/leader.ts';
import type {
  ListOffsetsRequestListOffsetsPartition,
  ListOffsetsResponseListOffsetsPartitionResponseInput,
} from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';

/** Timestamps that stand for an end of the log. */
const Special = {
  latest: -1n,
  earliest: -2n,
  maxTimestamp: -3n,
  earliestLocal: -4n,
  latestTiered: -5n,
  earliestPendingUpload: -6n,
} as const;

/** The version that brought each of them; below it, and for other negative timestamps, UNSUPPORTED_VERSION as in Kafka. */
const specialSince: ReadonlyMap<bigint, number> = new Map([
  [Special.latest, 0],
  [Special.earliest, 0],
  [Special.maxTimestamp, 7],
  [Special.earliestLocal, 8],
  [Special.latestTiered, 9],
  [Special.earliestPendingUpload, 11],
]);

const readCommitted = 1;
const leaderEpochsSince = 4;
const offsetNotAvailableSince = 5;

interface FoundOffset {
  readonly offset: number;
  readonly timestamp: bigint;
  readonly leaderEpoch: number;
}

type Answer = ListOffsetsResponseListOffsetsPartitionResponseInput;

export function listOffsetsHandler(services: ShardServices): Handler {
  return rpc('ListOffsets', 1, 11, ({ topics, isolationLevel }, { apiVersion }) => ({
    topics: topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map((asked) => {
        const found = answer(services, name, asked, isolationLevel, apiVersion);
        return apiVersion >= leaderEpochsSince ? found : { ...found, leaderEpoch: -1 };
      }),
    })),
  }));
}

function answer(
  services: ShardServices,
  topic: string,
  asked: ListOffsetsRequestListOffsetsPartition,
  isolationLevel: number,
  version: number,
): Answer {
  const { partitionIndex, timestamp } = asked;
  const leader = services.partitions.byName(topic, partitionIndex);
  if (leader === undefined)
    return refusal(partitionIndex, missing(services, topic, partitionIndex));
  if (timestamp < 0n && version < (specialSince.get(timestamp) ?? Number.POSITIVE_INFINITY))
    return refusal(partitionIndex, ErrorCode.UNSUPPORTED_VERSION);
  const errorCode = leader.checkEpoch(asked.currentLeaderEpoch);
  if (errorCode !== ErrorCode.NONE) return refusal(partitionIndex, errorCode);
  let found: FoundOffset | null;
  try {
    found = look(leader, timestamp, isolationLevel);
  } catch (error) {
    return refusal(partitionIndex, unreadable(services, leader, error));
  }
  if (!leader.isCaughtUp && dependsOnEnd(timestamp, found))
    return refusal(
      partitionIndex,
      version >= offsetNotAvailableSince
        ? ErrorCode.OFFSET_NOT_AVAILABLE
        : ErrorCode.LEADER_NOT_AVAILABLE,
    );
  return {
    partitionIndex,
    errorCode: ErrorCode.NONE,
    timestamp: found?.timestamp ?? -1n,
    offset: found?.offset ?? -1,
    leaderEpoch: found?.leaderEpoch ?? -1,
  };
}

function refusal(partitionIndex: number, errorCode: ErrorCode): Answer {
  return { partitionIndex, errorCode, timestamp: -1n, offset: -1n, leaderEpoch: -1 };
}

/** Whether an answer could be another one once the high watermark has come up to the log's end (KIP-207). */
function dependsOnEnd(timestamp: bigint, found: FoundOffset | null): boolean {
  if (timestamp === Special.latest || timestamp === Special.maxTimestamp) return true;
  return timestamp >= 0n && found === null;
}

/** The file cannot be read, or not be understood: the other partitions and requests are not to suffer from it. */
function unreadable(services: ShardServices, leader: PartitionLeader, error: unknown): ErrorCode {
  const partition = `${leader.topic}-${leader.partition}`;
  services.logger.error({ partition, error }, 'offsets could not be looked up in the log');
  return error instanceof DiskError ? ErrorCode.KAFKA_STORAGE_ERROR : ErrorCode.CORRUPT_MESSAGE;
}

function missing(services: ShardServices, topic: string, partition: number): ErrorCode {
  return services.image.partition(topic, partition) === undefined
    ? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    : ErrorCode.NOT_LEADER_OR_FOLLOWER;
}

/** Null: there is no such offset. A record beyond what the client may read counts as not there. */
function look(
  leader: PartitionLeader,
  timestamp: bigint,
  isolationLevel: number,
): FoundOffset | null {
  const { log } = leader;
  const end = isolationLevel === readCommitted ? leader.lastStableOffset : leader.highWatermark;
  switch (timestamp) {
    case Special.latest:
      return { offset: end, timestamp: -1n, leaderEpoch: leader.leaderEpoch };
    case Special.earliest:
    case Special.earliestLocal:
      return {
        offset: log.logStartOffset,
        timestamp: -1n,
        leaderEpoch: log.epochs.epochFor(log.logStartOffset),
      };
    // Without tiered storage nothing is tiered and nothing waits for its upload.
    case Special.latestTiered:
    case Special.earliestPendingUpload:
      return null;
    case Special.maxTimestamp:
      return visible(log.offsetOfMaxTimestamp(), end);
    default:
      return visible(log.offsetForTimestamp(timestamp), end);
  }
}

function visible(found: FoundOffset | null, end: number): FoundOffset | null {
  return found !== null && found.offset < end ? found : null;
}
