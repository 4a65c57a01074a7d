/**
 * DescribeQuorum (key 55, KIP-595): who leads the metadata quorum, and how far its voters and observers are. Any broker
 * takes it and hands it on to the leader, which alone knows.
 *
 * v1 times of the last fetch and of having caught up (KIP-836) · v2 directory ids, endpoints, messages (KIP-853).
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { metadataTopicName } from '../../replication/metadata/records.ts';
import type { QuorumDescription, ReplicaProgress } from '../../replication/raft/quorum.ts';
import type {
  DescribeQuorumResponseReplicaStateInput,
  MessageInputs,
  MessageTypes,
} from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardContext } from '../shard_context.ts';

type Request = MessageTypes['DescribeQuorumRequest'];
type Response = MessageInputs['DescribeQuorumResponse'];

/** The request carries no time of its own: as Kafka's clients give it by default. */
const timeoutMs = 60_000;

export function describeQuorumHandler(shard: ShardContext): Handler {
  return rpc('DescribeQuorum', 0, 2, (request, ctx) =>
    answerDescribeQuorum(shard, request, ctx.apiVersion),
  );
}

/** The answer itself. Never rejects. As in Kafka, there is one partition that can be asked for, and only alone. */
export async function answerDescribeQuorum(
  shard: ShardContext,
  { topics }: Request,
  version: number,
): Promise<Response> {
  if (!isMetadataPartition(topics)) return unknownPartitions(topics);
  const reply = await shard.quorum.describeQuorum(timeoutMs);
  if (reply.result === null)
    return { errorCode: reply.errorCode, errorMessage: reply.errorMessage, topics: [] };
  const { voters } = reply.result;
  const partitions = [partitionOf(reply.result, version)];
  const nodes = voters.map(({ voterId, endpoints }) => ({ nodeId: voterId, listeners: endpoints }));
  return {
    errorCode: ErrorCode.NONE,
    topics: [{ topicName: metadataTopicName, partitions }],
    ...(version >= 2 ? { nodes } : {}),
  };
}

function isMetadataPartition(topics: Request['topics']): boolean {
  const [topic, ...otherTopics] = topics;
  const [partition, ...others] = topic?.partitions ?? [];
  if (otherTopics.length > 0 || others.length > 0) return false;
  return topic?.topicName === metadataTopicName && partition?.partitionIndex === 0;
}

function unknownPartitions(topics: Request['topics']): Response {
  return {
    errorCode: ErrorCode.NONE,
    topics: topics.map(({ topicName, partitions }) => ({
      topicName,
      partitions: partitions.map(({ partitionIndex }) => ({
        partitionIndex,
        errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        leaderId: -1,
        leaderEpoch: -1,
        highWatermark: -1,
        currentVoters: [],
        observers: [],
      })),
    })),
  };
}

function partitionOf(
  { leaderId, leaderEpoch, highWatermark, currentVoters, observers }: QuorumDescription,
  version: number,
): Response['topics'][number]['partitions'][number] {
  const stateOf = ({
    replicaDirectoryId,
    ...state
  }: ReplicaProgress): DescribeQuorumResponseReplicaStateInput =>
    version >= 2 ? { ...state, replicaDirectoryId } : state;
  return {
    partitionIndex: 0,
    errorCode: ErrorCode.NONE,
    leaderId,
    leaderEpoch,
    highWatermark,
    currentVoters: currentVoters.map(stateOf),
    observers: observers.map(stateOf),
  };
}
