/**
 * ListGroups (key 16): the groups that this broker coordinates.
 *
 * v1 throttle time · v2 as v1 · v3 flexible · v4 states, and a filter by them (KIP-518) · v5 types, and a filter by them
 * (KIP-848).
 */
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardServices } from '../shard_services.ts';

export function listGroupsHandler({ groups }: ShardServices): Handler {
  return rpc('ListGroups', 0, 5, ({ statesFilter, typesFilter }) =>
    groups.list({ statesFilter, typesFilter }),
  );
}
