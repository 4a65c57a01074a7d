/**
 * The leader's side of one partition: who waits for which offset, and how far consumers may read.
 *
 * Thread: the shard that owns the partition's log. Concurrency: none, every call runs to its end.
 * Durability: `committed` is called only once the batch is below the high watermark, which covers
 * nothing but bytes that every in-sync replica has on stable storage (`log.durability=fsync`) or in
 * its page cache (`os`); see `isr.ts`. Where there is one replica, that is its own durable end.
 *
 * Path of a batch: append → (end of turn) logWritten → followers fetch it; (group commit) logFlushed, and followers that
 * ask for what comes after it → high watermark.
 *
 * One object for one time of leadership: with every new leader epoch of this broker the same one goes on (`lead`), until
 * another broker leads.
 */
import assert from 'node:assert/strict';
import type { Awaited } from '../../engine/awaited.ts';
import type { BatchInfo, BatchRules } from '../../engine/batch/rules.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { AppendResult } from '../../engine/log/append_result.ts';
import type { FlushGroup } from '../../engine/log/flush_group.ts';
import type { LogConfig } from '../../engine/log/log_config.ts';
import type { PartitionLog } from '../../engine/log/partition_log.ts';
import { batchRulesOf } from './batch_rules.ts';
import {
  type BrokerView,
  InSyncReplicas,
  type IsrAnswer,
  type IsrProposal,
  type ReplicaSet,
  type RestingFetch,
} from './isr.ts';
import { type PartitionReplica, safeEndOf } from './replica.ts';

/**
 * Who appended a batch. Once `append` has said NONE, each method is called exactly once (for what has happened already:
 * before `append` returns), with ErrorCode.NONE or the reason.
 */
export interface AppendWaiter {
  /** Set by `append`: the offset that follows the batch. */
  endOffset: number;
  /** The batch is in the page cache, or never will be: its memory belongs to the caller again. */
  onWritten(error: ErrorCode): void;
  /**
   * Only after acks=all: the batch is below the high watermark, or its fate is unknown (an error). After
   * NOT_ENOUGH_REPLICAS_AFTER_APPEND it is still in the log; whoever wants to know calls `wait`.
   */
  onCommitted(error: ErrorCode): void;
}

export interface LeaderOptions {
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
  readonly log: PartitionLog;
  /** Of the log's directory: writes and flushes what is appended. */
  readonly flushGroup: FlushGroup;
  /** The partition as the metadata has it, led by this broker. */
  readonly state: ReplicaSet;
  /** No more than there are replicas. */
  readonly minInsyncReplicas: number;
  /** What this replica knew to be committed before: as a follower, or from the checkpoint. */
  readonly highWatermark: number;
  readonly brokers: BrokerView;
  /** Asks the controller for another set of replicas in sync; the answer comes to `proposalAnswered`, in a later turn. */
  readonly propose: (leader: PartitionLeader, proposal: IsrProposal) => void;
  /** Wakes those who wait for records of this partition. */
  readonly onHighWatermark: (leader: PartitionLeader) => void;
  /** Wakes the followers that wait: there is more that they may fetch. */
  readonly onWritten: (leader: PartitionLeader) => void;
  /** Monotonic clock. */
  readonly nowMs: number;
}

/** What followers' fetches wait under: they read past the high watermark. */
export interface FollowersWait extends Awaited {
  readonly leader: PartitionLeader;
}

export class PartitionLeader implements PartitionReplica, Awaited {
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
  readonly log: PartitionLog;
  /** Of the log's directory. */
  readonly flushGroup: FlushGroup;
  /** Changes with `lead` only. */
  leaderEpoch: number;
  minInsyncReplicas: number;
  readonly followers: FollowersWait = { leader: this, waiters: null };
  waiters: object[] | null = null;
  /** What `validateProduceBatch` is to demand; the caller sets `nowMs` before each use. */
  batchRules: BatchRules;
  /** Set when the log's directory failed or the partition is going away: nothing is taken any more. */
  #refusal: ErrorCode = ErrorCode.NONE;
  /** Invariant: logStartOffset <= highWatermark <= log end; never falls while this node leads. */
  #highWatermark: number;
  readonly #isr: InSyncReplicas;
  /** Up to where the log is safe here. */
  #safeEnd: number;
  /** Where the log ended when this node began to lead: an earlier leader may have shown all of it. */
  readonly #startOffset: number;
  /** In order of append; a duplicate of an earlier batch may stand behind a later one and is served with it. */
  #writing: AppendWaiter[] = [];
  /** As `#writing`. */
  #committing: AppendWaiter[] = [];
  readonly #onHighWatermark: (leader: PartitionLeader) => void;
  readonly #onWritten: (leader: PartitionLeader) => void;

  constructor(options: LeaderOptions) {
    const { log, topicId, partition, brokers, state, propose } = options;
    this.topic = options.topic;
    this.topicId = topicId;
    this.partition = partition;
    this.leaderEpoch = state.leaderEpoch;
    this.log = log;
    this.minInsyncReplicas = options.minInsyncReplicas;
    this.batchRules = batchRulesOf(options.topic, log.config);
    this.flushGroup = options.flushGroup;
    this.#onHighWatermark = options.onHighWatermark;
    this.#onWritten = options.onWritten;
    const proposeSet = (proposal: IsrProposal): void => propose(this, proposal);
    this.#isr = new InSyncReplicas({ topicId, partition, brokers, propose: proposeSet }, state);
    const known = Math.min(options.highWatermark, log.logEndOffset);
    this.#highWatermark = Math.max(known, log.logStartOffset);
    this.#startOffset = log.logEndOffset;
    // What a kill left unflushed is being flushed already (`FlushGroup.adopt`) and comes with `logFlushed`.
    this.#safeEnd = safeEndOf(log);
    this.#begin(state, options.nowMs);
    const end = this.#committable();
    // A lone replica's log is the committed log. Nobody waits for it yet.
    if (end > this.#highWatermark) this.#highWatermark = end;
  }

  /**
   * The partition as the metadata has it now, led by this broker: with a new epoch, or with another set of replicas.
   * @param nowMs monotonic clock
   */
  lead(state: ReplicaSet, nowMs: number): void {
    if (state.leaderEpoch > this.leaderEpoch) {
      this.#begin(state, nowMs);
      // Followers that wait are to hear of the epoch.
      this.#onWritten(this);
    } else this.#isr.update(state);
    this.#afterIsr();
  }

  /**
   * Notes in the log where the epoch begins although it has no batch yet (as Kafka does): clients that hold the epoch must
   * not be told that nobody knows it.
   */
  #begin(state: ReplicaSet, nowMs: number): void {
    this.leaderEpoch = state.leaderEpoch;
    const { epochs, logEndOffset } = this.log;
    if (state.leaderEpoch > epochs.latestEpoch) epochs.assign(state.leaderEpoch, logEndOffset);
    this.#isr.begin(state, logEndOffset, nowMs);
  }

  /** Replicas in sync, this one included. */
  get isrSize(): number {
    return this.#isr.size;
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
    if (minInsyncReplicas === this.minInsyncReplicas) return;
    this.minInsyncReplicas = minInsyncReplicas;
    this.#afterIsr();
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
    if (allReplicas && this.#isr.size < this.minInsyncReplicas)
      return ErrorCode.NOT_ENOUGH_REPLICAS;
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
    this.#isr.disturbAll();
    waiter.endOffset = result.lastOffset + 1;
    // The first attempt of a duplicate may still be on its way to the disk: its success is not ours to claim.
    if (result.duplicate && waiter.endOffset <= this.log.writtenOffset)
      waiter.onWritten(ErrorCode.NONE);
    else {
      this.#writing.push(waiter);
      // Followers wait for the write: they fetch and flush it while this replica does.
      this.flushGroup.markDirty(this.log, !allReplicas || !this.#isr.isAlone);
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
    if (!this.#isr.isAlone) this.#onWritten(this);
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

  /** All up to `endOffset` is safe on this replica: with one replica, that commits it. */
  logFlushed(endOffset: number): void {
    if (endOffset <= this.#safeEnd) return;
    assert(
      endOffset <= this.log.logEndOffset,
      `${this.topic}-${this.partition}: flushed up to ${endOffset}, but the log ends at ${this.log.logEndOffset}`,
    );
    this.#safeEnd = endOffset;
    this.#advance();
  }

  /**
   * A follower's fetch, after the checks of its epochs and of diverging histories: it has all before `fetchOffset`.
   * @param brokerEpoch that the follower's broker is registered with (KIP-903), -1: not told
   * @param nowMs monotonic clock
   * @returns NONE; UNKNOWN_LEADER_EPOCH when that broker has no copy as far as is known here; NOT_LEADER_OR_FOLLOWER for a
   *   request from an earlier life of the broker
   */
  followerFetched(
    brokerId: number,
    brokerEpoch: number,
    fetchOffset: number,
    nowMs: number,
  ): ErrorCode {
    const { logEndOffset } = this.log;
    const error = this.#isr.fetched(brokerId, brokerEpoch, fetchOffset, logEndOffset, nowMs);
    if (error !== ErrorCode.NONE) return error;
    this.#advance();
    this.#isr.maybeExpand(brokerId, this.#highWatermark);
    return ErrorCode.NONE;
  }

  /**
   * A follower's fetch has found nothing new. True: there will be nothing before `fetch.disturb` is called.
   */
  rest(brokerId: number, fetch: RestingFetch): boolean {
    const { logEndOffset } = this.log;
    if (this.#refusal !== ErrorCode.NONE || this.#highWatermark < logEndOffset) return false;
    return this.#isr.rest(brokerId, logEndOffset, fetch);
  }

  /** What the follower asks for has changed: its next fetch looks at the partition. */
  disturb(brokerId: number): void {
    this.#isr.disturb(brokerId);
  }

  /** Leaves followers out that are too far behind. Call about once a second, with the monotonic clock. */
  tick(nowMs: number): void {
    if (this.#isr.isAlone || this.#refusal !== ErrorCode.NONE) return;
    this.#isr.tick(this.log.logEndOffset, nowMs);
    // Who has fallen behind does not hold the high watermark any more.
    if (this.#highWatermark < this.log.logEndOffset) this.#advance();
  }

  /** The controller's answer, or null when there was none: it is asked again with the next `tick`. */
  proposalAnswered(proposal: IsrProposal, answer: IsrAnswer | null): void {
    if (this.#isr.answered(proposal, answer)) this.#afterIsr();
  }

  /** Waits for the batch before `waiter.endOffset`, which is in the log, to be committed; `onWritten` is not called. */
  wait(waiter: AppendWaiter): void {
    if (this.#refusal !== ErrorCode.NONE) waiter.onCommitted(this.#refusal);
    else if (waiter.endOffset <= this.#highWatermark) waiter.onCommitted(ErrorCode.NONE);
    else this.#committing.push(waiter);
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
    this.#isr.disturbAll();
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
    this.#isr.disturbAll();
    this.#onHighWatermark(this);
    this.#onWritten(this);
  }

  #committable(): number {
    return this.#isr.committable(this.#safeEnd, this.minInsyncReplicas);
  }

  #advance(): void {
    const end = this.#committable();
    if (end <= this.#highWatermark || this.#refusal !== ErrorCode.NONE) return;
    this.#highWatermark = end;
    this.#serveCommitted();
    this.#onHighWatermark(this);
  }

  /** Other replicas count than before. */
  #afterIsr(): void {
    this.#advance();
    if (this.#isr.size >= this.minInsyncReplicas) return;
    // What waits is in the log, on too few replicas: its producers are to know before their time is over.
    const committing = this.#committing;
    this.#committing = [];
    for (const waiter of committing) waiter.onCommitted(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND);
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
