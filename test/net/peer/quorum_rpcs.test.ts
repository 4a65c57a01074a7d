import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { QuorumRpc } from '../../../net/peer/quorum_rpc.ts';
import { quorumRpcs, rpcOf } from '../../../net/peer/quorum_rpcs.ts';
import { codecFor } from '../../../net/protocol/codec.ts';
import type { MessageName } from '../../../net/protocol/messages.gen.ts';
import { Reader } from '../../../net/protocol/reader.ts';
import { Writer } from '../../../net/protocol/writer.ts';
import type { QuorumReply, QuorumRequest } from '../../../net/quorum_api.ts';
import { uuids } from '../../replication/metadata/fixtures.ts';

const test = suite('quorum_rpcs');

const uuid = uuids(6);
const envelope = { clusterId: uuid(), timeoutMs: 12_345 };
const topicId = uuid();
const endpoint = { name: 'CONTROLLER', host: 'mill-1', port: 65_535 };
const done = { errorCode: ErrorCode.NONE, errorMessage: null };

function ok(result: object): QuorumReply {
  return { errorCode: ErrorCode.NONE, result } as unknown as QuorumReply;
}

function alterConfigs(replacesAll: boolean): QuorumRequest {
  const change = { name: 'retention.ms', value: '7', operation: replacesAll ? 0 : 3 };
  const removed = { name: 'segment.bytes', value: null, operation: replacesAll ? 0 : 1 };
  return {
    type: 'alterConfigs',
    resources: [{ resourceType: 2, resourceName: 'a', replacesAll, changes: [change, removed] }],
    validateOnly: true,
  };
}

const progress = {
  replicaId: 1,
  replicaDirectoryId: uuid(),
  logEndOffset: 2 ** 35,
  lastFetchTimestamp: 1_700_000_000_000,
  lastCaughtUpTimestamp: -1,
};

/** A request and a reply of each kind. */
const exchanges: readonly (readonly [QuorumRequest, QuorumReply])[] = [
  [
    {
      type: 'createTopics',
      topics: [
        {
          name: 'a',
          numPartitions: -1,
          replicationFactor: -1,
          assignments: [{ partitionIndex: 0, brokerIds: [1, 2] }],
          configs: [{ name: 'cleanup.policy', value: null }],
        },
        { name: 'b', numPartitions: 3, replicationFactor: 2, assignments: [], configs: [] },
      ],
      validateOnly: true,
    },
    ok({
      topics: [
        { name: 'a', topicId, ...done, numPartitions: 3, replicationFactor: 2 },
        {
          name: 'b',
          topicId,
          errorCode: ErrorCode.TOPIC_ALREADY_EXISTS,
          errorMessage: 'it does',
          numPartitions: -1,
          replicationFactor: -1,
        },
      ],
    }),
  ],
  [
    {
      type: 'deleteTopics',
      topics: [
        { name: 'a', topicId: null },
        { name: null, topicId },
      ],
    },
    ok({ topics: [{ name: 'a', topicId, ...done }] }),
  ],
  [
    {
      type: 'createPartitions',
      topics: [
        { name: 'a', count: 4, assignments: [[1, 2], [3]] },
        { name: 'b', count: 2, assignments: null },
      ],
      validateOnly: false,
    },
    ok({ topics: [{ name: 'a', ...done }] }),
  ],
  [alterConfigs(true), ok({ resources: [{ resourceType: 2, resourceName: 'a', ...done }] })],
  [alterConfigs(false), ok({ resources: [{ resourceType: 4, resourceName: '', ...done }] })],
  [
    { type: 'allocateProducerIds', brokerId: 2, brokerEpoch: 2 ** 34 },
    ok({ firstProducerId: 2 ** 36, length: 1000 }),
  ],
  [
    {
      type: 'registerBroker',
      brokerId: 2,
      incarnationId: uuid(),
      endPoints: [{ ...endpoint, securityProtocol: 0 }],
      features: [{ name: 'metadata.version', minSupportedVersion: 1, maxSupportedVersion: 9 }],
      rack: 'r1',
      logDirs: [uuid(), uuid()],
      previousBrokerEpoch: 2 ** 33,
      damagedReplicas: [{ topicId: 'xxxxxxxxxxxxxxxxxxxxxw', partitions: [0, 3] }],
    },
    ok({ brokerEpoch: 2 ** 34 }),
  ],
  [
    {
      type: 'brokerHeartbeat',
      brokerId: 2,
      brokerEpoch: 2 ** 34,
      currentMetadataOffset: 2 ** 35,
      wantFence: true,
      wantShutDown: true,
      offlineLogDirs: [uuid()],
    },
    ok({ isCaughtUp: true, isFenced: false, shouldShutDown: true }),
  ],
  [
    {
      type: 'alterPartition',
      brokerId: 2,
      brokerEpoch: 2 ** 34,
      topics: [
        {
          topicId,
          partitions: [
            {
              partitionIndex: 3,
              leaderEpoch: 4,
              newIsr: [{ brokerId: 1, brokerEpoch: 2 ** 34 }],
              leaderRecoveryState: 1,
              partitionEpoch: 5,
            },
          ],
        },
      ],
    },
    ok({
      topics: [
        {
          topicId,
          partitions: [
            {
              partitionIndex: 3,
              errorCode: ErrorCode.INVALID_UPDATE_VERSION,
              leaderId: 2,
              leaderEpoch: 4,
              isr: [1, 2],
              leaderRecoveryState: 0,
              partitionEpoch: 6,
            },
          ],
        },
      ],
    }),
  ],
  [
    { type: 'electLeaders', electionType: 1, topics: [{ name: 'a', partitions: [0, 2] }] },
    ok({
      topics: [
        {
          name: 'a',
          partitions: [
            { partitionIndex: 2, errorCode: ErrorCode.ELECTION_NOT_NEEDED, errorMessage: 'no' },
          ],
        },
      ],
    }),
  ],
  [
    {
      type: 'alterPartitionReassignments',
      allowReplicationFactorChange: false,
      topics: [
        {
          name: 'a',
          partitions: [
            { partitionIndex: 0, replicas: [3, 1] },
            { partitionIndex: 1, replicas: null },
          ],
        },
      ],
    },
    ok({ topics: [{ name: 'a', partitions: [{ partitionIndex: 0, ...done }] }] }),
  ],
  [{ type: 'unregisterBroker', brokerId: 3 }, ok({})],
  [
    { type: 'describeQuorum' },
    ok({
      leaderId: 1,
      leaderEpoch: 4,
      highWatermark: 2 ** 35,
      currentVoters: [progress],
      observers: [{ ...progress, replicaId: 4 }],
      voters: [
        { voterId: 1, voterDirectoryId: progress.replicaDirectoryId, endpoints: [endpoint] },
      ],
    }),
  ],
  [
    {
      type: 'addVoter',
      voter: { voterId: 4, voterDirectoryId: uuid(), endpoints: [endpoint] },
      timeoutMs: 1_000,
    },
    ok({}),
  ],
  [{ type: 'removeVoter', voterId: 4, voterDirectoryId: uuid(), timeoutMs: 30_000 }, ok({})],
];

function sent(name: MessageName, version: number, value: unknown): unknown {
  const writer = new Writer();
  codecFor(name, version).encode(writer, value as never);
  const reader = new Reader(writer.finish().bytes);
  const decoded = codecFor(name, version).decode(reader);
  assert.equal(reader.remaining, 0);
  return decoded;
}

function requestThrough(rpc: QuorumRpc, request: QuorumRequest): unknown {
  return sent(`${rpc.api}Request`, rpc.version, rpc.toRequest(request, envelope));
}

function replyThrough(rpc: QuorumRpc, reply: QuorumReply, request: QuorumRequest): QuorumReply {
  return rpc.fromReply(
    sent(`${rpc.api}Response`, rpc.version, rpc.toReply(reply, request)),
    request,
  );
}

test('every request and reply arrives as it was sent', () => {
  const used = new Set<QuorumRpc>();
  for (const [request, reply] of exchanges) {
    const rpc = rpcOf(request);
    used.add(rpc);
    assert.deepEqual(rpc.fromRequest(requestThrough(rpc, request)), request);
    assert.deepEqual(replyThrough(rpc, reply, request), reply);
  }
  assert.deepEqual(used, new Set(quorumRpcs));
});

test('that the node asked does not lead arrives with every request', () => {
  const reply: QuorumReply = {
    errorCode: ErrorCode.NOT_CONTROLLER,
    errorMessage: 'not here',
    result: null,
  };
  for (const [request] of exchanges) {
    const arrived = replyThrough(rpcOf(request), reply, request);
    assert.equal(arrived.errorCode, ErrorCode.NOT_CONTROLLER, request.type);
    assert.equal(arrived.result, null);
  }
});

test('another failure of the whole arrives as one, or at each thing that was asked for', () => {
  const reply: QuorumReply = {
    errorCode: ErrorCode.POLICY_VIOLATION,
    errorMessage: 'too much',
    result: null,
  };
  for (const [request] of exchanges) {
    const arrived = replyThrough(rpcOf(request), reply, request);
    if (arrived.result === null) {
      assert.equal(arrived.errorCode, ErrorCode.POLICY_VIOLATION);
      continue;
    }
    const [items] = Object.values(arrived.result) as {
      errorCode: number;
      errorMessage: string;
    }[][];
    assert(items !== undefined && items.length > 0, request.type);
    for (const item of items)
      assert.deepEqual(
        [item.errorCode, item.errorMessage],
        [ErrorCode.POLICY_VIOLATION, 'too much'],
      );
  }
});

test('a request for nothing is no failure', () => {
  const request: QuorumRequest = { type: 'createTopics', topics: [], validateOnly: false };
  assert.deepEqual(replyThrough(rpcOf(request), ok({ topics: [] }), request), ok({ topics: [] }));
});

test('who registers, adds or removes says for which cluster', () => {
  for (const [request] of exchanges) {
    const rpc = rpcOf(request);
    const expected = ['registerBroker', 'addVoter', 'removeVoter'].includes(request.type);
    const clusterId = rpc.clusterOf?.(requestThrough(rpc, request));
    assert.equal(clusterId, expected ? envelope.clusterId : undefined, request.type);
  }
});

test.run();
