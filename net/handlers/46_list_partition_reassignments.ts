/**
 * ListPartitionReassignments (key 46, KIP-455): what moves at the moment, as this broker knows it.
 *
 * v0 the only one.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { PartitionImage } from '../../replication/metadata/image.ts';
import type { MessageInputs, MessageTypes } from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardContext } from '../shard_context.ts';

type Response = MessageInputs['ListPartitionReassignmentsResponse'];

export function listPartitionReassignmentsHandler(shard: ShardContext): Handler {
  return rpc('ListPartitionReassignments', 0, 0, (request) =>
    answerListReassignments(shard, request),
  );
}

/** The answer itself. As in Kafka, what does not exist or does not move is left out. */
export function answerListReassignments(
  { image }: ShardContext,
  { topics }: MessageTypes['ListPartitionReassignmentsRequest'],
): Response {
  const listed: Response['topics'][number][] = [];
  const list = (name: string, partitions: readonly (PartitionImage | undefined)[]): void => {
    const ongoing = partitions.flatMap((partition) => ongoingReassignment(partition));
    if (ongoing.length > 0) listed.push({ name, partitions: ongoing });
  };
  if (topics === null)
    for (const { name, partitions } of image.topics.values()) list(name, partitions);
  else
    for (const { name, partitionIndexes } of topics)
      list(
        name,
        [...new Set(partitionIndexes)].map((index) => image.partition(name, index)),
      );
  return { throttleTimeMs: 0, errorCode: ErrorCode.NONE, errorMessage: null, topics: listed };
}

function ongoingReassignment(
  partition: PartitionImage | undefined,
): Response['topics'][number]['partitions'] {
  if (partition === undefined) return [];
  const { partitionId: partitionIndex, replicas, addingReplicas, removingReplicas } = partition;
  if (addingReplicas.length === 0 && removingReplicas.length === 0) return [];
  return [{ partitionIndex, replicas, addingReplicas, removingReplicas }];
}
