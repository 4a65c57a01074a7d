/**
 * The leader's side of one partition: who waits for which offset, and how far consumers may read.
 *
 * Thread: the shard that owns the partition's log. Concurrency: none, every call runs to its end.
 * Durability: `committed` is called only once the batch is below the high watermark, which covers
 * nothing but bytes that every in-sync replica has on stable storage (`log.durability=fsync`) or in
 * its page cache (`os`). There is one replica so far, so the high watermark is its own durable end.
 *
 * Path of a batch: append → (end of turn) logWritten → (group commit) logFlushed → high watermark.
 */
import assert from 'node:assert/strict';
import type { BatchInfo, BatchRules } from '../../engine/batch/rules.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { AppendResult } from '../../engine/log/append_result.ts';
import type { FlushGroup } from '../../engine/log/flush_group.ts';
import type { LogConfig } from '../../engine/log/log_config.ts';
import type { PartitionLog } from '../../engine/log/partition_log.ts';
import { isInternalTopic } from '../metadata/topic_name.ts';

/**
 * Who appended a batch. Once `append` has said NONE, each method is called exactly once (for what has happened already:
 * before `append` returns), with ErrorCode.NONE or the reason.
 */
export interface AppendWaiter {
  /** Set by `append`: the offset that follows the batch. */
  endOffset: number;
  /** The batch is in the page cache, or never will be: its memory belongs to the caller again. */
  onWritten(error: ErrorCode): void;
  /** Only after acks=all: the batch is below the high watermark, or its fate is unknown (an error). */
  onCommitted(error: ErrorCode): void;
}

export interface LeaderOptions {
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
  readonly leaderEpoch: number;
  readonly log: PartitionLog;
  /** Of the log's directory: writes and flushes what is appended. */
  readonly flushGroup: FlushGroup;
  /** Replicas in sync, this one included. */
  readonly isrSize: number;
  /** No more than there are replicas. */
  readonly minInsyncReplicas: number;
  /** Wakes those who wait for records of this partition. */
  readonly onHighWatermark: (leader: PartitionLeader) => void;
}

export class PartitionLeader {
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
  readonly log: PartitionLog;
  /** Of the log's directory. */
  readonly flushGroup: FlushGroup;
  /** Both change with `lead` only. */
  leaderEpoch: number;
  isrSize: number;
  minInsyncReplicas: number;
  /** What `validateProduceBatch` is to demand; the caller sets `nowMs` before each use. */
  batchRules: BatchRules;
  /** Set when the log's directory failed or the partition is going away: nothing is taken any more. */
  #refusal: ErrorCode = ErrorCode.NONE;
  /** Invariant: logStartOffset <= highWatermark <= log end; never falls while this node leads. */
  #highWatermark: number;
  /** Where the log ended when this node began to lead: an earlier leader may have shown all of it. */
  readonly #startOffset: number;
  /** In order of append; a duplicate of an earlier batch may stand behind a later one and is served with it. */
  #writing: AppendWaiter[] = [];
  /** As `#writing`. */
  #committing: AppendWaiter[] = [];
  readonly #onHighWatermark: (leader: PartitionLeader) => void;

  constructor(options: LeaderOptions) {
    this.topic = options.topic;
    this.topicId = options.topicId;
    this.partition = options.partition;
    this.leaderEpoch = options.leaderEpoch;
    this.log = options.log;
    this.isrSize = options.isrSize;
    this.minInsyncReplicas = options.minInsyncReplicas;
    this.batchRules = batchRulesOf(options.topic, options.log.config);
    this.flushGroup = options.flushGroup;
    this.#onHighWatermark = options.onHighWatermark;
    // A lone replica's log is the committed log: all of it, or what is flushed of it. What a kill left unflushed is
    // being flushed already (`FlushGroup.adopt`) and comes with `logFlushed`.
    const { log } = options;
    this.#highWatermark = log.config.durability === 'os' ? log.logEndOffset : log.flushedOffset;
    this.#startOffset = log.logEndOffset;
    this.lead(options.leaderEpoch, options.isrSize);
  }

  /**
   * Leads with this epoch and so many replicas in sync from now on. The log notes where the epoch begins although it
   * has no batch yet (as Kafka does): clients that hold the epoch must not be told that nobody knows it.
   */
  lead(leaderEpoch: number, isrSize: number): void {
    this.leaderEpoch = leaderEpoch;
    this.isrSize = isrSize;
    const { epochs, logEndOffset } = this.log;
    if (leaderEpoch > epochs.latestEpoch) epochs.assign(leaderEpoch, logEndOffset);
  }

  /** The offset after the last record that consumers may read. */
  get highWatermark(): number {
    return this.#highWatermark;
  }

  /**
   * False while the high watermark has not come up to where the log ended at the beginning: an answer about the log's
   * end could be less than what clients have seen of an earlier leader (KIP-207: OFFSET_NOT_AVAILABLE).
   */
  get isCaughtUp(): boolean {
    return this.#highWatermark >= this.#startOffset;
  }

  /** The offset after the last record that read_committed consumers may read. No transactions exist yet. */
  get lastStableOffset(): number {
    return this.#highWatermark;
  }

  /** Takes over changed topic settings. */
  updateConfig(config: LogConfig, minInsyncReplicas: number): void {
    this.log.updateConfig(config);
    this.batchRules = batchRulesOf(this.topic, config);
    this.minInsyncReplicas = minInsyncReplicas;
  }

  /** ErrorCode.NONE while this partition takes requests. */
  get refusal(): ErrorCode {
    return this.#refusal;
  }

  /**
   * Whether a request that knows `epoch` (-1: any) may be served: FENCED_LEADER_EPOCH when it is older
   * than ours, UNKNOWN_LEADER_EPOCH when it is newer (KIP-320).
   */
  checkEpoch(epoch: number): ErrorCode {
    if (this.#refusal !== ErrorCode.NONE) return this.#refusal;
    if (epoch === -1 || epoch === this.leaderEpoch) return ErrorCode.NONE;
    return epoch < this.leaderEpoch
      ? ErrorCode.FENCED_LEADER_EPOCH
      : ErrorCode.UNKNOWN_LEADER_EPOCH;
  }

  /**
   * Takes a validated batch of `length` bytes at `start`, stamping it in place. On NONE the waiter is called. Any other
   * code means that nothing was taken and the waiter is not called.
   */
  append(
    buf: Uint8Array,
    start: number,
    length: number,
    info: BatchInfo,
    allReplicas: boolean,
    nowMs: number,
    waiter: AppendWaiter,
    result: AppendResult,
  ): ErrorCode {
    result.errorMessage = null;
    if (this.#refusal !== ErrorCode.NONE) return this.#refusal;
    if (allReplicas && this.isrSize < this.minInsyncReplicas) return ErrorCode.NOT_ENOUGH_REPLICAS;
    const error = this.log.appender.append(
      buf,
      start,
      length,
      info,
      this.leaderEpoch,
      nowMs,
      result,
    );
    if (error !== ErrorCode.NONE) return error;
    waiter.endOffset = result.lastOffset + 1;
    // The first attempt of a duplicate may still be on its way to the disk: its success is not ours to claim.
    if (result.duplicate && waiter.endOffset <= this.log.writtenOffset)
      waiter.onWritten(ErrorCode.NONE);
    else {
      this.#writing.push(waiter);
      this.flushGroup.markDirty(this.log, !allReplicas);
    }
    if (!allReplicas) return error;
    if (waiter.endOffset <= this.#highWatermark) waiter.onCommitted(ErrorCode.NONE);
    else this.#committing.push(waiter);
    return error;
  }

  /** The log wrote all up to `endOffset` to the page cache. */
  logWritten(endOffset: number): void {
    const waiting = this.#writing;
    let served = 0;
    while (served < waiting.length && waiting[served]!.endOffset <= endOffset) served += 1;
    this.#writing = waiting.slice(served);
    for (let i = 0; i < served; i += 1) waiting[i]!.onWritten(ErrorCode.NONE);
  }

  /** What was appended since the last `logWritten` could not be written and is not in the log any more. */
  logWriteFailed(error: ErrorCode): void {
    const writing = this.#writing;
    const committing = this.#committing;
    this.#writing = [];
    this.#committing = committing.filter((waiter) => this.#isInLog(waiter));
    for (const waiter of writing) waiter.onWritten(this.#isInLog(waiter) ? ErrorCode.NONE : error);
    for (const waiter of committing) if (!this.#isInLog(waiter)) waiter.onCommitted(error);
  }

  /** All up to `endOffset` is durable on this replica: with one replica, that commits it. */
  logFlushed(endOffset: number): void {
    if (endOffset <= this.#highWatermark) return;
    assert(
      endOffset <= this.log.logEndOffset,
      `${this.topic}-${this.partition}: flushed up to ${endOffset}, but the log ends at ${this.log.logEndOffset}`,
    );
    this.#highWatermark = endOffset;
    this.#serveCommitted();
    this.#onHighWatermark(this);
  }

  /**
   * The log begins at `offset` from now on, which is not past the high watermark and written down on stable storage.
   * Whoever waits to read below it is told.
   */
  advanceLogStart(offset: number): void {
    assert(
      offset <= this.#highWatermark,
      `${this.topic}-${this.partition}: log start ${offset}, high watermark ${this.#highWatermark}`,
    );
    this.log.deletion.advanceLogStart(offset);
    this.#onHighWatermark(this);
  }

  /** Stops taking anything, and ends every wait with `error`: the log's directory failed, or the topic is deleted. */
  refuse(error: ErrorCode): void {
    this.#refusal = error;
    const writing = this.#writing;
    const committing = this.#committing;
    this.#writing = [];
    this.#committing = [];
    for (const waiter of writing) waiter.onWritten(error);
    for (const waiter of committing) waiter.onCommitted(error);
    this.#onHighWatermark(this);
  }

  #serveCommitted(): void {
    const waiting = this.#committing;
    let served = 0;
    while (served < waiting.length && waiting[served]!.endOffset <= this.#highWatermark)
      served += 1;
    if (served === 0) return;
    this.#committing = waiting.slice(served);
    for (let i = 0; i < served; i += 1) waiting[i]!.onCommitted(ErrorCode.NONE);
  }

  #isInLog(waiter: AppendWaiter): boolean {
    return waiter.endOffset <= this.log.logEndOffset;
  }
}

/** What a topic with these settings demands of batches; the caller sets `nowMs` before each use. */
export function batchRulesOf(topic: string, config: LogConfig): BatchRules {
  return {
    isInternal: isInternalTopic(topic),
    maxMessageBytes: config.maxMessageBytes,
    timestampType: config.messageTimestampType,
    timestampBeforeMaxMs: limitOf(config.messageTimestampBeforeMaxMs),
    timestampAfterMaxMs: limitOf(config.messageTimestampAfterMaxMs),
    compacted: config.cleanupPolicy.compact,
    nowMs: 0,
    decompressedMaxBytes: config.decompressedMaxBytes,
    trustProducers: false,
  };
}

/** Kafka's 2^63-1 means "no limit", and comes out of the configuration as the largest whole number there. */
function limitOf(ms: number): number {
  return ms >= Number.MAX_SAFE_INTEGER ? Number.POSITIVE_INFINITY : ms;
}
