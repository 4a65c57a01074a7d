/** ConsumerGroupDescribe: a consumer group as administrators see it (KIP-848). */
import { ErrorCode } from '../error_code.gen.ts';
import type { ConsumerMember } from './consumer_member.ts';
import { chosenAssignor } from './consumer_target.ts';
import type { CoordinatorRuntime } from './coordinator_runtime.ts';
import type { ConsumerGroupDescribeReply, NamedTopicPartitions } from './group_api.ts';
import type { TopicPartitions } from './group_records.ts';
import type { Group } from './group_table.ts';
import { withoutEpochs } from './partition_epochs.ts';

/** Of the two kinds of members that the answer knows, this group has only one. */
const memberTypeConsumer = 1;

export function describeConsumer(
  runtime: CoordinatorRuntime,
  group: Group | undefined,
  groupId: string,
): ConsumerGroupDescribeReply {
  if (group === undefined) return describeMissing(groupId, `Group ${groupId} not found.`);
  if (group.type !== 'consumer')
    return describeMissing(groupId, `Group ${groupId} is not a consumer group.`);
  return {
    errorCode: ErrorCode.NONE,
    errorMessage: null,
    groupId,
    groupState: group.state,
    groupEpoch: group.epoch,
    assignmentEpoch: group.assignmentEpoch,
    assignorName: chosenAssignor(runtime, group),
    members: [...group.members.values()].map((member) => describeMember(runtime, member)),
  };
}

function describeMissing(groupId: string, errorMessage: string): ConsumerGroupDescribeReply {
  return {
    errorCode: ErrorCode.GROUP_ID_NOT_FOUND,
    errorMessage,
    groupId,
    groupState: '',
    groupEpoch: 0,
    assignmentEpoch: 0,
    assignorName: '',
    members: [],
  };
}

function describeMember(
  runtime: CoordinatorRuntime,
  member: ConsumerMember,
): ConsumerGroupDescribeReply['members'][number] {
  const { metadata } = member;
  return {
    memberId: member.memberId,
    instanceId: metadata.instanceId,
    rackId: metadata.rackId,
    memberEpoch: member.epoch,
    clientId: metadata.clientId,
    clientHost: metadata.clientHost,
    subscribedTopicNames: metadata.subscribedTopicNames,
    subscribedTopicRegex: metadata.subscribedTopicRegex || null,
    assignment: { topicPartitions: named(runtime, withoutEpochs(member.assigned)) },
    targetAssignment: { topicPartitions: named(runtime, member.target) },
    memberType: memberTypeConsumer,
  };
}

/** Topics that are gone are left out. */
function named(
  { topics }: CoordinatorRuntime,
  partitions: readonly TopicPartitions[],
): NamedTopicPartitions[] {
  return partitions.flatMap((topic) => {
    const topicName = topics.nameOf(topic.topicId);
    return topicName === undefined ? [] : [{ ...topic, topicName }];
  });
}
