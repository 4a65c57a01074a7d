/** The part of the configuration that handlers of topics read, as they want it. */
import type { ConfigEntry } from '../../replication/metadata/controller_api.ts';
import type { TopicSettings } from '../shard_context.ts';
import type { BrokerConfig } from './broker_config.ts';
import { describeTopic } from './describe.ts';

export function topicSettings(config: BrokerConfig): TopicSettings {
  const { autoCreateTopicsEnable, deleteTopicEnable, maxRequestPartitionSizeLimit } = config;
  return {
    autoCreateTopicsEnable,
    deleteTopicEnable,
    maxRequestPartitionSizeLimit,
    topicConfigEntries: (overrides) => describeTopic(overridesOf(overrides), config),
  };
}

function overridesOf(entries: readonly ConfigEntry[]): ReadonlyMap<string, string> {
  const overrides = new Map<string, string>();
  for (const { name, value } of entries) if (value !== null) overrides.set(name, value);
  return overrides;
}
