/**
 * CreateTopics (key 19).
 *
 * v2 the oldest that Kafka 4 serves (KIP-896): validate_only, error messages · v4 partitions and replication factor of
 * -1 mean the broker's defaults (KIP-464) · v5 flexible; the answer has partitions, replication factor and configs
 * (KIP-525) · v6 quota errors · v7 topic ids (KIP-516).
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { CreateTopicResult, NewTopic } from '../../replication/metadata/controller_api.ts';
import type { Caller } from '../cluster_view.ts';
import type {
  CreateTopicsRequest,
  CreateTopicsResponseCreatableTopicResultInput,
  CreateTopicsResponseInput,
} from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardContext } from '../shard_context.ts';

export function createTopicsHandler(shard: ShardContext): Handler {
  return rpc('CreateTopics', 2, 7, (request, ctx) => answerCreateTopics(shard, request, ctx));
}

/** The answer itself; with success every thread of this broker knows the topics. Never rejects. */
export async function answerCreateTopics(
  shard: ShardContext,
  request: CreateTopicsRequest,
  caller: Caller,
): Promise<CreateTopicsResponseInput> {
  const topics: readonly NewTopic[] = request.topics;
  const { validateOnly, timeoutMs } = request;
  const reply = await shard.quorum.createTopics({ topics, validateOnly }, timeoutMs);
  if (reply.errorCode !== ErrorCode.NONE) {
    const { errorCode, errorMessage } = reply;
    const names = new Set(topics.map((topic) => topic.name));
    return { topics: [...names].map((name) => ({ name, errorCode, errorMessage })) };
  }
  const requested = new Map(topics.map((topic) => [topic.name, topic]));
  return {
    topics: reply.result.topics.map((result) =>
      answer(shard, result, caller.apiVersion >= 5 ? requested.get(result.name) : undefined),
    ),
  };
}

function answer(
  shard: ShardContext,
  result: CreateTopicResult,
  described: NewTopic | undefined,
): CreateTopicsResponseCreatableTopicResultInput {
  const { name, topicId, errorCode, errorMessage, numPartitions, replicationFactor } = result;
  const configs =
    described === undefined || errorCode !== ErrorCode.NONE
      ? []
      : shard.settings.topicConfigEntries(described.configs).map((entry) => ({
          name: entry.name,
          value: entry.value,
          readOnly: entry.readOnly,
          configSource: entry.source,
          isSensitive: entry.sensitive,
        }));
  return { name, topicId, errorCode, errorMessage, numPartitions, replicationFactor, configs };
}
