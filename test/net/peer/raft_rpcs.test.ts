import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { RaftRpc } from '../../../net/peer/raft_rpc.ts';
import { raftRpcs } from '../../../net/peer/raft_rpcs.ts';
import { codecFor } from '../../../net/protocol/codec.ts';
import type { MessageName } from '../../../net/protocol/messages.gen.ts';
import { Reader } from '../../../net/protocol/reader.ts';
import { Writer } from '../../../net/protocol/writer.ts';
import type { RaftReply, RaftRequest } from '../../../replication/raft/messages.ts';
import { uuids } from '../../replication/metadata/fixtures.ts';

const test = suite('raft_rpcs');

const uuid = uuids(5);
const clusterId = uuid();
const leaderEndpoints = [{ name: 'CONTROLLER', host: 'mill-2', port: 9093 }];
const news = { errorCode: ErrorCode.NONE, leaderId: 2, leaderEpoch: 7 };

/** One request and its reply of each kind, every field with a value of its own. */
const exchanges: readonly (readonly [RaftRequest, RaftReply])[] = [
  [
    {
      type: 'vote',
      clusterId,
      voterId: 2,
      voterDirectoryId: uuid(),
      replicaEpoch: 6,
      replicaId: 3,
      replicaDirectoryId: uuid(),
      lastOffsetEpoch: 5,
      lastOffset: 2 ** 40,
      preVote: true,
    },
    { type: 'vote', ...news, voteGranted: true },
  ],
  [
    {
      type: 'beginQuorumEpoch',
      clusterId,
      voterId: 1,
      voterDirectoryId: uuid(),
      leaderId: 2,
      leaderEpoch: 7,
      leaderEndpoints,
    },
    { type: 'beginQuorumEpoch', ...news, errorCode: ErrorCode.FENCED_LEADER_EPOCH },
  ],
  [
    {
      type: 'endQuorumEpoch',
      clusterId,
      leaderId: 2,
      leaderEpoch: 7,
      preferredCandidates: [
        { candidateId: 3, candidateDirectoryId: uuid() },
        { candidateId: 1, candidateDirectoryId: uuid() },
      ],
      leaderEndpoints,
    },
    { type: 'endQuorumEpoch', ...news },
  ],
  [
    {
      type: 'fetch',
      clusterId,
      replicaId: 3,
      replicaDirectoryId: uuid(),
      currentLeaderEpoch: 7,
      fetchOffset: 2 ** 33,
      lastFetchedEpoch: 4,
      highWatermark: 2 ** 32,
      maxWaitMs: 500,
      maxBytes: 1_048_576,
    },
    {
      type: 'fetch',
      ...news,
      highWatermark: 2 ** 33 + 1,
      logStartOffset: 12,
      divergingEpoch: null,
      snapshotId: null,
      records: new Uint8Array([1, 2, 3]),
    },
  ],
  [
    {
      type: 'fetchSnapshot',
      clusterId,
      replicaId: 3,
      replicaDirectoryId: uuid(),
      currentLeaderEpoch: 7,
      snapshotId: { endOffset: 900, epoch: 6 },
      position: 4096,
      maxBytes: 65_536,
    },
    {
      type: 'fetchSnapshot',
      ...news,
      snapshotId: { endOffset: 900, epoch: 6 },
      size: 2 ** 34,
      position: 4096,
      unalignedRecords: new Uint8Array([9, 8]),
    },
  ],
  [
    {
      type: 'formation',
      replicaId: 3,
      replicaDirectoryId: uuid(),
      clusterId: '',
      voterIds: [1, 2, 3],
    },
    {
      type: 'formation',
      ...news,
      replicaId: 1,
      replicaDirectoryId: uuid(),
      clusterId,
      voterIds: [1, 2, 3],
      isEmpty: true,
    },
  ],
];

/** What the other side decodes. */
function sent(name: MessageName, version: number, value: unknown): unknown {
  const writer = new Writer();
  codecFor(name, version).encode(writer, value as never);
  const reader = new Reader(writer.finish().bytes);
  const decoded = codecFor(name, version).decode(reader);
  assert.equal(reader.remaining, 0);
  return decoded;
}

function replyThrough(rpc: RaftRpc, reply: RaftReply): RaftReply | null {
  return rpc.fromReply(sent(`${rpc.api}Response`, rpc.version, rpc.toReply(reply)));
}

/** Decoded bytes are views of a larger buffer. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_key, part) => (part instanceof Uint8Array ? [...part] : part)),
  );
}

test('every request and reply arrives as it was sent', () => {
  assert.equal(exchanges.length, Object.keys(raftRpcs).length);
  for (const [request, reply] of exchanges) {
    const rpc = raftRpcs[request.type];
    const message = sent(`${rpc.api}Request`, rpc.version, rpc.toRequest(request));
    assert.deepEqual(rpc.fromRequest(message), request);
    assert.deepEqual(plain(replyThrough(rpc, reply)), plain(reply));
  }
});

test('a leader says where histories part, or which snapshot to begin with', () => {
  const [, reply] = exchanges[3]!;
  const none = new Uint8Array(0);
  const parted = {
    ...reply,
    divergingEpoch: { epoch: 0, endOffset: 0 },
    records: none,
  } as RaftReply;
  assert.deepEqual(plain(replyThrough(raftRpcs.fetch, parted)), plain(parted));
  const behind = { ...reply, snapshotId: { endOffset: 0, epoch: 0 }, records: none } as RaftReply;
  assert.deepEqual(plain(replyThrough(raftRpcs.fetch, behind)), plain(behind));
});

test('a message about another log, or about none, is no request of a quorum', () => {
  for (const [request] of exchanges) {
    if (request.type === 'formation') continue;
    const rpc = raftRpcs[request.type];
    const message = sent(`${rpc.api}Request`, rpc.version, rpc.toRequest(request)) as {
      topics: Record<string, unknown>[];
    };
    const other = { topicName: 'a', name: 'a', topicId: uuid() };
    const foreign = { ...message, topics: message.topics.map((topic) => ({ ...topic, ...other })) };
    assert.equal(rpc.fromRequest(foreign), null, request.type);
    assert.equal(rpc.fromRequest({ ...message, topics: [] }), null, request.type);
  }
});

test('a refusal of the whole request is a refusal', () => {
  for (const [request] of exchanges) {
    if (request.type === 'formation') continue;
    const rpc = raftRpcs[request.type];
    const message = { errorCode: ErrorCode.INCONSISTENT_CLUSTER_ID, topics: [], responses: [] };
    const reply = rpc.fromReply(message);
    assert.equal(reply?.errorCode, ErrorCode.INCONSISTENT_CLUSTER_ID, request.type);
    assert.equal(reply?.leaderId, -1);
  }
});

test.run();
