/** Every request to the quorum's leader with the RPC that carries it; here are those about the quorum itself. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { metadataTopicName, type Voter } from '../../replication/metadata/records.ts';
import type { ReplicaProgress } from '../../replication/raft/quorum.ts';
import type { DescribeQuorumResponseReplicaState } from '../protocol/messages.gen.ts';
import type { QuorumRequest, QuorumRequestType } from '../quorum_api.ts';
import { adminRpcs, alterConfigs, incrementalAlterConfigs } from './admin_rpcs.ts';
import { brokerRpcs } from './broker_rpcs.ts';
import {
  failure,
  outcomeFromReply,
  outcomeToReply,
  type QuorumRpc,
  quorumRpc,
} from './quorum_rpc.ts';

const describeQuorum = quorumRpc('describeQuorum', 'DescribeQuorum', {
  version: 2,
  toRequest: () => ({
    topics: [{ topicName: metadataTopicName, partitions: [{ partitionIndex: 0 }] }],
  }),
  fromRequest: () => ({ type: 'describeQuorum' }),
  toReply: (reply) => {
    if (reply.result === null)
      return { errorCode: reply.errorCode, errorMessage: reply.errorMessage, topics: [] };
    const { voters, ...partition } = reply.result;
    return {
      errorCode: ErrorCode.NONE,
      topics: [
        {
          topicName: metadataTopicName,
          partitions: [{ partitionIndex: 0, errorCode: ErrorCode.NONE, ...partition }],
        },
      ],
      nodes: voters.map(({ voterId, endpoints }) => ({ nodeId: voterId, listeners: endpoints })),
    };
  },
  fromReply: ({ errorCode, errorMessage, topics, nodes }) => {
    const partition = topics[0]?.partitions[0];
    if (errorCode !== ErrorCode.NONE || partition === undefined)
      return failure(errorCode || ErrorCode.UNKNOWN_SERVER_ERROR, errorMessage);
    const { leaderId, leaderEpoch, highWatermark, currentVoters, observers } = partition;
    return {
      errorCode: ErrorCode.NONE,
      result: {
        leaderId,
        leaderEpoch,
        highWatermark: Number(highWatermark),
        currentVoters: currentVoters.map(progressOf),
        observers: observers.map(progressOf),
        voters: nodes.map(
          ({ nodeId, listeners }): Voter => ({
            voterId: nodeId,
            voterDirectoryId:
              currentVoters.find(({ replicaId }) => replicaId === nodeId)?.replicaDirectoryId ?? '',
            endpoints: listeners,
          }),
        ),
      },
    };
  },
});

function progressOf(state: DescribeQuorumResponseReplicaState): ReplicaProgress {
  return {
    replicaId: state.replicaId,
    replicaDirectoryId: state.replicaDirectoryId,
    logEndOffset: Number(state.logEndOffset),
    lastFetchTimestamp: Number(state.lastFetchTimestamp),
    lastCaughtUpTimestamp: Number(state.lastCaughtUpTimestamp),
  };
}

const addVoter = quorumRpc('addVoter', 'AddRaftVoter', {
  version: 1,
  toRequest: ({ voter, timeoutMs }, { clusterId }) => ({
    clusterId,
    timeoutMs,
    voterId: voter.voterId,
    voterDirectoryId: voter.voterDirectoryId,
    listeners: voter.endpoints,
  }),
  fromRequest: ({ timeoutMs, voterId, voterDirectoryId, listeners }) => ({
    type: 'addVoter',
    voter: { voterId, voterDirectoryId, endpoints: listeners },
    timeoutMs,
  }),
  toReply: outcomeToReply,
  fromReply: outcomeFromReply,
  clusterOf: ({ clusterId }) => clusterId,
});

/** RemoveRaftVoter has no time-out of its own. */
const removalMs = 30_000;

const removeVoter = quorumRpc('removeVoter', 'RemoveRaftVoter', {
  version: 0,
  toRequest: ({ voterId, voterDirectoryId }, { clusterId }) => ({
    clusterId,
    voterId,
    voterDirectoryId,
  }),
  fromRequest: ({ voterId, voterDirectoryId }) => ({
    type: 'removeVoter',
    voterId,
    voterDirectoryId,
    timeoutMs: removalMs,
  }),
  toReply: outcomeToReply,
  fromReply: outcomeFromReply,
  clusterOf: ({ clusterId }) => clusterId,
});

/** All of them, each API once. */
export const quorumRpcs: readonly QuorumRpc[] = [
  ...brokerRpcs,
  ...adminRpcs,
  alterConfigs,
  incrementalAlterConfigs,
  describeQuorum,
  addVoter,
  removeVoter,
];

const byType = new Map<QuorumRequestType, QuorumRpc>(quorumRpcs.map((rpc) => [rpc.type, rpc]));

/** The RPC that carries the request. */
export function rpcOf(request: QuorumRequest): QuorumRpc {
  if (request.type !== 'alterConfigs') return byType.get(request.type)!;
  return request.resources.some(({ replacesAll }) => replacesAll)
    ? alterConfigs
    : incrementalAlterConfigs;
}
