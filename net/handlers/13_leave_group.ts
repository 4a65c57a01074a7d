/**
 * LeaveGroup (key 13).
 *
 * v1 throttle time · v2 as v1 · v3 several members, static ones by instance id (KIP-345) · v4 flexible ·
 * v5 reason (KIP-800).
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';

export function leaveGroupHandler({ groups }: ShardServices): Handler {
  return rpc('LeaveGroup', 0, 5, async (request, ctx) => {
    const { groupId, memberId } = request;
    const several = ctx.apiVersion >= 3;
    const members = several ? request.members : [{ memberId, groupInstanceId: null, reason: null }];
    const reply = await groups.ask(ctx, 'LeaveGroup', { groupId, members });
    if (several) return reply;
    // The one member's error is the answer's.
    const { errorCode } = reply;
    return {
      errorCode:
        errorCode === ErrorCode.NONE ? (reply.members[0]?.errorCode ?? errorCode) : errorCode,
    };
  });
}
