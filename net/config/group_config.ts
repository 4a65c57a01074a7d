/** Settings of consumer groups and of the topic that holds their state; Kafka's names in camel case. Times in milliseconds. */
import { Codec } from '../../engine/batch/header.ts';
import type { ConsumerAssignorName, GroupOptions } from '../../engine/groups/group_options.ts';
import type { Settings } from './settings.ts';

/** What the machines of the groups are told, and what is only for those who run them. */
export interface GroupConfig extends GroupOptions {
  /** How long a write may wait to be committed. */
  readonly offsetsCommitTimeoutMs: number;
  readonly offsetsLoadBufferBytes: number;
  /** Of what the coordinators append. */
  readonly offsetsTopicCompression: Codec;
  readonly offsetsTopicPartitions: number;
  /** -1: three, or as many as there are brokers. */
  readonly offsetsTopicReplicationFactor: number;
  readonly offsetsTopicSegmentBytes: number;
  /** Groups of KIP-848 beside those of the classic protocol. */
  readonly servesConsumerProtocol: boolean;
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
    consumerSessionTimeoutMs: settings.number('group.consumer.session.timeout.ms'),
    consumerHeartbeatIntervalMs: settings.number('group.consumer.heartbeat.interval.ms'),
    consumerMaxSize: settings.number('group.consumer.max.size'),
    consumerAssignmentIntervalMs: settings.number('group.consumer.assignment.interval.ms'),
    // The table allows no other names.
    consumerAssignors: settings.list('group.consumer.assignors') as ConsumerAssignorName[],
    offsetsCommitTimeoutMs: settings.number('offsets.commit.timeout.ms'),
    offsetsLoadBufferBytes: settings.number('offsets.load.buffer.size'),
    offsetsTopicCompression: readCompression(settings),
    offsetsTopicPartitions: settings.number('offsets.topic.num.partitions'),
    offsetsTopicReplicationFactor: settings.number('offsets.topic.replication.factor'),
    offsetsTopicSegmentBytes: settings.number('offsets.topic.segment.bytes'),
    servesConsumerProtocol: readProtocols(settings).includes('consumer'),
  };
  if (groups.minSessionTimeoutMs > groups.maxSessionTimeoutMs)
    settings.refuse(
      'group.min.session.timeout.ms',
      `allowed: at most group.max.session.timeout.ms=${groups.maxSessionTimeoutMs}`,
    );
  return groups;
}

const codecs: readonly number[] = Object.values(Codec);

function readCompression(settings: Settings): Codec {
  const key = 'offsets.topic.compression.codec';
  const codec = settings.number(key);
  if (codecs.includes(codec)) return codec as Codec;
  settings.refuse(key, 'allowed: 0 (none), 1 (gzip), 2 (snappy), 3 (lz4), 4 (zstd)');
  return Codec.none;
}

function readProtocols(settings: Settings): readonly string[] {
  const key = 'group.coordinator.rebalance.protocols';
  const protocols = settings.list(key);
  // As in Kafka, where it cannot be switched off either.
  if (!protocols.includes('classic')) settings.refuse(key, 'allowed: a list with classic in it');
  return protocols;
}
