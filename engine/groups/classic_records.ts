/** Classic groups as records of `__consumer_offsets`, and back. */
import type { ClassicGroup } from './classic_group.ts';
import { type ClassicMember, loadedMember, metadataFor } from './classic_member.ts';
import type { GroupMetadataValue, GroupRecord } from './group_records.ts';
import type { Timer } from './timers.ts';

/** The group as it is, with the assignments that `assignmentOf` tells. */
export function groupRecord(
  group: ClassicGroup,
  assignmentOf: (member: ClassicMember) => Uint8Array,
): GroupRecord {
  const members = [...group.members.values()].map((member) => ({
    memberId: member.memberId,
    groupInstanceId: member.groupInstanceId,
    clientId: member.clientId,
    clientHost: member.clientHost,
    rebalanceTimeout: member.rebalanceTimeoutMs,
    sessionTimeout: member.sessionTimeoutMs,
    subscription: metadataFor(member, group.protocolName),
    assignment: assignmentOf(member),
  }));
  const value = {
    protocolType: group.protocolType ?? '',
    generation: group.generationId,
    protocol: group.protocolName,
    leader: group.leaderId,
    currentStateTimestamp: BigInt(group.stateSinceMs),
    members,
  };
  return { type: 'GroupMetadata', key: { group: group.groupId }, value };
}

export function groupTombstone(groupId: string): GroupRecord {
  return { type: 'GroupMetadata', key: { group: groupId }, value: null };
}

/** Makes a group without members what a record tells. `sessionOf` gives each member its time-out, not yet running. */
export function restore(
  group: ClassicGroup,
  value: GroupMetadataValue,
  sessionOf: (memberId: string) => Timer,
): void {
  group.generationId = value.generation;
  group.protocolName = value.protocol;
  for (const record of value.members) {
    const session = sessionOf(record.memberId);
    group.add(loadedMember(record, value.protocol ?? '', session), value.protocolType);
  }
  group.protocolType = value.protocolType === '' ? null : value.protocolType;
  if (value.leader !== null && group.members.has(value.leader)) group.leaderId = value.leader;
  group.resume(Number(value.currentStateTimestamp));
  group.findSubscribedTopics();
}
