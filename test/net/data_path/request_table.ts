/** Requests of every API, for tests that go through all of them in all versions: some find something, some do not. */
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { ApiName, MessageInputs } from '../../../net/protocol/messages.gen.ts';
import { metadataTopicName } from '../../../replication/metadata/records.ts';
import { WorldConnection } from './client.ts';
import { groupRequests } from './group_requests.ts';
import { names, type RequestsOf, topics, unknownId } from './request_names.ts';
import { batchOf, fetch, produce } from './requests.ts';
import { ShardWorld } from './shard_world.ts';

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

const timestamps = [-1n, -2n, -3n, -4n, -5n, -6n, -7n, 0n, 1_700_000_000_000n, 1n << 62n];

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
  ...groupRequests,
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
  ElectLeaders: (_world, version) => {
    const topicPartitions = [...topics, 'nobody'].map((topic) => ({
      topic,
      partitions: [0, 1, 9, -1],
    }));
    const kinds =
      version === 0 ? [{}] : [{ electionType: 0 }, { electionType: 1 }, { electionType: 9 }];
    return kinds.flatMap((kind) =>
      [topicPartitions, [], null].flatMap((asked) =>
        [1_000, 0].map((timeoutMs) => ({ ...kind, topicPartitions: asked, timeoutMs })),
      ),
    );
  },
  AlterPartitionReassignments: (_world, version) => {
    const partitions = [0, 9].flatMap((partitionIndex) =>
      [[1], [1, 2], [], null].map((replicas) => ({ partitionIndex, replicas })),
    );
    const all = [...topics, 'nobody'].map((name) => ({ name, partitions }));
    const strict = version === 0 ? {} : { allowReplicationFactorChange: false };
    return [
      { topics: all, timeoutMs: 1_000 },
      { topics: all, timeoutMs: 1_000, ...strict },
      { topics: all, timeoutMs: 0 },
      { topics: [], timeoutMs: 1_000 },
    ];
  },
  ListPartitionReassignments: () => [
    { topics: null },
    { topics: [] },
    { topics: [...topics, 'nobody'].map((name) => ({ name, partitionIndexes: [0, 0, 9, -1] })) },
  ],
  DescribeQuorum: () =>
    [
      [[metadataTopicName, 0]],
      [[metadataTopicName, 1]],
      [
        [metadataTopicName, 0],
        ['full', 0],
      ],
      [],
    ].map((asked) => ({
      topics: asked.map(([topicName, partitionIndex]) => ({
        topicName: topicName as string,
        partitions: [{ partitionIndex: partitionIndex as number }],
      })),
    })),
  UnregisterBroker: () => [1, 7, -1].map((brokerId) => ({ brokerId })),
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
  AddRaftVoter: (_world, version) => {
    const voter = { voterId: 2, voterDirectoryId: 'AAAAAAAAAAAAAAAAAAAAAg', timeoutMs: 100 };
    const when = version === 0 ? {} : { ackWhenCommitted: false };
    const listeners = [{ name: 'CONTROLLER', host: 'mill-2', port: 9093 }];
    return [
      { clusterId: null, ...voter, listeners, ...when },
      { clusterId: 'another', ...voter, listeners },
      { clusterId: null, ...voter, listeners: [] },
    ];
  },
  RemoveRaftVoter: () => {
    const voter = { voterId: 2, voterDirectoryId: 'AAAAAAAAAAAAAAAAAAAAAg' };
    return [
      { clusterId: null, ...voter },
      { clusterId: 'another', ...voter },
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
};
