/**
 * AlterPartitionReassignments (key 45, KIP-455): partitions move to other brokers, or stop doing so.
 *
 * v1 may forbid another replication factor (KIP-860).
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { MessageInputs, MessageTypes } from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardContext } from '../shard_context.ts';

export function alterPartitionReassignmentsHandler(shard: ShardContext): Handler {
  return rpc('AlterPartitionReassignments', 0, 1, (request) =>
    answerAlterReassignments(shard, request),
  );
}

/** The answer itself; the moves it begins go on after it. Never rejects. */
export async function answerAlterReassignments(
  shard: ShardContext,
  request: MessageTypes['AlterPartitionReassignmentsRequest'],
): Promise<MessageInputs['AlterPartitionReassignmentsResponse']> {
  const { allowReplicationFactorChange, topics, timeoutMs } = request;
  const reply = await shard.quorum.alterPartitionReassignments(
    { allowReplicationFactorChange, topics },
    timeoutMs,
  );
  const { errorCode } = reply;
  const responses = reply.result?.topics.map(({ name, partitions }) => ({
    name,
    partitions: [...partitions],
  }));
  return {
    throttleTimeMs: 0,
    allowReplicationFactorChange,
    errorCode,
    errorMessage: errorCode === ErrorCode.NONE ? null : reply.errorMessage,
    responses: responses ?? [],
  };
}
