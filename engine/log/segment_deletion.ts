/**
 * Moves a log's start up, and takes the segments below it out of use.
 *
 * Thread: the partition's shard. Order, so that nothing that was deleted is ever shown again: the new log start is on
 * stable storage (in the log directory's checkpoint, the caller's business), then it counts here, then segments below
 * it lose their names, and their files are removed later. A crash in between leaves files below a log start that nobody
 * reads past.
 *
 * What producers have sent must be remembered after its batches are gone: a snapshot at or past the new first segment
 * is on stable storage before a segment goes.
 */
import type { LogAppender } from './appender.ts';
import { deletedSuffix, segmentFileName, segmentSuffixes } from './file_names.ts';
import { asDiskError, type FlushSet } from './flush_set.ts';
import { type LogParts, letGo } from './log_parts.ts';
import type { LogReader } from './log_reader.ts';
import { noteSnapshotFlushed, removeSnapshotsBelow, storeSnapshot } from './log_state_store.ts';
import { type DeletableSegment, findDeletable, type RetentionRules } from './retention.ts';
import type { Segment } from './segment.ts';

/** Segments that one call takes out of use: a millisecond or two. */
const removedMax = 8;
/** The same where each waits for a flush. */
const removedInPlaceMax = 2;

export class SegmentDeletion {
  readonly #parts: LogParts;
  readonly #reader: LogReader;
  readonly #appender: LogAppender;

  constructor(parts: LogParts, reader: LogReader, appender: LogAppender) {
    this.#parts = parts;
    this.#reader = reader;
    this.#appender = appender;
  }

  /** The segments that the log's settings let go, oldest first. @throws DiskError */
  find(rules: RetentionRules): DeletableSegment[] {
    return findDeletable(this.#parts, rules);
  }

  /** Bytes of the batches from the one that holds `offset` up to `upToOffset`; -1 where they are damaged. @throws DiskError */
  bytesFrom(offset: number, upToOffset: number): number {
    return this.#reader.bytesFrom(Math.max(offset, this.#parts.logStartOffset), upToOffset);
  }

  /**
   * Begins a new segment at the log's end, so that the one before can go; an empty one does as it is. False, and nothing
   * done, while batches are pending.
   * @throws DiskError
   */
  roll(nowMs: number): boolean {
    if (this.#appender.hasPending) return false;
    if (this.#parts.segments.active.size > 0) this.#appender.roll(nowMs);
    return true;
  }

  /**
   * Nothing below `offset` is read from now on. Call when the log directory's checkpoint has it on stable storage; not
   * past the high watermark. Never goes back.
   */
  advanceLogStart(offset: number): void {
    const parts = this.#parts;
    if (offset <= parts.logStartOffset) return;
    parts.logStartOffset = offset;
    parts.epochs.truncateFromStart(offset);
  }

  /** Where the first segment begins: the log start, or before it. */
  get firstBaseOffset(): number {
    return this.#parts.segments.first.baseOffset;
  }

  /** Segments that lie wholly below the log start; never all of them. */
  get countBelowStart(): number {
    const { segments, logStartOffset } = this.#parts;
    return Math.max(0, segments.floor(logStartOffset));
  }

  /**
   * Adds to `set` what has to be on stable storage before the segments below the log start may go; then comes `remove`.
   * @returns offset of the snapshot that is meant, or -1 when none can be made now because batches are pending or not
   *   flushed
   * @throws DiskError
   */
  prepare(set: FlushSet): number {
    const parts = this.#parts;
    const { segments, files } = parts;
    const { baseOffset } = segments.at(this.countBelowStart) as Segment;
    const { flushedSnapshotOffset: flushed, snapshotOffsets } = parts;
    if (this.#isSafeSnapshot(flushed, baseOffset) && snapshotOffsets.includes(flushed))
      return flushed;
    let offset = this.#findSnapshot(baseOffset);
    if (offset < 0) {
      if (this.#appender.hasPending || !this.#isSafeSnapshot(parts.logEndOffset, baseOffset))
        return -1;
      storeSnapshot(parts);
      offset = parts.snapshotOffset;
    }
    set.addPath(`${files.dir}/${segmentFileName(offset, '.snapshot')}`);
    set.addDirectory(files.dir);
    return offset;
  }

  /** The newest snapshot that will do without the batches below `offset`, or -1. */
  #findSnapshot(offset: number): number {
    return this.#parts.snapshotOffsets.findLast((one) => this.#isSafeSnapshot(one, offset)) ?? -1;
  }

  /**
   * Whether a snapshot there has all that came below `offset`, and nothing that a power cut could take: then it would
   * be past the log's end, and dropped.
   */
  #isSafeSnapshot(snapshotOffset: number, offset: number): boolean {
    const { config, flushedOffset } = this.#parts;
    return (
      snapshotOffset >= offset && (config.durability === 'os' || snapshotOffset <= flushedOffset)
    );
  }

  /**
   * Takes the segments below the log start out of use: their files get the suffix `.deleted`. Readers that have them
   * pinned go on. The new names reach stable storage with the log's next flush. One that the cleaner is putting in place
   * stays until the next call, and what is behind it too. Only so many at a time, since each takes some system calls.
   * @param snapshotOffset what `prepare` returned, which is flushed now
   * @returns the new names, to be removed when their time has come; none when there is no more to do for now
   * @throws DiskError; what is left then goes with the next call
   */
  remove(snapshotOffset: number): string[] {
    const parts = this.#parts;
    const names: string[] = [];
    // The cleaner may have dropped the snapshot meanwhile.
    if (!parts.snapshotOffsets.includes(snapshotOffset)) return names;
    noteSnapshotFlushed(parts, snapshotOffset);
    for (let count = Math.min(this.countBelowStart, removedMax); count > 0; count -= 1) {
      const { first } = parts.segments;
      const next = parts.segments.at(1) as Segment;
      if (next.baseOffset > snapshotOffset || first.isSwapping) break;
      for (const suffix of segmentSuffixes) this.#retire(first, suffix, names);
      parts.segments.shift();
      letGo(parts, first);
      parts.isDirectoryDirty = true;
    }
    removeSnapshotsBelow(parts, parts.segments.first.baseOffset);
    return names;
  }

  /**
   * The same without a checkpoint of the log start, for a disk that has no room for one: takes the segments below
   * `offset` out of use one by one, oldest first, the name of each gone from stable storage before the log start follows,
   * so that whatever a crash leaves begins where the log did at that moment. Waits for the device, for a few segments at
   * a time.
   * @returns as `remove`
   * @throws DiskError
   */
  removeInPlace(offset: number): string[] {
    const parts = this.#parts;
    const { disk, dir } = parts.files;
    const names: string[] = [];
    for (let count = 0; count < removedInPlaceMax; count += 1) {
      const { first } = parts.segments;
      const next = parts.segments.at(1);
      if (next === undefined || next.baseOffset > offset || first.isSwapping) break;
      if (!this.#keepProducers(next.baseOffset)) break;
      this.#retire(first, '.log', names);
      disk.flushDirectorySync(dir);
      for (const suffix of segmentSuffixes) this.#retire(first, suffix, names);
      parts.segments.shift();
      letGo(parts, first);
      this.advanceLogStart(next.baseOffset);
      removeSnapshotsBelow(parts, next.baseOffset);
    }
    return names;
  }

  /** Has a snapshot at or past `offset` on stable storage; false when there is none and none can be made. */
  #keepProducers(offset: number): boolean {
    const parts = this.#parts;
    const { disk, dir } = parts.files;
    if (this.#isSafeSnapshot(parts.flushedSnapshotOffset, offset) || parts.producers.size === 0)
      return true;
    const newest = this.#findSnapshot(offset);
    if (newest < 0) return false;
    const fd = disk.open(`${dir}/${segmentFileName(newest, '.snapshot')}`, false);
    try {
      disk.flushSync(fd);
    } finally {
      disk.close(fd);
    }
    disk.flushDirectorySync(dir);
    noteSnapshotFlushed(parts, newest);
    return true;
  }

  #retire(segment: Segment, suffix: string, names: string[]): void {
    const { disk } = this.#parts.files;
    const path = segment.path(suffix);
    try {
      disk.rename(path, path + deletedSuffix);
      names.push(segmentFileName(segment.baseOffset, suffix + deletedSuffix));
    } catch (error) {
      if (asDiskError(error).code !== 'ENOENT') throw error;
    }
  }
}
