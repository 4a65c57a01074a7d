/**
 * CreatePartitions (key 37, KIP-195): more partitions for topics that exist; never fewer.
 *
 * v1 throttling after the answer · v2 flexible (KIP-482) · v3 quota errors (KIP-599).
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { MessageInputs, MessageTypes } from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardContext } from '../shard_context.ts';

type Request = MessageTypes['CreatePartitionsRequest'];
type Response = MessageInputs['CreatePartitionsResponse'];

export function createPartitionsHandler(shard: ShardContext): Handler {
  return rpc('CreatePartitions', 0, 3, (request) => answerCreatePartitions(shard, request));
}

/** The answer itself; with success every thread of this broker serves the new partitions. Never rejects. */
async function answerCreatePartitions(
  shard: ShardContext,
  { topics, timeoutMs, validateOnly }: Request,
): Promise<Response> {
  const growths = topics.map(({ name, count, assignments }) => ({
    name,
    count,
    assignments: assignments?.map(({ brokerIds }) => brokerIds) ?? null,
  }));
  const reply = await shard.quorum.createPartitions({ topics: growths, validateOnly }, timeoutMs);
  if (reply.errorCode === ErrorCode.NONE)
    return { throttleTimeMs: 0, results: [...reply.result.topics] };
  const { errorCode, errorMessage } = reply;
  const names = new Set(topics.map(({ name }) => name));
  return {
    throttleTimeMs: 0,
    results: [...names].map((name) => ({ name, errorCode, errorMessage })),
  };
}
