/** Requests of the group APIs, for the same tests as those of `request_table.ts`. */
import type { MessageInputs } from '../../../net/protocol/messages.gen.ts';
import { names, type RequestsOf } from './request_names.ts';

/** A group that nobody else uses, one that nobody has, and an odd one. */
const groupIds = ['group', 'nobody', '', 'x'.repeat(300)];

/** Members that there are not, static ones where the version knows them. */
function members(version: number, staticSince: number) {
  const dynamic = groupIds.map((groupId) => ({ groupId, memberId: 'm', generationId: 1 }));
  if (version < staticSince) return dynamic;
  return [...dynamic, { groupId: 'group', memberId: 'm', generationId: 1, groupInstanceId: 'i' }];
}

type GroupApi =
  | 'ConsumerGroupDescribe'
  | 'ConsumerGroupHeartbeat'
  | 'DeleteGroups'
  | 'DescribeGroups'
  | 'FindCoordinator'
  | 'Heartbeat'
  | 'JoinGroup'
  | 'LeaveGroup'
  | 'ListGroups'
  | 'OffsetCommit'
  | 'OffsetDelete'
  | 'OffsetFetch'
  | 'SyncGroup';

export const groupRequests: { [N in GroupApi]: RequestsOf<N> } = {
  FindCoordinator: (_world, version) => {
    const keyTypes = version >= 1 ? [0, 1, 2, 7] : [0];
    return keyTypes.flatMap((keyType): MessageInputs['FindCoordinatorRequest'][] => {
      const type = version >= 1 ? { keyType } : {};
      if (version >= 4) return [{ ...type, coordinatorKeys: groupIds }];
      return groupIds.map((key) => ({ ...type, key }));
    });
  },
  JoinGroup: (_world, version) => {
    const protocols = [{ name: 'range', metadata: new Uint8Array([0, 1]) }];
    return groupIds.flatMap((groupId, at) =>
      ['', 'm'].flatMap((memberId) =>
        [6_000, 1].map((sessionTimeoutMs) => ({
          groupId: groupId === '' ? '' : `${groupId}-${version}-${at}-${memberId}`,
          sessionTimeoutMs,
          ...(version >= 1 ? { rebalanceTimeoutMs: 10_000 } : {}),
          memberId,
          ...(version >= 5 ? { groupInstanceId: `i${memberId}` } : {}),
          protocolType: 'consumer',
          protocols,
        })),
      ),
    );
  },
  SyncGroup: (_world, version) =>
    members(version, 3).flatMap((member) =>
      [null, 'consumer'].map((protocol) => ({
        ...member,
        ...(version >= 5 ? { protocolType: protocol, protocolName: protocol } : {}),
        assignments: [{ memberId: 'm', assignment: new Uint8Array(3) }],
      })),
    ),
  Heartbeat: (_world, version) => members(version, 3),
  LeaveGroup: (_world, version) =>
    members(version, 3).map(({ groupId, ...member }) => {
      if (version < 3) return { groupId, memberId: member.memberId };
      const { generationId: _, ...one } = member;
      return { groupId, members: [one, { memberId: '', groupInstanceId: 'gone' }] };
    }),
  OffsetCommit: (world, version) => {
    const partitions = [0, 9, -1].map((partitionIndex) => ({
      partitionIndex,
      committedOffset: 5n,
      ...(version >= 6 ? { committedLeaderEpoch: 0 } : {}),
      committedMetadata: partitionIndex === 0 ? null : 'text',
    }));
    const wanted = names(world, version >= 10).map(({ name, id }) => ({
      ...(version >= 10 ? { topicId: id } : { name }),
      partitions,
    }));
    return groupIds.flatMap((groupId) => [
      { groupId, topics: wanted },
      { groupId, generationIdOrMemberEpoch: 1, memberId: 'm', topics: wanted },
      { groupId, topics: [] },
    ]);
  },
  OffsetFetch: (world, version) => {
    const wanted = names(world, version >= 10).map(({ name, id }) => ({
      ...(version >= 10 ? { topicId: id } : { name }),
      partitionIndexes: [0, 1, 9, -1],
    }));
    if (version < 8)
      return groupIds.flatMap((groupId) => [
        { groupId, topics: wanted as { name: string; partitionIndexes: number[] }[] },
        { groupId, topics: version >= 2 ? null : [] },
      ]);
    const groups = groupIds.flatMap((groupId) => [
      { groupId, topics: wanted },
      { groupId, topics: null },
    ]);
    return [{ groups }, { groups: [] }];
  },
  DescribeGroups: (_world, version) =>
    [false, true].map((asked) => ({
      groups: groupIds,
      ...(version >= 3 ? { includeAuthorizedOperations: asked } : {}),
    })),
  ListGroups: (_world, version) => [
    {},
    ...(version >= 4 ? [{ statesFilter: ['Stable', 'Empty', 'odd'] }] : []),
    ...(version >= 5 ? [{ typesFilter: ['classic', 'odd'] }] : []),
  ],
  DeleteGroups: () => [{ groupsNames: groupIds }, { groupsNames: [] }],
  OffsetDelete: (world) =>
    groupIds.map((groupId) => ({
      groupId,
      topics: names(world, false).map(({ name }) => ({
        name,
        partitions: [{ partitionIndex: 0 }, { partitionIndex: 9 }],
      })),
    })),
  ConsumerGroupHeartbeat: (_world, version) =>
    groupIds.flatMap((groupId) =>
      [0, 1, -1, -2].flatMap((memberEpoch) =>
        [
          { memberId: version === 0 && memberEpoch === 0 ? '' : 'm', serverAssignor: null },
          { memberId: 'n', instanceId: 'i', serverAssignor: 'odd' },
        ].map((member) => ({
          groupId: `consumer-${groupId}`,
          ...member,
          memberEpoch,
          rebalanceTimeoutMs: 10_000,
          subscribedTopicNames: ['full', 'nope'],
          topicPartitions: [],
        })),
      ),
    ),
  ConsumerGroupDescribe: () =>
    [false, true].map((includeAuthorizedOperations) => ({
      groupIds: groupIds.flatMap((groupId) => [groupId, `consumer-${groupId}`]),
      includeAuthorizedOperations,
    })),
};
