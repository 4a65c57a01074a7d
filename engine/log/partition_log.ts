/**
 * The log of one partition: appends, the write at the end of the turn, and what is known to be on stable storage.
 *
 * Thread: the partition's shard, which is its only writer and reader; no call may interleave with another.
 * Durability: an appended batch is in memory only until the write at the end of the turn, in the page cache until a
 * flush that began after that has ended (`FlushGroup` sees to both), and on stable storage below `flushedOffset`.
 *
 * Invariant: flushedOffset <= writtenOffset <= logEndOffset, and logStartOffset <= logEndOffset.
 */
import { ErrorCode } from '../error_code.gen.ts';
import { type ColdRead, DiskError } from '../ports.ts';
import { LogAppender } from './appender.ts';
import { CleanableLog } from './cleaner/cleanable_log.ts';
import type { EpochCache, EpochEndOffset } from './epoch_cache.ts';
import { FlushSet } from './flush_set.ts';
import type { LogConfig } from './log_config.ts';
import { LogFlushState } from './log_flush_state.ts';
import { type LogOptions, openLogParts, type RecoveryReport } from './log_opening.ts';
import type { LogParts } from './log_parts.ts';
import { LogReader, type TimestampOffset } from './log_reader.ts';
import type { LogSlice } from './log_slice.ts';
import { commitEpochs, noteSnapshotFlushed, storeState } from './log_state_store.ts';
import { deletedDirectory } from './partition_directory.ts';
import type { ProducerState } from './producer_state.ts';
import { SegmentDeletion } from './segment_deletion.ts';
import { noteAccepted, noteRepaired } from './set_aside.ts';
import { replaceLog, truncateLog } from './truncation.ts';

export class PartitionLog {
  readonly topic: string;
  readonly partition: number;
  readonly topicId: string;
  /** What opening found and did. */
  readonly recovery: RecoveryReport;
  /** The writing half: `append`, and the write at the end of the turn. */
  readonly appender: LogAppender;
  readonly #parts: LogParts;
  readonly #reader: LogReader;
  #isClosed: boolean = false;
  /** At or below the first record that was moved aside for damage and has not come back; -1: nothing is missing. */
  #holeFrom: number;
  /** First offset of a damaged range; reads end there. */
  readonly #damageOffset: number;

  /** For the FlushGroup alone: the log stands on its list of logs to write. */
  isQueued: boolean = false;
  /** For the FlushGroup alone: somebody waits for the write and not for the flush. */
  isUrgent: boolean = false;
  /** For the FlushGroup alone: nobody is expected to read soon what waits for the write. */
  isPassing: boolean = false;
  /** For the FlushGroup alone: up to where the owner has been told. */
  reportedOffset: number;
  /** Moves the log's start up, and takes segments out of use. */
  readonly deletion: SegmentDeletion;
  /** Compaction: the shard's side of it. */
  readonly cleaning: CleanableLog;
  /** For the FlushGroup alone: what is dirty and what is being flushed. */
  readonly flush: LogFlushState;

  /**
   * Opens the log in a directory, or makes one where there is none. After an unclean stop it reads what lies past the
   * recovery point and cuts a torn tail. What it kept must be flushed before it counts: `FlushGroup.adopt` sees to that.
   * @throws DiskError
   */
  static open(options: LogOptions): PartitionLog {
    const { parts, recovery } = openLogParts(options);
    return new PartitionLog(options, parts, recovery);
  }

  private constructor(options: LogOptions, parts: LogParts, recovery: RecoveryReport) {
    this.topic = options.topic;
    this.partition = options.partition;
    this.topicId = options.topicId;
    this.recovery = recovery;
    this.#parts = parts;
    this.#reader = new LogReader(parts);
    this.cleaning = new CleanableLog(parts, this.#reader.marks, options.cleanedOffset ?? 0);
    this.flush = new LogFlushState(parts);
    this.#damageOffset = recovery.damage[0]?.fromOffset ?? Number.POSITIVE_INFINITY;
    this.appender = new LogAppender(parts, this.#reader.marks, this.isDamaged);
    this.deletion = new SegmentDeletion(parts, this.#reader, this.appender);
    this.reportedOffset = parts.logEndOffset;
    this.#holeFrom = firstHole(recovery);
  }

  get dir(): string {
    return this.#parts.files.dir;
  }

  get config(): LogConfig {
    return this.#parts.config;
  }

  updateConfig(config: LogConfig): void {
    this.#parts.config = config;
  }

  get logStartOffset(): number {
    return this.#parts.logStartOffset;
  }

  /** Offset of the next batch, those included that wait for the end of the turn. */
  get logEndOffset(): number {
    return this.#parts.logEndOffset;
  }

  /** Below it, every batch is in the file (page cache). */
  get writtenOffset(): number {
    return this.#parts.writtenOffset;
  }

  /** Below it, every batch is on stable storage. */
  get flushedOffset(): number {
    return this.#parts.flushedOffset;
  }

  /** What belongs into `recovery-point-offset-checkpoint`: grows with the checkpoints. */
  get recoveryPoint(): number {
    return this.#parts.recoveryPoint;
  }

  get epochs(): EpochCache {
    return this.#parts.epochs;
  }

  get producers(): ProducerState {
    return this.#parts.producers;
  }

  /** Bytes in the segments' files. */
  get size(): number {
    let bytes = 0;
    for (const segment of this.#parts.segments) bytes += segment.size;
    return bytes;
  }

  get segmentCount(): number {
    return this.#parts.segments.count;
  }

  /** Why the log takes no more appends, or null. */
  get failure(): DiskError | null {
    return this.appender.failure;
  }

  /** A damaged range lies in the log: it is readable below it, and takes no appends until it is repaired or set aside. */
  get isDamaged(): boolean {
    return this.#damageOffset !== Number.POSITIVE_INFINITY;
  }

  /** From here on another replica's log is to be believed and not this one, -1: all of it is. */
  get holeFrom(): number {
    return this.#holeFrom;
  }

  /** A cut at `offset` is on stable storage: a hole behind it is none any more. @throws DiskError */
  noteCut(offset: number): void {
    if (this.#holeFrom < 0 || offset > this.#holeFrom) return;
    this.#holeFrom = -1;
    noteRepaired(this.#parts);
  }

  /** This log is the one to believe from now on: what is missing in it is missing everywhere. @throws DiskError */
  acceptHole(): void {
    this.#holeFrom = -1;
    noteAccepted(this.#parts);
  }

  /** For the FlushGroup: calls `report` when an append or write finds the disk broken (not when it is full). */
  watchFailure(report: (error: DiskError) => void): void {
    this.appender.onFailure = report;
  }

  /** For the FlushGroup: no appends from now on, because the directory is offline. */
  fail(error: DiskError): void {
    this.appender.failure ??= error;
  }

  /**
   * Where the batches are that a fetch from `offset` gets: whole ones, beginning with the one that holds `offset` (or
   * the first after it), none past `upToOffset`, at most `maxBytes`; of the first one all of it however large it is,
   * if `minOneBatch` says so. All in one segment, so a longer answer takes more calls.
   *
   * Pin `segment` before the thread does anything else, and unpin it when the bytes are sent.
   * @returns NONE when there is nothing to read; OFFSET_OUT_OF_RANGE; CORRUPT_MESSAGE or KAFKA_STORAGE_ERROR when the
   *   file is damaged there or cannot be read
   */
  read(
    offset: number,
    maxBytes: number,
    upToOffset: number,
    minOneBatch: boolean,
  ): LogSlice | ErrorCode {
    const limit = Math.min(upToOffset, this.#parts.writtenOffset, this.#damageOffset);
    if (offset >= this.#damageOffset && offset < upToOffset) return ErrorCode.CORRUPT_MESSAGE;
    return this.#reader.read(offset, maxBytes, limit, minOneBatch);
  }

  /**
   * The same without waiting for the device: a ColdRead when the look-up needs what is not in the page cache. Once that
   * has been brought in, it gets further.
   */
  readCached(
    offset: number,
    maxBytes: number,
    upToOffset: number,
    minOneBatch: boolean,
  ): LogSlice | ErrorCode | ColdRead {
    const limit = Math.min(upToOffset, this.#parts.writtenOffset, this.#damageOffset);
    if (offset >= this.#damageOffset && offset < upToOffset) return ErrorCode.CORRUPT_MESSAGE;
    return this.#reader.readCached(offset, maxBytes, limit, minOneBatch);
  }

  /** Runs a look-up by time that throws a ColdRead instead of waiting for the device. */
  withoutWaiting<T>(lookUp: () => T): T {
    return this.#reader.withoutWaiting(lookUp);
  }

  /**
   * The first record at or after `timestamp` (ms) with its own timestamp, or null: ListOffsets by time. Looks at what is
   * written; the caller compares with the high watermark. Decompresses a batch when it has to.
   * @throws DiskError, or an error of the batch decoder, when the file cannot be read
   */
  offsetForTimestamp(timestamp: bigint): TimestampOffset | null {
    return this.#reader.offsetForTimestamp(timestamp);
  }

  /** The first record with the largest timestamp of all, or null when no record has one (ListOffsets -3, KIP-734). */
  offsetOfMaxTimestamp(): TimestampOffset | null {
    return this.#reader.offsetOfMaxTimestamp();
  }

  /** A copy of what a slice names: for readers that look inside (the metadata log, tests). @throws DiskError */
  copy(slice: LogSlice): Uint8Array {
    const bytes = new Uint8Array(slice.length);
    const count = this.#parts.files.disk.read(slice.fd, bytes, 0, slice.length, slice.position);
    return count === slice.length ? bytes : bytes.subarray(0, count);
  }

  /** Where a leader epoch ends, as OffsetForLeaderEpoch answers it (KIP-101, KIP-279). */
  endOffsetForEpoch(epoch: number): EpochEndOffset {
    return this.#parts.epochs.endOffsetFor(epoch, this.#parts.logEndOffset);
  }

  /** Forgets producers whose last append is producer.id.expiration.ms ago. Call now and then. */
  expireProducers(nowMs: number): void {
    this.#parts.producers.expire(nowMs, this.#parts.config.producerIdExpirationMs);
  }

  /**
   * Puts into files what is only in memory: index entries, the producers' snapshot, leader epochs. For
   * `FlushGroup.checkpoint`, which flushes the files and then calls `endCheckpoint`.
   * @throws DiskError
   */
  beginCheckpoint(set: FlushSet): void {
    const { flushedOffset } = this.#parts;
    this.flush.checkpointOffset = Math.min(flushedOffset, this.flush.checkpointLimit);
    storeState(this.#parts, set, this.appender.hasPending, false);
    this.flush.checkpointSnapshot = this.#parts.snapshotOffset;
  }

  /** The files of `beginCheckpoint` are on stable storage: those that replace others get their names. */
  commitCheckpoint(names: FlushSet): void {
    if (commitEpochs(this.#parts)) names.addDirectory(this.dir);
  }

  /** And now the names are, too. */
  endCheckpoint(): void {
    this.#parts.recoveryPoint = this.flush.checkpointOffset;
    noteSnapshotFlushed(this.#parts, this.flush.checkpointSnapshot);
  }

  /**
   * Writes what is pending and everything that a clean start needs, and waits until it is on stable storage. Then
   * closes the files that nobody has pinned. `FlushGroup.close` does it for all logs with one flush.
   * @throws DiskError
   */
  close(): void {
    if (this.#isClosed) return;
    const code = this.appender.writePending();
    const set = new FlushSet();
    if (code === ErrorCode.NONE && this.appender.failure === null) {
      this.prepareClose(set);
      set.flushSync(this.#parts.files.disk);
      const names = new FlushSet();
      this.commitCheckpoint(names);
      names.flushSync(this.#parts.files.disk);
      this.finishClose();
    }
    this.closeFiles();
  }

  /** First half of `close`, for the FlushGroup. */
  prepareClose(set: FlushSet): void {
    this.flush.begin(set);
    storeState(this.#parts, set, false, true);
  }

  /** Second half: everything is on stable storage. */
  finishClose(): void {
    this.flush.end();
    this.#parts.recoveryPoint = this.#parts.flushedOffset;
  }

  closeFiles(): void {
    this.#isClosed = true;
    this.appender.isReadOnly = true;
    for (const segment of this.#parts.segments) {
      this.#parts.files.cache.forget(segment);
      segment.isActive = false;
      segment.close();
    }
  }

  /**
   * Drops every batch that ends at or past `offset`, as a follower does. Writes what is pending first. The new end is
   * on stable storage with the next flush.
   * @throws DiskError
   */
  truncateTo(offset: number): ErrorCode {
    const code = this.appender.writePending();
    if (code !== ErrorCode.NONE) return code;
    truncateLog(this.#parts, offset);
    this.#wasCut();
    this.reportedOffset = Math.min(this.reportedOffset, this.logEndOffset);
    return ErrorCode.NONE;
  }

  /**
   * Drops everything: the log is empty and begins at `offset`, as a follower's does whose leader has deleted what comes
   * next. May wait for the device.
   * @throws DiskError
   */
  restartAt(offset: number): ErrorCode {
    const code = this.appender.writePending();
    if (code !== ErrorCode.NONE) return code;
    replaceLog(this.#parts, offset);
    this.#wasCut();
    this.reportedOffset = offset;
    return ErrorCode.NONE;
  }

  #wasCut(): void {
    this.#reader.marks.clear();
    this.flush.truncate(this.logEndOffset);
    this.flush.checkpointLimit = Number.POSITIVE_INFINITY;
    this.cleaning.cleanedOffset = Math.min(this.cleaning.cleanedOffset, this.logEndOffset);
  }

  /**
   * The log is about to be cut at `offset`: the recovery point is not past it from now on. Have it written down before the
   * cut; else a crash would leave a recovery point below which other bytes stand than were flushed.
   */
  lowerRecoveryPoint(offset: number): void {
    const parts = this.#parts;
    parts.recoveryPoint = Math.min(parts.recoveryPoint, offset);
    this.flush.checkpointLimit = offset;
    this.flush.checkpointOffset = Math.min(this.flush.checkpointOffset, offset);
  }

  /**
   * Takes the partition's directory out of the log directory by renaming it to Kafka's `<topic>-<partition>.<id>-delete`;
   * what is pinned can still be read. The FlushGroup must have forgotten the log. The caller has it removed later (`LogDirectory.removeDeleted`).
   * @returns the new path
   * @throws DiskError
   */
  delete(): string {
    this.appender.failure ??= new DiskError('ENOENT', `${this.topic}-${this.partition} is deleted`);
    const { files, random } = this.#parts;
    const path = deletedDirectory(files.dir, random);
    files.disk.rename(files.dir, path);
    files.dir = path;
    this.closeFiles();
    return path;
  }
}

function firstHole({ setAside, earlierHoleFrom }: RecoveryReport): number {
  const now = setAside[0]?.fromOffset ?? -1;
  return now < 0 || earlierHoleFrom < 0
    ? Math.max(now, earlierHoleFrom)
    : Math.min(now, earlierHoleFrom);
}
