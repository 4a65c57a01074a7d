/** Settings of one partition's log: Kafka's topic configs in the units that the engine works with. */
import type { TimestampType } from '../batch/stamp.ts';

export interface LogConfig {
  /** segment.bytes: a segment file never grows beyond this. Below 2^31. */
  readonly segmentBytes: number;
  /** segment.ms: age, by its first batch's timestamp, at which a segment that takes a batch is closed first. */
  readonly segmentMs: number;
  /** segment.jitter.ms: up to this is taken off `segmentMs`, by chance for each segment. */
  readonly segmentJitterMs: number;
  /** segment.index.bytes: size at which an index is full and its segment is closed. */
  readonly segmentIndexBytes: number;
  /** index.interval.bytes: log bytes between two index entries. */
  readonly indexIntervalBytes: number;
  /** max.message.bytes: largest batch. */
  readonly maxMessageBytes: number;
  readonly messageTimestampType: TimestampType;
  readonly messageTimestampBeforeMaxMs: number;
  readonly messageTimestampAfterMaxMs: number;
  /** flush.messages and flush.ms: with durability 'os', how much may wait for a flush. */
  readonly flushMessages: number;
  readonly flushMs: number;
  /** log.durability: 'fsync' acknowledges after the flush, 'os' after the write, as Kafka does. */
  readonly durability: 'fsync' | 'os';
  /** -1: no limit. */
  readonly retentionMs: number;
  readonly retentionBytes: number;
  readonly deleteRetentionMs: number;
  readonly fileDeleteDelayMs: number;
  readonly cleanupPolicy: { readonly compact: boolean; readonly delete: boolean };
  readonly minCleanableDirtyRatio: number;
  readonly minCompactionLagMs: number;
  readonly maxCompactionLagMs: number;
  /** Largest size to which the log itself decompresses a batch (look-ups by timestamp). */
  readonly decompressedMaxBytes: number;
  /** producer.id.expiration.ms: a producer that has appended nothing for so long is forgotten. */
  readonly producerIdExpirationMs: number;
}

const dayMs = 86_400_000;

/** Kafka's defaults, but for retention (14 days) and durability. */
export const defaultLogConfig: LogConfig = {
  segmentBytes: 1_073_741_824,
  segmentMs: 7 * dayMs,
  segmentJitterMs: 0,
  segmentIndexBytes: 10_485_760,
  indexIntervalBytes: 4096,
  maxMessageBytes: 1_048_588,
  messageTimestampType: 'CreateTime',
  messageTimestampBeforeMaxMs: Number.MAX_SAFE_INTEGER,
  messageTimestampAfterMaxMs: 3_600_000,
  flushMessages: Number.MAX_SAFE_INTEGER,
  flushMs: Number.MAX_SAFE_INTEGER,
  durability: 'fsync',
  retentionMs: 14 * dayMs,
  retentionBytes: -1,
  deleteRetentionMs: dayMs,
  fileDeleteDelayMs: 60_000,
  cleanupPolicy: { compact: false, delete: true },
  minCleanableDirtyRatio: 0.5,
  minCompactionLagMs: 0,
  maxCompactionLagMs: Number.MAX_SAFE_INTEGER,
  decompressedMaxBytes: 16 * 1024 * 1024,
  producerIdExpirationMs: dayMs,
};
