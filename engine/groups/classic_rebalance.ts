/**
 * The rebalance of a classic group: from the first reason for it until every member knows the new generation; and the
 * time-outs that end sessions, phases and waiting.
 */
import { ErrorCode } from '../error_code.gen.ts';
import { ClassicGroup, ClassicState } from './classic_group.ts';
import { type ClassicMember, metadataFor, noAssignment } from './classic_member.ts';
import { groupRecord } from './classic_records.ts';
import type { CoordinatorRuntime } from './coordinator_runtime.ts';
import type { JoinGroupReply } from './group_api.ts';
import { newTimer, type Timer } from './timers.ts';

/**
 * How long a member may wait for its first JoinGroup's answer. Its client may be gone, and sends no heartbeats before it
 * knows its id.
 */
const newMemberJoinTimeoutMs = 5 * 60_000;

/** The least time until it is looked again whether anybody has joined: members may say 0, and less. */
const joinAgainMsMin = 1_000;

export function newClassicGroup(runtime: CoordinatorRuntime, groupId: string): ClassicGroup {
  return new ClassicGroup(groupId, (group) => ({
    joinPhase: () => endJoinPhase(runtime, group),
    syncPhase: () => endSyncPhase(runtime, group),
  }));
}

export function newSession(
  runtime: CoordinatorRuntime,
  group: ClassicGroup,
  memberId: string,
): Timer {
  return newTimer(() => endSession(runtime, group, memberId));
}

/** Begins the session time-out anew. */
export function restartSession(runtime: CoordinatorRuntime, member: ClassicMember): void {
  const delayMs = member.isNew ? newMemberJoinTimeoutMs : member.sessionTimeoutMs;
  runtime.startTimer(member.session, delayMs);
}

/** Starts a rebalance if none is gathering members, and ends its first phase if everybody is there. */
export function rebalance(runtime: CoordinatorRuntime, group: ClassicGroup, reason: string): void {
  if (group.state === ClassicState.preparingRebalance) maybeEndJoinPhase(runtime, group);
  else prepareRebalance(runtime, group, reason);
}

function prepareRebalance(runtime: CoordinatorRuntime, group: ClassicGroup, reason: string): void {
  if (group.state === ClassicState.completingRebalance) failSyncs(runtime, group);
  runtime.stopTimer(group.syncPhase);
  group.transitionTo(ClassicState.preparingRebalance, runtime.wallMs);
  runtime.log(
    'info',
    `group ${group.groupId} rebalances after generation ${group.generationId}: ${reason}`,
  );
  if (group.isInitialRebalance) {
    const delayMs = runtime.options.initialRebalanceDelayMs;
    group.newMemberAdded = false;
    group.initialUntilMs = runtime.nowMs + Math.max(group.rebalanceTimeoutMs, delayMs);
    runtime.startTimer(group.joinPhase, delayMs);
  } else if (group.hasAllMembersJoined) {
    completeJoin(runtime, group);
  } else {
    runtime.startTimer(group.joinPhase, group.rebalanceTimeoutMs);
  }
}

/** The assignments of this generation are not coming: everybody has to join again. */
function failSyncs(runtime: CoordinatorRuntime, group: ClassicGroup): void {
  for (const member of group.members.values()) {
    member.assignment = noAssignment;
    answerSync(runtime, group, member, ErrorCode.REBALANCE_IN_PROGRESS);
  }
}

export function maybeEndJoinPhase(runtime: CoordinatorRuntime, group: ClassicGroup): void {
  if (group.state !== ClassicState.preparingRebalance || group.isInitialRebalance) return;
  if (group.hasAllMembersJoined) completeJoin(runtime, group);
}

/** The time for joining is over, or the first rebalance has waited for a while. */
function endJoinPhase(runtime: CoordinatorRuntime, group: ClassicGroup): void {
  if (group.state !== ClassicState.preparingRebalance) return;
  const leftMs = group.initialUntilMs - runtime.nowMs;
  if (group.isInitialRebalance && group.newMemberAdded && leftMs > 0) {
    group.newMemberAdded = false;
    const delayMs = Math.min(runtime.options.initialRebalanceDelayMs, leftMs);
    runtime.startTimer(group.joinPhase, delayMs);
    return;
  }
  completeJoin(runtime, group);
}

function completeJoin(runtime: CoordinatorRuntime, group: ClassicGroup): void {
  runtime.stopTimer(group.joinPhase);
  for (const member of group.members.values())
    if (member.joinToken === null && member.groupInstanceId === null) drop(runtime, group, member);
  if (group.members.size > 0 && !electLeader(group)) {
    // Only static members are left, and none of them has come: their sessions decide.
    runtime.startTimer(group.joinPhase, Math.max(group.rebalanceTimeoutMs, joinAgainMsMin));
    return;
  }
  group.beginGeneration(runtime.wallMs);
  if (group.state === ClassicState.empty) storeEmpty(runtime, group);
  else tellGeneration(runtime, group);
}

/** A leader must be somebody whose JoinGroup waits. */
function electLeader(group: ClassicGroup): boolean {
  const leader = group.leaderId === null ? undefined : group.members.get(group.leaderId);
  if (leader !== undefined && leader.joinToken !== null) return true;
  for (const member of group.members.values()) {
    if (member.joinToken === null) continue;
    group.leaderId = member.memberId;
    return true;
  }
  return false;
}

function storeEmpty(runtime: CoordinatorRuntime, group: ClassicGroup): void {
  runtime.log('info', `group ${group.groupId} is empty in generation ${group.generationId}`);
  runtime.append([groupRecord(group, () => noAssignment)], {
    committed: () => undefined,
    // After a restart the last members would be back until their sessions end: nothing is lost.
    failed: (error) =>
      runtime.log('warn', `group ${group.groupId}: that it is empty was not stored: ${error}`),
  });
}

function tellGeneration(runtime: CoordinatorRuntime, group: ClassicGroup): void {
  runtime.log(
    'info',
    `group ${group.groupId} has ${group.members.size} members in generation ${group.generationId}`,
  );
  runtime.startTimer(group.syncPhase, group.rebalanceTimeoutMs);
  for (const member of group.members.values()) {
    member.assignment = noAssignment;
    answerJoin(runtime, group, member, currentGeneration(group, member.memberId));
    member.isNew = false;
    restartSession(runtime, member);
  }
}

/** What a member is told of the generation; the leader hears of all members. */
export function currentGeneration(group: ClassicGroup, memberId: string): JoinGroupReply {
  return {
    errorCode: ErrorCode.NONE,
    generationId: group.generationId,
    protocolType: group.protocolType,
    protocolName: group.protocolName,
    leader: group.leaderId ?? '',
    skipAssignment: false,
    memberId,
    members: memberId === group.leaderId ? membersForLeader(group) : [],
  };
}

export function membersForLeader(group: ClassicGroup): JoinGroupReply['members'] {
  return [...group.members.values()].map((member) => ({
    memberId: member.memberId,
    groupInstanceId: member.groupInstanceId,
    metadata: metadataFor(member, group.protocolName),
  }));
}

/** Answers the JoinGroup that waits, if one does. */
export function answerJoin(
  runtime: CoordinatorRuntime,
  group: ClassicGroup,
  member: ClassicMember,
  body: JoinGroupReply,
): void {
  const token = member.joinToken;
  if (token === null) return;
  group.setJoinToken(member, null);
  runtime.reply(token, { api: 'JoinGroup', body });
}

export function failedJoin(memberId: string, errorCode: ErrorCode): JoinGroupReply {
  return {
    errorCode,
    generationId: -1,
    protocolType: null,
    protocolName: null,
    leader: '',
    skipAssignment: false,
    memberId,
    members: [],
  };
}

/**
 * Answers the SyncGroup that waits, if one does, with the member's assignment or an error. Its session begins anew: an end
 * that came while it waited has been passed over.
 */
export function answerSync(
  runtime: CoordinatorRuntime,
  group: ClassicGroup,
  member: ClassicMember,
  errorCode: ErrorCode,
): void {
  const token = member.syncToken;
  if (token === null) return;
  member.syncToken = null;
  const body = {
    errorCode,
    protocolType: errorCode === ErrorCode.NONE ? group.protocolType : null,
    protocolName: errorCode === ErrorCode.NONE ? group.protocolName : null,
    assignment: errorCode === ErrorCode.NONE ? member.assignment : noAssignment,
  };
  runtime.reply(token, { api: 'SyncGroup', body });
  restartSession(runtime, member);
}

/** Takes a member out. What it waits for is answered, so that its client, if there is one, joins again. */
export function drop(
  runtime: CoordinatorRuntime,
  group: ClassicGroup,
  member: ClassicMember,
): void {
  const errorCode = ErrorCode.UNKNOWN_MEMBER_ID;
  answerJoin(runtime, group, member, failedJoin(member.memberId, errorCode));
  answerSync(runtime, group, member, errorCode);
  runtime.stopTimer(member.session);
  group.remove(member);
}

/** What the group does once members are gone. */
export function afterLoss(runtime: CoordinatorRuntime, group: ClassicGroup, reason: string): void {
  switch (group.state) {
    case ClassicState.stable:
    case ClassicState.completingRebalance:
    case ClassicState.preparingRebalance:
      rebalance(runtime, group, reason);
      break;
    case ClassicState.empty:
    case ClassicState.dead:
      break;
  }
}

function endSession(runtime: CoordinatorRuntime, group: ClassicGroup, memberId: string): void {
  const member = group.members.get(memberId);
  if (member === undefined || !runtime.keeps('session expiry')) return;
  // Who waits for an answer is alive; its session begins again with the answer.
  if (!member.isNew && (member.joinToken !== null || member.syncToken !== null)) return;
  drop(runtime, group, member);
  afterLoss(runtime, group, `the session of ${memberId} has ended`);
}

/** The time for SyncGroup is over: who has not sent one is taken for dead. */
function endSyncPhase(runtime: CoordinatorRuntime, group: ClassicGroup): void {
  if (group.pendingSync.size === 0) return;
  if (group.state !== ClassicState.completingRebalance && group.state !== ClassicState.stable)
    return;
  const late = [...group.pendingSync];
  for (const memberId of late) {
    const member = group.members.get(memberId);
    if (member !== undefined) drop(runtime, group, member);
  }
  afterLoss(runtime, group, `no SyncGroup in time from ${late.join(', ')}`);
}
