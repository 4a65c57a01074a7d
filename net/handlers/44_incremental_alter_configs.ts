/**
 * IncrementalAlterConfigs (key 44, KIP-339): single settings of topics and brokers are set, deleted, or have items appended
 * to or taken off a list.
 *
 * v1 flexible (KIP-482).
 */
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardContext } from '../shard_context.ts';
import { alterConfigs } from './alter_configs.ts';

export function incrementalAlterConfigsHandler(shard: ShardContext): Handler {
  return rpc('IncrementalAlterConfigs', 0, 1, async ({ resources, validateOnly }) => {
    const asked = resources.map(({ resourceType, resourceName, configs }) => ({
      resourceType,
      resourceName,
      changes: configs.map(({ name, value, configOperation }) => ({
        name,
        value,
        operation: configOperation,
      })),
    }));
    return { throttleTimeMs: 0, responses: await alterConfigs(shard, asked, false, validateOnly) };
  });
}
