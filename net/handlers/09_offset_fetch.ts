/**
 * OffsetFetch (key 9): what a group has committed; -1 where it has not.
 *
 * v1 the oldest that Kafka 4 serves (KIP-896) · v2 an error for the whole answer, null for all topics · v3 throttle
 * time · v4 as v3 · v5 leader epoch (KIP-320) · v6 flexible · v7 require_stable (KIP-447), which says nothing while there
 * are no transactions · v8 several groups (KIP-709) · v9 members of consumer groups (KIP-848) · v10 topic ids.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type {
  OffsetFetchReply,
  OffsetFetchReplyTopic,
  OffsetFetchRequest as OneGroup,
} from '../../engine/groups/group_api.ts';
import { eachGroup } from '../groups/each_group.ts';
import { zeroUuid } from '../protocol/interning.ts';
import type {
  OffsetFetchRequest,
  OffsetFetchRequestOffsetFetchRequestGroup,
  OffsetFetchResponseInput,
} from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { RequestContext } from '../server/request_context.ts';
import type { ShardServices } from '../shard_services.ts';

const wholeErrorSince = 2;
const severalGroupsSince = 8;
/** Topics are named by id from this version on. */
const topicIdsSince = 10;

export function offsetFetchHandler(services: ShardServices): Handler {
  return rpc('OffsetFetch', 1, 10, (request, ctx) =>
    ctx.apiVersion >= severalGroupsSince
      ? fetchSeveral(services, request, ctx)
      : fetchOne(services, request, ctx),
  );
}

async function fetchSeveral(
  services: ShardServices,
  request: OffsetFetchRequest,
  ctx: RequestContext,
): Promise<OffsetFetchResponseInput> {
  const byId = ctx.apiVersion >= topicIdsSince;
  const groups = await eachGroup(
    request.groups,
    async (group): Promise<OffsetFetchReply> =>
      byId ? fetchById(services, group, ctx) : services.groups.ask(ctx, 'OffsetFetch', group),
  );
  return { groups };
}

async function fetchOne(
  services: ShardServices,
  { groupId, topics }: OffsetFetchRequest,
  ctx: RequestContext,
): Promise<OffsetFetchResponseInput> {
  const group: OneGroup = {
    groupId,
    memberId: null,
    memberEpoch: -1,
    topics: topics?.map((topic) => ({ ...topic, topicId: zeroUuid })) ?? null,
  };
  const reply = await services.groups.ask(ctx, 'OffsetFetch', group);
  if (ctx.apiVersion >= wholeErrorSince || reply.errorCode === ErrorCode.NONE) return reply;
  const { errorCode } = reply;
  return { topics: (group.topics ?? []).map((topic) => withoutOffsets(topic, errorCode)) };
}

/** Ids become names on the way to the coordinator, and names ids on the way back. */
async function fetchById(
  { groups, image }: ShardServices,
  group: OffsetFetchRequestOffsetFetchRequestGroup,
  ctx: RequestContext,
): Promise<OffsetFetchReply> {
  const asked = group.topics?.map((topic) => ({
    ...topic,
    name: image.topicById(topic.topicId)?.name ?? '',
  }));
  const known = asked?.filter(({ name }) => name !== '') ?? null;
  const reply = await groups.ask(ctx, 'OffsetFetch', { ...group, topics: known });
  if (reply.errorCode !== ErrorCode.NONE) return reply;
  const ids = new Map(known?.map(({ name, topicId }) => [name, topicId]));
  const found = reply.topics.flatMap((topic) => {
    const topicId = ids.get(topic.name) ?? image.topic(topic.name)?.id;
    // A topic that is gone has no id to be told by.
    return topicId === undefined ? [] : [{ ...topic, topicId }];
  });
  const unknown = (asked ?? [])
    .filter(({ name }) => name === '')
    .map((topic) => withoutOffsets(topic, ErrorCode.UNKNOWN_TOPIC_ID));
  return { ...reply, topics: [...found, ...unknown] };
}

function withoutOffsets(
  topic: NonNullable<OneGroup['topics']>[number],
  errorCode: ErrorCode,
): OffsetFetchReplyTopic {
  return {
    name: topic.name,
    topicId: topic.topicId,
    partitions: topic.partitionIndexes.map((partitionIndex) => ({
      partitionIndex,
      committedOffset: -1n,
      committedLeaderEpoch: -1,
      metadata: '',
      errorCode,
    })),
  };
}
