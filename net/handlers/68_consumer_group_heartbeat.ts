/**
 * ConsumerGroupHeartbeat (key 68, KIP-848): a member of a consumer group joins, lives, is told its partitions, leaves.
 *
 * v1 members name themselves, and subscriptions by regular expression (KIP-1082).
 */
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';

export function consumerGroupHeartbeatHandler({ groups }: ShardServices): Handler {
  return rpc('ConsumerGroupHeartbeat', 0, 1, async (request, ctx) => {
    const { apiVersion } = ctx;
    const reply = await groups.ask(ctx, 'ConsumerGroupHeartbeat', { ...request, apiVersion });
    return { throttleTimeMs: 0, ...reply };
  });
}
