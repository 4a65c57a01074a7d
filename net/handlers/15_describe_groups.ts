/**
 * DescribeGroups (key 15): state and members of classic groups.
 *
 * v1 throttle time · v2 as v1 · v3 authorised operations (KIP-430) · v4 static members (KIP-345) · v5 flexible ·
 * v6 GROUP_ID_NOT_FOUND and error messages (KIP-1043); before, a group that is not there is "Dead".
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { groupOperations, operationsNotAsked } from '../cluster_view.ts';
import { eachGroup } from '../groups/each_group.ts';
import type { DescribeGroupsResponseDescribedGroupInput } from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { RequestContext } from '../server/request_context.ts';
import type { ShardServices } from '../shard_services.ts';

export function describeGroupsHandler(services: ShardServices): Handler {
  return rpc('DescribeGroups', 0, 6, async (request, ctx) => {
    const asked = request.includeAuthorizedOperations;
    return {
      groups: await eachGroup(request.groups, (groupId) => describe(services, ctx, groupId, asked)),
    };
  });
}

async function describe(
  { groups }: ShardServices,
  ctx: RequestContext,
  groupId: string,
  includeOperations: boolean,
): Promise<DescribeGroupsResponseDescribedGroupInput> {
  const reply = await groups.ask(ctx, 'DescribeGroups', { groupId });
  const authorizedOperations = includeOperations ? groupOperations : operationsNotAsked;
  if (ctx.apiVersion >= 6) return { ...reply, authorizedOperations };
  const { errorMessage: _, ...rest } = reply;
  const isKnown = reply.errorCode !== ErrorCode.GROUP_ID_NOT_FOUND;
  return {
    ...rest,
    errorCode: isKnown ? reply.errorCode : ErrorCode.NONE,
    authorizedOperations,
  };
}
