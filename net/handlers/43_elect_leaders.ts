/**
 * ElectLeaders (key 43, KIP-183): preferred leaders take over, or partitions without a leader get one at any price.
 *
 * v1 unclean elections, an error of the whole request (KIP-460) · v2 flexible (KIP-482).
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { MessageInputs, MessageTypes } from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardContext } from '../shard_context.ts';

type Response = MessageInputs['ElectLeadersResponse'];

export function electLeadersHandler(shard: ShardContext): Handler {
  return rpc('ElectLeaders', 0, 2, (request, ctx) =>
    answerElectLeaders(shard, request, ctx.apiVersion),
  );
}

/** The answer itself, when every thread of this broker knows the new leaders. Never rejects. */
async function answerElectLeaders(
  shard: ShardContext,
  { electionType, topicPartitions, timeoutMs }: MessageTypes['ElectLeadersRequest'],
  version: number,
): Promise<Response> {
  const topics = topicPartitions?.map(({ topic: name, partitions }) => ({ name, partitions }));
  const reply = await shard.quorum.electLeaders(
    { electionType, topics: topics ?? null },
    timeoutMs,
  );
  if (reply.errorCode === ErrorCode.NONE)
    return {
      throttleTimeMs: 0,
      replicaElectionResults: reply.result.topics.map(({ name, partitions }) => ({
        topic: name,
        partitionResult: partitions.map(({ partitionIndex: partitionId, ...outcome }) => ({
          partitionId,
          ...outcome,
        })),
      })),
    };
  const { errorCode, errorMessage } = reply;
  return {
    throttleTimeMs: 0,
    ...(version === 0 ? {} : { errorCode }),
    replicaElectionResults: (topics ?? []).map(({ name, partitions }) => ({
      topic: name,
      partitionResult: partitions.map((partitionId) => ({ partitionId, errorCode, errorMessage })),
    })),
  };
}
