/** Ties the broker's configuration to what the controller and the handlers of topics need of it. */

import type { BrokerConfig } from './config/broker_config.ts';
import { describeTopic } from './config/describe.ts';
import { checkTopicConfigs } from './config/topic_config.ts';
import type { TopicSettings } from './shard_context.ts';

/** For `ShardContext.settings`. */
export function topicSettings(broker: BrokerConfig): TopicSettings {
  return {
    autoCreateTopicsEnable: broker.autoCreateTopicsEnable,
    deleteTopicEnable: broker.deleteTopicEnable,
    maxRequestPartitionSizeLimit: broker.maxRequestPartitionSizeLimit,
    topicConfigEntries: (overrides) =>
      describeTopic(checkTopicConfigs(overrides).values, broker).map((entry) => ({
        name: entry.name,
        value: entry.value,
        source: entry.source,
        readOnly: entry.readOnly,
        sensitive: entry.sensitive,
      })),
  };
}
