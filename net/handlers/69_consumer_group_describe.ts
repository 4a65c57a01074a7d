/**
 * ConsumerGroupDescribe (key 69, KIP-848): state and members of consumer groups.
 *
 * v1 the kind of each member (KIP-1099).
 */
import { groupOperations, operationsNotAsked } from '../cluster_view.ts';
import { eachGroup } from '../groups/each_group.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';

export function consumerGroupDescribeHandler({ groups }: ShardServices): Handler {
  return rpc('ConsumerGroupDescribe', 0, 1, async (request, ctx) => {
    const authorizedOperations = request.includeAuthorizedOperations
      ? groupOperations
      : operationsNotAsked;
    const described = await eachGroup(request.groupIds, async (groupId) => ({
      ...(await groups.ask(ctx, 'ConsumerGroupDescribe', { groupId })),
      authorizedOperations,
    }));
    return { throttleTimeMs: 0, groups: described };
  });
}
