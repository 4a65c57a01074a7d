/**
 * Builds a coordinator's groups from the records of its partition.
 *
 * Thread and concurrency: as `GroupCoordinator`, which has one while it loads.
 */
import { newSession, rebalance, restartSession } from './classic_rebalance.ts';
import { restore } from './classic_records.ts';
import type { CoordinatorRuntime } from './coordinator_runtime.ts';
import type { GroupMetadataValue, GroupRecord } from './group_records.ts';
import type { GroupTable } from './group_table.ts';

/** What is known of a consumer group, by kind of record and member. */
type ConsumerRecords = Map<string, GroupRecord>;

/** A group's own records come first, then its members, then what members have. */
const replayOrder: readonly GroupRecord['type'][] = [
  'ConsumerGroupMetadata',
  'ConsumerGroupTargetAssignmentMetadata',
  'ConsumerGroupMemberMetadata',
  'ConsumerGroupTargetAssignmentMember',
  'ConsumerGroupCurrentMemberAssignment',
];

/**
 * Of each key the last record counts. Offsets are taken over as they come, groups once all is read: a cleaned log keeps
 * the order of keys, not the order in which they first came.
 */
export class CoordinatorLoader {
  readonly #runtime: CoordinatorRuntime;
  readonly #table: GroupTable;
  readonly #classic = new Map<string, GroupMetadataValue>();
  readonly #consumer = new Map<string, ConsumerRecords>();
  readonly #groupsWithOffsets = new Set<string>();

  constructor(runtime: CoordinatorRuntime, table: GroupTable) {
    this.#runtime = runtime;
    this.#table = table;
  }

  load(records: readonly GroupRecord[]): void {
    for (const record of records) this.#load(record);
  }

  /** Everything has been read: sessions begin now, for nobody could heartbeat before. */
  finish(): void {
    for (const [groupId, records] of this.#consumer) this.#restoreConsumer(groupId, records);
    // Both are there only if an empty consumer group became a classic one and its tombstones were lost.
    for (const [groupId, value] of this.#classic) this.#restoreClassic(groupId, value);
    for (const groupId of this.#groupsWithOffsets) {
      const isKnown = this.#table.get(groupId) !== undefined;
      if (this.#table.offsetsFor(groupId).count === 0) this.#table.forgetOffsets(groupId);
      // Somebody who is no member keeps offsets here.
      else if (!isKnown) this.#table.newClassic(groupId);
    }
  }

  #load(record: GroupRecord): void {
    switch (record.type) {
      case 'OffsetCommit': {
        const { key, value } = record;
        this.#groupsWithOffsets.add(key.group);
        const offsets = this.#table.offsetsFor(key.group);
        const isOld = offsets.get(key.topic, key.partition) !== undefined;
        if (!isOld || this.#runtime.keeps('load order')) offsets.apply(key, value);
        break;
      }
      case 'GroupMetadata':
        if (record.value === null) this.#classic.delete(record.key.group);
        else this.#classic.set(record.key.group, record.value);
        break;
      case 'ConsumerGroupPartitionMetadata':
        break;
      default:
        this.#loadConsumer(record.key.groupId, record);
    }
  }

  #loadConsumer(groupId: string, record: GroupRecord): void {
    const records = this.#consumer.get(groupId) ?? new Map<string, GroupRecord>();
    const memberId = 'memberId' in record.key ? record.key.memberId : '';
    const key = `${record.type} ${memberId}`;
    if (record.value === null) records.delete(key);
    else records.set(key, record);
    if (records.size === 0) this.#consumer.delete(groupId);
    else this.#consumer.set(groupId, records);
  }

  #restoreClassic(groupId: string, value: GroupMetadataValue): void {
    const runtime = this.#runtime;
    const group = this.#table.newClassic(groupId);
    restore(group, value, (memberId) => newSession(runtime, group, memberId));
    for (const member of group.members.values()) restartSession(runtime, member);
    if (group.members.size > runtime.options.maxSize)
      rebalance(runtime, group, 'it has more members than group.max.size allows');
  }

  #restoreConsumer(groupId: string, records: ConsumerRecords): void {
    const group = this.#table.newConsumer(groupId);
    for (const type of replayOrder)
      for (const record of records.values()) if (record.type === type) group.replay(record);
    // What is left of a group that was deleted, its last records being further on.
    if (group.epoch === 0 && group.isEmpty) this.#table.restore(groupId, undefined);
  }
}
