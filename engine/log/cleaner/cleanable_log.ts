/**
 * The shard's side of cleaning one log: whether it is worth it, what the cleaner's thread is to do, and putting what it
 * made in place.
 *
 * Thread: the partition's shard. Nothing here waits for the disk: the cleaner's thread writes, flushes and renames, the
 * shard opens one file. Durability: what `install` is given is on stable storage, and a start after a crash puts it in
 * place as well.
 */
import { batchHeaderBytes, maxTimestampOf } from '../../batch/header.ts';
import { deletedSuffix, segmentFileName, swapSuffix } from '../file_names.ts';
import { FileRemoval } from '../file_removal.ts';
import type { LogConfig } from '../log_config.ts';
import type { LogMarks } from '../log_marks.ts';
import { type LogParts, letGo } from '../log_parts.ts';
import { Segment } from '../segment.ts';
import type { CleanedSegment, CleaningJob, SourceSegment } from './cleaning_job.ts';

/** What of a log can be cleaned, as Kafka's `LogToClean`. */
export interface CleanableRange {
  readonly firstDirtyOffset: number;
  readonly uncleanableOffset: number;
  /** Bytes of the segments up to `firstDirtyOffset`, and of those from there to `uncleanableOffset`. */
  readonly cleanBytes: number;
  readonly dirtyBytes: number;
  /** Share of the second in both. */
  readonly dirtyRatio: number;
  /** The oldest dirty segment is older than max.compaction.lag.ms: it is to be cleaned whatever the ratio (KIP-354). */
  readonly isOverdue: boolean;
}

/** Segments that are asked at a time: a millisecond at the most. */
const learntMax = 8;

const header = new Uint8Array(batchHeaderBytes);

export class CleanableLog {
  readonly #parts: LogParts;
  readonly #marks: LogMarks;
  readonly #removal: FileRemoval;
  /** The segments below it have been asked what `range` has to know, for these settings. */
  #learntOffset = 0;
  #learntFor: LogConfig | null = null;
  /**
   * A segment is in place whose files do not have their names. When its job has ended all the same, they get them at the
   * next start, and no other job may begin: it would take them for leftovers.
   */
  isSwapping: boolean = false;
  /** Below it, an earlier cleaning has seen to everything; as in `cleaner-offset-checkpoint`. */
  cleanedOffset: number;

  constructor(parts: LogParts, marks: LogMarks, cleanedOffset: number) {
    this.#parts = parts;
    this.#marks = marks;
    this.#removal = new FileRemoval(parts.files.disk);
    // What comes where a power cut has taken the log's end is as dirty as any.
    this.cleanedOffset = Math.min(cleanedOffset, parts.logEndOffset);
  }

  /**
   * Asks the files of some segments what `range` will have to know of them, which takes system calls for each, but only
   * once. False when there are more: call again, after other things have had their turn.
   * @throws DiskError
   */
  learn(): boolean {
    const { segments, config } = this.#parts;
    if (config !== this.#learntFor) this.#learntOffset = 0;
    this.#learntFor = config;
    const from = Math.max(0, segments.floor(this.#learntOffset));
    const to = Math.min(segments.count - 1, from + learntMax);
    const dirty = segments.floor(this.cleanedOffset);
    for (let number = from; number < to; number += 1) {
      const segment = segments.at(number) as Segment;
      // `size` alone asks the file system the first time.
      if (segment.size === 0 || number < dirty) continue;
      if (config.minCompactionLagMs > 0) this.#youngestMs(segment);
      if (config.maxCompactionLagMs < Number.MAX_SAFE_INTEGER) this.#firstMs(segment);
    }
    this.#learntOffset = (segments.at(to) as Segment).baseOffset;
    return to === segments.count - 1;
  }

  /**
   * Kafka's `LogCleanerManager.cleanableOffsets`: below the last stable offset, the segment that takes appends, and the
   * first segment with a record younger than min.compaction.lag.ms.
   * @param stableOffset the last stable offset, which is no more than the high watermark
   * @param nowMs wall clock
   * @throws DiskError
   */
  range(stableOffset: number, nowMs: number): CleanableRange {
    const { segments, config, logStartOffset, logEndOffset } = this.#parts;
    const isKnown = this.cleanedOffset >= logStartOffset && this.cleanedOffset <= logEndOffset;
    const firstDirtyOffset = isKnown ? this.cleanedOffset : logStartOffset;
    const first = Math.max(0, segments.floor(firstDirtyOffset));
    const last = Math.max(0, segments.floor(Math.min(stableOffset, segments.active.baseOffset)));
    const youngMs = nowMs - config.minCompactionLagMs;
    let end = first;
    let dirtyBytes = 0;
    let earliest = Number.POSITIVE_INFINITY;
    for (; end < last; end += 1) {
      const segment = segments.at(end) as Segment;
      if (segment.isSwapping) break;
      if (config.minCompactionLagMs > 0 && this.#youngestMs(segment) > youngMs) break;
      dirtyBytes += segment.size;
      if (config.maxCompactionLagMs < Number.MAX_SAFE_INTEGER)
        earliest = Math.min(earliest, this.#firstMs(segment));
    }
    let cleanBytes = 0;
    for (let number = 0; number < first; number += 1) cleanBytes += segments.at(number)?.size ?? 0;
    return {
      firstDirtyOffset,
      uncleanableOffset: (segments.at(end) as Segment).baseOffset,
      cleanBytes,
      dirtyBytes,
      dirtyRatio: dirtyBytes === 0 ? 0 : dirtyBytes / (cleanBytes + dirtyBytes),
      isOverdue: dirtyBytes > 0 && nowMs - config.maxCompactionLagMs > earliest,
    };
  }

  /** Whether the log's settings ask for the range to be cleaned. */
  isWorthIt({ dirtyBytes, dirtyRatio, isOverdue }: CleanableRange): boolean {
    const { cleanupPolicy, minCleanableDirtyRatio } = this.#parts.config;
    if (!cleanupPolicy.compact || dirtyBytes === 0) return false;
    return isOverdue || dirtyRatio > minCleanableDirtyRatio;
  }

  /**
   * What the cleaner's thread needs to clean the range; null when it has gone meanwhile, or a part of it. Yields for
   * others to have their turn.
   */
  *job(range: CleanableRange, nowMs: number): Generator<void, CleaningJob | null, void> {
    const producers = yield* this.#parts.producers.lastBatches(range.uncleanableOffset);
    const { segments, config, logStartOffset, flushedOffset, files } = this.#parts;
    if (logStartOffset > range.firstDirtyOffset) return null;
    const sources: SourceSegment[] = [];
    for (let number = 0; number < segments.count - 1; number += 1) {
      const { baseOffset, size } = segments.at(number) as Segment;
      if (baseOffset >= range.uncleanableOffset) break;
      sources.push({ baseOffset, size, endOffset: segments.at(number + 1)!.baseOffset });
    }
    return {
      dir: files.dir,
      segments: sources,
      logStartOffset,
      firstDirtyOffset: range.firstDirtyOffset,
      uncleanableOffset: range.uncleanableOffset,
      flushedOffset,
      nowMs,
      deleteRetentionMs: config.deleteRetentionMs,
      segmentBytes: config.segmentBytes,
      segmentIndexBytes: config.segmentIndexBytes,
      indexIntervalBytes: config.indexIntervalBytes,
      decompressedMaxBytes: config.decompressedMaxBytes,
      producers,
    };
  }

  /**
   * Puts a cleaned segment in place of its sources: from here on reads find it, and those under way go on with the old
   * files. Null, and nothing done, when the sources are not what they were (deleted or cut meanwhile). Otherwise the
   * cleaner's thread goes on to rename files, and `finish` must follow when it has.
   * @throws DiskError when the file cannot be opened; nothing is done then
   */
  install(made: CleanedSegment): InstalledSegment | null {
    const { segments, files } = this.#parts;
    const number = segments.floor(made.baseOffset);
    if (!this.#areSources(number, made.sources)) return null;
    const segment = new Segment(files, made.baseOffset, made.size);
    segment.adopt(files.disk.open(segment.path(`.log${swapSuffix}`), false), made);
    // Until the names are its own, descriptor and indexes cannot be had again.
    segment.pin();
    segment.isSwapping = true;
    this.isSwapping = true;
    const old = segments.merge(number, made.sources.length, segment);
    for (const one of old) letGo(this.#parts, one);
    this.#marks.clear();
    return { segment, old };
  }

  /** All files have their names. What the old segments held is removed when nobody reads it any more. */
  finish({ segment, old }: InstalledSegment): void {
    const { files } = this.#parts;
    segment.isSwapping = false;
    this.isSwapping = false;
    segment.unpin();
    files.cache.touch(segment);
    for (const one of old)
      one.whenFree(() => this.#removal.remove(() => one.path(`.log${deletedSuffix}`)));
    this.#dropSnapshots(old, segment);
  }

  #areSources(number: number, sources: readonly SourceSegment[]): boolean {
    const { segments } = this.#parts;
    if (number < 0 || number + sources.length >= segments.count) return false;
    return sources.every(({ baseOffset, size }, at) => {
      const segment = segments.at(number + at) as Segment;
      return segment.baseOffset === baseOffset && segment.size === size && !segment.isSwapping;
    });
  }

  /** Producers' snapshots belong to segments' beginnings; the newest stays, and the newest that is flushed. */
  #dropSnapshots(old: readonly Segment[], segment: Segment): void {
    const { snapshotOffsets, snapshotOffset, flushedSnapshotOffset, files } = this.#parts;
    const bases = new Set(old.map(({ baseOffset }) => baseOffset));
    for (const kept of [segment.baseOffset, snapshotOffset, flushedSnapshotOffset])
      bases.delete(kept);
    const kept = snapshotOffsets.filter((offset) => !bases.has(offset));
    const gone = snapshotOffsets.filter((offset) => bases.has(offset));
    snapshotOffsets.splice(0, snapshotOffsets.length, ...kept);
    for (const offset of gone)
      this.#removal.remove(() => `${files.dir}/${segmentFileName(offset, '.snapshot')}`);
  }

  /** Largest timestamp of the segment's records or, where they have none, when it was made. */
  #youngestMs(segment: Segment): number {
    const largest = segment.largestTimestamp(this.#parts.config.indexIntervalBytes);
    return largest < 0n ? segment.createdMs : Number(largest);
  }

  /** Max timestamp of the segment's first batch; Infinity when it has none. */
  #firstMs(segment: Segment): number {
    if (segment.firstTimestamp === null) {
      const count = this.#parts.files.disk.read(segment.fd, header, 0, batchHeaderBytes, 0);
      segment.firstTimestamp = count < batchHeaderBytes ? -1n : maxTimestampOf(header, 0);
    }
    return segment.firstTimestamp > 0n ? Number(segment.firstTimestamp) : Number.POSITIVE_INFINITY;
  }
}

export interface InstalledSegment {
  readonly segment: Segment;
  readonly old: readonly Segment[];
}
