/** How members leave a consumer group, for good or for a while, and how a static one comes back (KIP-848). */
import { ErrorCode } from '../error_code.gen.ts';
import type { ConsumerChange } from './consumer_change.ts';
import { type ConsumerGroup, currentAssignment } from './consumer_group.ts';
import { type ConsumerMember, MemberState, staticLeaveEpoch } from './consumer_member.ts';
import { awayRecord } from './consumer_reconciler.ts';
import { maybeBumpEpoch } from './consumer_target.ts';
import type { CoordinatorRuntime } from './coordinator_runtime.ts';
import type {
  ConsumerGroupHeartbeatReply,
  ConsumerGroupHeartbeatRequest,
  LeaveGroupReply,
  LeaveGroupRequest,
} from './group_api.ts';
import type { ConsumerGroupMemberMetadataValue } from './group_records.ts';

/** The member is there. A static member that goes for a while keeps its partitions until its session ends. */
export function leave(
  runtime: CoordinatorRuntime,
  group: ConsumerGroup,
  request: ConsumerGroupHeartbeatRequest,
  change: ConsumerChange,
): ConsumerGroupHeartbeatReply {
  const member = group.members.get(request.memberId) as ConsumerMember;
  if (request.memberEpoch === staticLeaveEpoch) {
    change.put(awayRecord(group, member, staticLeaveEpoch));
  } else {
    removeMember(group, change, member);
    maybeBumpEpoch(runtime, group, change, true);
  }
  return {
    errorCode: ErrorCode.NONE,
    errorMessage: null,
    memberId: request.memberId,
    memberEpoch: request.memberEpoch,
    heartbeatIntervalMs: 0,
    assignment: null,
  };
}

/** LeaveGroup: an administrator takes static members out by their instance ids (KIP-345); others leave by heartbeat. */
export function leaveByInstance(
  runtime: CoordinatorRuntime,
  group: ConsumerGroup,
  request: LeaveGroupRequest,
  change: ConsumerChange,
): LeaveGroupReply {
  let hasLeft = false;
  const members = request.members.map(({ memberId, groupInstanceId }) => {
    const member =
      memberId === '' && groupInstanceId !== null ? group.staticMember(groupInstanceId) : undefined;
    if (member === undefined)
      return { memberId, groupInstanceId, errorCode: ErrorCode.UNKNOWN_MEMBER_ID };
    removeMember(group, change, member);
    hasLeft = true;
    return { memberId, groupInstanceId, errorCode: ErrorCode.NONE };
  });
  if (hasLeft) maybeBumpEpoch(runtime, group, change, true);
  return { errorCode: ErrorCode.NONE, members };
}

/** Its partitions are free at once. */
export function removeMember(
  group: ConsumerGroup,
  change: ConsumerChange,
  { memberId }: ConsumerMember,
): void {
  const key = { groupId: group.groupId, memberId };
  change.put({ type: 'ConsumerGroupCurrentMemberAssignment', key, value: null });
  change.put({ type: 'ConsumerGroupTargetAssignmentMember', key, value: null });
  change.put({ type: 'ConsumerGroupMemberMetadata', key, value: null });
}

/** Puts a static member's new incarnation in the place of the one that is away: nobody else notices. */
export function replaceStaticMember(
  group: ConsumerGroup,
  change: ConsumerChange,
  old: ConsumerMember,
  memberId: string,
  metadata: ConsumerGroupMemberMetadataValue,
): void {
  const key = { groupId: group.groupId, memberId };
  const topicPartitions = old.target;
  const current = {
    ...currentAssignment(old),
    memberEpoch: 0,
    previousMemberEpoch: 0,
    state: MemberState.stable,
  };
  removeMember(group, change, old);
  change.put({ type: 'ConsumerGroupMemberMetadata', key, value: metadata });
  change.put({ type: 'ConsumerGroupTargetAssignmentMember', key, value: { topicPartitions } });
  change.put({ type: 'ConsumerGroupCurrentMemberAssignment', key, value: current });
}
