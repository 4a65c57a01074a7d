/**
 * DeleteTopics (key 20).
 *
 * v1 the oldest that Kafka 4 serves (KIP-896) · v3 TOPIC_DELETION_DISABLED · v4 flexible · v5 error messages ·
 * v6 topics by name or by id, each with its own entry (KIP-516).
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { TopicToDelete } from '../../replication/metadata/controller_api.ts';
import { uuidZero } from '../../replication/metadata/records.ts';
import type { Caller } from '../cluster_view.ts';
import type {
  DeleteTopicsRequest,
  DeleteTopicsResponseDeletableTopicResultInput,
  DeleteTopicsResponseInput,
} from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardContext } from '../shard_context.ts';

type Answer = DeleteTopicsResponseDeletableTopicResultInput;

/** `null` and all zero: not given. */
interface Asked {
  readonly name: string | null;
  readonly topicId: string;
}

export function deleteTopicsHandler(shard: ShardContext): Handler {
  return rpc('DeleteTopics', 1, 6, (request, ctx) => answerDeleteTopics(shard, request, ctx));
}

/** The answer itself; with success no thread of this broker serves the topics any more. Never rejects. */
export async function answerDeleteTopics(
  shard: ShardContext,
  request: DeleteTopicsRequest,
  caller: Caller,
): Promise<DeleteTopicsResponseInput> {
  const asked: readonly Asked[] =
    caller.apiVersion >= 6
      ? request.topics
      : request.topicNames.map((name) => ({ name, topicId: uuidZero }));
  if (!shard.settings.deleteTopicEnable)
    return { responses: asked.map((topic) => disabled(topic, caller.apiVersion)) };
  const { wellFormed, refused } = sortOut(shard, asked);
  if (wellFormed.length === 0) return { responses: refused };
  const topics = wellFormed.map(toDelete);
  const reply = await shard.quorum.deleteTopics({ topics }, request.timeoutMs);
  if (reply.errorCode !== ErrorCode.NONE) {
    const { errorCode, errorMessage } = reply;
    return {
      responses: [
        ...refused,
        ...wellFormed.map((topic) => ({ ...topic, errorCode, errorMessage })),
      ],
    };
  }
  return { responses: [...refused, ...reply.result.topics] };
}

function toDelete({ name, topicId }: Asked): TopicToDelete {
  return name === null ? { name, topicId } : { name, topicId: null };
}

function disabled(topic: Asked, version: number): Answer {
  return {
    ...topic,
    errorCode: version < 3 ? ErrorCode.INVALID_REQUEST : ErrorCode.TOPIC_DELETION_DISABLED,
    errorMessage: 'Topic deletion is disabled (delete.topic.enable=false).',
  };
}

/** Parts what can be asked of the controller from what contradicts itself, by the rules of Kafka's `ControllerApis`. */
function sortOut(
  shard: ShardContext,
  asked: readonly Asked[],
): { wellFormed: Asked[]; refused: Answer[] } {
  const names = countBy(asked, (topic) => topic.name);
  const ids = countBy(asked, (topic) => (topic.topicId === uuidZero ? null : topic.topicId));
  const wellFormed: Asked[] = [];
  const refused: Answer[] = [];
  const seen = new Set<string>();
  for (const topic of asked) {
    const problem = problemOf(shard, topic, names, ids);
    if (problem === null) {
      wellFormed.push(topic);
      continue;
    }
    const key = `${topic.name} ${topic.topicId}`;
    if (!seen.has(key))
      refused.push({ ...topic, errorCode: ErrorCode.INVALID_REQUEST, errorMessage: problem });
    seen.add(key);
  }
  return { wellFormed, refused };
}

function problemOf(
  shard: ShardContext,
  { name, topicId }: Asked,
  names: ReadonlyMap<string, number>,
  ids: ReadonlyMap<string, number>,
): string | null {
  if (name === null && topicId === uuidZero) return 'Neither topic name nor id were specified.';
  if (name !== null && topicId !== uuidZero)
    return 'You may not specify both topic name and topic id.';
  if (name === null) return (ids.get(topicId) ?? 0) > 1 ? 'Duplicate topic id.' : null;
  if ((names.get(name) ?? 0) > 1) return 'Duplicate topic name.';
  const id = shard.image.topic(name)?.id;
  if (id !== undefined && ids.has(id))
    return 'The provided topic name maps to an ID that was already supplied.';
  return null;
}

function countBy(
  asked: readonly Asked[],
  key: (topic: Asked) => string | null,
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const topic of asked) {
    const value = key(topic);
    if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return counts;
}
