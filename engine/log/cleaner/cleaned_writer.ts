/**
 * Writes a cleaned segment and takes it through its names: `.cleaned` while it is being written (a crash: removed at the
 * next start), `.swap` once it is whole and flushed (a crash: takes the place of its sources at the next start), then
 * its own. `swap_files.ts` is the other half.
 *
 * Thread: the cleaner's. Durability: what each method says.
 */
import { recordTimestampOf } from '../../batch/header.ts';
import type { Disk } from '../../ports.ts';
import { DiskError } from '../../ports.ts';
import {
  cleanedSuffix,
  deletedSuffix,
  segmentFileName,
  segmentSuffixes,
  swapSuffix,
} from '../file_names.ts';
import { relativeOffsetMax } from '../offset_index.ts';
import { Segment } from '../segment.ts';
import { SegmentCache } from '../segment_cache.ts';
import { type CleanedSegment, type SourceSegment, UncleanableError } from './cleaning_job.ts';
import { type AbortedTransaction, formatAborted } from './transaction_filter.ts';

/** Positions in an index are int32. */
const segmentBytesMax = 0x7fff_ffff;

export class CleanedWriter {
  readonly #disk: Disk;
  readonly #dir: string;
  readonly #sources: readonly SourceSegment[];
  readonly #indexIntervalBytes: number;
  readonly #buffer: Uint8Array;
  readonly #segment: Segment;
  readonly #baseOffset: number;
  #fd = -1;
  #buffered = 0;
  /** Bytes of the segment so far, those in the buffer included. */
  size = 0;
  /** Suffix that the files have now, null when there are none. */
  #suffix: string | null = null;
  #areSourcesGone: boolean = false;

  /** @param buffer bytes that are gathered before they are written */
  constructor(
    disk: Disk,
    dir: string,
    sources: readonly SourceSegment[],
    indexIntervalBytes: number,
    buffer: Uint8Array,
  ) {
    this.#disk = disk;
    this.#dir = dir;
    this.#sources = sources;
    this.#indexIntervalBytes = indexIntervalBytes;
    this.#buffer = buffer;
    this.#baseOffset = (sources[0] as SourceSegment).baseOffset;
    this.#segment = new Segment({ disk, dir, cache: new SegmentCache(1) }, this.#baseOffset, 0);
    this.#segment.offsets.file.create();
    this.#segment.times.file.create();
  }

  /** @throws DiskError */
  create(): void {
    this.#suffix = cleanedSuffix;
    this.#fd = this.#disk.open(this.#path('.log', cleanedSuffix), true);
    this.#disk.truncate(this.#fd, 0);
  }

  /** @throws DiskError, UncleanableError */
  append(buf: Uint8Array, start: number, size: number, lastOffset: number): void {
    if (this.size + size > segmentBytesMax || lastOffset - this.#baseOffset > relativeOffsetMax)
      throw new UncleanableError(
        `the segment made from ${this.#sources.length} others, the first at offset ${this.#baseOffset}, would be too large`,
      );
    this.#segment.index(
      lastOffset,
      this.size,
      size,
      recordTimestampOf(buf, start),
      this.#indexIntervalBytes,
    );
    if (size > this.#buffer.length - this.#buffered) this.#drain();
    if (size > this.#buffer.length) this.#disk.write(this.#fd, buf, start, size, this.size);
    else {
      this.#buffer.set(buf.subarray(start, start + size), this.#buffered);
      this.#buffered += size;
    }
    this.size += size;
  }

  #drain(): void {
    if (this.#buffered === 0) return;
    const at = this.size - this.#buffered;
    this.#disk.write(this.#fd, this.#buffer, 0, this.#buffered, at);
    this.#buffered = 0;
  }

  /**
   * Writes the rest and the indexes and has everything on stable storage, under the `.swap` names at the end: from here
   * on the next start finishes what a crash interrupts.
   * @throws DiskError
   */
  complete(aborted: readonly AbortedTransaction[]): CleanedSegment {
    const disk = this.#disk;
    const segment = this.#segment;
    this.#drain();
    segment.times.maybeAppend(segment.maxTimestamp, segment.maxTimestampOffset);
    segment.offsets.file.store(this.#path('.index', cleanedSuffix));
    segment.times.file.store(this.#path('.timeindex', cleanedSuffix));
    const suffixes = ['.index', '.timeindex'];
    if (aborted.length > 0) {
      disk.writeFile(this.#path('.txnindex', cleanedSuffix), formatAborted(aborted));
      suffixes.push('.txnindex');
    }
    disk.flushSync(this.#fd);
    for (const suffix of suffixes) this.#flush(this.#path(suffix, cleanedSuffix));
    // The segment itself last: without it the others mean nothing.
    for (const suffix of [...suffixes, '.log'])
      disk.rename(this.#path(suffix, cleanedSuffix), this.#path(suffix, swapSuffix));
    this.#suffix = swapSuffix;
    disk.flushDirectorySync(this.#dir);
    this.#close();
    const { offsets, times } = segment;
    return {
      sources: this.#sources,
      baseOffset: this.#baseOffset,
      size: this.size,
      offsetIndex: offsets.file.bytes.slice(0, offsets.file.count * offsets.file.entryBytes),
      timeIndex: times.file.bytes.slice(0, times.file.count * times.file.entryBytes),
      maxTimestamp: segment.maxTimestamp,
      maxTimestampOffset: segment.maxTimestampOffset,
      firstTimestamp: segment.firstTimestamp,
    };
  }

  #flush(path: string): void {
    const fd = this.#disk.open(path, false);
    try {
      this.#disk.flushSync(fd);
    } finally {
      this.#disk.close(fd);
    }
  }

  /**
   * The shard reads the cleaned segment now: takes the sources their names and gives it its own. Durable when it
   * returns. May be called again after it has thrown.
   *
   * In two steps with a flush between: a power cut that kept the new name and not the loss of an old one would leave two
   * segments with the same offsets.
   * @throws DiskError
   */
  takeOver(): void {
    const disk = this.#disk;
    if (!this.#areSourcesGone) this.#retireSources();
    this.#areSourcesGone = true;
    for (const suffix of [...segmentSuffixes.slice(1), '.log'])
      this.#move(this.#path(suffix, swapSuffix), this.#path(suffix, ''));
    disk.flushDirectorySync(this.#dir);
  }

  #retireSources(): void {
    const disk = this.#disk;
    for (const { baseOffset } of this.#sources) {
      const path = `${this.#dir}/${segmentFileName(baseOffset, '')}`;
      // Readers may have it open; the shard has it removed when they are done.
      this.#move(`${path}.log`, `${path}.log${deletedSuffix}`);
      for (const suffix of segmentSuffixes.slice(1)) disk.unlink(path + suffix);
    }
    disk.flushDirectorySync(this.#dir);
  }

  #move(from: string, to: string): void {
    try {
      this.#disk.rename(from, to);
    } catch (error) {
      if (!(error instanceof DiskError && error.code === 'ENOENT')) throw error;
    }
  }

  /** Removes what is there of it, unless it has taken over. Best effort: the next start or job does it otherwise. */
  discard(): void {
    const suffix = this.#suffix;
    this.#suffix = null;
    this.#close();
    if (suffix === null) return;
    try {
      for (const kind of segmentSuffixes) this.#disk.unlink(this.#path(kind, suffix));
      this.#disk.flushDirectorySync(this.#dir);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
    }
  }

  /** The shard has put it in place: it must not be discarded any more, whatever happens. */
  keep(): void {
    this.#suffix = null;
  }

  #close(): void {
    if (this.#fd < 0) return;
    this.#disk.close(this.#fd);
    this.#fd = -1;
  }

  #path(kind: string, suffix: string): string {
    return `${this.#dir}/${segmentFileName(this.#baseOffset, kind + suffix)}`;
  }
}
