/**
 * UnregisterBroker (key 64, KIP-631): forgets a broker that will not come back.
 *
 * v0 the only one.
 */
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardContext } from '../shard_context.ts';

/** The request carries no time of its own: as Kafka's clients give it by default. */
const timeoutMs = 60_000;

export function unregisterBrokerHandler({ quorum }: ShardContext): Handler {
  return rpc('UnregisterBroker', 0, 0, async ({ brokerId }) => {
    const reply = await quorum.unregisterBroker({ brokerId }, timeoutMs);
    const errorMessage = reply.result === null ? reply.errorMessage : null;
    return { throttleTimeMs: 0, errorCode: reply.errorCode, errorMessage };
  });
}
