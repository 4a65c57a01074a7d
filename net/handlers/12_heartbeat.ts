/**
 * Heartbeat (key 12): a member of a classic group is alive, and hears whether it must join again.
 *
 * v1 throttle time · v2 as v1 · v3 static members (KIP-345) · v4 flexible.
 */
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';

export function heartbeatHandler({ groups }: ShardServices): Handler {
  return rpc('Heartbeat', 0, 4, (request, ctx) => groups.ask(ctx, 'Heartbeat', request));
}
