/** What must hold of a group coordinator at every moment, told from its records, its answers and what clients do. */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { GroupReply, GroupRequest, SyncGroupRequest } from '../../engine/groups/group_api.ts';
import type { GroupRecord, TopicPartitions } from '../../engine/groups/group_records.ts';

/** A consumer group's member as the log tells of it. */
interface LoggedMember {
  target: ReadonlySet<number>;
  assigned: ReadonlySet<number>;
  pendingRevocation: ReadonlySet<number>;
}

const nothing: ReadonlySet<number> = new Set();

export class GroupInvariants {
  /** State of the group as it was listed last, empty if it was not. */
  listedState = '';
  listedType = '';
  /** What the log says last, by group, topic and partition. */
  readonly #offsets = new Map<string, bigint>();
  /** By group and generation: who was told to own which partition. */
  readonly #owners = new Map<string, Map<number, Map<number, string>>>();
  /** By member id: the static instance. */
  readonly #instances = new Map<string, string>();
  /** Members of the consumer group. There is one topic. */
  readonly #members = new Map<string, LoggedMember>();
  /** What clients of the consumer group have in fact. */
  readonly #held = new Map<number, Set<string>>();

  stored(record: GroupRecord): void {
    switch (record.type) {
      case 'OffsetCommit':
        this.#offsetStored(record);
        break;
      case 'GroupMetadata':
        if (record.value === null) this.#owners.delete(record.key.group);
        for (const { memberId, groupInstanceId } of record.value?.members ?? [])
          if (groupInstanceId !== null) this.#instances.set(memberId, groupInstanceId);
        break;
      case 'ConsumerGroupMemberMetadata':
        if (record.value === null) this.#members.delete(record.key.memberId);
        else if (!this.#members.has(record.key.memberId))
          this.#members.set(record.key.memberId, {
            target: nothing,
            assigned: nothing,
            pendingRevocation: nothing,
          });
        break;
      case 'ConsumerGroupTargetAssignmentMember': {
        const member = this.#members.get(record.key.memberId);
        if (member !== undefined) member.target = flat(record.value?.topicPartitions ?? []);
        break;
      }
      case 'ConsumerGroupCurrentMemberAssignment':
        this.#currentStored(record);
        break;
      default:
        break;
    }
  }

  #offsetStored({ key, value }: GroupRecord & { type: 'OffsetCommit' }): void {
    const name = offsetKey(key.group, key.topic, key.partition);
    if (value === null) {
      this.#offsets.delete(name);
      return;
    }
    const before = this.#offsets.get(name) ?? -1n;
    assert(
      value.offset >= before,
      `committed offset of ${name} went back from ${before} to ${value.offset}`,
    );
    this.#offsets.set(name, value.offset);
  }

  /** No partition has two owners, and what a member has and is to keep it keeps. */
  #currentStored({
    key,
    value,
  }: GroupRecord & { type: 'ConsumerGroupCurrentMemberAssignment' }): void {
    const member = this.#members.get(key.memberId);
    if (member === undefined) return;
    const assigned = flat(value?.assignedPartitions ?? []);
    const pendingRevocation = flat(value?.partitionsPendingRevocation ?? []);
    for (const partition of [...assigned, ...pendingRevocation])
      for (const [memberId, other] of this.#members)
        if (memberId !== key.memberId)
          assert(
            !other.assigned.has(partition) && !other.pendingRevocation.has(partition),
            `partition ${partition} goes to ${key.memberId} while ${memberId} has it`,
          );
    if (value !== null)
      for (const partition of member.assigned)
        if (member.target.has(partition))
          assert(assigned.has(partition), `${key.memberId} has to pause ${partition}`);
    member.assigned = assigned;
    member.pendingRevocation = pendingRevocation;
  }

  /** A client begins to read a partition: no other member may still do so. */
  tookOver(groupId: string, memberId: string, partition: number): void {
    const holders = this.#held.get(partition) ?? new Set<string>();
    this.#held.set(partition, holders);
    holders.add(memberId);
    // Those that were put out may not know it yet; what they commit is refused.
    const members = [...holders].filter((holder) => this.#members.has(holder));
    assert(members.length <= 1, `${members.join(' and ')} of ${groupId} both read ${partition}`);
  }

  gaveUp(memberId: string, partition: number): void {
    this.#held.get(partition)?.delete(memberId);
  }

  gaveUpAll(memberId: string): void {
    for (const holders of this.#held.values()) holders.delete(memberId);
  }

  answered(request: GroupRequest, reply: GroupReply): void {
    if (reply.api === 'OffsetFetch' && reply.body.errorCode === ErrorCode.NONE) {
      const { groupId, topics } = reply.body;
      for (const { name, partitions } of topics)
        for (const { partitionIndex, committedOffset } of partitions) {
          const key = offsetKey(groupId, name, partitionIndex);
          const stored = this.#offsets.get(key) ?? -1n;
          assert.equal(committedOffset, stored, `the committed offset of ${key}`);
        }
    }
    if (reply.api === 'ListGroups') {
      this.listedState = reply.body.groups[0]?.groupState ?? '';
      this.listedType = reply.body.groups[0]?.groupType ?? '';
    }
    if (request.api === 'SyncGroup' && reply.api === 'SyncGroup')
      if (reply.body.errorCode === ErrorCode.NONE)
        this.#assigned(request.body, [...reply.body.assignment]);
  }

  /** At most one owner of a partition in a generation. */
  #assigned(request: SyncGroupRequest, partitions: readonly number[]): void {
    const { groupId, generationId, memberId } = request;
    const owner = this.#instances.get(memberId) ?? memberId;
    const generations = this.#owners.get(groupId) ?? new Map<number, Map<number, string>>();
    this.#owners.set(groupId, generations);
    const owners = generations.get(generationId) ?? new Map<number, string>();
    generations.set(generationId, owners);
    for (const partition of partitions) {
      const known = owners.get(partition) ?? owner;
      assert.equal(
        owner,
        known,
        `owner of ${groupId}'s partition ${partition} in generation ${generationId}`,
      );
      owners.set(partition, owner);
    }
  }
}

function flat(topics: readonly TopicPartitions[]): ReadonlySet<number> {
  return new Set(topics.flatMap(({ partitions }) => partitions));
}

function offsetKey(group: string, topic: string, partition: number): string {
  return `${group} ${topic}-${partition}`;
}
