/**
 * `__consumer_offsets`, the topic that holds the groups' state: which of its partitions a group belongs to, and its
 * creation when somebody first asks for a coordinator, as in Kafka.
 *
 * Thread: any shard's. Two that create it at the same time end up with the same topic.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { NewTopic } from '../../replication/metadata/controller_api.ts';
import type { MetadataImage, TopicImage } from '../../replication/metadata/image.ts';
import type { GroupConfig } from '../config/group_config.ts';
import type { ShardContext } from '../shard_context.ts';

export const offsetsTopicName = '__consumer_offsets';

/** What a client may wait for the creation; later it hears COORDINATOR_NOT_AVAILABLE and asks again. */
const creationWaitMs = 3_000;

/** Clients ask again ten times a second, each of them. */
const refusalIntervalMs = 60_000;

/** Replicas that a cluster with enough brokers gives the topic. */
const replicasWanted = 3;

/** The partition of a group: by Java's hash of the string, so that every Kafka tool and broker finds it at the same place. */
export function partitionOfGroup(groupId: string, partitions: number): number {
  let hash = 0;
  for (let k = 0; k < groupId.length; k += 1)
    hash = (Math.imul(hash, 31) + groupId.charCodeAt(k)) | 0;
  // As Java's: the absolute value, and 0 where an int32 has none.
  return hash === -0x80000000 ? 0 : Math.abs(hash) % partitions;
}

/** The topic, made if it is not there; undefined when that did not work out in time. Never rejects. */
export async function ensureOffsetsTopic(
  shard: ShardContext,
  config: GroupConfig,
): Promise<TopicImage | undefined> {
  const known = shard.image.topic(offsetsTopicName);
  if (known !== undefined) return known;
  const topic = newOffsetsTopic(config, shard.image);
  const reply = await shard.quorum.createTopics(
    { topics: [topic], validateOnly: false },
    creationWaitMs,
  );
  const result = reply.result?.topics[0];
  const error = result?.errorCode ?? reply.errorCode;
  if (error !== ErrorCode.NONE && error !== ErrorCode.TOPIC_ALREADY_EXISTS)
    shard.logger.logLimited(
      'offsets topic',
      refusalIntervalMs,
      'warn',
      { topic: offsetsTopicName, error, reason: result?.errorMessage ?? 'no answer yet' },
      'the topic for the state of consumer groups could not be created: see the settings offsets.topic.*',
    );
  return shard.image.topic(offsetsTopicName);
}

function newOffsetsTopic(config: GroupConfig, image: MetadataImage): NewTopic {
  const wanted = config.offsetsTopicReplicationFactor;
  const replicationFactor =
    wanted === -1 ? Math.min(replicasWanted, Math.max(1, image.brokers.size)) : wanted;
  return {
    name: offsetsTopicName,
    numPartitions: config.offsetsTopicPartitions,
    replicationFactor,
    assignments: [],
    configs: [
      { name: 'cleanup.policy', value: 'compact' },
      { name: 'compression.type', value: 'producer' },
      { name: 'segment.bytes', value: String(config.offsetsTopicSegmentBytes) },
    ],
  };
}
