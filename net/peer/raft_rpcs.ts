/**
 * Requests of the metadata quorum as Kafka's RPCs, and back. Each goes out in the newest version of its RPC: the nodes of a
 * cluster are of one version, or of versions that know each other's.
 *
 * The requests name one partition, the metadata log's. What names another one, or none, is no request of a quorum.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { metadataTopicName } from '../../replication/metadata/records.ts';
import { fetch, fetchSnapshot } from './raft_fetch_rpcs.ts';
import {
  code,
  type News,
  newsOf,
  only,
  type RaftRpc,
  type RaftType,
  rpc,
  whole,
} from './raft_rpc.ts';

function isNamed(topics: readonly { readonly topicName: string }[]): boolean {
  return topics[0]?.topicName === metadataTopicName;
}

const vote = rpc('vote', 'Vote', {
  version: 2,
  toRequest: (request) => ({
    clusterId: request.clusterId,
    voterId: request.voterId,
    topics: [
      {
        topicName: metadataTopicName,
        partitions: [
          {
            partitionIndex: 0,
            replicaEpoch: request.replicaEpoch,
            replicaId: request.replicaId,
            replicaDirectoryId: request.replicaDirectoryId,
            voterDirectoryId: request.voterDirectoryId,
            lastOffsetEpoch: request.lastOffsetEpoch,
            lastOffset: request.lastOffset,
            preVote: request.preVote,
          },
        ],
      },
    ],
  }),
  fromRequest: ({ clusterId, voterId, topics }) => {
    const partition = only(topics);
    if (partition === null || !isNamed(topics)) return null;
    return {
      type: 'vote',
      clusterId: clusterId ?? '',
      voterId,
      voterDirectoryId: partition.voterDirectoryId,
      replicaEpoch: partition.replicaEpoch,
      replicaId: partition.replicaId,
      replicaDirectoryId: partition.replicaDirectoryId,
      lastOffsetEpoch: partition.lastOffsetEpoch,
      lastOffset: Number(partition.lastOffset),
      preVote: partition.preVote,
    };
  },
  toReply: ({ errorCode, leaderId, leaderEpoch, voteGranted }) => ({
    errorCode: ErrorCode.NONE,
    topics: [
      {
        topicName: metadataTopicName,
        partitions: [{ partitionIndex: 0, errorCode, leaderId, leaderEpoch, voteGranted }],
      },
    ],
  }),
  fromReply: ({ errorCode, topics }) => {
    const partition = only(topics);
    if (partition === null) return { ...whole(errorCode), type: 'vote', voteGranted: false };
    return { ...newsOf(partition), type: 'vote', voteGranted: partition.voteGranted };
  },
});

const beginQuorumEpoch = rpc('beginQuorumEpoch', 'BeginQuorumEpoch', {
  version: 1,
  toRequest: ({
    clusterId,
    voterId,
    voterDirectoryId,
    leaderId,
    leaderEpoch,
    leaderEndpoints,
  }) => ({
    clusterId,
    voterId,
    topics: [
      {
        topicName: metadataTopicName,
        partitions: [{ partitionIndex: 0, voterDirectoryId, leaderId, leaderEpoch }],
      },
    ],
    leaderEndpoints,
  }),
  fromRequest: ({ clusterId, voterId, topics, leaderEndpoints }) => {
    const partition = only(topics);
    if (partition === null || !isNamed(topics)) return null;
    const { voterDirectoryId, leaderId, leaderEpoch } = partition;
    return {
      type: 'beginQuorumEpoch',
      clusterId: clusterId ?? '',
      voterId,
      voterDirectoryId,
      leaderId,
      leaderEpoch,
      leaderEndpoints,
    };
  },
  toReply: (reply) => news(reply),
  fromReply: (message) => ({ type: 'beginQuorumEpoch', ...newsIn(message) }),
});

const endQuorumEpoch = rpc('endQuorumEpoch', 'EndQuorumEpoch', {
  version: 1,
  toRequest: ({ clusterId, leaderId, leaderEpoch, preferredCandidates, leaderEndpoints }) => ({
    clusterId,
    topics: [
      {
        topicName: metadataTopicName,
        partitions: [{ partitionIndex: 0, leaderId, leaderEpoch, preferredCandidates }],
      },
    ],
    leaderEndpoints,
  }),
  fromRequest: ({ clusterId, topics, leaderEndpoints }) => {
    const partition = only(topics);
    if (partition === null || !isNamed(topics)) return null;
    const { leaderId, leaderEpoch, preferredCandidates } = partition;
    return {
      type: 'endQuorumEpoch',
      clusterId: clusterId ?? '',
      leaderId,
      leaderEpoch,
      preferredCandidates,
      leaderEndpoints,
    };
  },
  toReply: (reply) => news(reply),
  fromReply: (message) => ({ type: 'endQuorumEpoch', ...newsIn(message) }),
});

const formation = rpc('formation', 'Formation', {
  version: 0,
  toRequest: (request) => request,
  fromRequest: (message) => ({ type: 'formation', ...message }),
  toReply: (reply) => reply,
  fromReply: (message) => ({ type: 'formation', ...message, errorCode: code(message.errorCode) }),
});

/** The answer to the two that say nothing else. */
function news({ errorCode, leaderId, leaderEpoch }: News): {
  errorCode: number;
  topics: { topicName: string; partitions: (News & { partitionIndex: number })[] }[];
} {
  const partitions = [{ partitionIndex: 0, errorCode, leaderId, leaderEpoch }];
  return { errorCode: ErrorCode.NONE, topics: [{ topicName: metadataTopicName, partitions }] };
}

function newsIn(message: {
  readonly errorCode: number;
  readonly topics: readonly {
    readonly partitions: readonly { errorCode: number; leaderId: number; leaderEpoch: number }[];
  }[];
}): News {
  const partition = only(message.topics);
  return partition === null ? whole(message.errorCode) : newsOf(partition);
}

/** By the type of the request. */
export const raftRpcs: Readonly<Record<RaftType, RaftRpc>> = {
  vote,
  beginQuorumEpoch,
  endQuorumEpoch,
  fetch,
  fetchSnapshot,
  formation,
};
