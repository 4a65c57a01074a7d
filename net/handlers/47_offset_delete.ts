/** OffsetDelete (key 47, v0, KIP-496): committed offsets of topics that the group does not subscribe to go. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { OffsetDeleteRequest } from '../../engine/groups/group_api.ts';
import { mergeTopics, splitByExistence } from '../groups/topic_results.ts';
import type { OffsetDeleteResponseInput } from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { RequestContext } from '../server/request_context.ts';
import type { ShardServices } from '../shard_services.ts';

export function offsetDeleteHandler(services: ShardServices): Handler {
  return rpc('OffsetDelete', 0, 0, (request, ctx) => answer(services, request, ctx));
}

async function answer(
  { groups, image }: ShardServices,
  { groupId, topics: asked }: OffsetDeleteRequest,
  ctx: RequestContext,
): Promise<OffsetDeleteResponseInput> {
  const topics = asked.map(({ name, partitions }) => ({
    name,
    ...splitByExistence(partitions, image.topic(name)?.partitions.length ?? 0),
  }));
  const wanted = topics
    .filter(({ known }) => known.length > 0)
    .map(({ name, known }) => ({ name, partitions: known }));
  const refused = topics
    .filter(({ unknown }) => unknown.length > 0)
    .map(({ name, unknown }) => ({
      name,
      partitions: unknown.map(({ partitionIndex }) => ({
        partitionIndex,
        errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
      })),
    }));
  if (wanted.length === 0) return { errorCode: ErrorCode.NONE, topics: refused };
  const reply = await groups.ask(ctx, 'OffsetDelete', { groupId, topics: wanted });
  if (reply.errorCode !== ErrorCode.NONE) return { errorCode: reply.errorCode, topics: [] };
  return { errorCode: ErrorCode.NONE, topics: mergeTopics(reply.topics, refused) };
}
