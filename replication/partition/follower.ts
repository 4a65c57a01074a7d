/**
 * The follower's side of one partition: takes what it has fetched from the leader into its log as it is.
 *
 * Thread: the shard that owns the partition's log. Concurrency: none, every call runs to its end; one `receive` at a time.
 * Memory: the fetched records stay as they are until `onWritten`. Durability: `onReplicated` comes when all that was
 * received is as safe as the topic asks, and the offset of the next fetch, which is a promise to the leader, is that end
 * (`log.durability=fsync`: flushed).
 *
 * Where the histories part, the leader's answer says so (KIP-595), and the log is cut there: at the end of the largest
 * epoch that both know, not at the high watermark, behind which the leader can have committed more than this follower
 * has heard of (KIP-101, KIP-279).
 */
import { baseOffsetOf, batchHeaderBytes, sizeOf } from '../../engine/batch/header.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { EpochEndOffset } from '../../engine/log/epoch_cache.ts';
import type { FlushGroup } from '../../engine/log/flush_group.ts';
import type { LogConfig } from '../../engine/log/log_config.ts';
import type { PartitionLog } from '../../engine/log/partition_log.ts';
import { appendCopy, beginsInside } from './copied_batches.ts';
import type { FetchedPartition, FollowerFetchState, ReplicationWaiter } from './follower_fetch.ts';
import { type PartitionReplica, safeEndOf } from './replica.ts';

export interface FollowerOptions {
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
  readonly log: PartitionLog;
  readonly flushGroup: FlushGroup;
  /** -1: nobody leads. */
  readonly leaderId: number;
  readonly leaderEpoch: number;
  /** From the time before, or from the checkpoint. */
  readonly highWatermark: number;
  /**
   * Cuts the log at `offset`, or with `anew` makes it an empty one that begins there; `done` comes when that is on stable
   * storage (NONE), at once perhaps, or with the reason why not. Nothing is appended meanwhile.
   */
  readonly cut: (
    follower: PartitionFollower,
    offset: number,
    anew: boolean,
    done: (error: ErrorCode) => void,
  ) => void;
  /** The leader's log begins at `offset`: has that written down, and then calls `advanceLogStart`. */
  readonly storeLogStart: (follower: PartitionFollower, offset: number) => void;
}

const noRecords = new Uint8Array(0);
const noEnd = Number.POSITIVE_INFINITY;

export class PartitionFollower implements PartitionReplica {
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
  readonly log: PartitionLog;
  readonly flushGroup: FlushGroup;
  readonly #cutLog: FollowerOptions['cut'];
  readonly #storeLogStart: FollowerOptions['storeLogStart'];
  #leaderId: number;
  #leaderEpoch: number;
  #refusal: ErrorCode = ErrorCode.NONE;
  /** The leader's, as last told. */
  #leaderHighWatermark: number;
  /** Never falls, and never passes what is safe here. */
  #highWatermark: number;
  /** The last log start that was asked to be written down. */
  #leaderLogStart = 0;
  /**
   * From here on damaged records are missing in the log, and were moved aside: it is fetched anew from here, and cut as soon
   * as a leader has something to put there. -1: it is whole.
   */
  #repairFrom: number;
  /** What `fetchState` said last. */
  #askedOffset = -1;
  /** Of what is being received; null: nothing is. */
  #waiter: ReplicationWaiter | null = null;
  /** Who wait for all that the log holds to be safe. */
  #preparing: ((error: ErrorCode) => void)[] = [];
  /** Where their write and their flush end. */
  #writtenEnd: number = noEnd;
  #flushedEnd: number = noEnd;

  constructor(options: FollowerOptions) {
    this.#cutLog = options.cut;
    this.#storeLogStart = options.storeLogStart;
    this.topic = options.topic;
    this.topicId = options.topicId;
    this.partition = options.partition;
    this.log = options.log;
    this.flushGroup = options.flushGroup;
    this.#leaderId = options.leaderId;
    this.#leaderEpoch = options.leaderEpoch;
    this.#repairFrom = options.log.holeFrom;
    this.#highWatermark = Math.max(
      this.log.logStartOffset,
      Math.min(options.highWatermark, this.log.logEndOffset),
    );
    this.#leaderHighWatermark = this.#highWatermark;
    // Epochs that this broker began as a leader without writing in them are no part of the history.
    this.log.epochs.truncateFromEnd(this.log.logEndOffset);
  }

  get leaderId(): number {
    return this.#leaderId;
  }

  get leaderEpoch(): number {
    return this.#leaderEpoch;
  }

  get highWatermark(): number {
    // While a cut waits for its flush, the log may end below; or something is missing below, and is to be fetched again.
    return Math.min(this.#highWatermark, this.#wholeEnd);
  }

  get lastStableOffset(): number {
    return this.highWatermark;
  }

  get refusal(): ErrorCode {
    return this.#refusal;
  }

  /** Another leader, or the same one in another epoch. What was fetched from the one before is not taken any more. */
  follow(leaderId: number, leaderEpoch: number): void {
    if (leaderId === this.#leaderId && leaderEpoch === this.#leaderEpoch) return;
    this.#leaderId = leaderId;
    this.#leaderEpoch = leaderEpoch;
    this.#leaderHighWatermark = this.#highWatermark;
  }

  /**
   * Before the first fetch, and after every error: calls `done` when nothing is being received and all that the log holds
   * is safe, at once perhaps. Then `fetchState` is to be believed. Errors as those of `onReplicated`.
   */
  prepare(done: (error: ErrorCode) => void): void {
    this.#preparing.push(done);
    this.#prepared();
  }

  /** What to fetch next, once `prepare` or `onReplicated` has said NONE. */
  fetchState(): FollowerFetchState {
    const { log } = this;
    const fetchOffset = this.#safeEnd;
    this.#askedOffset = fetchOffset;
    return {
      leaderId: this.#leaderId,
      currentLeaderEpoch: this.#leaderEpoch,
      fetchOffset,
      lastFetchedEpoch:
        fetchOffset > log.logStartOffset ? log.epochs.epochFor(fetchOffset - 1) : -1,
      logStartOffset: log.logStartOffset,
      highWatermark: this.#highWatermark,
    };
  }

  /**
   * Takes what a fetch from `fetchState` has brought.
   * @param nowMs wall clock
   */
  receive(fetched: FetchedPartition, nowMs: number, waiter: ReplicationWaiter): void {
    if (this.#waiter !== null) {
      // Two leaders' answers have met: the later one is asked for again.
      waiter.onWritten();
      waiter.onReplicated(ErrorCode.FENCED_LEADER_EPOCH);
      return;
    }
    this.#waiter = waiter;
    if (this.#refusal !== ErrorCode.NONE) this.#end(this.#refusal);
    else if (fetched.leaderEpoch !== this.#leaderEpoch) this.#end(ErrorCode.FENCED_LEADER_EPOCH);
    else if (fetched.errorCode === ErrorCode.OFFSET_OUT_OF_RANGE) this.#startAnew(fetched);
    else if (fetched.errorCode !== ErrorCode.NONE) this.#end(fetched.errorCode);
    else if (this.#isAllDeleted(fetched.logStartOffset)) this.#cut(fetched.logStartOffset, true);
    else if (fetched.diverging !== null) this.#diverge(fetched.diverging, fetched.logStartOffset);
    else this.#take(fetched, nowMs);
  }

  /**
   * Before this replica leads, when its log has a hole (`holeFrom`): whoever took it for in sync knew of nothing committed
   * there, so what lies behind is no part of the history, and is cut off. What is being received is given up.
   * @param done as `onReplicated`
   */
  cutAtHole(done: (error: ErrorCode) => void): void {
    this.#end(ErrorCode.FENCED_LEADER_EPOCH);
    this.#waiter = { onWritten: () => {}, onReplicated: done };
    this.#cut(this.log.holeFrom, false);
  }

  logWritten(endOffset: number): void {
    if (endOffset < this.#writtenEnd) return;
    this.#writtenEnd = noEnd;
    this.#waiter?.onWritten();
  }

  logWriteFailed(error: ErrorCode): void {
    if (this.#flushedEnd !== noEnd) this.#end(error);
  }

  logFlushed(endOffset: number): void {
    this.#raiseHighWatermark();
    if (endOffset >= this.#flushedEnd && this.#writtenEnd === noEnd) this.#end(ErrorCode.NONE);
    else this.#prepared();
  }

  advanceLogStart(offset: number): void {
    // It may have been cut since.
    if (offset <= this.log.logEndOffset) this.log.deletion.advanceLogStart(offset);
  }

  updateConfig(config: LogConfig): void {
    this.log.updateConfig(config);
  }

  refuse(error: ErrorCode): void {
    this.#refusal = error;
    this.#end(error);
    this.#prepared();
  }

  /**
   * The leader has deleted all that there is here. It does not know any more which epochs had that, so it may be no part of
   * its history.
   */
  #isAllDeleted(leaderStart: number): boolean {
    return this.log.logStartOffset < this.#wholeEnd && leaderStart >= this.#wholeEnd;
  }

  /** Where the log ends, or where something is missing in it. */
  get #wholeEnd(): number {
    const { logEndOffset } = this.log;
    return this.#repairFrom < 0 ? logEndOffset : Math.min(logEndOffset, this.#repairFrom);
  }

  get #safeEnd(): number {
    return Math.min(safeEndOf(this.log), this.#wholeEnd);
  }

  /**
   * The leader has nothing behind the hole here, and takes this replica for whole: what lies behind it here is no part of its
   * history. An answer can be empty for want of room, too; then more is committed.
   */
  #endsAtHole({ highWatermark }: FetchedPartition): boolean {
    const hole = this.#repairFrom;
    return this.#askedOffset === hole && highWatermark >= 0 && highWatermark <= hole;
  }

  /** Appends whole batches that continue the log; what is cut off at the end is fetched again. */
  #take(fetched: FetchedPartition, nowMs: number): void {
    const records = fetched.records ?? noRecords;
    if (records.length > 0 && this.#askedOffset !== this.#wholeEnd) {
      // The log has been cut since it was asked for.
      this.#end(ErrorCode.FENCED_LEADER_EPOCH);
      return;
    }
    if (this.#repairFrom >= 0 && (records.length > 0 || this.#endsAtHole(fetched))) {
      this.#cut(this.#repairFrom, false, () => this.#take(fetched, nowMs));
      return;
    }
    if (beginsInside(this.log, records)) {
      this.#cut(baseOffsetOf(records, 0), true, () => this.#take(fetched, nowMs));
      return;
    }
    this.#leaderHighWatermark = Math.max(this.#leaderHighWatermark, fetched.highWatermark);
    const { log } = this;
    const before = log.logEndOffset;
    let error: ErrorCode = ErrorCode.NONE;
    for (let at = 0; at + batchHeaderBytes <= records.length; ) {
      const end = at + sizeOf(records, at);
      if (end > records.length && end > at) break;
      error = appendCopy(log, records, at, end, this.#leaderEpoch, nowMs);
      if (error !== ErrorCode.NONE) break;
      at = end;
    }
    this.#raiseHighWatermark();
    this.#followLogStart(fetched.logStartOffset);
    if (log.logEndOffset === before) {
      this.#end(error);
      return;
    }
    // What came before a fault is good, and the next fetch meets the fault at its beginning.
    this.#writtenEnd = log.logEndOffset;
    this.#flushedEnd = log.logEndOffset;
    this.flushGroup.markCopied(log, log.logEndOffset < fetched.highWatermark);
  }

  /**
   * Of epochs that lie below its log start the leader does not know any more where they ended: what this log has there may
   * be no part of its history, and is deleted anyway.
   */
  #diverge(leaderEnd: EpochEndOffset, leaderStart: number): void {
    const end = this.#commonEnd(leaderEnd);
    if (end <= leaderStart && this.log.logStartOffset < leaderStart) this.#cut(leaderStart, true);
    else this.#cut(end, false);
  }

  /**
   * Where the two logs stop being one: the leader says where its largest epoch ends that is not past the follower's, and
   * so does this log. When this one does not know that epoch, the cut is at the end of what it knows before it, and the
   * next fetch goes on from there.
   */
  #commonEnd({ epoch, endOffset }: EpochEndOffset): number {
    const { log } = this;
    const own = log.endOffsetForEpoch(epoch);
    if (own.epoch === -1) return Math.min(endOffset, log.logEndOffset);
    return own.epoch === epoch ? Math.min(own.endOffset, endOffset) : own.endOffset;
  }

  /**
   * The leader's log has nothing at the follower's end. Either that has been deleted there, and this log begins anew where
   * the leader's does; or this log goes on where no leader's does any more, and what is too much of it goes.
   */
  #startAnew({ logStartOffset, highWatermark }: FetchedPartition): void {
    const { log } = this;
    const isEmpty = log.logStartOffset === this.#wholeEnd;
    if (logStartOffset > this.#wholeEnd || (isEmpty && logStartOffset >= 0))
      this.#cut(logStartOffset, true);
    else if (highWatermark >= 0 && highWatermark < log.logEndOffset)
      this.#cut(highWatermark, false);
    else this.#end(ErrorCode.CORRUPT_MESSAGE);
  }

  /** @param then goes on after the cut; without it the next fetch does */
  #cut(offset: number, anew: boolean, then: (() => void) | null = null): void {
    const waiter = this.#waiter;
    if (anew || offset <= this.#repairFrom) this.#repairFrom = -1;
    this.#cutLog(this, offset, anew, (error) => {
      const { logStartOffset, logEndOffset } = this.log;
      // Only a repair or an unclean election takes what was committed.
      this.#highWatermark = Math.min(Math.max(this.#highWatermark, logStartOffset), logEndOffset);
      this.#leaderHighWatermark = Math.max(this.#highWatermark, logStartOffset);
      if (waiter !== this.#waiter) return;
      if (then === null || error !== ErrorCode.NONE) {
        this.#end(error);
        return;
      }
      this.#askedOffset = this.#wholeEnd;
      then();
    });
  }

  /** No further than what is settled here: where the leader's log begins past that, this one will have to begin anew. */
  #followLogStart(leaderStart: number): void {
    const offset = Math.min(leaderStart, this.#highWatermark);
    if (offset <= this.log.logStartOffset || offset <= this.#leaderLogStart) return;
    this.#leaderLogStart = offset;
    this.#storeLogStart(this, offset);
  }

  #raiseHighWatermark(): void {
    const end = Math.min(this.#leaderHighWatermark, this.#safeEnd);
    if (end > this.#highWatermark) this.#highWatermark = end;
  }

  #end(error: ErrorCode): void {
    const waiter = this.#waiter;
    if (waiter === null) return;
    const isWritten = this.#writtenEnd === noEnd && this.#flushedEnd !== noEnd;
    this.#waiter = null;
    this.#writtenEnd = noEnd;
    this.#flushedEnd = noEnd;
    if (!isWritten) waiter.onWritten();
    waiter.onReplicated(error);
    this.#prepared();
  }

  #prepared(): void {
    if (this.#preparing.length === 0) return;
    const isReady = this.#waiter === null && safeEndOf(this.log) >= this.log.logEndOffset;
    if (!isReady && this.#refusal === ErrorCode.NONE) return;
    const preparing = this.#preparing;
    this.#preparing = [];
    for (const done of preparing) done(this.#refusal);
  }
}
