/**
 * ListConfigResources (key 74): names of what has settings.
 *
 * v0 client metrics alone (KIP-714) · v1 any kind of resource, an empty list of kinds means all (KIP-1142). Millrace has
 * neither client metrics nor settings of single groups so far: of those kinds it has none.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { ConfigResourceType } from '../../replication/metadata/records.ts';
import { brokersOf, type Caller } from '../cluster_view.ts';
import type { MessageInputs, MessageTypes } from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardContext } from '../shard_context.ts';

type Request = MessageTypes['ListConfigResourcesRequest'];
type Response = MessageInputs['ListConfigResourcesResponse'];

/** Kafka's `ConfigResource.Type` of each kind that has settings. */
const kinds: ReadonlySet<number> = new Set(Object.values(ConfigResourceType));

export function listConfigResourcesHandler(shard: ShardContext): Handler {
  return rpc('ListConfigResources', 0, 1, (request, ctx) =>
    answerListConfigResources(shard, request, ctx),
  );
}

/** The answer itself. A kind that nobody knows is refused with UNSUPPORTED_VERSION, as in Kafka. */
function answerListConfigResources(
  shard: ShardContext,
  { resourceTypes }: Request,
  caller: Caller,
): Response {
  const asked = askedKinds(resourceTypes, caller.apiVersion);
  if ([...asked].some((kind) => !kinds.has(kind)))
    return { throttleTimeMs: 0, errorCode: ErrorCode.UNSUPPORTED_VERSION, configResources: [] };
  const configResources = [...asked].flatMap((resourceType) =>
    namesOf(shard, resourceType, caller).map((resourceName) => ({ resourceName, resourceType })),
  );
  return { throttleTimeMs: 0, errorCode: ErrorCode.NONE, configResources };
}

function askedKinds(resourceTypes: readonly number[], version: number): ReadonlySet<number> {
  if (version === 0) return new Set([ConfigResourceType.clientMetrics]);
  return resourceTypes.length === 0 ? kinds : new Set(resourceTypes);
}

function namesOf({ image }: ShardContext, kind: number, caller: Caller): string[] {
  switch (kind) {
    case ConfigResourceType.topic:
      return [...image.topics.keys()];
    case ConfigResourceType.broker:
    case ConfigResourceType.brokerLogger:
      return brokersOf(image, caller.connection.listener, false).map(({ broker }) =>
        String(broker.id),
      );
    default:
      return [];
  }
}
