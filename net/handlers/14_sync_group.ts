/**
 * SyncGroup (key 14): the leader of a classic group hands in the assignment, every member gets its part.
 *
 * v1 throttle time · v2 as v1 · v3 static members (KIP-345) · v4 flexible · v5 protocol type and name, which must be
 * there (KIP-559).
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';

export function syncGroupHandler({ groups }: ShardServices): Handler {
  return rpc('SyncGroup', 0, 5, (request, ctx) => {
    const { protocolType, protocolName } = request;
    if (ctx.apiVersion >= 5 && (protocolType === null || protocolName === null))
      return { errorCode: ErrorCode.INCONSISTENT_GROUP_PROTOCOL, assignment: new Uint8Array(0) };
    return groups.ask(ctx, 'SyncGroup', request);
  });
}
