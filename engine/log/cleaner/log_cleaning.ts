/**
 * One cleaning of one log, as Kafka's `Cleaner.doClean`: the keys of its dirty part go into the offset map, then every
 * segment up to there is written anew without the records that have a later one, several small segments into one.
 *
 * A generator: it does its work in slices and yields between them, so that whoever drives it can throttle it, abort it
 * (`return`), and have the shard put a cleaned segment in place. It reads no clock.
 *
 * Thread: the cleaner's, or a test's. Crash safety: each group of segments is swapped on its own, and swaps are on
 * stable storage in order. A cleaning that ends early leaves a log that is right; the next one begins again.
 */
import {
  attributeBits,
  batchHeaderBytes,
  hasAttribute,
  producerIdOf,
  readInt16,
  recordCountOf,
} from '../../batch/header.ts';
import { Scratch } from '../../batch/scratch.ts';
import { type Disk, DiskError } from '../../ports.ts';
import { cleanedSuffix, segmentFileName, swapSuffix } from '../file_names.ts';
import { relativeOffsetMax } from '../offset_index.ts';
import { BatchFilter, Verdict } from './batch_filter.ts';
import { BatchReader } from './batch_reader.ts';
import { CleanedWriter } from './cleaned_writer.ts';
import {
  type CleanedSegment,
  type CleaningBudget,
  type CleaningCounts,
  type CleaningJob,
  type CleaningResult,
  type SourceSegment,
  UncleanableError,
} from './cleaning_job.ts';
import { OffsetMap, offsetMapSlotBytes, stagedKeysMax } from './offset_map.ts';
import { RecordCursor } from './record_cursor.ts';
import { storedRecords } from './stored_records.ts';
import { type AbortedTransaction, parseAborted, TransactionFilter } from './transaction_filter.ts';

export type CleaningStep =
  /** So many bytes were read and written since the last step. */
  | { readonly type: 'slice'; readonly bytes: number }
  /** Resume with whether the shard has put the segment in place of its sources. */
  | { readonly type: 'install'; readonly segment: CleanedSegment }
  /** The disk is full: the names cannot be changed now. Resume after a while. */
  | { readonly type: 'retry'; readonly error: DiskError }
  /** The segment that was installed last has its names. */
  | { readonly type: 'installed' };

/** Work between two steps, in bytes read and written: some milliseconds. */
const sliceBytes = 512 * 1024;

/** The shard has not taken a segment: the log has changed. The cleaning is over, and another may be tried. */
export class StaleJobError extends Error {
  override readonly name = 'StaleJobError';
}

export class LogCleaning {
  readonly #disk: Disk;
  readonly #job: CleaningJob;
  readonly #reader: BatchReader;
  readonly #writeBuffer: Uint8Array;
  readonly #map: OffsetMap;
  readonly #counts: CleaningCounts = {
    bytesRead: 0,
    bytesWritten: 0,
    recordsRead: 0,
    recordsKept: 0,
    keylessRecords: 0,
  };
  readonly #aborted: readonly AbortedTransaction[];
  #fd = -1;
  #writer: CleanedWriter | null = null;
  /** Bytes read and written up to the last step. */
  #reported = 0;
  #written = 0;

  /** @param seed of the offset map's hash */
  constructor(disk: Disk, job: CleaningJob, budget: CleaningBudget, seed: number) {
    this.#disk = disk;
    this.#job = job;
    const half = Math.max(4096, Math.floor(budget.ioBytes / 2));
    this.#reader = new BatchReader(disk, half);
    this.#writeBuffer = new Uint8Array(half);
    this.#map = new OffsetMap(slotsFor(job, budget), budget.mapLoadFactor, seed);
    this.#aborted = readAborted(disk, job.dir);
  }

  /** @throws UncleanableError, UnreadableBatchError, StaleJobError, DiskError */
  *run(): Generator<CleaningStep, CleaningResult, boolean> {
    try {
      this.#removeLeftovers();
      yield* this.#fillMap();
      const cleanedOffset = this.#map.latestOffset + 1;
      if (cleanedOffset <= this.#job.firstDirtyOffset)
        throw new UncleanableError(
          'its dirty part has more keys in one batch than fit: raise log.cleaner.dedupe.buffer.size',
        );
      yield* this.#cleanGroups(cleanedOffset);
      return { ...this.#counts, cleanedOffset };
    } finally {
      this.#closeSource();
      this.#writer?.discard();
    }
  }

  /** Of a job that failed in this process; at a start `finishSwaps` has seen to them. */
  #removeLeftovers(): void {
    const { dir } = this.#job;
    for (const name of this.#disk.list(dir) ?? [])
      if (name.endsWith(cleanedSuffix) || name.endsWith(swapSuffix))
        this.#disk.unlink(`${dir}/${name}`);
  }

  *#fillMap(): Generator<CleaningStep, void, boolean> {
    const { segments, firstDirtyOffset, decompressedMaxBytes } = this.#job;
    const keys = new KeyCollector(this.#map, this.#aborted, firstDirtyOffset, decompressedMaxBytes);
    for (const segment of segments) {
      if (segment.endOffset <= firstDirtyOffset) continue;
      this.#openSource(segment);
      while (this.#reader.next()) {
        if (!keys.collect(this.#reader)) {
          this.#flushSource(segment);
          this.#closeSource();
          return;
        }
        if (this.#isSliceOver()) yield this.#slice();
      }
      this.#flushSource(segment);
      this.#closeSource();
      // Offsets may be missing at a segment's end.
      this.#map.latestOffset = segment.endOffset - 1;
    }
  }

  *#cleanGroups(endOffset: number): Generator<CleaningStep, void, boolean> {
    const job = this.#job;
    const transactions = new TransactionFilter(this.#aborted);
    const filter = new BatchFilter({ ...job, map: this.#map, transactions }, this.#counts);
    const sources = job.segments.filter(({ baseOffset }) => baseOffset < endOffset);
    for (const group of groupSegments(this.#disk, job, sources)) {
      transactions.kept = [];
      const writer = new CleanedWriter(
        this.#disk,
        job.dir,
        group,
        job.indexIntervalBytes,
        this.#writeBuffer,
      );
      this.#writer = writer;
      writer.create();
      const isChanged = yield* this.#cleanGroup(group, filter, writer);
      if (isChanged || group.length > 1) yield* this.#swap(writer, transactions.kept);
      writer.discard();
      this.#writer = null;
    }
  }

  /** Returns whether anything is different from what the group's segments hold. */
  *#cleanGroup(
    group: readonly SourceSegment[],
    filter: BatchFilter,
    writer: CleanedWriter,
  ): Generator<CleaningStep, boolean, boolean> {
    const reader = this.#reader;
    const lastSegment = group.findLast(({ size }) => size > 0);
    let isChanged = false;
    for (const segment of group) {
      this.#openSource(segment);
      while (reader.next()) {
        const { start, size, lastOffset } = reader;
        const isLast = segment === lastSegment && reader.isLast;
        this.#counts.bytesRead += size;
        const verdict = filter.filter(reader.buf, start, size, isLast);
        if (verdict !== Verdict.keep) isChanged = true;
        const before = writer.size;
        if (verdict === Verdict.keep) writer.append(reader.buf, start, size, lastOffset);
        else if (verdict === Verdict.replace)
          writer.append(filter.bytes, 0, filter.bytes.length, lastOffset);
        this.#written += writer.size - before;
        if (this.#isSliceOver()) yield this.#slice();
      }
      this.#closeSource();
    }
    return isChanged;
  }

  *#swap(
    writer: CleanedWriter,
    aborted: readonly AbortedTransaction[],
  ): Generator<CleaningStep, void, boolean> {
    const segment = writer.complete(aborted);
    this.#counts.bytesWritten += segment.size;
    const isTaken = yield { type: 'install', segment };
    if (!isTaken) throw new StaleJobError('the log has changed since the cleaning began');
    writer.keep();
    for (;;) {
      try {
        writer.takeOver();
        break;
      } catch (error) {
        if (!(error instanceof DiskError && error.isPassing)) throw error;
        yield { type: 'retry', error };
      }
    }
    yield { type: 'installed' };
  }

  #openSource({ baseOffset, size }: SourceSegment): void {
    const name = segmentFileName(baseOffset, '.log');
    this.#fd = this.#disk.open(`${this.#job.dir}/${name}`, false);
    this.#reader.open(this.#fd, size, name, baseOffset);
  }

  /** Or a power cut could take a record that others have gone for. */
  #flushSource({ endOffset }: SourceSegment): void {
    if (endOffset > this.#job.flushedOffset) this.#disk.flushSync(this.#fd);
  }

  #closeSource(): void {
    if (this.#fd < 0) return;
    this.#disk.close(this.#fd);
    this.#fd = -1;
  }

  #isSliceOver(): boolean {
    return this.#reader.bytesRead + this.#written - this.#reported >= sliceBytes;
  }

  #slice(): CleaningStep {
    const total = this.#reader.bytesRead + this.#written;
    const bytes = total - this.#reported;
    this.#reported = total;
    return { type: 'slice', bytes };
  }
}

/** Puts the keys of a dirty part into the offset map. */
class KeyCollector {
  readonly #map: OffsetMap;
  readonly #fromOffset: number;
  readonly #decompressedMaxBytes: number;
  readonly #transactions: TransactionFilter;
  readonly #cursor = new RecordCursor();
  readonly #scratch = new Scratch();
  /** Of the keys that are staged. */
  readonly #offsets: Float64Array = new Float64Array(stagedKeysMax);

  constructor(
    map: OffsetMap,
    aborted: readonly AbortedTransaction[],
    fromOffset: number,
    decompressedMaxBytes: number,
  ) {
    this.#map = map;
    this.#fromOffset = fromOffset;
    this.#decompressedMaxBytes = decompressedMaxBytes;
    this.#transactions = new TransactionFilter(
      aborted.filter(({ lastOffset }) => lastOffset >= fromOffset),
    );
  }

  /** False when the map is full: the batch is not covered then. */
  collect({ buf, start, size, baseOffset, lastOffset }: BatchReader): boolean {
    const isControl = hasAttribute(buf, start, attributeBits.control);
    const producerId = producerIdOf(buf, start);
    if (isControl) {
      const type = recordCountOf(buf, start) === 0 ? -1 : this.#markerType(buf, start, size);
      this.#transactions.isMarkerSpent(producerId, lastOffset, type);
    } else {
      const isTransactional = hasAttribute(buf, start, attributeBits.transactional);
      const isAborted = this.#transactions.isAborted(producerId, lastOffset, isTransactional);
      const isOld = lastOffset < this.#fromOffset;
      if (!isAborted && !isOld && !this.#putKeys(buf, start, size, baseOffset)) return false;
    }
    if (lastOffset >= this.#fromOffset) this.#map.latestOffset = lastOffset;
    return true;
  }

  #markerType(buf: Uint8Array, start: number, size: number): number {
    this.#cursor.reset(buf, start + batchHeaderBytes, start + size);
    this.#cursor.next();
    return this.#cursor.keyLength < 4 ? -2 : readInt16(buf, this.#cursor.keyStart + 2);
  }

  #putKeys(buf: Uint8Array, start: number, size: number, baseOffset: number): boolean {
    const records = storedRecords(buf, start, this.#decompressedMaxBytes, this.#scratch);
    const isPlain = records === buf;
    const cursor = this.#cursor;
    cursor.reset(
      records,
      isPlain ? start + batchHeaderBytes : 0,
      isPlain ? start + size : records.length,
    );
    const map = this.#map;
    const offsets = this.#offsets;
    while (!cursor.isAtEnd) {
      let count = 0;
      while (count < stagedKeysMax && !cursor.isAtEnd) {
        cursor.next();
        const offset = baseOffset + cursor.offsetDelta;
        if (cursor.keyLength < 0 || offset < this.#fromOffset) continue;
        map.stage(count, records, cursor.keyStart, cursor.keyLength);
        offsets[count] = offset;
        count += 1;
      }
      map.bring(count);
      for (let at = 0; at < count; at += 1) if (!map.put(at, offsets[at] as number)) return false;
    }
    return true;
  }
}

/** No more slots than there can be records in the dirty part. */
function slotsFor(job: CleaningJob, budget: CleaningBudget): number {
  const records = job.uncleanableOffset - job.firstDirtyOffset;
  const wanted = Math.ceil(records / budget.mapLoadFactor) + 2;
  return Math.max(2, Math.min(wanted, Math.floor(budget.mapBytes / offsetMapSlotBytes)));
}

function readAborted(disk: Disk, dir: string): AbortedTransaction[] {
  const aborted: AbortedTransaction[] = [];
  for (const name of disk.list(dir) ?? []) {
    if (!name.endsWith('.txnindex')) continue;
    const bytes = disk.readFile(`${dir}/${name}`);
    if (bytes !== null) aborted.push(...parseAborted(bytes));
  }
  return aborted;
}

/**
 * Neighbours that together are no larger than one segment may be become one, as in Kafka: otherwise a log that is
 * compacted again and again would end as many tiny segments.
 */
function groupSegments(
  disk: Disk,
  job: CleaningJob,
  sources: readonly SourceSegment[],
): SourceSegment[][] {
  const groups: SourceSegment[][] = [];
  let group: SourceSegment[] = [];
  let size = 0;
  let indexBytes = 0;
  for (const source of sources) {
    const path = `${job.dir}/${segmentFileName(source.baseOffset, '')}`;
    const offsetIndex = disk.status(`${path}.index`)?.size ?? 0;
    const timeIndex = disk.status(`${path}.timeindex`)?.size ?? 0;
    const first = group[0];
    const fits =
      first !== undefined &&
      size + source.size <= job.segmentBytes &&
      indexBytes + Math.max(offsetIndex, timeIndex) <= job.segmentIndexBytes &&
      source.endOffset - 1 - first.baseOffset <= relativeOffsetMax;
    if (!fits) {
      group = [];
      groups.push(group);
      size = 0;
      indexBytes = 0;
    }
    group.push(source);
    size += source.size;
    indexBytes += Math.max(offsetIndex, timeIndex);
  }
  return groups.filter((one) => one.some((source) => source.size > 0));
}
