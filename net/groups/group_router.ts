/**
 * From a request about a group to the shard that coordinates it, and back.
 *
 * Thread: the connection's shard.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type {
  Client,
  GroupApi,
  GroupCalls,
  GroupReply,
  GroupRequest,
  ListGroupsReply,
  ListGroupsRequest,
} from '../../engine/groups/group_api.ts';
import { refusal } from '../../engine/groups/refusals.ts';
import type { MetadataImage } from '../../replication/metadata/image.ts';
import type { GroupConfig } from '../config/group_config.ts';
import { isHere, type Routes } from '../routes.ts';
import type { RequestContext } from '../server/request_context.ts';
import type { ShardCalls } from '../shard_calls.ts';
import { type GroupCoordinators, mergeLists } from './group_coordinators.ts';
import { offsetsTopicName, partitionOfGroup } from './offsets_topic.ts';

/** What the keys of the groups' records can say. An id that is no UTF-8 grows when it is written. */
const groupIdBytesMax = 32_767;

const mappedPrefix = '::ffff:';

/** APIs that name one group. */
export type SingleGroupApi = Exclude<GroupApi, 'ListGroups'>;

export class GroupRouter {
  readonly #image: MetadataImage;
  readonly #routes: Routes;
  readonly #calls: ShardCalls;
  readonly #here: GroupCoordinators;
  readonly #servesConsumerProtocol: boolean;

  constructor(
    image: MetadataImage,
    routes: Routes,
    calls: ShardCalls,
    here: GroupCoordinators,
    { servesConsumerProtocol }: Pick<GroupConfig, 'servesConsumerProtocol'>,
  ) {
    this.#servesConsumerProtocol = servesConsumerProtocol;
    this.#image = image;
    this.#routes = routes;
    this.#calls = calls;
    this.#here = here;
  }

  /**
   * Asks the group's coordinator. The answer is there at once, which saves a heartbeat a turn of the event loop, or may take
   * as long as a rebalance; errors are codes in it.
   */
  ask<Api extends SingleGroupApi>(
    ctx: RequestContext,
    api: Api,
    body: GroupCalls[Api]['request'],
  ): GroupCalls[Api]['reply'] | Promise<GroupCalls[Api]['reply']> {
    const request = { api, body } as GroupRequest;
    const reply = this.#route(body.groupId, clientOf(ctx), request);
    return reply instanceof Promise ? reply.then(bodyOf) : reply.body;
  }

  /** All groups of this broker. */
  async list(request: ListGroupsRequest): Promise<ListGroupsReply> {
    return mergeLists(await this.#calls.callAll('group.list', request));
  }

  #route(groupId: string, client: Client, request: GroupRequest): GroupReply | Promise<GroupReply> {
    if (!this.#servesConsumerProtocol && isOfConsumerProtocol(request))
      return refusal(request, ErrorCode.UNSUPPORTED_VERSION);
    // At most three bytes for each UTF-16 unit: nearly no id has to be counted.
    if (groupId.length * 3 > groupIdBytesMax && Buffer.byteLength(groupId) > groupIdBytesMax)
      return refusal(request, ErrorCode.INVALID_GROUP_ID);
    const topic = this.#image.topic(offsetsTopicName);
    if (topic === undefined) return refusal(request, ErrorCode.NOT_COORDINATOR);
    const partition = partitionOfGroup(groupId, topic.partitions.length);
    const place = this.#routes.byName(offsetsTopicName, partition);
    if (typeof place === 'number') return refusal(request, ErrorCode.NOT_COORDINATOR);
    if (isHere(place)) return this.#here.request(partition, client, request);
    return this.#calls.call(place.shard, 'group.request', { partition, client, request });
  }
}

function isOfConsumerProtocol({ api }: GroupRequest): boolean {
  return api === 'ConsumerGroupHeartbeat' || api === 'ConsumerGroupDescribe';
}

function bodyOf({ body }: GroupReply): GroupReply['body'] {
  return body;
}

function clientOf(ctx: RequestContext): Client {
  // An IPv4 client on an IPv6 socket is still an IPv4 client to its operator.
  const { remoteAddress } = ctx.connection;
  const address = remoteAddress.startsWith(mappedPrefix)
    ? remoteAddress.slice(mappedPrefix.length)
    : remoteAddress;
  return { clientId: ctx.clientId ?? '', clientHost: `/${address}` };
}
