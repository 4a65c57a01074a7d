/**
 * AlterConfigs (key 33, KIP-133): all settings of a resource at once; what is not named loses its override. Clients have
 * used IncrementalAlterConfigs instead since 2.3.
 *
 * v1 throttling after the answer · v2 flexible (KIP-482).
 */
import { ConfigOperation } from '../../replication/metadata/config_alteration.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardContext } from '../shard_context.ts';
import { alterConfigs } from './alter_configs.ts';

export function alterConfigsHandler(shard: ShardContext): Handler {
  return rpc('AlterConfigs', 0, 2, async ({ resources, validateOnly }) => {
    const asked = resources.map(({ resourceType, resourceName, configs }) => ({
      resourceType,
      resourceName,
      changes: configs.map(({ name, value }) => ({ name, value, operation: ConfigOperation.set })),
    }));
    return { throttleTimeMs: 0, responses: await alterConfigs(shard, asked, true, validateOnly) };
  });
}
