/**
 * What is done about the end of a log after an unclean stop, and about damage.
 *
 * Past the recovery point every batch is read and its checksum compared. A tail that was being written when the power
 * went is cut at the last valid batch. Damage that is no tail (before the recovery point, or with valid batches behind
 * it) is never cut. It is reported, and moved aside where no other copy can repair it.
 *
 * Telling the two apart: a kill leaves the files as they were written, so damage with valid batches behind it is
 * corruption. A power cut may keep a later unflushed page and lose an earlier one; then the lost sectors read as zeros
 * (or the file is short), and what follows was never acknowledged either.
 */
import { leaderEpochOf, recordTimestampOf } from '../batch/header.ts';
import { BatchScanner, Scan } from './batch_scanner.ts';
import { findNextBatch, hasLostSector } from './damage.ts';
import type { LogOptions } from './log_opening.ts';
import { type LogParts, markSegmentDirty, removeSegmentFiles } from './log_parts.ts';
import { relativeOffsetMax } from './offset_index.ts';
import type { Segment } from './segment.ts';
import { setAside } from './set_aside.ts';

export interface DamagedRange {
  readonly segmentBaseOffset: number;
  readonly position: number;
  /** Bytes. */
  readonly length: number;
  /** The offsets that are lost with it: from this one up to, not including, `toOffset`. */
  readonly fromOffset: number;
  readonly toOffset: number;
  /** What is wrong there, for people. */
  readonly problem: string;
}

export interface RecoveryReport {
  /** The log did not exist. */
  isNew: boolean;
  /** Bytes read past the recovery point. */
  scannedBytes: number;
  /** Bytes of a torn tail that were cut off. */
  cutBytes: number;
  /** Damage that lies in the log still; it is not to be led or served from there on. */
  damage: DamagedRange[];
  /** Damage that was moved into files of its own (`<segment>-<position>.damaged`); the log goes on without it. */
  setAside: DamagedRange[];
  /** The same of earlier starts, as far as it has not been fetched again: where the first such segment begins, or -1. */
  earlierHoleFrom: number;
  /** The log ends before its recovery point: what is missing was on stable storage once. Offsets from, up to. */
  lost: { readonly fromOffset: number; readonly toOffset: number } | null;
  /** Where the directory of another topic id went that had this partition's name. */
  strayPath: string | null;
}

export function newRecoveryReport(): RecoveryReport {
  return {
    isNew: false,
    scannedBytes: 0,
    cutBytes: 0,
    damage: [],
    setAside: [],
    earlierHoleFrom: -1,
    lost: null,
    strayPath: null,
  };
}

/** Brings the segments into order and finds the log's end. @throws DiskError */
export function recoverSegments(
  parts: LogParts,
  options: LogOptions,
  report: RecoveryReport,
): void {
  const { segments, config } = parts;
  if (!(options.cleanShutdown && openClean(parts, options))) {
    const recovery = new SegmentRecovery(parts, options, report);
    recovery.run();
    if (options.setAsideDamage && report.damage.length > 0) {
      for (const range of report.damage) report.setAside.push(range);
      setAside(parts, report.damage);
      report.damage = [];
    }
    segments.active.load(config.indexIntervalBytes);
  }
  parts.writtenOffset = parts.logEndOffset;
  parts.recoveryPoint = Math.min(
    parts.logEndOffset,
    Math.max(options.recoveryPoint, parts.logStartOffset),
  );
  parts.flushedOffset = parts.recoveryPoint;
}

/** Takes the log's end from the active segment's index and last headers; false when they make no sense. */
function openClean(parts: LogParts, options: LogOptions): boolean {
  const { active } = parts.segments;
  active.load(parts.config.indexIntervalBytes);
  if (!active.isWhole) return false;
  parts.logEndOffset = active.endOffset;
  // Kafka, too, checkpoints the log's end when it stops.
  return active.endOffset === options.recoveryPoint;
}

class SegmentRecovery {
  readonly #parts: LogParts;
  readonly #options: LogOptions;
  readonly #report: RecoveryReport;
  /** First offset that is not known to have been on stable storage. */
  readonly #recoveryPoint: number;
  /** Unflushed pages may be missing before ones that are there. */
  readonly #mayHaveLostPages: boolean;
  /** What was deleted may never have been flushed: the log can end before its recovery point without any loss. */
  readonly #mayEndEarly: boolean;
  #expected = 0;

  constructor(parts: LogParts, options: LogOptions, report: RecoveryReport) {
    this.#parts = parts;
    this.#options = options;
    this.#report = report;
    this.#mayEndEarly = parts.config.durability === 'os';
    this.#recoveryPoint = this.#mayEndEarly
      ? options.recoveryPoint
      : Math.max(options.recoveryPoint, parts.logStartOffset);
    // A failed flush loses pages as a power cut does.
    this.#mayHaveLostPages = options.afterPowerLoss || options.dropCache;
  }

  run(): void {
    const { segments } = this.#parts;
    const first = Math.max(0, segments.floor(this.#recoveryPoint));
    for (let number = first; number < segments.count; number += 1) {
      const segment = segments.at(number) as Segment;
      if (number > first && this.#isHoleBefore(segment)) {
        this.#dropFrom(number);
        break;
      }
      this.#expected = segment.baseOffset;
      const position = number === first ? this.#startIn(segment) : 0;
      if (number > first) resetIndexes(segment);
      if (!this.#recover(segment, position, number)) break;
    }
    this.#parts.logEndOffset = this.#expected;
    // A cut may be, too, that the process made before it died.
    const { active } = this.#parts.segments;
    active.noteCut();
    markSegmentDirty(this.#parts, active);
    // The names may be as young as the bytes, or younger: the process may have died before it flushed them.
    this.#parts.isDirectoryDirty = true;
    this.#parts.isParentDirty = true;
  }

  /**
   * A power cut has taken the end of the segment before, and left this one. Leaders leave no offset out, so that past
   * the recovery point a gap is a batch that was lost, unless damage was set aside there.
   */
  #isHoleBefore(segment: Segment): boolean {
    return (
      this.#mayHaveLostPages &&
      !this.#parts.config.cleanupPolicy.compact &&
      !this.#parts.hasSetAside &&
      (this.#expected >= this.#recoveryPoint || this.#mayEndEarly) &&
      segment.baseOffset > Math.max(this.#expected, this.#recoveryPoint)
    );
  }

  /** Loads the indexes up to the recovery point; returns where to begin to read. */
  #startIn(segment: Segment): number {
    const { offsets, times } = segment;
    offsets.file.load(segment.path('.index'), segment.size);
    times.file.load(segment.path('.timeindex'), segment.size);
    offsets.keepPlausible(segment.size);
    times.keepPlausible();
    offsets.file.truncate(offsets.floorByOffset(this.#recoveryPoint - 1) + 1);
    times.truncateTo(this.#recoveryPoint);
    const last = offsets.file.count - 1;
    const position = last < 0 ? 0 : offsets.positionAt(last);
    const isTrue =
      (last < 0 || this.#isBatchAt(segment, position, offsets.offsetAt(last))) &&
      segment.isTimeEntryTrue(times.file.count - 1);
    if (!isTrue) {
      resetIndexes(segment);
      return 0;
    }
    segment.maxTimestamp = times.lastTimestamp;
    segment.maxTimestampOffset = times.lastOffset;
    return position;
  }

  #isBatchAt(segment: Segment, position: number, lastOffset: number): boolean {
    const scanner = this.#scan(segment, position, segment.baseOffset, false);
    return scanner.next() === Scan.batch && scanner.lastOffset === lastOffset;
  }

  #scan(segment: Segment, position: number, offset: number, checkCrc: boolean): BatchScanner {
    const { disk } = this.#parts.files;
    return new BatchScanner(disk, segment.fd, position, segment.size, offset, checkCrc);
  }

  /** Reads one segment from `position` on; false when the log ends in it. */
  #recover(segment: Segment, position: number, number: number): boolean {
    if (segment.size === 0) return true;
    if (this.#options.dropCache)
      this.#parts.files.disk.dropCache(segment.fd, position, segment.size - position);
    let scanner = this.#scan(segment, position, segment.baseOffset, true);
    this.#report.scannedBytes += segment.size - position;
    for (;;) {
      const found = scanner.next();
      if (found === Scan.end) break;
      if (found === Scan.batch && scanner.baseOffset !== this.#expected)
        scanner = this.#judgeGap(segment, scanner);
      if (found === Scan.batch && scanner.problem === '') {
        this.#take(segment, scanner);
        continue;
      }
      const next = findNextBatch(this.#parts.files.disk, segment, scanner.position, this.#expected);
      if (this.#isTail(segment, scanner.position, number, next?.position ?? -1)) {
        this.#cut(segment, scanner.position, number);
        return false;
      }
      const end = next === null ? segment.size : next.position;
      this.#noteDamage(segment, scanner, end, next?.baseOffset ?? -1, number);
      if (next === null) break;
      scanner = this.#scan(segment, next.position, this.#expected, true);
    }
    if (this.#expected > this.#recoveryPoint) markSegmentDirty(this.#parts, segment);
    return true;
  }

  /**
   * A batch that leaves offsets out, as compaction does. But the checksum does not cover the base offset: where the
   * batch behind it goes on from an earlier offset, it is this batch's offset that is damaged. Returns a scanner that
   * stands at the batch, with `problem` set if it is not to be believed.
   */
  #judgeGap(segment: Segment, scanner: BatchScanner): BatchScanner {
    const { position, nextPosition, baseOffset, lastOffset } = scanner;
    const behind = this.#scan(segment, nextPosition, this.#expected, false);
    const isContradicted = behind.next() === Scan.batch && behind.baseOffset <= lastOffset;
    // Looking ahead has used the buffer.
    const again = this.#scan(segment, position, this.#expected, true);
    again.next();
    if (isContradicted || lastOffset - segment.baseOffset > relativeOffsetMax)
      again.problem = `base offset ${baseOffset} does not fit between ${this.#expected} and what follows`;
    return again;
  }

  #take(segment: Segment, scanner: BatchScanner): void {
    const { config, epochs } = this.#parts;
    const { buffer, headerAt, lastOffset, position } = scanner;
    const timestamp = recordTimestampOf(buffer, headerAt);
    const last = segment.offsets.file.count - 1;
    if (last >= 0 && segment.offsets.positionAt(last) === position) {
      // The batch of the last entry, from which the scan began.
      segment.bytesSinceIndexEntry = 0;
      segment.index(lastOffset, position, scanner.size, timestamp, Number.POSITIVE_INFINITY);
    } else {
      segment.index(lastOffset, position, scanner.size, timestamp, config.indexIntervalBytes);
    }
    const epoch = leaderEpochOf(buffer, headerAt);
    if (epoch > epochs.latestEpoch) epochs.assign(epoch, scanner.baseOffset);
    this.#expected = lastOffset + 1;
  }

  #isTail(segment: Segment, position: number, number: number, nextPosition: number): boolean {
    if (this.#expected < this.#recoveryPoint) return false;
    if (nextPosition < 0 && !this.#hasBatchesAfter(number)) return true;
    if (!this.#mayHaveLostPages) return false;
    if (nextPosition < 0) return true;
    const { disk } = this.#parts.files;
    return hasLostSector(disk, segment.fd, position, nextPosition, this.#expected);
  }

  #hasBatchesAfter(number: number): boolean {
    const { segments } = this.#parts;
    for (let later = number + 1; later < segments.count; later += 1) {
      const segment = segments.at(later) as Segment;
      if (segment.size === 0) continue;
      if (this.#scan(segment, 0, segment.baseOffset, true).next() === Scan.batch) return true;
    }
    return false;
  }

  #cut(segment: Segment, position: number, number: number): void {
    this.#report.cutBytes += segment.size - position;
    this.#parts.files.disk.truncate(segment.fd, position);
    segment.size = position;
    segment.noteCut();
    this.#dropFrom(number + 1);
    markSegmentDirty(this.#parts, segment);
  }

  /** What lies past the end was never acknowledged; its bytes stay under another name all the same. */
  #dropFrom(number: number): void {
    for (const segment of this.#parts.segments.truncate(number)) {
      if (segment.size > 0) {
        this.#report.cutBytes += segment.size;
        this.#parts.files.disk.rename(segment.path('.log'), segment.path('.log.cut'));
      }
      removeSegmentFiles(this.#parts, segment);
    }
  }

  #noteDamage(
    segment: Segment,
    scanner: BatchScanner,
    end: number,
    nextOffset: number,
    number: number,
  ): void {
    const fromOffset = this.#expected;
    const nextBase = this.#parts.segments.at(number + 1)?.baseOffset ?? this.#recoveryPoint;
    const toOffset = nextOffset >= 0 ? nextOffset : Math.max(fromOffset, nextBase);
    this.#report.damage.push({
      segmentBaseOffset: segment.baseOffset,
      position: scanner.position,
      length: end - scanner.position,
      fromOffset,
      toOffset,
      problem: scanner.problem,
    });
    this.#expected = toOffset;
  }
}

function resetIndexes(segment: Segment): void {
  segment.offsets.file.load(segment.path('.index'), segment.size);
  segment.times.file.load(segment.path('.timeindex'), segment.size);
  segment.clearIndexes();
}

/** Makes the leader epochs anew from every batch in the log: slow, for when their file is missing or unreadable. */
export function scanEpochs(parts: LogParts): void {
  parts.epochs.truncateEntries(0);
  assignEpochs(parts, Number.POSITIVE_INFINITY);
}

/**
 * Finds the leader epochs between the log's start and the first one that is known. The file is written when a start moves up,
 * and may survive a crash in which the start does not: what it has left out would then pass for one epoch that reaches up to
 * the first entry. Costs nothing where nothing is left out: the first batch is the first entry's.
 */
export function scanFirstEpochs(parts: LogParts): void {
  const { epochs, logStartOffset } = parts;
  const known = epochs.entries;
  const firstOffset = known[0]?.startOffset ?? Number.POSITIVE_INFINITY;
  if (firstOffset <= logStartOffset) return;
  epochs.truncateEntries(0);
  assignEpochs(parts, firstOffset);
  for (const { epoch, startOffset } of known)
    if (epoch > epochs.latestEpoch) epochs.assign(epoch, startOffset);
}

/** Of all batches below `endOffset`. */
function assignEpochs({ segments, epochs, files }: LogParts, endOffset: number): void {
  for (const segment of segments) {
    if (segment.size === 0 || segment.baseOffset >= endOffset) continue;
    const scanner = new BatchScanner(
      files.disk,
      segment.fd,
      0,
      segment.size,
      segment.baseOffset,
      false,
    );
    while (scanner.next() === Scan.batch && scanner.baseOffset < endOffset) {
      const epoch = leaderEpochOf(scanner.buffer, scanner.headerAt);
      if (epoch > epochs.latestEpoch) epochs.assign(epoch, scanner.baseOffset);
    }
  }
}
