/** Requests of every API, for tests that go through all of them in all versions: some find something, some do not. */
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { ApiName, MessageInputs } from '../../../net/protocol/messages.gen.ts';
import { uuidZero } from '../../../replication/metadata/records.ts';
import { uuids } from '../../replication/metadata/fixtures.ts';
import { WorldConnection } from './client.ts';
import { batchOf, fetch, produce } from './requests.ts';
import { ShardWorld } from './shard_world.ts';

const unknownId = uuids(1234)();
const topics = ['full', 'empty', 'failed'] as const;

/** One topic with records, one without, one whose partition 0 has failed. */
export async function mixedWorld(): Promise<ShardWorld> {
  const world = await ShardWorld.start({
    topics: topics.map((name) => [name, 2] as const),
    settings: ['offsets.topic.num.partitions=2', 'group.initial.rebalance.delay.ms=0'],
  });
  const client = new WorldConnection(world);
  await client.callLater('FindCoordinator', 4, { coordinatorKeys: ['group'] });
  const records = batchOf(['a', 'b'], { producerId: 1, producerEpoch: 0, baseSequence: 0 });
  client.send('Produce', 9, produce(world, 9, -1, [{ topic: 'full', records }]));
  world.settle();
  world.leader('failed').refuse(ErrorCode.KAFKA_STORAGE_ERROR);
  return world;
}

/** Topics of a version's kind: those that exist, and some that do not. */
function names(world: ShardWorld, byId: boolean): { name: string; id: string }[] {
  const found = topics.map((name) => ({ name, id: byId ? world.idOf(name) : uuidZero }));
  return [...found, { name: byId ? '' : 'un known/', id: byId ? unknownId : uuidZero }];
}

const timestamps = [-1n, -2n, -3n, -4n, -5n, -6n, -7n, 0n, 1_700_000_000_000n, 1n << 62n];

type RequestsOf<N extends ApiName> = (
  world: ShardWorld,
  version: number,
) => MessageInputs[`${N}Request`][];

/** A group that nobody else uses, one that nobody has, and an odd one. */
const groupIds = ['group', 'nobody', '', 'x'.repeat(300)];

/** Members that there are not, static ones where the version knows them. */
function members(version: number, staticSince: number) {
  const dynamic = groupIds.map((groupId) => ({ groupId, memberId: 'm', generationId: 1 }));
  if (version < staticSince) return dynamic;
  return [...dynamic, { groupId: 'group', memberId: 'm', generationId: 1, groupInstanceId: 'i' }];
}

const alteredResources = [
  [2, 'empty'],
  [2, 'nobody'],
  [2, 'a/b'],
  [4, ''],
  [4, '1'],
  [4, 'x'],
  [8, '1'],
  [16, 'm'],
  [32, 'g'],
  [99, ''],
].map(([resourceType, resourceName]) => ({
  resourceType: resourceType as number,
  resourceName: resourceName as string,
}));

/** Rich requests and wrong ones. */
export const requestsOf: { [N in ApiName]?: RequestsOf<N> } = {
  Produce: (world, version) => {
    const parts = names(world, version >= 13).flatMap((topic) =>
      [batchOf(['a']), batchOf(['k'], { codec: 1 }), null, new Uint8Array(3)].map((records) => ({
        ...(version >= 13 ? { topicId: topic.id } : { name: topic.name }),
        partitionData: [0, 1, 9, -1].map((index) => ({ index, records })),
      })),
    );
    return [-1, 1, 3].map((acks) => ({ acks, timeoutMs: 0, topicData: parts }));
  },
  Fetch: (world, version) => {
    const wanted = topics.flatMap((topic) =>
      [0, 1, 9].flatMap((partition) =>
        [0, 1, 2, 77, -1].map((offset) => ({
          topic,
          partition,
          offset,
          currentLeaderEpoch: version >= 9 && offset === 1 ? 5 : undefined,
          lastFetchedEpoch: version >= 12 && offset === 2 ? 5 : undefined,
        })),
      ),
    );
    const whole = fetch(world, version, wanted as never, { maxWaitMs: 0 });
    const answers: MessageInputs['FetchRequest'][] = [
      whole,
      { ...whole, isolationLevel: 1 },
      version >= 15 ? { ...whole, replicaState: { replicaId: 3 } } : { ...whole, replicaId: 3 },
    ];
    if (version >= 7)
      answers.push(
        { ...whole, sessionId: 0, sessionEpoch: 0 },
        { ...whole, sessionId: 1, sessionEpoch: 1, topics: [] },
        { ...whole, sessionId: 999, sessionEpoch: 1, topics: [] },
      );
    return answers;
  },
  ListOffsets: (world, version) => {
    return [0, 1].map((isolationLevel) => ({
      replicaId: -1,
      ...(version >= 2 ? { isolationLevel } : {}),
      topics: names(world, false).map((topic) => ({
        name: topic.name,
        partitions: [0, 1, 9].flatMap((partitionIndex) =>
          timestamps.map((timestamp) => ({
            partitionIndex,
            timestamp,
            ...(version >= 4 ? { currentLeaderEpoch: Number(timestamp === 0n) - 1 } : {}),
          })),
        ),
      })),
    }));
  },
  OffsetForLeaderEpoch: (world, _version) => {
    return [
      {
        topics: names(world, false).map((topic) => ({
          topic: topic.name,
          partitions: [0, 1, 9].flatMap((partition) =>
            [-1, 0, 5].map((leaderEpoch) => ({
              partition,
              leaderEpoch,
              currentLeaderEpoch: leaderEpoch,
            })),
          ),
        })),
      },
    ];
  },
  InitProducerId: (_world, version) => {
    return [null, 'my-transaction', ''].map((transactionalId) => ({
      transactionalId,
      transactionTimeoutMs: 1_000,
      ...(version >= 3 ? { producerId: 5n, producerEpoch: 2 } : {}),
    }));
  },
  Metadata: (world, version) => {
    const all = names(world, version >= 12).map((topic) => ({
      name: version >= 12 && topic.name === '' ? null : topic.name,
      ...(version >= 12 && topic.name === '' ? { topicId: topic.id } : {}),
    }));
    const rest = version >= 4 ? { allowAutoTopicCreation: false } : {};
    return [
      { topics: all, ...rest },
      { topics: version >= 1 ? null : [], ...rest },
    ];
  },
  DeleteRecords: () => {
    const partitions = [0, 1, 99, -1].flatMap((partitionIndex) =>
      [0n, -1n, -2n, 1n << 62n].map((offset) => ({ partitionIndex, offset })),
    );
    const names = ['t', 'compacted', 'nobody', '', '__consumer_offsets'];
    return [
      { topics: names.map((name) => ({ name, partitions })), timeoutMs: 100 },
      { topics: [], timeoutMs: -1 },
    ];
  },
  DeleteTopics: (_world, version) => {
    if (version >= 6)
      return [
        {
          topics: [{ name: null, topicId: unknownId }, { name: 'a/b' }, { name: null }],
          timeoutMs: 100,
        },
      ];
    return [{ topicNames: ['nobody', 'a/b', ''], timeoutMs: 100 }];
  },
  CreateTopics: (_world, version) => {
    const topic = { numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] };
    const config = { name: 'retention.ms', value: 'no number' };
    const created = { ...topic, name: `made-${version}` };
    const bad = [
      { ...topic, name: 'full' },
      { ...topic, name: 'a/b' },
      { ...topic, name: 'many', replicationFactor: 3 },
      { ...topic, name: 'odd', configs: [config] },
    ];
    const [all, timeoutMs] = [[created, ...bad], 1_000];
    return [
      { topics: all, timeoutMs, validateOnly: true },
      { topics: all, timeoutMs },
    ];
  },
  DescribeConfigs: (_world, version) => {
    return [
      {
        resources: [
          { resourceType: 2, resourceName: 'full', configurationKeys: null },
          { resourceType: 2, resourceName: 'nobody', configurationKeys: ['retention.ms'] },
          { resourceType: 4, resourceName: '1', configurationKeys: null },
          { resourceType: 4, resourceName: 'x', configurationKeys: null },
          { resourceType: 99, resourceName: '', configurationKeys: null },
        ],
        includeSynonyms: true,
        ...(version >= 3 ? { includeDocumentation: true } : {}),
      },
    ];
  },
  AlterConfigs: () => {
    const resources = alteredResources.map(({ resourceType, resourceName }) => ({
      resourceType,
      resourceName,
      configs: [
        { name: 'retention.ms', value: '5' },
        { name: 'no.such.key', value: null },
      ],
    }));
    return [
      { resources, validateOnly: true },
      { resources, validateOnly: false },
    ];
  },
  IncrementalAlterConfigs: () => {
    const resources = alteredResources.map(({ resourceType, resourceName }) => ({
      resourceType,
      resourceName,
      configs: [0, 1, 2, 3, 9].map((configOperation) => ({
        name: `${resourceType === 4 ? 'log.' : ''}retention.ms`,
        configOperation,
        value: String(configOperation),
      })),
    }));
    const single = alteredResources.map(({ resourceType, resourceName }) => ({
      resourceType,
      resourceName,
      configs: [{ name: 'cleanup.policy', configOperation: 2, value: 'compact' }],
    }));
    return [
      { resources, validateOnly: false },
      { resources: single, validateOnly: false },
    ];
  },
  CreatePartitions: (world, version) => {
    const wanted = (name: string, count: number, assignments: number[][] | null) => ({
      name,
      count,
      assignments: assignments?.map((brokerIds) => ({ brokerIds })) ?? null,
    });
    const size = world.image.topic('full')?.partitions.length ?? 0;
    const all = [
      wanted('full', size + 1, [[1]]),
      wanted('empty', 3, [[7]]),
      wanted('failed', version, null),
      wanted('nobody', 5, null),
      wanted('nobody', 6, null),
    ];
    return [
      { topics: all, timeoutMs: 1_000, validateOnly: true },
      { topics: all, timeoutMs: 1_000, validateOnly: false },
    ];
  },
  DescribeLogDirs: () => {
    return [{ topics: null }, { topics: [{ topic: 'full', partitions: [0, 9] }] }];
  },
  DescribeProducers: (world) => {
    const named = names(world, false).map(({ name }) => ({ name, partitionIndexes: [0, 9, -1] }));
    return [{ topics: named }];
  },
  ListConfigResources: (_world, version) => {
    if (version === 0) return [{}];
    return [{ resourceTypes: [] }, { resourceTypes: [2, 4] }, { resourceTypes: [77] }];
  },
  DescribeCluster: (_world, version) => {
    const includeClusterAuthorizedOperations = true;
    if (version === 0) return [{ includeClusterAuthorizedOperations }];
    return [1, 2].map((endpointType) => ({ endpointType, includeClusterAuthorizedOperations }));
  },
  DescribeTopicPartitions: (world, _version) => {
    return [
      { topics: names(world, false).map((topic) => ({ name: topic.name })) },
      { topics: [], cursor: { topicName: 'full', partitionIndex: -1 } },
      { topics: [], responsePartitionLimit: 1 },
    ];
  },
  ApiVersions: (_world, version) => {
    return version >= 3
      ? [
          { clientSoftwareName: 'test', clientSoftwareVersion: '1' },
          { clientSoftwareName: '-', clientSoftwareVersion: '' },
          ...(version >= 5
            ? [
                {
                  clusterId: 'other',
                  nodeId: 7,
                  clientSoftwareName: 'a',
                  clientSoftwareVersion: 'b',
                },
              ]
            : []),
        ]
      : [{}];
  },
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
