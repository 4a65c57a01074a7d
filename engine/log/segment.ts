/**
 * One segment of a partition's log: the file with the batches, its two indexes, and who is still reading it.
 *
 * Thread: the partition's shard. `size` counts what the page cache holds; what is on stable storage is the log's
 * business. Descriptor and indexes are opened on first use; the thread's `SegmentCache` lets go of those of segments
 * that nobody writes to.
 */
import { recordTimestampOf } from '../batch/header.ts';
import type { Disk } from '../ports.ts';
import { BatchScanner, Scan } from './batch_scanner.ts';
import type { CleanedSegment } from './cleaner/cleaning_job.ts';
import { segmentFileName } from './file_names.ts';
import { OffsetIndex } from './offset_index.ts';
import type { SegmentCache } from './segment_cache.ts';
import { TimeIndex } from './time_index.ts';

/** Where a log's files lie; one object for the log, so that a rename of the directory reaches all segments. */
export interface LogFiles {
  readonly disk: Disk;
  readonly cache: SegmentCache;
  dir: string;
}

const noTimestamp = -1n;

export class Segment {
  readonly baseOffset: number;
  readonly offsets: OffsetIndex;
  readonly times: TimeIndex;
  readonly #files: LogFiles;
  #fd = -1;
  #size: number;
  #pins = 0;
  #isClosing: boolean = false;
  /** Written to since the last flush of it began. */
  isDirty: boolean = false;
  #isCutUnflushed: boolean = false;
  #isCutFlushing: boolean = false;
  /** No longer part of the log: whoever has it pinned still reads it, and nothing of it is flushed any more. */
  isRemoved: boolean = false;
  /** The cleaner's thread is giving it its names: nobody else may touch them. */
  isSwapping: boolean = false;
  #onFreed: (() => void) | null = null;
  /** Takes appends: its descriptor and indexes stay. */
  isActive: boolean = false;
  createdMs = 0;
  /** Largest timestamp and the last offset of the batch that brought it. Good once the segment is loaded. */
  maxTimestamp: bigint = noTimestamp;
  #isMaxTimestampKnown: boolean = false;
  maxTimestampOffset: number;
  /** Max timestamp of the first batch, from which the age is counted; null until it is known. */
  firstTimestamp: bigint | null = null;
  bytesSinceIndexEntry = 0;
  /** What `load` saw at the end: the offset after the last batch, and whether the file ends with that batch. */
  endOffset: number;
  isWhole: boolean = true;

  /** @param size bytes in the file, -1 when that is to be asked for */
  constructor(files: LogFiles, baseOffset: number, size: number) {
    this.#files = files;
    this.baseOffset = baseOffset;
    this.maxTimestampOffset = baseOffset;
    this.endOffset = baseOffset;
    this.#size = size;
    this.offsets = new OffsetIndex(files.disk, baseOffset);
    this.times = new TimeIndex(files.disk, baseOffset);
  }

  path(suffix: string): string {
    return `${this.#files.dir}/${segmentFileName(this.baseOffset, suffix)}`;
  }

  get size(): number {
    if (this.#size < 0) this.#size = this.#files.disk.status(this.path('.log'))?.size ?? 0;
    return this.#size;
  }

  set size(bytes: number) {
    this.#size = bytes;
  }

  /** The descriptor, opened when need be. Stays open while the segment is pinned. */
  get fd(): number {
    if (this.#fd < 0) {
      this.#fd = this.#files.disk.open(this.path('.log'), false);
      this.#isClosing = false;
    }
    if (!this.isActive) this.#files.cache.touch(this);
    return this.#fd;
  }

  /** When the file was last written to, wall clock in milliseconds; 0 when there is no file. */
  get modifiedMs(): number {
    return this.#files.disk.status(this.path('.log'))?.modifiedMs ?? 0;
  }

  /** Makes the file of a new segment. @throws DiskError */
  create(nowMs: number): void {
    this.#fd = this.#files.disk.open(this.path('.log'), true);
    // A crash may have left a file under this name that the log never came to own.
    if (this.#files.disk.size(this.#fd) > 0) this.#files.disk.truncate(this.#fd, 0);
    this.#size = 0;
    this.createdMs = nowMs;
    this.offsets.file.create();
    this.times.file.create();
  }

  /**
   * The file was made shorter. A flush must cover that before another segment or a snapshot of the producers follows: a
   * power cut could bring back what was cut, where recovery does not look or takes it for another.
   */
  noteCut(): void {
    this.#isCutUnflushed = true;
    this.#isCutFlushing = false;
  }

  beginFlush(): void {
    this.isDirty = false;
    this.#isCutFlushing = this.#isCutUnflushed;
  }

  endFlush(): void {
    if (this.#isCutFlushing) this.#isCutUnflushed = false;
    this.#isCutFlushing = false;
  }

  /** Has a cut on stable storage, waiting for it if need be. @throws DiskError */
  flushCut(): void {
    if (!this.#isCutUnflushed) return;
    this.#files.disk.flushSync(this.fd);
    this.#isCutUnflushed = false;
  }

  /** Keeps descriptor and file for a reader or a flush. Each pin needs its `unpin`. */
  pin(): void {
    this.#pins += 1;
  }

  unpin(): void {
    this.#pins -= 1;
    if (this.#pins === 0 && this.#isClosing) this.#closeNow();
  }

  /** Closes the descriptor, once nobody has the segment pinned. */
  close(): void {
    if (this.#pins > 0) this.#isClosing = true;
    else this.#closeNow();
  }

  /** `run` is called once nobody has the segment pinned, at once perhaps. After `close`, which must have been called. */
  whenFree(run: () => void): void {
    if (this.#pins > 0) this.#onFreed = run;
    else run();
  }

  #closeNow(): void {
    this.#isClosing = false;
    if (this.#fd >= 0) this.#files.disk.close(this.#fd);
    this.#fd = -1;
    this.#onFreed?.();
    this.#onFreed = null;
  }

  /**
   * Begins as a segment that another thread has written and flushed and that is open already: its indexes are what it
   * has in its files.
   */
  adopt(fd: number, made: CleanedSegment): void {
    this.#fd = fd;
    this.offsets.file.adopt(made.offsetIndex);
    this.times.file.adopt(made.timeIndex);
    this.maxTimestamp = made.maxTimestamp;
    this.maxTimestampOffset = made.maxTimestampOffset;
    this.#isMaxTimestampKnown = true;
    this.firstTimestamp = made.firstTimestamp;
  }

  /** Called by the cache: lets go of descriptor and indexes unless they are in use. */
  release(): boolean {
    if (this.isActive || this.isDirty || this.#pins > 0) return false;
    this.#closeNow();
    this.offsets.file.release();
    this.times.file.release();
    return true;
  }

  /**
   * Has the indexes in memory, true and up to the segment's end: reads the files, drops what cannot be so, and adds
   * what the log has beyond them. Makes them anew when they turn out to be wrong.
   * @throws DiskError, ColdRead; nothing is loaded then
   */
  load(indexIntervalBytes: number): void {
    if (this.offsets.file.loaded && this.times.file.loaded) return;
    try {
      this.offsets.file.load(this.path('.index'), this.size);
      this.times.file.load(this.path('.timeindex'), this.size);
      this.offsets.keepPlausible(this.size);
      this.times.keepPlausible();
      if (!(this.isTimeEntryTrue(this.times.file.count - 1) && this.#catchUp(indexIntervalBytes)))
        this.rebuildIndexes(indexIntervalBytes);
    } catch (error) {
      this.offsets.file.forget();
      this.times.file.forget();
      throw error;
    }
    this.#isMaxTimestampKnown = true;
    if (!this.isActive) this.#files.cache.touch(this);
  }

  /**
   * The largest timestamp, -1 for none. Look-ups by time ask it of every segment, and with all their indexes in memory
   * they would hold up the thread for seconds: where nobody writes, the last entry of the time index says it, which is
   * put there for that when a segment is full.
   */
  largestTimestamp(indexIntervalBytes: number): bigint {
    if (this.#isMaxTimestampKnown || this.times.file.loaded) return this.maxTimestamp;
    const last = this.isActive ? null : this.times.readLast(this.path('.timeindex'));
    if (last === null) {
      this.load(indexIntervalBytes);
    } else {
      this.maxTimestamp = last.timestamp;
      this.maxTimestampOffset = last.offset;
      this.#isMaxTimestampKnown = true;
    }
    return this.maxTimestamp;
  }

  /** Drops the index entries from `endOffset` on, where the file now ends. */
  truncateIndexes(endOffset: number, indexIntervalBytes: number): void {
    this.offsets.file.truncate(this.offsets.floorByOffset(endOffset - 1) + 1);
    this.times.truncateTo(endOffset);
    this.#catchUp(indexIntervalBytes);
  }

  /** Makes the indexes anew from every batch header in the segment. Waits for the device whatever `mayWait` says. */
  rebuildIndexes(indexIntervalBytes: number): void {
    const { maxTimestamp, maxTimestampOffset } = this;
    const { disk } = this.#files;
    const { mayWait } = disk;
    disk.mayWait = true;
    try {
      this.clearIndexes();
      this.#catchUp(indexIntervalBytes);
    } finally {
      disk.mayWait = mayWait;
    }
    // Batches that wait to be written are counted in already and are not in the file.
    if (maxTimestamp <= this.maxTimestamp) return;
    this.maxTimestamp = maxTimestamp;
    this.maxTimestampOffset = maxTimestampOffset;
  }

  /** Whether an entry of the time index (or none: -1) names a batch with that max timestamp. */
  isTimeEntryTrue(entry: number): boolean {
    if (entry < 0) return true;
    const offset = this.times.offsetAt(entry);
    const floor = this.offsets.floorByOffset(offset);
    const scanner = this.scan(floor < 0 ? 0 : this.offsets.positionAt(floor));
    while (scanner.next() === Scan.batch) {
      if (scanner.lastOffset < offset) continue;
      const timestamp = recordTimestampOf(scanner.buffer, scanner.headerAt);
      return scanner.baseOffset <= offset && timestamp === this.times.timestampAt(entry);
    }
    return false;
  }

  /** The batches from `position` on, by their headers. */
  scan(position: number): BatchScanner {
    const { disk } = this.#files;
    return new BatchScanner(disk, this.fd, position, this.size, this.baseOffset, false);
  }

  clearIndexes(): void {
    this.offsets.file.truncate(0);
    this.times.file.truncate(0);
    this.maxTimestamp = noTimestamp;
    this.maxTimestampOffset = this.baseOffset;
    this.bytesSinceIndexEntry = 0;
  }

  /**
   * Brings the indexes from their last entry to the end of the file, by the headers alone.
   * @returns false when the last entry does not point at the batch that it names
   */
  #catchUp(indexIntervalBytes: number): boolean {
    const last = this.offsets.file.count - 1;
    const position = last < 0 ? 0 : this.offsets.positionAt(last);
    this.maxTimestamp = this.times.lastTimestamp;
    this.maxTimestampOffset = this.times.lastOffset;
    this.bytesSinceIndexEntry = 0;
    this.endOffset = this.baseOffset;
    this.isWhole = true;
    if (this.size === 0) return true;
    const scanner = this.scan(position);
    let isFirst = true;
    while (scanner.next() === Scan.batch) {
      if (isFirst && last >= 0) {
        if (scanner.lastOffset !== this.offsets.offsetAt(last)) return false;
        this.#noteTimestamp(
          recordTimestampOf(scanner.buffer, scanner.headerAt),
          scanner.lastOffset,
        );
        this.bytesSinceIndexEntry = scanner.size;
      } else {
        const timestamp = recordTimestampOf(scanner.buffer, scanner.headerAt);
        this.index(
          scanner.lastOffset,
          scanner.position,
          scanner.size,
          timestamp,
          indexIntervalBytes,
        );
      }
      isFirst = false;
    }
    this.endOffset = scanner.lastOffset + 1;
    this.isWhole = scanner.nextPosition === this.size;
    return last < 0 || !isFirst;
  }

  /** Notes a batch at the end of the segment: timestamps, and an index entry when one is due. */
  index(
    lastOffset: number,
    position: number,
    size: number,
    maxTimestamp: bigint,
    indexIntervalBytes: number,
  ): void {
    this.#noteTimestamp(maxTimestamp, lastOffset);
    if (position === 0) this.firstTimestamp = maxTimestamp;
    if (this.bytesSinceIndexEntry > indexIntervalBytes) {
      this.offsets.append(lastOffset, position);
      this.times.maybeAppend(this.maxTimestamp, this.maxTimestampOffset);
      this.bytesSinceIndexEntry = 0;
    }
    this.bytesSinceIndexEntry += size;
  }

  #noteTimestamp(timestamp: bigint, lastOffset: number): void {
    if (timestamp <= this.maxTimestamp) return;
    this.maxTimestamp = timestamp;
    this.maxTimestampOffset = lastOffset;
  }

  /**
   * Writes what the index files lack.
   * @param isFinal also the closing entry of the time index (at roll and close)
   * @throws DiskError
   */
  storeIndexes(isFinal: boolean): void {
    if (!this.offsets.file.loaded || !this.times.file.loaded) return;
    if (isFinal) this.times.maybeAppend(this.maxTimestamp, this.maxTimestampOffset);
    this.offsets.file.store(this.path('.index'));
    this.times.file.store(this.path('.timeindex'));
  }

  /** This process has written to the index files: a checkpoint that moves past the segment has to flush them. */
  get hasWrittenIndexes(): boolean {
    return this.offsets.file.isWritten || this.times.file.isWritten;
  }
}
