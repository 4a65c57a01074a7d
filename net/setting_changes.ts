/** What a shard does when settings change in the metadata, before it acts on anything else of the delta. */
import type { MetadataChanges } from '../replication/metadata/changes.ts';
import type { MetadataImage } from '../replication/metadata/image.ts';
import type { ReplicationThrottle } from '../replication/partition/replication_throttle.ts';
import type { LiveConfig } from './config/live_config.ts';
import { changedTopicIds } from './replication_throttles.ts';
import type { ShardPartitions } from './shard_partitions.ts';
import type { TopicRules } from './topic_rules.ts';

export interface SettingUsers {
  readonly image: MetadataImage;
  readonly live: LiveConfig;
  readonly partitions: ShardPartitions;
  readonly topicRules: TopicRules;
  /** Of what this broker leads. */
  readonly throttle: ReplicationThrottle;
}

/** Logs are opened with the settings that stand then, so that this comes first. Main tells people of what is wrong. */
export function followSettings(changes: MetadataChanges, users: SettingUsers): void {
  const { image, live, partitions, topicRules, throttle } = users;
  for (const topicId of changedTopicIds(changes, image)) {
    topicRules.forget(topicId);
    throttle.forget(topicId);
  }
  if (changes.changedBrokerConfigs.length === 0) return;
  live.follow(image, null);
  partitions.updateConfigs();
  topicRules.forgetAll();
  throttle.limit(live.current.throttledRates.leader);
}
