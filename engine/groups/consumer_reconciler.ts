/**
 * The way of one member from what it has to what it is to have (KIP-848): first it gives up what is taken from it, and
 * only then goes on to the new epoch; it gets what is new to it as soon as nobody else has it. What it keeps it keeps
 * all the time.
 */
import { type ConsumerGroup, currentAssignment } from './consumer_group.ts';
import { type ConsumerMember, MemberState } from './consumer_member.ts';
import type {
  ConsumerGroupCurrentMemberAssignmentValue,
  GroupRecord,
  TopicPartitions,
} from './group_records.ts';
import {
  addPartition,
  type MutablePartitionEpochs,
  noPartitions,
  overlap,
  type PartitionEpochs,
  writePartitions,
} from './partition_epochs.ts';

/**
 * The record that takes the member a step further, null if there is no step to take.
 * `owned`: what the member says it has, null if it does not say. `checksOwners` is false only in tests.
 */
export function reconcile(
  group: ConsumerGroup,
  member: ConsumerMember,
  owned: readonly TopicPartitions[] | null,
  checksOwners: boolean,
): GroupRecord | null {
  if (group.isReconciled(member)) return null;
  let { epoch } = member;
  if (member.state === MemberState.unrevokedPartitions) {
    // Until it says that it has given up all of it, nothing moves.
    if (owned === null || overlap(owned, member.pendingRevocation)) return null;
    epoch += 1;
  }
  const value = nextAssignment(group, member, epoch, owned, checksOwners);
  if (isSame(value, member)) return null;
  const key = { groupId: group.groupId, memberId: member.memberId };
  return { type: 'ConsumerGroupCurrentMemberAssignment', key, value };
}

function nextAssignment(
  group: ConsumerGroup,
  member: ConsumerMember,
  epoch: number,
  owned: readonly TopicPartitions[] | null,
  checksOwners: boolean,
): ConsumerGroupCurrentMemberAssignmentValue {
  const kept: MutablePartitionEpochs = new Map();
  const added: MutablePartitionEpochs = new Map();
  let hasUnreleased = false;
  for (const { topicId, partitions } of member.target) {
    const has = member.assigned.get(topicId);
    for (const partition of partitions) {
      const since = has?.get(partition);
      if (since !== undefined) {
        addPartition(kept, topicId, partition, since);
        continue;
      }
      const owner = group.ownerOf(topicId, partition);
      // What it has just given up itself still stands in its name.
      const isFree = owner === undefined || owner === member.memberId || !checksOwners;
      if (isFree) addPartition(added, topicId, partition, group.assignmentEpoch);
      else hasUnreleased = true;
    }
  }
  const revoked = difference(member.assigned, kept);
  if (revoked.size > 0 && (owned === null || overlap(owned, revoked)))
    return assignmentValue(member, epoch, MemberState.unrevokedPartitions, kept, revoked);
  for (const [topicId, partitions] of added)
    for (const [partition, since] of partitions) addPartition(kept, topicId, partition, since);
  const state = hasUnreleased ? MemberState.unreleasedPartitions : MemberState.stable;
  return assignmentValue(member, group.assignmentEpoch, state, kept, noPartitions);
}

function assignmentValue(
  member: ConsumerMember,
  epoch: number,
  state: MemberState,
  assigned: PartitionEpochs,
  pendingRevocation: PartitionEpochs,
): ConsumerGroupCurrentMemberAssignmentValue {
  return {
    memberEpoch: epoch,
    previousMemberEpoch: member.epoch,
    state,
    assignedPartitions: writePartitions(assigned),
    partitionsPendingRevocation: writePartitions(pendingRevocation),
  };
}

function difference(all: PartitionEpochs, less: PartitionEpochs): PartitionEpochs {
  const left: MutablePartitionEpochs = new Map();
  for (const [topicId, partitions] of all)
    for (const [partition, epoch] of partitions)
      if (less.get(topicId)?.has(partition) !== true) addPartition(left, topicId, partition, epoch);
  return left;
}

/** While it waits for others, most heartbeats change nothing. */
function isSame(value: ConsumerGroupCurrentMemberAssignmentValue, member: ConsumerMember): boolean {
  if (value.memberEpoch !== member.epoch || value.state !== member.state) return false;
  if (value.state === MemberState.unrevokedPartitions) return false;
  return countOf(value) === sizeOf(member.assigned);
}

/** In the same epoch and state partitions are only added, so that counting them is enough. */
function countOf(value: ConsumerGroupCurrentMemberAssignmentValue): number {
  let count = 0;
  for (const { partitions } of value.assignedPartitions) count += partitions.length;
  return count;
}

function sizeOf(partitions: PartitionEpochs): number {
  let size = 0;
  for (const epochs of partitions.values()) size += epochs.size;
  return size;
}

/** The record that makes a static member wait for its return: it keeps what it had (KIP-848, epoch -2). */
export function awayRecord(
  group: ConsumerGroup,
  member: ConsumerMember,
  epoch: number,
): GroupRecord {
  const key = { groupId: group.groupId, memberId: member.memberId };
  const value = {
    ...currentAssignment(member),
    memberEpoch: epoch,
    previousMemberEpoch: member.epoch,
    state: MemberState.stable,
    partitionsPendingRevocation: [],
  };
  return { type: 'ConsumerGroupCurrentMemberAssignment', key, value };
}
