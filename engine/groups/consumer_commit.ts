/** Who may commit and fetch offsets in a consumer group (KIP-848, KIP-1251). */
import { ErrorCode } from '../error_code.gen.ts';
import type { ConsumerGroup } from './consumer_group.ts';
import type { ConsumerMember } from './consumer_member.ts';
import type { CoordinatorRuntime } from './coordinator_runtime.ts';
import type { OffsetCommitRequest, OffsetFetchRequest } from './group_api.ts';
import type { PartitionCheck } from './offset_commit.ts';

/** The error for all of the commit, or what to ask for each partition. */
export function checkConsumerCommit(
  runtime: CoordinatorRuntime,
  group: ConsumerGroup,
  request: OffsetCommitRequest,
): ErrorCode | PartitionCheck {
  const { memberId, generationIdOrMemberEpoch: epoch } = request;
  const nothing: PartitionCheck = () => ErrorCode.NONE;
  if (group.isDead) return ErrorCode.COORDINATOR_NOT_AVAILABLE;
  if (!runtime.keeps('commits from members only')) return nothing;
  // An administrator sets offsets while nobody is there.
  if (epoch < 0 && group.isEmpty) return nothing;
  const member = group.members.get(memberId);
  if (member === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
  // Below this version the client does not know the error that it may get.
  if (request.apiVersion < 9) return ErrorCode.UNSUPPORTED_VERSION;
  if (!runtime.keeps('generation check') || epoch === member.epoch) return nothing;
  if (epoch > member.epoch) return ErrorCode.STALE_MEMBER_EPOCH;
  return (topic, partition) => checkPartition(runtime, member, epoch, topic, partition);
}

/**
 * A commit from an epoch before counts for the partitions that the member has had ever since, so that going on to the
 * next epoch does not make it lose what it has done.
 */
function checkPartition(
  { topics }: CoordinatorRuntime,
  { assigned, pendingRevocation }: ConsumerMember,
  epoch: number,
  { name, topicId }: OffsetCommitRequest['topics'][number],
  partition: number,
): ErrorCode {
  const id = topics.byName(name)?.topicId ?? topicId;
  const since = assigned.get(id)?.get(partition) ?? pendingRevocation.get(id)?.get(partition);
  return since !== undefined && since <= epoch ? ErrorCode.NONE : ErrorCode.STALE_MEMBER_EPOCH;
}

/** Whether a fetch that says who it comes from comes from a member; NONE for yes, or if it does not say. */
export function checkConsumerFetch(
  group: ConsumerGroup,
  { memberId, memberEpoch }: OffsetFetchRequest,
): ErrorCode {
  if (memberId === null && memberEpoch < 0) return ErrorCode.NONE;
  const member = group.members.get(memberId ?? '');
  if (member === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
  return memberEpoch === member.epoch ? ErrorCode.NONE : ErrorCode.STALE_MEMBER_EPOCH;
}
