/** Changes of in-sync replicas that partition leaders ask for (KIP-497, KIP-704, KIP-903). */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { staleEpoch } from './broker_control.ts';
import type {
  AlteredPartition,
  AlterPartitionRequest,
  AlterPartitionResult,
  ControllerReply,
  PartitionToAlter,
} from './controller_api.ts';
import { done, refused } from './controller_reply.ts';
import type { MetadataImage, PartitionImage, TopicImage } from './image.ts';
import type { Leadership } from './leadership.ts';
import { LeaderRecoveryState } from './partition_change.ts';
import type { PartitionControl } from './partition_control.ts';

/** Each partition is changed or refused on its own. */
export function alterPartitions(
  state: Leadership,
  partitions: PartitionControl,
  request: AlterPartitionRequest,
): ControllerReply<AlterPartitionResult> {
  const { image } = state;
  const { brokerId, brokerEpoch } = request;
  const broker = image.broker(brokerId);
  if (broker === undefined)
    return refused(
      ErrorCode.STALE_BROKER_EPOCH,
      `Broker ${brokerId} is not registered: it has no epoch.`,
    );
  const stale = staleEpoch(broker, brokerEpoch);
  if (stale !== null) return stale;
  const topics = request.topics.map(({ topicId, partitions: asked }) => {
    const topic = image.topicById(topicId);
    return {
      topicId,
      partitions: asked.map((one) =>
        topic === undefined
          ? refusal(one, ErrorCode.UNKNOWN_TOPIC_ID)
          : alterOne(state, partitions, brokerId, topic, one),
      ),
    };
  });
  return done({ topics });
}

function alterOne(
  state: Leadership,
  partitions: PartitionControl,
  brokerId: number,
  topic: TopicImage,
  asked: PartitionToAlter,
): AlteredPartition {
  const reference = state.index.reference(topic, asked.partitionIndex);
  if (reference === undefined) return refusal(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  const problem = problemOf(
    state.image,
    partitions,
    brokerId,
    partitions.current(reference),
    asked,
  );
  if (problem !== ErrorCode.NONE) return refusal(asked, problem);
  partitions.change(reference, {
    election: partitions.electionOf(topic.name),
    isr: asked.newIsr.map((member) => member.brokerId),
    leaderRecoveryState: asked.leaderRecoveryState,
  });
  const after = partitions.current(reference);
  // The change may have completed a reassignment that takes the leader away.
  if (after.leader !== brokerId) return refusal(asked, ErrorCode.NEW_LEADER_ELECTED);
  return {
    partitionIndex: asked.partitionIndex,
    errorCode: ErrorCode.NONE,
    leaderId: after.leader,
    leaderEpoch: after.leaderEpoch,
    isr: after.isr,
    leaderRecoveryState: after.leaderRecoveryState,
    partitionEpoch: after.partitionEpoch,
  };
}

function problemOf(
  image: MetadataImage,
  partitions: PartitionControl,
  brokerId: number,
  partition: PartitionImage,
  asked: PartitionToAlter,
): ErrorCode {
  // Who knows of newer epochs than this controller has heard of one after it.
  if (asked.leaderEpoch > partition.leaderEpoch || asked.partitionEpoch > partition.partitionEpoch)
    return ErrorCode.NOT_CONTROLLER;
  if (asked.leaderEpoch < partition.leaderEpoch) return ErrorCode.FENCED_LEADER_EPOCH;
  if (partition.leader !== brokerId) return ErrorCode.INVALID_REQUEST;
  if (asked.partitionEpoch < partition.partitionEpoch && partitions.keeps('partition epochs'))
    return ErrorCode.INVALID_UPDATE_VERSION;
  if (!isWellFormed(partition, asked)) return ErrorCode.INVALID_REQUEST;
  const areEligible = asked.newIsr.every((member) => isEligible(image, partitions, member));
  return areEligible ? ErrorCode.NONE : ErrorCode.INELIGIBLE_REPLICA;
}

function isWellFormed(
  { leader, replicas, leaderRecoveryState }: PartitionImage,
  asked: PartitionToAlter,
): boolean {
  const ids = new Set(asked.newIsr.map((member) => member.brokerId));
  if (ids.size !== asked.newIsr.length || !ids.has(leader)) return false;
  for (const id of ids) if (!replicas.includes(id)) return false;
  if (asked.leaderRecoveryState !== LeaderRecoveryState.recovering)
    return asked.leaderRecoveryState === LeaderRecoveryState.recovered;
  // Nobody follows while the leader recovers, and what has recovered stays so.
  return leaderRecoveryState === LeaderRecoveryState.recovering && ids.size === 1;
}

/** Epoch -1: the leader does not know it, as older versions of the request. */
function isEligible(
  image: MetadataImage,
  partitions: PartitionControl,
  { brokerId, brokerEpoch }: PartitionToAlter['newIsr'][number],
): boolean {
  if (!image.isActive(brokerId) && partitions.keeps('active members')) return false;
  if (!partitions.keeps('broker epochs')) return true;
  return brokerEpoch === -1 || image.broker(brokerId)?.epoch === brokerEpoch;
}

function refusal({ partitionIndex }: PartitionToAlter, errorCode: ErrorCode): AlteredPartition {
  return {
    partitionIndex,
    errorCode,
    leaderId: -1,
    leaderEpoch: -1,
    isr: [],
    leaderRecoveryState: 0,
    partitionEpoch: -1,
  };
}
