/** Groups as administrators see them: ListGroups and DescribeGroups. */
import { ErrorCode } from '../error_code.gen.ts';
import { type ClassicGroup, ClassicState } from './classic_group.ts';
import { metadataFor, noAssignment } from './classic_member.ts';
import type { DescribeGroupReply, ListGroupsReply, ListGroupsRequest } from './group_api.ts';
import { type Group, type GroupTable, isDeadGroup } from './group_table.ts';

export function listGroups(table: GroupTable, request: ListGroupsRequest): ListGroupsReply {
  const lower = (names: readonly string[]): string[] => names.map((name) => name.toLowerCase());
  const states = lower(request.statesFilter);
  const types = lower(request.typesFilter);
  const groups = [...table.all]
    .filter(({ type }) => types.length === 0 || types.includes(type))
    .map((group) => ({
      groupId: group.groupId,
      protocolType: group.protocolType ?? '',
      groupState: group.state,
      groupType: group.type,
    }))
    .filter(({ groupState }) => states.length === 0 || states.includes(groupState.toLowerCase()));
  return { errorCode: ErrorCode.NONE, groups };
}

/** A group that is not there, or of the other type, is described as dead. */
export function describeClassic(group: Group | undefined, groupId: string): DescribeGroupReply {
  if (group === undefined || isDeadGroup(group))
    return describeMissing(groupId, `Group ${groupId} not found.`);
  if (group.type !== 'classic')
    return describeMissing(groupId, `Group ${groupId} is not a classic group.`);
  const isStable = group.state === ClassicState.stable;
  return {
    errorCode: ErrorCode.NONE,
    errorMessage: null,
    groupId,
    groupState: group.state,
    protocolType: group.protocolType ?? '',
    protocolData: isStable ? (group.protocolName ?? '') : '',
    members: describeMembers(group, isStable),
  };
}

function describeMissing(groupId: string, errorMessage: string): DescribeGroupReply {
  return {
    errorCode: ErrorCode.GROUP_ID_NOT_FOUND,
    errorMessage,
    groupId,
    groupState: ClassicState.dead,
    protocolType: '',
    protocolData: '',
    members: [],
  };
}

function describeMembers(group: ClassicGroup, isStable: boolean): DescribeGroupReply['members'] {
  return [...group.members.values()].map((member) => ({
    memberId: member.memberId,
    groupInstanceId: member.groupInstanceId,
    clientId: member.clientId,
    clientHost: member.clientHost,
    memberMetadata: isStable ? metadataFor(member, group.protocolName) : noAssignment,
    memberAssignment: isStable ? member.assignment : noAssignment,
  }));
}
