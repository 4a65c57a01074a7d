/**
 * OffsetCommit (key 8): stores how far a group has come. Answered once the offsets are committed themselves.
 *
 * v2 the oldest that Kafka 4 serves (KIP-896): retention time · v3 throttle time · v4 as v3 · v5 no retention time any
 * more (KIP-211) · v6 leader epoch (KIP-320) · v7 static members (KIP-345) · v8 flexible · v9 member epochs of consumer
 * groups (KIP-848) · v10 topic ids.
 */

import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { OffsetCommitReply } from '../../engine/groups/group_api.ts';
import { mergeTopics, splitByExistence } from '../groups/topic_results.ts';
import { zeroUuid } from '../protocol/interning.ts';
import type {
  OffsetCommitRequest,
  OffsetCommitRequestOffsetCommitRequestTopic,
  OffsetCommitResponseInput,
} from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { RequestContext } from '../server/request_context.ts';
import type { ShardServices } from '../shard_services.ts';

/** Topics are named by id from this version on. */
const topicIdsSince = 10;

export function offsetCommitHandler(services: ShardServices): Handler {
  return rpc('OffsetCommit', 2, 10, (request, ctx) => answer(services, request, ctx));
}

function answer(
  services: ShardServices,
  request: OffsetCommitRequest,
  ctx: RequestContext,
): OffsetCommitResponseInput | Promise<OffsetCommitResponseInput> {
  const byId = ctx.apiVersion >= topicIdsSince;
  const topics = request.topics.map((topic) => findTopic(services, topic, byId));
  const wanted = topics
    .filter(({ known }) => known.length > 0)
    .map(({ name, topicId, known }) => ({ name, topicId, partitions: known }));
  const refused = topics
    .filter(({ unknown }) => unknown.length > 0)
    .map(({ name, topicId, unknown, error }) => ({
      name,
      topicId,
      partitions: unknown.map(({ partitionIndex }) => ({ partitionIndex, errorCode: error })),
    }));
  if (wanted.length === 0) return { topics: refused };
  const { apiVersion } = ctx;
  const body = { ...request, apiVersion, topics: wanted };
  const reply = services.groups.ask(ctx, 'OffsetCommit', body);
  const isWhole = refused.length === 0 && wanted.length === 1;
  if (isWhole) return reply;
  const merge = ({ topics: answered }: OffsetCommitReply): OffsetCommitResponseInput => ({
    topics: mergeTopics(answered, refused),
  });
  return reply instanceof Promise ? reply.then(merge) : merge(reply);
}

function findTopic(
  { image }: ShardServices,
  { name, topicId, partitions }: OffsetCommitRequestOffsetCommitRequestTopic,
  byId: boolean,
) {
  const topic = byId ? image.topicById(topicId) : image.topic(name);
  const isUnknownId = byId && topic === undefined;
  return {
    name: byId ? (topic?.name ?? '') : name,
    topicId: byId ? topicId : (topic?.id ?? zeroUuid),
    ...splitByExistence(partitions, topic?.partitions.length ?? 0),
    error: isUnknownId ? ErrorCode.UNKNOWN_TOPIC_ID : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
  };
}
