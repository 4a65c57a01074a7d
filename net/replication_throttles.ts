/**
 * The throttles of a broker's replication, out of its settings (KIP-73): `leader.replication.throttled.rate` and the
 * follower's, and the topics' lists of throttled replicas.
 *
 * Thread: what this broker sends is measured by all shards together, each with a throttle of its own over one counter;
 * what it fetches, by the replication thread alone.
 */
import type { MetadataChanges } from '../replication/metadata/changes.ts';
import type { MetadataImage } from '../replication/metadata/image.ts';
import { type ByteCounter, ReplicationQuota } from '../replication/partition/replication_quota.ts';
import { ReplicationThrottle } from '../replication/partition/replication_throttle.ts';
import { throttledReplicas } from '../replication/partition/throttled_replicas.ts';
import type { BrokerConfig } from './config/broker_config.ts';

export function makeThrottle(
  side: 'leader' | 'follower',
  config: BrokerConfig,
  image: MetadataImage,
  counter: ByteCounter,
): ReplicationThrottle {
  const { quotaWindows, quotaWindowMs } = config.replication;
  const quota = new ReplicationQuota({ windows: quotaWindows, windowMs: quotaWindowMs, counter });
  const throttle = new ReplicationThrottle(quota, (topicId) => {
    const name = image.topicById(topicId)?.name ?? '';
    const text = image.topicConfigs(name).get(`${side}.replication.throttled.replicas`);
    return throttledReplicas(text, config.nodeId);
  });
  throttle.limit(config.throttledRates[side]);
  return throttle;
}

/** Topics whose settings count anew, or no more. */
export function changedTopicIds(changes: MetadataChanges, image: MetadataImage): string[] {
  const ids = changes.deletedTopics.map(({ id }) => id);
  for (const name of changes.changedTopicConfigs) {
    const topic = image.topic(name);
    if (topic !== undefined) ids.push(topic.id);
  }
  return ids;
}
