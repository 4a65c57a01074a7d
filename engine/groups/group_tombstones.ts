/** The records that delete a group without members. */
import { groupTombstone } from './classic_records.ts';
import type { GroupRecord } from './group_records.ts';
import type { Group } from './group_table.ts';

export function groupTombstones({ type, groupId }: Group): GroupRecord[] {
  if (type === 'classic') return [groupTombstone(groupId)];
  const key = { groupId };
  return [
    { type: 'ConsumerGroupTargetAssignmentMetadata', key, value: null },
    { type: 'ConsumerGroupPartitionMetadata', key, value: null },
    { type: 'ConsumerGroupMetadata', key, value: null },
  ];
}
