/** JoinGroup: who may become or stay a member, and whether that makes the group rebalance (KIP-345, 394, 814). */
import { ErrorCode } from '../error_code.gen.ts';
import { type ClassicGroup, ClassicState } from './classic_group.ts';
import { type ClassicMember, newMember, sameProtocols } from './classic_member.ts';
import {
  answerJoin,
  answerSync,
  currentGeneration,
  drop,
  failedJoin,
  maybeEndJoinPhase,
  membersForLeader,
  newSession,
  rebalance,
  restartSession,
} from './classic_rebalance.ts';
import { groupRecord } from './classic_records.ts';
import type { CoordinatorRuntime } from './coordinator_runtime.ts';
import type { Client, JoinGroupReply, JoinGroupRequest } from './group_api.ts';
import { newTimer } from './timers.ts';

/** Of what a member calls itself, so much begins its id, which must fit into a string of 32,767 bytes of UTF-8. */
const memberNameMax = 10_000;

interface Join {
  readonly token: number;
  readonly client: Client;
  readonly request: JoinGroupRequest;
}

/** The error of a request that no group has to be looked at for, NONE for none. */
export function checkJoin(runtime: CoordinatorRuntime, request: JoinGroupRequest): ErrorCode {
  const { minSessionTimeoutMs, maxSessionTimeoutMs } = runtime.options;
  if (request.groupId === '') return ErrorCode.INVALID_GROUP_ID;
  if (
    request.sessionTimeoutMs < minSessionTimeoutMs ||
    request.sessionTimeoutMs > maxSessionTimeoutMs
  )
    return ErrorCode.INVALID_SESSION_TIMEOUT;
  return ErrorCode.NONE;
}

/** The group exists: it has been made if the request names no member. */
export function joinGroup(runtime: CoordinatorRuntime, group: ClassicGroup, join: Join): void {
  const { request } = join;
  const fail = (errorCode: ErrorCode, memberId = request.memberId): void =>
    reply(runtime, join, failedJoin(memberId, errorCode));
  if (group.state === ClassicState.dead) {
    fail(ErrorCode.COORDINATOR_NOT_AVAILABLE);
  } else if (!hasRoom(runtime, group, request)) {
    const member = group.members.get(request.memberId);
    // It is one too many in a group that was loaded with more than are allowed now.
    if (member !== undefined) drop(runtime, group, member);
    fail(ErrorCode.GROUP_MAX_SIZE_REACHED, '');
    maybeEndJoinPhase(runtime, group);
  } else if (!group.supports(request.protocolType, request.protocols)) {
    fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
  } else if (request.memberId === '') {
    joinAsNew(runtime, group, join);
  } else if (group.pendingMembers.has(request.memberId)) {
    if (request.groupInstanceId !== null) fail(ErrorCode.UNKNOWN_MEMBER_ID);
    else addMember(runtime, group, join, request.memberId);
  } else {
    const error = group.checkMember(request.memberId, request.groupInstanceId);
    if (error === ErrorCode.NONE) joinAgain(runtime, group, join);
    else fail(error);
  }
}

function reply(runtime: CoordinatorRuntime, { token }: Join, body: JoinGroupReply): void {
  runtime.reply(token, { api: 'JoinGroup', body });
}

/** `group.max.size`. While a rebalance gathers members only those that have come are counted: others may not come. */
function hasRoom(
  runtime: CoordinatorRuntime,
  group: ClassicGroup,
  { memberId }: JoinGroupRequest,
): boolean {
  const member = group.members.get(memberId);
  switch (group.state) {
    case ClassicState.empty:
    case ClassicState.dead:
      return true;
    case ClassicState.preparingRebalance:
      return (
        (member !== undefined && member.joinToken !== null) ||
        group.awaitingJoin < runtime.options.maxSize
      );
    case ClassicState.completingRebalance:
    case ClassicState.stable:
      return member !== undefined || group.members.size < runtime.options.maxSize;
  }
}

function joinAsNew(runtime: CoordinatorRuntime, group: ClassicGroup, join: Join): void {
  const { client, request } = join;
  const { groupInstanceId, sessionTimeoutMs } = request;
  const who = (groupInstanceId ?? client.clientId).slice(0, memberNameMax);
  const memberId = `${who}-${runtime.newUuid()}`;
  if (groupInstanceId !== null) {
    const known = group.members.get(group.staticMembers.get(groupInstanceId) ?? '');
    if (known === undefined) addMember(runtime, group, join, memberId);
    else replaceStatic(runtime, group, join, known, memberId);
    return;
  }
  if (!request.requireKnownMemberId) {
    addMember(runtime, group, join, memberId);
    return;
  }
  const timer = newTimer(() => {
    group.pendingMembers.delete(memberId);
    maybeEndJoinPhase(runtime, group);
  });
  group.pendingMembers.set(memberId, timer);
  runtime.startTimer(timer, sessionTimeoutMs);
  reply(runtime, join, failedJoin(memberId, ErrorCode.MEMBER_ID_REQUIRED));
}

function addMember(
  runtime: CoordinatorRuntime,
  group: ClassicGroup,
  { token, client, request }: Join,
  memberId: string,
): void {
  const pending = group.pendingMembers.get(memberId);
  if (pending !== undefined) runtime.stopTimer(pending);
  group.pendingMembers.delete(memberId);
  const member = newMember(memberId, client, request, newSession(runtime, group, memberId));
  member.joinToken = token;
  group.add(member, request.protocolType);
  if (group.isInitialRebalance) group.newMemberAdded = true;
  restartSession(runtime, member);
  rebalance(runtime, group, `${memberId} has joined${because(request)}`);
}

function because({ reason }: JoinGroupRequest): string {
  return reason === null || reason === '' ? '' : ` (${reason})`;
}

function joinAgain(runtime: CoordinatorRuntime, group: ClassicGroup, join: Join): void {
  const { token, request } = join;
  const member = group.members.get(request.memberId) as ClassicMember;
  const isSame = sameProtocols(member.protocols, request.protocols);
  const { state } = group;
  if (state === ClassicState.completingRebalance && isSame) {
    // It may not have got the first answer.
    reply(runtime, join, currentGeneration(group, member.memberId));
    return;
  }
  if (state === ClassicState.stable && isSame && group.leaderId !== member.memberId) {
    // A leader joins again to have the group rebalanced; others have missed an answer.
    reply(runtime, join, currentGeneration(group, member.memberId));
    return;
  }
  update(runtime, group, member, request, token);
  rebalance(runtime, group, `${member.memberId} has joined again${because(request)}`);
}

function update(
  runtime: CoordinatorRuntime,
  group: ClassicGroup,
  member: ClassicMember,
  request: JoinGroupRequest,
  token: number,
): void {
  // Its client has given up the request before.
  const error = ErrorCode.REBALANCE_IN_PROGRESS;
  answerJoin(runtime, group, member, failedJoin(member.memberId, error));
  answerSync(runtime, group, member, error);
  group.setProtocols(member, request.protocols);
  member.rebalanceTimeoutMs = request.rebalanceTimeoutMs;
  member.sessionTimeoutMs = request.sessionTimeoutMs;
  group.setJoinToken(member, token);
}

/**
 * A static member is back under a new id (KIP-345): the old id is fenced. If nothing changes for the others, only the
 * new id is stored, and the member goes on with its assignment.
 */
function replaceStatic(
  runtime: CoordinatorRuntime,
  group: ClassicGroup,
  join: Join,
  old: ClassicMember,
  memberId: string,
): void {
  const { token, client, request } = join;
  const oldLeader = group.leaderId ?? '';
  answerJoin(runtime, group, old, failedJoin(old.memberId, ErrorCode.FENCED_INSTANCE_ID));
  answerSync(runtime, group, old, ErrorCode.FENCED_INSTANCE_ID);
  runtime.stopTimer(old.session);
  const member = newMember(memberId, client, request, newSession(runtime, group, memberId));
  member.isNew = false;
  member.assignment = old.assignment;
  member.joinToken = token;
  const hadSynced = !group.pendingSync.has(old.memberId);
  group.replace(old, member, request.protocolType);
  restartSession(runtime, member);
  if (group.state !== ClassicState.stable || group.selectProtocol() !== group.protocolName) {
    rebalance(runtime, group, `static member ${request.groupInstanceId} is back as ${memberId}`);
    return;
  }
  if (!hadSynced) group.pendingSync.add(memberId);
  storeReplaced(runtime, group, join, member, old, oldLeader);
}

function storeReplaced(
  runtime: CoordinatorRuntime,
  group: ClassicGroup,
  { request }: Join,
  member: ClassicMember,
  old: ClassicMember,
  oldLeader: string,
): void {
  const { generationId } = group;
  runtime.append([groupRecord(group, ({ assignment }) => assignment)], {
    committed: () => {
      // A rebalance that has begun meanwhile answers its JoinGroup.
      if (group.generationId !== generationId || group.state !== ClassicState.stable) return;
      const skipAssignment =
        request.supportSkippingAssignment && group.leaderId === member.memberId;
      answerJoin(runtime, group, member, {
        ...currentGeneration(group, member.memberId),
        // A leader that cannot be told to skip the assignment must not learn that it leads: nobody waits for one.
        leader: request.supportSkippingAssignment ? (group.leaderId ?? '') : oldLeader,
        skipAssignment,
        members: skipAssignment ? membersForLeader(group) : [],
      });
      restartSession(runtime, member);
    },
    failed: () => {
      if (group.members.get(member.memberId) !== member) return;
      const failure = failedJoin(member.memberId, ErrorCode.UNKNOWN_MEMBER_ID);
      answerJoin(runtime, group, member, failure);
      restartSession(runtime, member);
      if (group.generationId !== generationId || group.state !== ClassicState.stable) return;
      runtime.stopTimer(member.session);
      group.replace(member, old, group.protocolType ?? '');
      restartSession(runtime, old);
    },
  });
}
