/**
 * ConsumerGroupHeartbeat (KIP-848): joining, going on, leaving. A heartbeat that has nothing to change costs a few
 * look-ups, however large the group is.
 */
import { ErrorCode } from '../error_code.gen.ts';
import { ConsumerChange, type HeldReply } from './consumer_change.ts';
import { ConsumerGroup } from './consumer_group.ts';
import type { Refusal } from './consumer_heartbeat_rules.ts';
import { leave, removeMember, replaceStaticMember } from './consumer_leave.ts';
import { type ConsumerMember, MemberState, staticLeaveEpoch } from './consumer_member.ts';
import { reconcile } from './consumer_reconciler.ts';
import { maybeBumpEpoch, maybeUpdateTarget } from './consumer_target.ts';
import type { CoordinatorRuntime } from './coordinator_runtime.ts';
import type {
  Client,
  ConsumerGroupHeartbeatReply,
  ConsumerGroupHeartbeatRequest,
} from './group_api.ts';
import type { ConsumerGroupMemberMetadataValue } from './group_records.ts';
import { areWithin, samePartitions, withoutEpochs } from './partition_epochs.ts';
import { refusal } from './refusals.ts';
import { byText } from './text_order.ts';

/** Least time between the heartbeats of a member that waits for partitions. */
const waitingIntervalMinMs = 500;

export interface ConsumerHeartbeat {
  readonly token: number;
  readonly client: Client;
  readonly request: ConsumerGroupHeartbeatRequest;
}

export function newConsumerGroup(runtime: CoordinatorRuntime, groupId: string): ConsumerGroup {
  return new ConsumerGroup(runtime, groupId, {
    session: (group, memberId) => {
      if (runtime.keeps('session expiry')) fence(runtime, group, memberId, 'its session has ended');
    },
    revocation: (group, memberId) =>
      fence(runtime, group, memberId, 'it has not given up partitions in time'),
  });
}

/** Puts a member out that is too late. */
function fence(
  runtime: CoordinatorRuntime,
  group: ConsumerGroup,
  memberId: string,
  reason: string,
): void {
  const member = group.members.get(memberId);
  if (member === undefined) return;
  runtime.log('info', `group ${group.groupId}: ${memberId} is put out: ${reason}`);
  const change = newChange(runtime, group);
  removeMember(group, change, member);
  maybeBumpEpoch(runtime, group, change, true);
  change.store(null);
}

export function newChange(
  runtime: CoordinatorRuntime,
  group: ConsumerGroup,
  undone: () => void = () => undefined,
): ConsumerChange {
  return new ConsumerChange(runtime, group, () => {
    // The next heartbeat does again what was undone.
    group.nextAssignmentMs = -Infinity;
    group.hasStaleMetadata = true;
    undone();
  });
}

/** The group exists, and the request has passed `checkHeartbeat`. */
export function heartbeatConsumer(
  runtime: CoordinatorRuntime,
  group: ConsumerGroup,
  heartbeat: ConsumerHeartbeat,
  change: ConsumerChange,
): void {
  const { token, request } = heartbeat;
  const problem = checkMember(runtime, group, request);
  if (problem !== null) {
    const asked = { api: 'ConsumerGroupHeartbeat' as const, body: request };
    runtime.reply(token, refusal(asked, problem.errorCode, problem.errorMessage));
  } else if (request.memberEpoch < 0) {
    change.store(held(heartbeat, leave(runtime, group, request, change)));
  } else {
    change.store(held(heartbeat, goOn(runtime, group, heartbeat, change)));
  }
}

function held({ token, request }: ConsumerHeartbeat, body: ConsumerGroupHeartbeatReply): HeldReply {
  const api = 'ConsumerGroupHeartbeat';
  return { token, request: { api, body: request }, reply: { api, body } };
}

function checkMember(
  runtime: CoordinatorRuntime,
  group: ConsumerGroup,
  request: ConsumerGroupHeartbeatRequest,
): Refusal | null {
  const { groupId } = group;
  const { memberId, memberEpoch, instanceId } = request;
  if (group.isDead)
    return {
      errorCode: ErrorCode.COORDINATOR_NOT_AVAILABLE,
      errorMessage: `Group ${groupId} is being deleted.`,
    };
  const member = group.members.get(memberId);
  if (memberEpoch === 0) return checkJoining(runtime, group, request, member);
  const holder = instanceId === null ? undefined : group.staticMember(instanceId);
  if (holder !== undefined && holder.memberId !== memberId)
    return {
      errorCode: ErrorCode.FENCED_INSTANCE_ID,
      errorMessage: `Static member ${memberId} with instance id ${instanceId} was fenced by member ${holder.memberId}.`,
    };
  if (member === undefined || (instanceId !== null && holder === undefined))
    return {
      errorCode: ErrorCode.UNKNOWN_MEMBER_ID,
      errorMessage: `Member ${memberId} is not a member of group ${groupId}.`,
    };
  return memberEpoch < 0 || !runtime.keeps('generation check') ? null : checkEpoch(request, member);
}

function checkJoining(
  runtime: CoordinatorRuntime,
  group: ConsumerGroup,
  { memberId, instanceId }: ConsumerGroupHeartbeatRequest,
  member: ConsumerMember | undefined,
): Refusal | null {
  const holder = instanceId === null ? undefined : group.staticMember(instanceId);
  if (holder !== undefined && holder.memberId !== memberId && holder.epoch !== staticLeaveEpoch)
    return {
      errorCode: ErrorCode.UNRELEASED_INSTANCE_ID,
      errorMessage: `Static member ${memberId} with instance id ${instanceId} cannot join the group because the instance id is owned by member ${holder.memberId}.`,
    };
  const { consumerMaxSize } = runtime.options;
  if (member === undefined && holder === undefined && group.members.size >= consumerMaxSize)
    return {
      errorCode: ErrorCode.GROUP_MAX_SIZE_REACHED,
      errorMessage: `The consumer group has reached its maximum capacity of ${consumerMaxSize} members.`,
    };
  return null;
}

/** The epoch before is taken, too, if the answer that told the new one may have been lost. */
function checkEpoch(
  { memberEpoch, topicPartitions }: ConsumerGroupHeartbeatRequest,
  member: ConsumerMember,
): Refusal | null {
  if (memberEpoch === member.epoch) return null;
  const isRepeated =
    memberEpoch < member.epoch &&
    memberEpoch === member.previousEpoch &&
    topicPartitions !== null &&
    areWithin(topicPartitions, member.assigned);
  if (isRepeated) return null;
  const relation = memberEpoch > member.epoch ? 'greater' : 'smaller';
  return {
    errorCode: ErrorCode.FENCED_MEMBER_EPOCH,
    errorMessage: `The consumer group member has a ${relation} member epoch (${memberEpoch}) than the one known by the group coordinator (${member.epoch}). The member must abandon all its partitions and rejoin.`,
  };
}

function goOn(
  runtime: CoordinatorRuntime,
  group: ConsumerGroup,
  { client, request }: ConsumerHeartbeat,
  change: ConsumerChange,
): ConsumerGroupHeartbeatReply {
  const { groupId } = group;
  const memberId = request.memberId === '' ? runtime.newUuid() : request.memberId;
  const before = group.members.get(memberId);
  const holder = request.instanceId === null ? undefined : group.staticMember(request.instanceId);
  const isBack = request.memberEpoch === 0 && holder?.epoch === staticLeaveEpoch;
  const isNew = isBack || before === undefined;
  const known = (before ?? holder)?.metadata ?? null;
  const metadata = newMetadata(known, client, request);
  const mustBump = known === null || !sameNames(known, metadata);
  if (isBack) {
    replaceStaticMember(group, change, holder, memberId, metadata);
  } else if (known === null || !sameMetadata(known, metadata)) {
    const key = { groupId, memberId };
    change.put({ type: 'ConsumerGroupMemberMetadata', key, value: metadata });
  }
  maybeBumpEpoch(runtime, group, change, mustBump);
  // Who wants other topics than before should not be kept on the old ones.
  if (known !== null && mustBump) group.nextAssignmentMs = -Infinity;
  maybeUpdateTarget(runtime, group, change);
  const member = group.members.get(memberId) as ConsumerMember;
  const { assigned } = member;
  // Who joins under an id that is known may be a repeated request that was under way for long: what it says about its
  // partitions does not release any. A static member that is back has given up everything.
  const owned = request.memberEpoch === 0 && !isNew ? null : request.topicPartitions;
  const step = reconcile(group, member, owned, runtime.keeps('revocation first'));
  if (step !== null) change.put(step);
  group.restartSession(member);
  const tellsAssignment = isFull(request) || isNew || !samePartitions(assigned, member.assigned);
  return reply(runtime, group, member, tellsAssignment);
}

function reply(
  runtime: CoordinatorRuntime,
  group: ConsumerGroup,
  member: ConsumerMember,
  tellsAssignment: boolean,
): ConsumerGroupHeartbeatReply {
  return {
    errorCode: ErrorCode.NONE,
    errorMessage: null,
    memberId: member.memberId,
    memberEpoch: member.epoch,
    heartbeatIntervalMs: heartbeatIntervalMs(runtime, group, member),
    assignment: tellsAssignment ? { topicPartitions: withoutEpochs(member.assigned) } : null,
  };
}

/**
 * When the member is to come again. Who waits for partitions, because the assignment is still to be computed or others
 * have not let go of theirs, asks more often: with the usual interval a large group would take two of them to settle.
 */
function heartbeatIntervalMs(
  runtime: CoordinatorRuntime,
  group: ConsumerGroup,
  member: ConsumerMember,
): number {
  const { consumerHeartbeatIntervalMs, consumerAssignmentIntervalMs } = runtime.options;
  const waits =
    group.epoch > group.assignmentEpoch || member.state === MemberState.unreleasedPartitions;
  if (!waits) return consumerHeartbeatIntervalMs;
  const shortMs = Math.max(consumerAssignmentIntervalMs, waitingIntervalMinMs);
  return Math.min(consumerHeartbeatIntervalMs, shortMs);
}

/** A member that says everything is not sure what it was told. */
function isFull(request: ConsumerGroupHeartbeatRequest): boolean {
  return (
    request.memberEpoch === 0 ||
    (request.rebalanceTimeoutMs !== -1 &&
      (request.subscribedTopicNames !== null || request.subscribedTopicRegex !== null) &&
      request.topicPartitions !== null)
  );
}

/** What is known of the member after this request: what it leaves out is as it was. */
function newMetadata(
  known: ConsumerGroupMemberMetadataValue | null,
  { clientId, clientHost }: Client,
  request: ConsumerGroupHeartbeatRequest,
): ConsumerGroupMemberMetadataValue {
  const { instanceId, rackId, subscribedTopicNames: names, rebalanceTimeoutMs } = request;
  return {
    instanceId: instanceId ?? known?.instanceId ?? null,
    rackId: rackId ?? known?.rackId ?? null,
    clientId,
    clientHost,
    subscribedTopicNames:
      names === null ? (known?.subscribedTopicNames ?? []) : [...new Set(names)].sort(byText),
    // There are no regular expressions, which Kafka stores as an empty one.
    subscribedTopicRegex: '',
    rebalanceTimeoutMs:
      rebalanceTimeoutMs === -1 ? (known?.rebalanceTimeoutMs ?? -1) : rebalanceTimeoutMs,
    serverAssignor: request.serverAssignor ?? known?.serverAssignor ?? null,
    classicMemberMetadata: null,
  };
}

function sameMetadata(
  a: ConsumerGroupMemberMetadataValue,
  b: ConsumerGroupMemberMetadataValue,
): boolean {
  return (
    a.instanceId === b.instanceId &&
    a.rackId === b.rackId &&
    a.clientId === b.clientId &&
    a.clientHost === b.clientHost &&
    a.rebalanceTimeoutMs === b.rebalanceTimeoutMs &&
    a.serverAssignor === b.serverAssignor &&
    sameNames(a, b)
  );
}

function sameNames(
  { subscribedTopicNames: a }: ConsumerGroupMemberMetadataValue,
  { subscribedTopicNames: b }: ConsumerGroupMemberMetadataValue,
): boolean {
  return a === b || (a.length === b.length && a.every((name, index) => name === b[index]));
}
