/**
 * What a partition's replica on this broker can be asked whatever its part is: the log's flushes and writes are reported
 * to it, and those who look after logs (checkpoints, compaction, deletion) ask how far the log is settled.
 *
 * Thread: the shard that owns the partition's log.
 */
import type { ErrorCode } from '../../engine/error_code.gen.ts';
import type { FlushGroup } from '../../engine/log/flush_group.ts';
import type { LogConfig } from '../../engine/log/log_config.ts';
import type { PartitionLog } from '../../engine/log/partition_log.ts';

export interface PartitionReplica {
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
  readonly log: PartitionLog;
  /** Of the log's directory. */
  readonly flushGroup: FlushGroup;
  /** Everything below it is committed as far as this replica knows. */
  readonly highWatermark: number;
  /** No more than the high watermark: what an open transaction has written is not settled. */
  readonly lastStableOffset: number;
  /** ErrorCode.NONE while this replica does its part. */
  readonly refusal: ErrorCode;
  /** The log wrote all up to `endOffset` to the page cache. */
  logWritten(endOffset: number): void;
  /** What was appended since the last `logWritten` could not be written and is not in the log any more. */
  logWriteFailed(error: ErrorCode): void;
  /** All up to `endOffset` is as safe as `log.durability` asks: on stable storage (`fsync`), or written (`os`). */
  logFlushed(endOffset: number): void;
  /** The log begins at `offset` from now on, which is written down on stable storage. */
  advanceLogStart(offset: number): void;
  /** Takes over changed topic settings. */
  updateConfig(config: LogConfig, minInsyncReplicas: number): void;
  /** Stops doing its part, and ends every wait with `error`. */
  refuse(error: ErrorCode): void;
}

/** Up to where a log is as safe as its topic asks. */
export function safeEndOf(log: PartitionLog): number {
  return log.config.durability === 'os' ? log.writtenOffset : log.flushedOffset;
}
