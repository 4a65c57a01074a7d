/** What a shard does when settings of brokers change in the metadata, before it acts on anything else of the delta. */
import type { MetadataChanges } from '../replication/metadata/changes.ts';
import type { MetadataImage } from '../replication/metadata/image.ts';
import type { LiveConfig } from './config/live_config.ts';
import type { ShardPartitions } from './shard_partitions.ts';
import type { TopicRules } from './topic_rules.ts';

export interface SettingUsers {
  readonly image: MetadataImage;
  readonly live: LiveConfig;
  readonly partitions: ShardPartitions;
  readonly topicRules: TopicRules;
}

/** Logs are opened with the settings that stand then, so that this comes first. Main tells people of what is wrong. */
export function followSettings(changes: MetadataChanges, users: SettingUsers): void {
  if (changes.changedBrokerConfigs.length === 0) return;
  users.live.follow(users.image, null);
  users.partitions.updateConfigs();
  users.topicRules.forgetAll();
}
