/** What takes offsets and groups away: DeleteGroups, OffsetDelete, deleted topics, and time (KIP-211). */
import { ErrorCode } from '../error_code.gen.ts';
import { ClassicState } from './classic_group.ts';
import type { CoordinatorRuntime, Outcome } from './coordinator_runtime.ts';
import type { OffsetDeleteReply, OffsetDeleteRequest } from './group_api.ts';
import type { GroupOffsets } from './group_offsets.ts';
import type { GroupRecord, OffsetCommitKey, OffsetCommitValue } from './group_records.ts';
import { type Group, type GroupTable, isDeadGroup, isEmptyGroup } from './group_table.ts';
import { groupTombstones } from './group_tombstones.ts';

/** Tombstones in one batch: far below the least `max.message.bytes` that anybody sets. */
const recordsPerAppend = 500;

/**
 * Appends in as many batches as it takes, and forgets offsets as their tombstones are committed: commits that stand later
 * in the log stay. `outcome` hears of the last batch, or of the first that fails.
 */
function appendAll(
  runtime: CoordinatorRuntime,
  offsets: GroupOffsets | undefined,
  records: readonly GroupRecord[],
  outcome: Outcome,
): void {
  let isOver = false;
  for (let at = 0; at < records.length; at += recordsPerAppend) {
    const batch = records.slice(at, at + recordsPerAppend);
    const isLast = at + recordsPerAppend >= records.length;
    runtime.append(batch, {
      committed: () => {
        for (const record of batch)
          if (record.type === 'OffsetCommit') offsets?.apply(record.key, null);
        if (isLast) outcome.committed();
      },
      failed: (error) => {
        if (!isOver) outcome.failed(error);
        isOver = true;
      },
    });
  }
}

function offsetTombstones(keys: readonly OffsetCommitKey[]): GroupRecord[] {
  return keys.map((key) => ({ type: 'OffsetCommit', key, value: null }));
}

/** Why a group cannot be deleted, NONE if it can. */
export function checkRemovable(group: Group | undefined): ErrorCode {
  if (group === undefined || group.state === ClassicState.dead) return ErrorCode.GROUP_ID_NOT_FOUND;
  return group.state === ClassicState.empty ? ErrorCode.NONE : ErrorCode.NON_EMPTY_GROUP;
}

/** Deletes an empty group with its offsets. It is dead until that is committed, and empty again if it fails. */
export function removeGroup(
  runtime: CoordinatorRuntime,
  table: GroupTable,
  group: Group,
  outcome: Outcome,
): void {
  setDead(runtime, group, true);
  const offsets = table.offsetsOf(group.groupId);
  const tombstones = offsetTombstones(offsets?.keys(null) ?? []);
  appendAll(runtime, offsets, [...tombstones, ...groupTombstones(group)], {
    committed: () => {
      table.delete(group);
      outcome.committed();
    },
    failed: (error) => {
      setDead(runtime, group, false);
      outcome.failed(error);
    },
  });
}

function setDead(runtime: CoordinatorRuntime, group: Group, isDead: boolean): void {
  if (group.type === 'consumer') {
    group.isDead = isDead;
    return;
  }
  const since = group.stateSinceMs;
  group.transitionTo(isDead ? ClassicState.dead : ClassicState.empty, since);
  for (const timer of group.pendingMembers.values()) runtime.stopTimer(timer);
  group.pendingMembers.clear();
}

/** OffsetDelete (KIP-496): not of topics that the group is subscribed to. */
export function deleteOffsets(
  runtime: CoordinatorRuntime,
  table: GroupTable,
  token: number,
  request: OffsetDeleteRequest,
): void {
  const group = table.get(request.groupId);
  const reply = (body: OffsetDeleteReply): void =>
    runtime.reply(token, { api: 'OffsetDelete', body });
  const refusal = checkDeletable(group);
  if (group === undefined || refusal !== ErrorCode.NONE) {
    reply({ errorCode: refusal, topics: [] });
    return;
  }
  const offsets = table.offsetsFor(request.groupId);
  const keys: OffsetCommitKey[] = [];
  const topics = request.topics.map(({ name, partitions }) => {
    const errorCode = isSubscribed(group, name)
      ? ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
      : ErrorCode.NONE;
    for (const { partitionIndex: partition } of partitions) {
      const exists =
        offsets.get(name, partition) !== undefined || offsets.isUnderWay(name, partition);
      if (errorCode === ErrorCode.NONE && exists)
        keys.push({ group: request.groupId, topic: name, partition });
    }
    const answers = partitions.map(({ partitionIndex }) => ({ partitionIndex, errorCode }));
    return { name, partitions: answers };
  });
  if (keys.length === 0) {
    reply({ errorCode: ErrorCode.NONE, topics });
    return;
  }
  appendAll(runtime, offsets, offsetTombstones(keys), {
    committed: () => reply({ errorCode: ErrorCode.NONE, topics }),
    failed: (errorCode) => reply({ errorCode, topics: [] }),
  });
}

/** Of members that are no consumers it cannot be told what they use. */
function checkDeletable(group: Group | undefined): ErrorCode {
  if (group === undefined || isDeadGroup(group)) return ErrorCode.GROUP_ID_NOT_FOUND;
  const isKnown = group.type === 'consumer' || isEmptyGroup(group) || group.usesConsumerProtocol;
  return isKnown ? ErrorCode.NONE : ErrorCode.NON_EMPTY_GROUP;
}

function isSubscribed(group: Group, topic: string): boolean {
  if (group.type === 'consumer') return group.subscribers.has(topic);
  if (group.state === ClassicState.empty) return false;
  return group.subscribedTopics === null || group.subscribedTopics.has(topic);
}

/** A topic is gone, and with it what was committed of it. */
export function removeTopic(runtime: CoordinatorRuntime, table: GroupTable, topic: string): void {
  for (const group of table.all) {
    const offsets = table.offsetsOf(group.groupId);
    const keys = offsets?.keys(topic) ?? [];
    if (offsets === undefined || keys.length === 0) continue;
    appendAll(runtime, offsets, offsetTombstones(keys), {
      committed: () => undefined,
      failed: (error) =>
        runtime.log(
          'warn',
          `group ${group.groupId}: offsets of the deleted topic ${topic} were not removed: error ${error}`,
        ),
    });
  }
}

/** Takes away what has expired of these groups, and those that are left with nothing. */
export function expire(
  runtime: CoordinatorRuntime,
  table: GroupTable,
  groups: readonly Group[],
): void {
  for (const group of groups) {
    if (isDeadGroup(group) || table.get(group.groupId) !== group) continue;
    const offsets = table.offsetsOf(group.groupId);
    const expired = offsets === undefined ? [] : expiredKeys(runtime, group, offsets);
    const isDone =
      isEmptyGroup(group) &&
      (group.type === 'consumer' || group.pendingMembers.size === 0) &&
      (offsets === undefined || (offsets.count === expired.length && !offsets.hasUnderWay));
    const outcome = {
      committed: () => undefined,
      failed: (error: ErrorCode) =>
        runtime.log('warn', `group ${group.groupId}: expiry could not be stored: error ${error}`),
    };
    if (isDone) {
      runtime.log('info', `group ${group.groupId} has expired`);
      removeGroup(runtime, table, group, outcome);
    } else if (offsets !== undefined && expired.length > 0) {
      runtime.log('info', `group ${group.groupId}: ${expired.length} offsets have expired`);
      appendAll(runtime, offsets, offsetTombstones(expired), outcome);
    }
  }
}

function expiredKeys(
  runtime: CoordinatorRuntime,
  group: Group,
  offsets: GroupOffsets,
): OffsetCommitKey[] {
  const keys: OffsetCommitKey[] = [];
  for (const [topic, partitions] of offsets.topics) {
    if (!mayExpire(group, topic)) continue;
    for (const [partition, value] of partitions)
      if (isExpired(runtime, group, value) && !offsets.isUnderWay(topic, partition))
        keys.push({ group: group.groupId, topic, partition });
  }
  return keys;
}

/** A topic's offsets are kept as long as somebody is subscribed to it, or that cannot be told. */
function mayExpire(group: Group, topic: string): boolean {
  if (group.type === 'consumer') return !group.subscribers.has(topic);
  switch (group.state) {
    case ClassicState.empty:
      return true;
    case ClassicState.stable:
      return group.subscribedTopics !== null && !group.subscribedTopics.has(topic);
    default:
      return false;
  }
}

function isExpired(runtime: CoordinatorRuntime, group: Group, value: OffsetCommitValue): boolean {
  if (value.expireTimestamp >= 0n) return runtime.wallMs >= value.expireTimestamp;
  const committedMs = Number(value.commitTimestamp);
  // The retention of a group that had members begins when the last one has left.
  const sinceMs =
    group.type === 'classic' && isEmptyGroup(group) && group.protocolType !== null
      ? Math.max(group.stateSinceMs, 0) || committedMs
      : committedMs;
  return runtime.wallMs - sinceMs >= runtime.options.offsetsRetentionMs;
}
