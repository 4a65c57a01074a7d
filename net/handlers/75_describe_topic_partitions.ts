/**
 * DescribeTopicPartitions (key 75, KIP-966): topics in the order of their names, page by page, with the eligible leader
 * replicas.
 *
 * v0 the only one. No topics in the request means all of them.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { TopicImage } from '../../replication/metadata/image.ts';
import { isInternalTopic, topicNameProblem } from '../../replication/metadata/topic_name.ts';
import { type Caller, partitionView, topicOperations } from '../cluster_view.ts';
import type {
  DescribeTopicPartitionsRequest,
  DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopicInput,
  DescribeTopicPartitionsResponseInput,
} from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardContext } from '../shard_context.ts';

type TopicAnswer = DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopicInput;

export function describeTopicPartitionsHandler(shard: ShardContext): Handler {
  return rpc('DescribeTopicPartitions', 0, 0, (request, ctx) =>
    answerDescribeTopicPartitions(shard, request, ctx),
  );
}

/**
 * The answer itself: at most `responsePartitionLimit` partitions, and no more than the broker's own limit. A page that
 * is not the last names in `nextCursor` where the next one starts.
 */
export function answerDescribeTopicPartitions(
  shard: ShardContext,
  request: DescribeTopicPartitionsRequest,
  caller: Caller,
): DescribeTopicPartitionsResponseInput {
  const { cursor } = request;
  if (cursor !== null && cursor.partitionIndex < 0) return invalidCursor(request);
  const all = request.topics.length === 0;
  const names = all
    ? [...shard.image.topics.keys()]
    : [...new Set(request.topics.map((topic) => topic.name))];
  const limit = Math.min(
    request.responsePartitionLimit,
    shard.settings.maxRequestPartitionSizeLimit,
  );
  let left = Math.max(1, limit);
  const topics: TopicAnswer[] = [];
  for (const name of names.sort(byCodeUnits)) {
    if (cursor !== null && byCodeUnits(name, cursor.topicName) < 0) continue;
    if (left === 0) return { topics, nextCursor: { topicName: name, partitionIndex: 0 } };
    const topic = shard.image.topic(name);
    if (topic === undefined) {
      topics.push(unknown(name));
      continue;
    }
    const from = name === cursor?.topicName ? cursor.partitionIndex : 0;
    topics.push(describe(shard, caller, topic, from, from + left));
    if (topic.partitions.length > from + left)
      return { topics, nextCursor: { topicName: name, partitionIndex: from + left } };
    left -= Math.max(0, topic.partitions.length - from);
  }
  return { topics, nextCursor: null };
}

/** Java's order of strings, which the cursor of a client from another broker may rest on. */
function byCodeUnits(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function describe(
  shard: ShardContext,
  caller: Caller,
  topic: TopicImage,
  from: number,
  to: number,
): TopicAnswer {
  const { listener } = caller.connection;
  return {
    errorCode: ErrorCode.NONE,
    name: topic.name,
    topicId: topic.id,
    isInternal: isInternalTopic(topic.name),
    topicAuthorizedOperations: topicOperations,
    partitions: topic.partitions.slice(from, to).map((partition) => ({
      ...partitionView(shard.image, partition, listener, true),
      eligibleLeaderReplicas: partition.eligibleLeaderReplicas,
      lastKnownElr: partition.lastKnownElr,
    })),
  };
}

function unknown(name: string): TopicAnswer {
  const errorCode =
    topicNameProblem(name) === null
      ? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
      : ErrorCode.INVALID_TOPIC_EXCEPTION;
  return { errorCode, name, isInternal: isInternalTopic(name), partitions: [] };
}

function invalidCursor(
  request: DescribeTopicPartitionsRequest,
): DescribeTopicPartitionsResponseInput {
  const topics = request.topics.map(({ name }) => ({
    errorCode: ErrorCode.INVALID_REQUEST,
    name,
    partitions: [],
  }));
  return { topics, nextCursor: null };
}
