/** Consumer groups of both protocols: listed, described, deleted; their offsets read, set and deleted. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { decodeVersioned } from '../protocol/record_codec.ts';
import { type AdminOptions, quoted } from './admin_options.ts';
import type { Cluster } from './cluster.ts';
import type { TopicPartition } from './consumer/topic_partition.ts';
import { brokerError, MillraceError } from './errors.ts';

export interface GroupListing {
  readonly groupId: string;
  /** `classic`, `consumer` (KIP-848), `share`, …; '' where the broker does not tell it. */
  readonly type: string;
  /** `consumer` for groups of consumers. */
  readonly protocolType: string;
  /** `Stable`, `Empty`, …; '' where the broker does not tell it. */
  readonly state: string;
}

export interface GroupMember {
  readonly memberId: string;
  /** Of a static member (KIP-345), else null. */
  readonly instanceId: string | null;
  readonly clientId: string;
  readonly host: string;
  readonly assignment: readonly TopicPartition[];
}

export interface GroupDescription {
  readonly groupId: string;
  readonly type: 'classic' | 'consumer';
  readonly state: string;
  /** The assignor's name, '' where there is none. */
  readonly assignor: string;
  /** The broker that looks after the group. */
  readonly coordinatorId: number;
  readonly members: readonly GroupMember[];
}

export interface GroupOffset extends TopicPartition {
  /** The next one that the group is to read. */
  readonly offset: number;
  readonly metadata: string;
}

/** Up to this version topics go by name. */
const namesVersionMax = 9;
/** From this version on a request may ask for several groups. */
const groupsVersion = 8;

/** Of all brokers, by id. */
export async function listGroups(
  cluster: Cluster,
  options: AdminOptions = {},
): Promise<GroupListing[]> {
  await cluster.refresh();
  const groups = new Map<string, GroupListing>();
  await Promise.all(
    [...cluster.metadata.brokers.keys()].map(async (brokerId) => {
      const reply = await cluster.request(
        brokerId,
        'ListGroups',
        {},
        { ...options, errorOf: ({ errorCode }) => errorCode },
      );
      if (reply.errorCode !== ErrorCode.NONE)
        throw brokerError(reply.errorCode, `listing groups of broker ${brokerId}`);
      for (const { groupId, groupType: type, protocolType, groupState: state } of reply.groups)
        groups.set(groupId, { groupId, type: type.toLowerCase(), protocolType, state });
    }),
  );
  return [...groups.values()].sort((a, b) => (a.groupId < b.groupId ? -1 : 1));
}

/** Throws GROUP_ID_NOT_FOUND. */
export async function describeGroup(
  cluster: Cluster,
  groupId: string,
  options: AdminOptions = {},
): Promise<GroupDescription> {
  const coordinatorId = await cluster.coordinator(groupId, options.signal);
  const found = await describeConsumerGroup(cluster, groupId, coordinatorId, options);
  return found ?? (await describeClassicGroup(cluster, groupId, coordinatorId, options));
}

/** Null when it is no group of that protocol, or the broker does not know the protocol. */
async function describeConsumerGroup(
  cluster: Cluster,
  groupId: string,
  coordinatorId: number,
  options: AdminOptions,
): Promise<GroupDescription | null> {
  try {
    const reply = await cluster.request(
      { group: groupId },
      'ConsumerGroupDescribe',
      { groupIds: [groupId], includeAuthorizedOperations: false },
      { ...options, errorOf: ({ groups }) => groups[0]?.errorCode ?? ErrorCode.NONE },
    );
    const group = reply.groups[0];
    if (group === undefined || group.errorCode !== ErrorCode.NONE) return null;
    return {
      ...{ groupId, type: 'consumer', state: group.groupState, assignor: group.assignorName },
      coordinatorId,
      members: group.members.map((member) => ({
        memberId: member.memberId,
        instanceId: member.instanceId,
        clientId: member.clientId,
        host: member.clientHost.replace(/^\//, ''),
        assignment: member.assignment.topicPartitions.flatMap(({ topicName: topic, partitions }) =>
          partitions.map((partition) => ({ topic, partition })),
        ),
      })),
    };
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'UNSUPPORTED_VERSION') return null;
    throw error;
  }
}

async function describeClassicGroup(
  cluster: Cluster,
  groupId: string,
  coordinatorId: number,
  options: AdminOptions,
): Promise<GroupDescription> {
  const reply = await cluster.request(
    { group: groupId },
    'DescribeGroups',
    { groups: [groupId] },
    { ...options, errorOf: ({ groups }) => groups[0]?.errorCode ?? ErrorCode.NONE },
  );
  const group = reply.groups[0];
  const what = `describing group ${quoted(groupId)}`;
  if (group === undefined) throw brokerError(ErrorCode.UNKNOWN_SERVER_ERROR, what);
  // Before version 6 a group that is not there is called dead (KIP-1043).
  const errorCode = group.groupState === 'Dead' ? ErrorCode.GROUP_ID_NOT_FOUND : group.errorCode;
  if (errorCode !== ErrorCode.NONE) throw brokerError(errorCode, what, group.errorMessage);
  return {
    ...{ groupId, type: 'classic', state: group.groupState, assignor: group.protocolData },
    coordinatorId,
    members: group.members.map((member) => ({
      memberId: member.memberId,
      instanceId: member.groupInstanceId,
      clientId: member.clientId,
      host: member.clientHost.replace(/^\//, ''),
      assignment: assignmentOf(member.memberAssignment),
    })),
  };
}

/** What a consumer's assignment says; that of other kinds of members is not known. */
function assignmentOf(bytes: Uint8Array): TopicPartition[] {
  if (bytes.length === 0) return [];
  try {
    const { value } = decodeVersioned('ConsumerProtocolAssignment', bytes);
    return value.assignedPartitions.flatMap(({ topic, partitions }) =>
      partitions.map((partition) => ({ topic, partition })),
    );
  } catch {
    return [];
  }
}

/** With its offsets. Throws NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND. */
export async function deleteGroup(
  cluster: Cluster,
  groupId: string,
  options: AdminOptions = {},
): Promise<void> {
  const reply = await cluster.request(
    { group: groupId },
    'DeleteGroups',
    { groupsNames: [groupId] },
    {
      ...{ signal: options.signal, timeoutMs: options.timeoutMs, isRepeatable: false },
      errorOf: ({ results }) => results[0]?.errorCode ?? ErrorCode.NONE,
    },
  );
  const { errorCode = ErrorCode.UNKNOWN_SERVER_ERROR, errorMessage } = reply.results[0] ?? {};
  if (errorCode !== ErrorCode.NONE)
    throw brokerError(errorCode, `deleting group ${quoted(groupId)}`, errorMessage);
}

/** What the group has committed, by topic and partition; nothing for a group that is not there. */
export async function groupOffsets(
  cluster: Cluster,
  groupId: string,
  options: AdminOptions = {},
): Promise<GroupOffset[]> {
  const reply = await cluster.request(
    { group: groupId },
    'OffsetFetch',
    (version) =>
      version >= groupsVersion
        ? { groups: [{ groupId, topics: null }] }
        : { groupId, topics: null },
    {
      ...options,
      // From version 2 on null stands for all topics.
      ...{ minVersion: 2, maxVersion: namesVersionMax },
      errorOf: ({ groups, errorCode }) => groups[0]?.errorCode ?? errorCode,
    },
  );
  const group = reply.groups[0] ?? reply;
  if (group.errorCode !== ErrorCode.NONE)
    throw brokerError(group.errorCode, `offsets of group ${quoted(groupId)}`);
  const offsets: GroupOffset[] = [];
  for (const { name: topic, partitions } of group.topics)
    for (const { partitionIndex: partition, committedOffset, metadata } of partitions) {
      if (committedOffset < 0n) continue;
      offsets.push({ topic, partition, offset: Number(committedOffset), metadata: metadata ?? '' });
    }
  return offsets.sort(byPartition);
}

/** Sets what a group without members has committed. Throws UNKNOWN_MEMBER_ID (the group has members), … */
export async function alterGroupOffsets(
  cluster: Cluster,
  groupId: string,
  offsets: readonly (TopicPartition & { readonly offset: number; readonly metadata?: string })[],
  options: AdminOptions = {},
): Promise<void> {
  const topics = [...Map.groupBy(offsets, ({ topic }) => topic)].map(([name, list]) => ({
    name,
    partitions: list.map(({ partition, offset, metadata = '' }) => ({
      partitionIndex: partition,
      committedOffset: BigInt(offset),
      committedMetadata: metadata,
    })),
  }));
  const reply = await cluster.request(
    { group: groupId },
    'OffsetCommit',
    { groupId, memberId: '', topics },
    {
      ...{ signal: options.signal, timeoutMs: options.timeoutMs, maxVersion: namesVersionMax },
      errorOf: ({ topics: answers }) => firstError(answers).errorCode,
    },
  );
  const { errorCode, where } = firstError(reply.topics);
  if (errorCode === ErrorCode.NONE) return;
  const hasMembers =
    errorCode === ErrorCode.UNKNOWN_MEMBER_ID || errorCode === ErrorCode.ILLEGAL_GENERATION;
  throw brokerError(
    errorCode,
    `setting offsets of group ${quoted(groupId)}, ${where}`,
    hasMembers ? 'the group has members' : null,
    hasMembers ? { remedy: 'Stop the consumers of the group first.', isRetriable: false } : {},
  );
}

/** Forgets what was committed. Throws GROUP_SUBSCRIBED_TO_TOPIC, GROUP_ID_NOT_FOUND, … */
export async function deleteGroupOffsets(
  cluster: Cluster,
  groupId: string,
  partitions: readonly TopicPartition[],
  options: AdminOptions = {},
): Promise<void> {
  const topics = [...Map.groupBy(partitions, ({ topic }) => topic)].map(([name, list]) => ({
    name,
    partitions: list.map(({ partition }) => ({ partitionIndex: partition })),
  }));
  const reply = await cluster.request(
    { group: groupId },
    'OffsetDelete',
    { groupId, topics },
    { ...options, errorOf: ({ errorCode }) => errorCode },
  );
  const what = `deleting offsets of group ${quoted(groupId)}`;
  if (reply.errorCode !== ErrorCode.NONE) throw brokerError(reply.errorCode, what);
  const { errorCode, where } = firstError(reply.topics);
  if (errorCode !== ErrorCode.NONE) throw brokerError(errorCode, `${what}, ${where}`);
}

interface TopicErrors {
  readonly name: string;
  readonly partitions: readonly { readonly partitionIndex: number; readonly errorCode: number }[];
}

function firstError(topics: readonly TopicErrors[]): {
  readonly errorCode: number;
  readonly where: string;
} {
  for (const { name, partitions } of topics)
    for (const { partitionIndex, errorCode } of partitions)
      if (errorCode !== ErrorCode.NONE) return { errorCode, where: `${name}-${partitionIndex}` };
  return { errorCode: ErrorCode.NONE, where: '' };
}

function byPartition(a: TopicPartition, b: TopicPartition): number {
  if (a.topic !== b.topic) return a.topic < b.topic ? -1 : 1;
  return a.partition - b.partition;
}
