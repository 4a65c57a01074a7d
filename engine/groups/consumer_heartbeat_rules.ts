/** Which ConsumerGroupHeartbeat requests are taken at all, before any group is looked at (KIP-848). */
import { ErrorCode } from '../error_code.gen.ts';
import { staticLeaveEpoch } from './consumer_member.ts';
import type { ConsumerGroupHeartbeatRequest } from './group_api.ts';
import type { GroupOptions } from './group_options.ts';

export interface Refusal {
  readonly errorCode: ErrorCode;
  readonly errorMessage: string;
}

function invalid(errorMessage: string): Refusal {
  return { errorCode: ErrorCode.INVALID_REQUEST, errorMessage };
}

/** What is wrong with the request, null for nothing. */
export function checkHeartbeat(
  request: ConsumerGroupHeartbeatRequest,
  options: GroupOptions,
): Refusal | null {
  const { groupId, memberId, memberEpoch, instanceId, rackId } = request;
  if (groupId === '') return invalid("GroupId can't be empty.");
  if (instanceId === '') return invalid("InstanceId can't be empty.");
  if (rackId === '') return invalid("RackId can't be empty.");
  if (memberEpoch < staticLeaveEpoch) return invalid(`MemberEpoch is ${memberEpoch}.`);
  const mayBeUnnamed = memberEpoch === 0 && request.apiVersion === 0;
  if (memberId === '' && !mayBeUnnamed) return invalid("MemberId can't be empty.");
  if (memberEpoch === staticLeaveEpoch && instanceId === null)
    return invalid("InstanceId can't be null.");
  if (memberEpoch === 0) {
    if (request.rebalanceTimeoutMs === -1)
      return invalid('RebalanceTimeoutMs must be provided in first request.');
    if (request.topicPartitions === null || request.topicPartitions.length > 0)
      return invalid('TopicPartitions must be empty when (re-)joining.');
    if (request.subscribedTopicNames === null && request.subscribedTopicRegex === null)
      return invalid(
        'Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.',
      );
  }
  return checkSupport(request, options);
}

function checkSupport(
  { serverAssignor, subscribedTopicRegex }: ConsumerGroupHeartbeatRequest,
  { consumerAssignors }: GroupOptions,
): Refusal | null {
  if (serverAssignor !== null && !consumerAssignors.some((name) => name === serverAssignor)) {
    const errorMessage = `ServerAssignor ${serverAssignor} is not supported. Supported assignors: ${consumerAssignors.join(', ')}.`;
    return { errorCode: ErrorCode.UNSUPPORTED_ASSIGNOR, errorMessage };
  }
  // An empty expression takes back an earlier one.
  if (subscribedTopicRegex !== null && subscribedTopicRegex !== '') {
    const errorMessage = `SubscribedTopicRegex \`${subscribedTopicRegex}\` is not supported: this broker takes topic names only.`;
    return { errorCode: ErrorCode.INVALID_REGULAR_EXPRESSION, errorMessage };
  }
  return null;
}
