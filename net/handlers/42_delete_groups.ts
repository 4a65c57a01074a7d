/**
 * DeleteGroups (key 42): groups without members go, with their offsets.
 *
 * v1 throttling after the answer (KIP-219) · v2 flexible · v3 error messages (KIP-1043).
 */
import { eachGroup } from '../groups/each_group.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';

export function deleteGroupsHandler({ groups }: ShardServices): Handler {
  return rpc('DeleteGroups', 0, 3, async (request, ctx) => {
    const names = [...new Set(request.groupsNames)];
    const results = await eachGroup(names, async (groupId) => {
      const { errorCode } = await groups.ask(ctx, 'DeleteGroups', { groupId });
      return { groupId, errorCode };
    });
    return { throttleTimeMs: 0, results };
  });
}
