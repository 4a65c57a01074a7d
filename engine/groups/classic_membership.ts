/** SyncGroup, Heartbeat and LeaveGroup. */
import { ErrorCode } from '../error_code.gen.ts';
import { type ClassicGroup, ClassicState } from './classic_group.ts';
import { type ClassicMember, noAssignment } from './classic_member.ts';
import {
  afterLoss,
  answerSync,
  drop,
  maybeEndJoinPhase,
  rebalance,
  restartSession,
} from './classic_rebalance.ts';
import { groupRecord } from './classic_records.ts';
import type { CoordinatorRuntime } from './coordinator_runtime.ts';
import type {
  HeartbeatRequest,
  LeaveGroupReply,
  LeaveGroupRequest,
  SyncGroupReply,
  SyncGroupRequest,
} from './group_api.ts';

/** Whether a request comes from a member of the present generation; NONE for yes. */
export function checkGeneration(
  runtime: CoordinatorRuntime,
  group: ClassicGroup,
  request: HeartbeatRequest,
): ErrorCode {
  if (group.state === ClassicState.dead) return ErrorCode.COORDINATOR_NOT_AVAILABLE;
  const error = group.checkMember(request.memberId, request.groupInstanceId);
  if (error !== ErrorCode.NONE) return error;
  const isCurrent = request.generationId === group.generationId;
  return isCurrent || !runtime.keeps('generation check')
    ? ErrorCode.NONE
    : ErrorCode.ILLEGAL_GENERATION;
}

export function syncGroup(
  runtime: CoordinatorRuntime,
  group: ClassicGroup,
  token: number,
  request: SyncGroupRequest,
): void {
  const error = checkSync(runtime, group, request);
  const member = group.members.get(request.memberId);
  if (error !== ErrorCode.NONE || member === undefined) {
    runtime.reply(token, { api: 'SyncGroup', body: failedSync(error) });
    return;
  }
  // Its client has given up the request before.
  answerSync(runtime, group, member, ErrorCode.REBALANCE_IN_PROGRESS);
  member.syncToken = token;
  group.pendingSync.delete(member.memberId);
  if (group.pendingSync.size === 0) runtime.stopTimer(group.syncPhase);
  if (group.state === ClassicState.stable) {
    answerSync(runtime, group, member, ErrorCode.NONE);
  } else if (
    member.memberId === group.leaderId &&
    group.storedGenerationId !== group.generationId
  ) {
    storeAssignments(runtime, group, request);
  }
}

function failedSync(errorCode: ErrorCode): SyncGroupReply {
  return { errorCode, protocolType: null, protocolName: null, assignment: noAssignment };
}

function checkSync(
  runtime: CoordinatorRuntime,
  group: ClassicGroup,
  request: SyncGroupRequest,
): ErrorCode {
  const error = checkGeneration(runtime, group, request);
  if (error !== ErrorCode.NONE) return error;
  const { protocolType, protocolName } = request;
  const differs = (said: string | null, known: string | null): boolean =>
    said !== null && known !== null && said !== known;
  if (differs(protocolType, group.protocolType) || differs(protocolName, group.protocolName))
    return ErrorCode.INCONSISTENT_GROUP_PROTOCOL;
  if (group.state === ClassicState.preparingRebalance) return ErrorCode.REBALANCE_IN_PROGRESS;
  return ErrorCode.NONE;
}

/** The generation begins to count once its assignments are committed. */
function storeAssignments(
  runtime: CoordinatorRuntime,
  group: ClassicGroup,
  request: SyncGroupRequest,
): void {
  const { generationId } = group;
  // A leader that repeats its request must not have another assignment stored than the one that is told.
  group.storedGenerationId = generationId;
  const assignments = new Map<string, Uint8Array>();
  for (const { memberId, assignment } of request.assignments) assignments.set(memberId, assignment);
  const isOver = (): boolean =>
    group.state !== ClassicState.completingRebalance || group.generationId !== generationId;
  const assignmentOf = (member: ClassicMember): Uint8Array =>
    assignments.get(member.memberId) ?? noAssignment;
  runtime.append([groupRecord(group, assignmentOf)], {
    committed: () => {
      if (isOver()) return;
      group.transitionTo(ClassicState.stable, runtime.wallMs);
      for (const member of group.members.values()) {
        member.assignment = assignmentOf(member);
        answerSync(runtime, group, member, ErrorCode.NONE);
      }
    },
    failed: (error) => {
      if (isOver()) return;
      for (const member of group.members.values()) answerSync(runtime, group, member, error);
      rebalance(runtime, group, `the assignments could not be stored (error ${error})`);
    },
  });
}

export function heartbeat(
  runtime: CoordinatorRuntime,
  group: ClassicGroup,
  request: HeartbeatRequest,
): ErrorCode {
  const error = checkGeneration(runtime, group, request);
  const member = group.members.get(request.memberId);
  if (error !== ErrorCode.NONE || member === undefined) return error;
  restartSession(runtime, member);
  return group.state === ClassicState.preparingRebalance
    ? ErrorCode.REBALANCE_IN_PROGRESS
    : ErrorCode.NONE;
}

export function leaveGroup(
  runtime: CoordinatorRuntime,
  group: ClassicGroup,
  request: LeaveGroupRequest,
): LeaveGroupReply {
  if (group.state === ClassicState.dead)
    return { errorCode: ErrorCode.COORDINATOR_NOT_AVAILABLE, members: [] };
  const left: string[] = [];
  const sizeBefore = group.members.size;
  const members = request.members.map((member) => {
    const errorCode = removeOne(runtime, group, member);
    if (errorCode === ErrorCode.NONE)
      left.push(`${member.groupInstanceId ?? member.memberId}${because(member.reason)}`);
    return { memberId: member.memberId, groupInstanceId: member.groupInstanceId, errorCode };
  });
  if (group.members.size < sizeBefore) afterLoss(runtime, group, `${left.join(', ')} left`);
  else if (left.length > 0) maybeEndJoinPhase(runtime, group);
  return { errorCode: ErrorCode.NONE, members };
}

function because(reason: string | null): string {
  return reason === null || reason === '' ? '' : ` (${reason})`;
}

/** An administrator removes a static member by its instance id alone (KIP-345). */
function removeOne(
  runtime: CoordinatorRuntime,
  group: ClassicGroup,
  { memberId, groupInstanceId }: LeaveGroupRequest['members'][number],
): ErrorCode {
  const pending = group.pendingMembers.get(memberId);
  if (pending !== undefined) {
    runtime.stopTimer(pending);
    group.pendingMembers.delete(memberId);
    return ErrorCode.NONE;
  }
  const wanted =
    memberId === '' && groupInstanceId !== null
      ? (group.staticMembers.get(groupInstanceId) ?? '')
      : memberId;
  const error = group.checkMember(wanted, groupInstanceId);
  const member = group.members.get(wanted);
  if (error !== ErrorCode.NONE || member === undefined) return error;
  drop(runtime, group, member);
  return ErrorCode.NONE;
}
