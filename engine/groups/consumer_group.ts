/**
 * One group of the consumer protocol (KIP-848), as its records describe it: every change is a record that is replayed
 * here first, so that a change that could not be stored is undone by replaying what the records replaced.
 *
 * Thread and concurrency: as `GroupCoordinator`. Durability: memory runs ahead of the log; answers do not
 * (`consumer_change.ts`).
 *
 * States, which follow from the members:
 *   Empty         no members
 *   Assigning     the group's epoch is ahead of the target assignment's
 *   Reconciling   some member has not come to the target assignment
 *   Stable        all have
 *   Dead          its deletion is on the way to the log; empty again if that fails
 */
import assert from 'node:assert/strict';
import type { Hold } from './consumer_change.ts';
import { type ConsumerMember, MemberState, newConsumerMember } from './consumer_member.ts';
import type { CoordinatorRuntime } from './coordinator_runtime.ts';
import type {
  ConsumerGroupCurrentMemberAssignmentValue,
  ConsumerGroupMemberMetadataValue,
  GroupRecord,
} from './group_records.ts';
import {
  noPartitions,
  type PartitionEpochs,
  readPartitions,
  writePartitions,
} from './partition_epochs.ts';
import { newTimer } from './timers.ts';

export type ConsumerState = 'Empty' | 'Assigning' | 'Reconciling' | 'Stable' | 'Dead';

/** What happens when a member's time is over. */
export interface ConsumerTimeouts {
  session(group: ConsumerGroup, memberId: string): void;
  revocation(group: ConsumerGroup, memberId: string): void;
}

export class ConsumerGroup {
  readonly type = 'consumer';
  readonly protocolType = 'consumer';
  readonly groupId: string;
  readonly members: Map<string, ConsumerMember> = new Map();
  /** Member ids by instance id. */
  readonly staticMembers: Map<string, string> = new Map();
  /** How many members are subscribed to each topic. Invariant: all above 0. */
  readonly subscribers: Map<string, number> = new Map();
  /** By topic id and partition: the member that has it, or has yet to give it up. */
  readonly #owners = new Map<string, Map<number, string>>();
  epoch = 0;
  metadataHash = 0n;
  assignmentEpoch = 0;
  /** Wall clock: when the target assignment was computed. */
  assignmentMs = 0;
  /** Monotonic clock: before this the target assignment is not computed again. */
  nextAssignmentMs: number = -Infinity;
  /** Topics may not be what they were when the epoch began. */
  hasStaleMetadata: boolean = true;
  isDead: boolean = false;
  /** The last append, while it is undecided. */
  hold: Hold | null = null;
  readonly #runtime: CoordinatorRuntime;
  readonly #timeouts: ConsumerTimeouts;

  constructor(runtime: CoordinatorRuntime, groupId: string, timeouts: ConsumerTimeouts) {
    this.#runtime = runtime;
    this.groupId = groupId;
    this.#timeouts = timeouts;
  }

  get isEmpty(): boolean {
    return this.members.size === 0;
  }

  /** Linear in the members: for views. */
  get state(): ConsumerState {
    if (this.isDead) return 'Dead';
    if (this.isEmpty) return 'Empty';
    if (this.epoch > this.assignmentEpoch) return 'Assigning';
    for (const member of this.members.values())
      if (!this.isReconciled(member)) return 'Reconciling';
    return 'Stable';
  }

  isReconciled(member: ConsumerMember): boolean {
    return member.state === MemberState.stable && member.epoch === this.assignmentEpoch;
  }

  staticMember(instanceId: string): ConsumerMember | undefined {
    const memberId = this.staticMembers.get(instanceId);
    return memberId === undefined ? undefined : this.members.get(memberId);
  }

  ownerOf(topicId: string, partition: number): string | undefined {
    return this.#owners.get(topicId)?.get(partition);
  }

  restartSession(member: ConsumerMember): void {
    this.#runtime.startTimer(member.session, this.#runtime.options.consumerSessionTimeoutMs);
  }

  /** Applies a record of this group, and returns the record that takes it back. */
  replay(record: GroupRecord): GroupRecord {
    switch (record.type) {
      case 'ConsumerGroupMetadata': {
        const value = { epoch: this.epoch, metadataHash: this.metadataHash };
        this.epoch = record.value?.epoch ?? 0;
        this.metadataHash = record.value?.metadataHash ?? 0n;
        return { ...record, value };
      }
      case 'ConsumerGroupTargetAssignmentMetadata': {
        const value = {
          assignmentEpoch: this.assignmentEpoch,
          assignmentTimestamp: BigInt(this.assignmentMs),
        };
        this.assignmentEpoch = record.value?.assignmentEpoch ?? 0;
        this.assignmentMs = Number(record.value?.assignmentTimestamp ?? 0n);
        return { ...record, value };
      }
      case 'ConsumerGroupMemberMetadata': {
        const value = this.members.get(record.key.memberId)?.metadata ?? null;
        this.#setMetadata(record.key.memberId, record.value);
        return { ...record, value };
      }
      case 'ConsumerGroupTargetAssignmentMember': {
        const member = this.members.get(record.key.memberId);
        if (member === undefined) return { ...record, value: null };
        const value = { topicPartitions: member.target };
        member.target = record.value?.topicPartitions ?? [];
        return { ...record, value };
      }
      case 'ConsumerGroupCurrentMemberAssignment': {
        const member = this.members.get(record.key.memberId);
        if (member === undefined) return { ...record, value: null };
        const value = currentAssignment(member);
        this.#setCurrent(member, record.value);
        return { ...record, value };
      }
      case 'ConsumerGroupPartitionMetadata':
        return { ...record, value: null };
      case 'GroupMetadata':
      case 'OffsetCommit':
        assert.fail(`a ${record.type} record in consumer group ${this.groupId}`);
    }
  }

  #setMetadata(memberId: string, metadata: ConsumerGroupMemberMetadataValue | null): void {
    const known = this.members.get(memberId);
    if (known !== undefined) {
      this.#countTopics(known.metadata.subscribedTopicNames, -1);
      const { instanceId } = known.metadata;
      if (instanceId !== null) this.staticMembers.delete(instanceId);
    }
    if (metadata === null) {
      if (known !== undefined) this.#forget(known);
      return;
    }
    this.#countTopics(metadata.subscribedTopicNames, 1);
    if (metadata.instanceId !== null) this.staticMembers.set(metadata.instanceId, memberId);
    if (known !== undefined) {
      known.metadata = metadata;
      return;
    }
    const session = newTimer(() => this.#timeouts.session(this, memberId));
    const revocation = newTimer(() => this.#timeouts.revocation(this, memberId));
    const member = newConsumerMember(memberId, metadata, session, revocation);
    this.members.set(memberId, member);
    this.restartSession(member);
  }

  #forget(member: ConsumerMember): void {
    this.#release(member.memberId, member.assigned);
    this.#release(member.memberId, member.pendingRevocation);
    this.#runtime.stopTimer(member.session);
    this.#runtime.stopTimer(member.revocation);
    this.members.delete(member.memberId);
  }

  #setCurrent(
    member: ConsumerMember,
    value: ConsumerGroupCurrentMemberAssignmentValue | null,
  ): void {
    this.#release(member.memberId, member.assigned);
    this.#release(member.memberId, member.pendingRevocation);
    const epochBefore = member.epoch;
    const stateBefore = member.state;
    member.epoch = value?.memberEpoch ?? 0;
    member.previousEpoch = value?.previousMemberEpoch ?? 0;
    member.state = knownState(value?.state);
    member.assigned =
      value === null ? noPartitions : readPartitions(value.assignedPartitions, member.epoch);
    member.pendingRevocation =
      value === null
        ? noPartitions
        : readPartitions(value.partitionsPendingRevocation, member.epoch);
    this.#claim(member.memberId, member.assigned);
    this.#claim(member.memberId, member.pendingRevocation);
    if (member.state !== MemberState.unrevokedPartitions)
      this.#runtime.stopTimer(member.revocation);
    else if (stateBefore !== member.state || epochBefore !== member.epoch)
      this.#runtime.startTimer(member.revocation, member.metadata.rebalanceTimeoutMs);
  }

  #claim(memberId: string, partitions: PartitionEpochs): void {
    for (const [topicId, epochs] of partitions) {
      const owners = this.#owners.get(topicId) ?? new Map<number, string>();
      this.#owners.set(topicId, owners);
      for (const partition of epochs.keys()) owners.set(partition, memberId);
    }
  }

  #release(memberId: string, partitions: PartitionEpochs): void {
    for (const [topicId, epochs] of partitions) {
      const owners = this.#owners.get(topicId);
      for (const partition of epochs.keys())
        if (owners?.get(partition) === memberId) owners.delete(partition);
      if (owners?.size === 0) this.#owners.delete(topicId);
    }
  }

  #countTopics(names: readonly string[], by: 1 | -1): void {
    for (const name of names) {
      const count = (this.subscribers.get(name) ?? 0) + by;
      if (count === 0) this.subscribers.delete(name);
      else this.subscribers.set(name, count);
    }
  }
}

function knownState(state: number | undefined): MemberState {
  switch (state) {
    case MemberState.unrevokedPartitions:
    case MemberState.unreleasedPartitions:
      return state;
    default:
      return MemberState.stable;
  }
}

export function currentAssignment(
  member: ConsumerMember,
): ConsumerGroupCurrentMemberAssignmentValue {
  return {
    memberEpoch: member.epoch,
    previousMemberEpoch: member.previousEpoch,
    state: member.state,
    assignedPartitions: writePartitions(member.assigned),
    partitionsPendingRevocation: writePartitions(member.pendingRevocation),
  };
}
