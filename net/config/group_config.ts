/** Settings of consumer groups and of the topic that holds their state; Kafka's names in camel case. Times in milliseconds. */
import type { Settings } from './settings.ts';

export interface GroupConfig {
  readonly minSessionTimeoutMs: number;
  readonly maxSessionTimeoutMs: number;
  readonly initialRebalanceDelayMs: number;
  /** Most members of a classic group. */
  readonly maxSize: number;
  /** Longest metadata of a committed offset, in UTF-16 units. */
  readonly offsetMetadataMaxBytes: number;
  readonly offsetsRetentionMs: number;
  readonly offsetsRetentionCheckIntervalMs: number;
  /** How long a write may wait to be committed. */
  readonly offsetsCommitTimeoutMs: number;
  readonly offsetsLoadBufferBytes: number;
  readonly offsetsTopicPartitions: number;
  /** -1: three, or as many as there are brokers. */
  readonly offsetsTopicReplicationFactor: number;
  readonly offsetsTopicSegmentBytes: number;
}

const minuteMs = 60_000;

export function readGroups(settings: Settings): GroupConfig {
  const groups: GroupConfig = {
    minSessionTimeoutMs: settings.number('group.min.session.timeout.ms'),
    maxSessionTimeoutMs: settings.number('group.max.session.timeout.ms'),
    initialRebalanceDelayMs: settings.number('group.initial.rebalance.delay.ms'),
    maxSize: settings.number('group.max.size'),
    offsetMetadataMaxBytes: settings.number('offset.metadata.max.bytes'),
    offsetsRetentionMs: settings.number('offsets.retention.minutes') * minuteMs,
    offsetsRetentionCheckIntervalMs: settings.number('offsets.retention.check.interval.ms'),
    offsetsCommitTimeoutMs: settings.number('offsets.commit.timeout.ms'),
    offsetsLoadBufferBytes: settings.number('offsets.load.buffer.size'),
    offsetsTopicPartitions: settings.number('offsets.topic.num.partitions'),
    offsetsTopicReplicationFactor: settings.number('offsets.topic.replication.factor'),
    offsetsTopicSegmentBytes: settings.number('offsets.topic.segment.bytes'),
  };
  if (groups.minSessionTimeoutMs > groups.maxSessionTimeoutMs)
    settings.refuse(
      'group.min.session.timeout.ms',
      `allowed: at most group.max.session.timeout.ms=${groups.maxSessionTimeoutMs}`,
    );
  return groups;
}
