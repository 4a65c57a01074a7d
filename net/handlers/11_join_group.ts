/**
 * JoinGroup (key 11): a member enters a rebalance of its classic group. The answer waits for the other members.
 *
 * v0 the session timeout is also the rebalance timeout · v1 rebalance timeout (KIP-62) · v2 throttle time · v3 as v2 ·
 * v4 MEMBER_ID_REQUIRED (KIP-394) · v5 static members (KIP-345) · v6 flexible · v7 protocol type (KIP-559) ·
 * v8 reason (KIP-800) · v9 a leader that need not assign anew (KIP-814).
 */
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';

export function joinGroupHandler({ groups }: ShardServices): Handler {
  return rpc('JoinGroup', 0, 9, async (request, ctx) => {
    const { apiVersion } = ctx;
    const reply = await groups.ask(ctx, 'JoinGroup', {
      ...request,
      rebalanceTimeoutMs: apiVersion === 0 ? request.sessionTimeoutMs : request.rebalanceTimeoutMs,
      requireKnownMemberId: apiVersion >= 4,
      supportSkippingAssignment: apiVersion >= 9,
    });
    return {
      ...reply,
      protocolName: reply.protocolName ?? (apiVersion >= 7 ? null : ''),
      skipAssignment: apiVersion >= 9 && reply.skipAssignment,
    };
  });
}
