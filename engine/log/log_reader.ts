/**
 * Finds what a fetch or a look-up asks for, and answers with places in files, not with bytes.
 *
 * Thread: the partition's shard. Fetches that follow one another, and the end of the log, are found by `marks` (batch
 * boundaries seen lately) without index or scan; anything else by index and a scan over a few headers.
 */
import assert from 'node:assert/strict';
import { batchHeaderBytes, leaderEpochOf, recordTimestampOf } from '../batch/header.ts';
import { findRecordByTimestamp, iterateRecords } from '../batch/records.ts';
import { ErrorCode } from '../error_code.gen.ts';
import { ColdRead } from '../ports.ts';
import { type BatchScanner, Scan } from './batch_scanner.ts';
import { LogMarks } from './log_marks.ts';
import type { LogParts } from './log_parts.ts';
import type { LogSlice } from './log_slice.ts';
import type { Segment } from './segment.ts';

export interface TimestampOffset {
  readonly offset: number;
  readonly timestamp: bigint;
  readonly leaderEpoch: number;
}

/** Thrown inside when a file holds no batch where the indexes or offsets say that there is one. */
class DamagedLogError extends Error {}

export class LogReader {
  readonly #parts: LogParts;
  readonly marks: LogMarks = new LogMarks();
  /** What is being read, while a look-up runs. */
  #segment: Segment | null = null;

  constructor(parts: LogParts) {
    this.#parts = parts;
  }

  /** See `PartitionLog.read`. */
  read(
    offset: number,
    maxBytes: number,
    upToOffset: number,
    minOneBatch: boolean,
  ): LogSlice | ErrorCode {
    const found = this.#find(offset, maxBytes, upToOffset, minOneBatch);
    assert(!(found instanceof ColdRead), 'a read that may wait did not');
    return found;
  }

  /** See `PartitionLog.readCached`. */
  readCached(
    offset: number,
    maxBytes: number,
    upToOffset: number,
    minOneBatch: boolean,
  ): LogSlice | ErrorCode | ColdRead {
    const { disk } = this.#parts.files;
    disk.mayWait = false;
    const found = this.#find(offset, maxBytes, upToOffset, minOneBatch);
    disk.mayWait = true;
    return found;
  }

  #find(
    offset: number,
    maxBytes: number,
    upToOffset: number,
    minOneBatch: boolean,
  ): LogSlice | ErrorCode | ColdRead {
    const parts = this.#parts;
    if (offset < parts.logStartOffset || offset > parts.logEndOffset)
      return ErrorCode.OFFSET_OUT_OF_RANGE;
    if (offset >= upToOffset) return ErrorCode.NONE;
    try {
      return this.#readFrom(offset, maxBytes, upToOffset, minOneBatch);
    } catch (error) {
      if (error instanceof ColdRead) return this.#hold(error);
      return error instanceof DamagedLogError
        ? ErrorCode.CORRUPT_MESSAGE
        : ErrorCode.KAFKA_STORAGE_ERROR;
    }
  }

  /** Keeps the file open for whoever brings in what was missing. An index file has come with its descriptor. */
  #hold(cold: ColdRead): ColdRead {
    const segment = this.#segment;
    if (cold.release === null && segment !== null) {
      segment.pin();
      cold.release = () => segment.unpin();
    }
    return cold;
  }

  #readFrom(
    offset: number,
    maxBytes: number,
    upToOffset: number,
    minOneBatch: boolean,
  ): LogSlice | ErrorCode {
    const { segments } = this.#parts;
    let number = segments.floor(offset);
    let segment = segments.at(number) as Segment;
    let position = this.#positionOf(segment, offset);
    // Offsets may be missing at a segment's end: what follows is in the next one.
    while (position >= segment.size && number + 1 < segments.count) {
      number += 1;
      segment = segments.at(number) as Segment;
      position = 0;
    }
    const end = this.#endIn(segment, number, upToOffset);
    const readable = end - position;
    if (readable <= 0) return ErrorCode.NONE;
    let length = readable;
    if (length > maxBytes) length = this.#cut(segment, position, end, maxBytes, minOneBatch);
    else this.marks.add(upToOffset, segment, end);
    if (length === 0) return ErrorCode.NONE;
    const isLast = (segments.at(number + 1)?.baseOffset ?? upToOffset) >= upToOffset;
    const atEnd = isLast ? 'all' : 'segment';
    const why = length < readable ? 'full' : atEnd;
    return { segment, fd: segment.fd, position, length, startOffset: offset, end: why };
  }

  /** Where the part of the segment ends that lies below `upToOffset`. */
  #endIn(segment: Segment, number: number, upToOffset: number): number {
    const next = this.#parts.segments.at(number + 1);
    if (next !== undefined && next.baseOffset <= upToOffset) return segment.size;
    return this.#positionOf(segment, upToOffset);
  }

  /** Position of the batch that holds `offset` or, when none does, of the first one after it. */
  #positionOf(segment: Segment, offset: number): number {
    if (offset <= segment.baseOffset) return 0;
    const marked = this.marks.find(offset, segment);
    if (marked >= 0) return marked;
    this.#segment = segment;
    segment.load(this.#parts.config.indexIntervalBytes);
    const entry = segment.offsets.floorByOffset(offset);
    const scanner = this.#scanFrom(segment, entry);
    while (this.#advance(scanner)) {
      if (scanner.lastOffset >= offset) return scanner.position;
    }
    return segment.size;
  }

  /** The most bytes of whole batches from `position` on that fit into `maxBytes`. */
  #cut(
    segment: Segment,
    position: number,
    end: number,
    maxBytes: number,
    minOneBatch: boolean,
  ): number {
    this.#segment = segment;
    segment.load(this.#parts.config.indexIntervalBytes);
    const entry = segment.offsets.floorByPosition(position + maxBytes);
    const isUseful = entry >= 0 && segment.offsets.positionAt(entry) > position;
    const scanner = isUseful ? this.#scanFrom(segment, entry) : segment.scan(position);
    let lastEnd = scanner.nextPosition;
    while (scanner.nextPosition < end && this.#advance(scanner)) {
      const isFirst = lastEnd === position;
      if (scanner.nextPosition - position > maxBytes && !(isFirst && minOneBatch)) {
        this.marks.add(scanner.baseOffset, segment, lastEnd);
        return lastEnd - position;
      }
      lastEnd = scanner.nextPosition;
      if (lastEnd - position >= maxBytes) break;
    }
    this.marks.add(scanner.lastOffset + 1, segment, lastEnd);
    return lastEnd - position;
  }

  /**
   * The batches from that of an entry of the offset index on (-1: from the segment's first). An entry that turns out
   * to be wrong has the indexes made anew, and the scan begins at the segment's start.
   */
  #scanFrom(segment: Segment, entry: number): BatchScanner {
    if (entry < 0) return segment.scan(0);
    const scanner = segment.scan(segment.offsets.positionAt(entry));
    if (scanner.next() === Scan.batch && scanner.lastOffset === segment.offsets.offsetAt(entry)) {
      scanner.stepBack();
      return scanner;
    }
    segment.rebuildIndexes(this.#parts.config.indexIntervalBytes);
    return segment.scan(0);
  }

  /** The next batch, or false at the end. */
  #advance(scanner: BatchScanner): boolean {
    const found = scanner.next();
    if (found === Scan.bad) throw new DamagedLogError(scanner.problem);
    return found === Scan.batch;
  }

  /** Runs a look-up by time that throws a ColdRead, held, instead of waiting for the device. */
  withoutWaiting<T>(lookUp: () => T): T {
    const { disk } = this.#parts.files;
    disk.mayWait = false;
    try {
      return lookUp();
    } catch (error) {
      throw error instanceof ColdRead ? this.#hold(error) : error;
    } finally {
      disk.mayWait = true;
    }
  }

  /** See `PartitionLog.offsetForTimestamp`. */
  offsetForTimestamp(timestamp: bigint): TimestampOffset | null {
    const { segments, config, logStartOffset } = this.#parts;
    const first = Math.max(0, segments.floor(logStartOffset));
    for (let number = first; number < segments.count; number += 1) {
      const segment = segments.at(number) as Segment;
      if (segment.size === 0) continue;
      this.#segment = segment;
      if (segment.largestTimestamp(config.indexIntervalBytes) < timestamp) continue;
      segment.load(config.indexIntervalBytes);
      const found = this.#findInSegment(segment, timestamp, logStartOffset);
      if (found !== null) return found;
    }
    return null;
  }

  /** See `PartitionLog.offsetOfMaxTimestamp`. */
  offsetOfMaxTimestamp(): TimestampOffset | null {
    const { segments, config, logStartOffset } = this.#parts;
    let best: Segment | null = null;
    let largest = -1n;
    for (let number = Math.max(0, segments.floor(logStartOffset)); ; number += 1) {
      const segment = segments.at(number);
      if (segment === undefined) break;
      if (segment.size === 0) continue;
      this.#segment = segment;
      const own =
        segment.baseOffset < logStartOffset
          ? this.#largestFrom(segment, logStartOffset)
          : segment.largestTimestamp(config.indexIntervalBytes);
      if (own <= largest) continue;
      best = segment;
      largest = own;
    }
    if (best === null) return null;
    this.#segment = best;
    best.load(config.indexIntervalBytes);
    return this.#findInSegment(best, largest, logStartOffset);
  }

  /** The largest timestamp of the records from `fromOffset` on; the index knows only that of the whole segment. */
  #largestFrom(segment: Segment, fromOffset: number): bigint {
    const { config, files } = this.#parts;
    segment.load(config.indexIntervalBytes);
    if (this.#findInSegment(segment, segment.maxTimestamp, fromOffset) !== null)
      return segment.maxTimestamp;
    let largest = -1n;
    const scanner = this.#scanFrom(segment, segment.offsets.floorByOffset(fromOffset));
    while (this.#advance(scanner)) {
      if (scanner.lastOffset < fromOffset) continue;
      const timestamp = recordTimestampOf(scanner.buffer, scanner.headerAt);
      if (timestamp <= largest) continue;
      if (scanner.baseOffset >= fromOffset) {
        largest = timestamp;
        continue;
      }
      const batch = new Uint8Array(scanner.size);
      files.disk.read(segment.fd, batch, 0, batch.length, scanner.position);
      for (const record of iterateRecords(batch, 0, config.decompressedMaxBytes)) {
        const isKept = scanner.baseOffset + record.offsetDelta >= fromOffset;
        if (isKept && record.timestamp > largest) largest = record.timestamp;
      }
    }
    return largest;
  }

  /** See `PartitionLog.bytesFrom`. */
  bytesFrom(offset: number, upToOffset: number): number {
    try {
      return this.#bytesFrom(offset, upToOffset);
    } catch (error) {
      if (error instanceof DamagedLogError) return -1;
      throw error;
    }
  }

  #bytesFrom(offset: number, upToOffset: number): number {
    const { segments } = this.#parts;
    let bytes = 0;
    for (let number = Math.max(0, segments.floor(offset)); number < segments.count; number += 1) {
      const segment = segments.at(number) as Segment;
      if (segment.baseOffset >= upToOffset) break;
      const position = this.#positionOf(segment, offset);
      bytes += this.#endIn(segment, number, upToOffset) - position;
    }
    return bytes;
  }

  /** The first record at or after `timestamp` in the segment, not before `fromOffset`. */
  #findInSegment(segment: Segment, timestamp: bigint, fromOffset: number): TimestampOffset | null {
    let timeEntry = segment.times.floorByTimestamp(timestamp);
    if (!segment.isTimeEntryTrue(timeEntry)) {
      segment.rebuildIndexes(this.#parts.config.indexIntervalBytes);
      timeEntry = segment.times.floorByTimestamp(timestamp);
    }
    const offset = timeEntry < 0 ? segment.baseOffset : segment.times.offsetAt(timeEntry);
    const entry = segment.offsets.floorByOffset(Math.max(offset, fromOffset));
    const scanner = this.#scanFrom(segment, entry);
    while (this.#advance(scanner)) {
      if (scanner.lastOffset < fromOffset) continue;
      if (recordTimestampOf(scanner.buffer, scanner.headerAt) < timestamp) continue;
      const found = this.#findInBatch(segment, scanner, timestamp, fromOffset);
      if (found !== null) return found;
    }
    return null;
  }

  #findInBatch(
    segment: Segment,
    scanner: BatchScanner,
    timestamp: bigint,
    fromOffset: number,
  ): TimestampOffset | null {
    const { baseOffset } = scanner;
    const leaderEpoch = leaderEpochOf(scanner.buffer, scanner.headerAt);
    const batch = new Uint8Array(scanner.size);
    const { disk } = this.#parts.files;
    const count = disk.read(segment.fd, batch, 0, batch.length, scanner.position);
    if (count < batchHeaderBytes || count < batch.length)
      throw new DamagedLogError('the batch is cut short');
    const record = findRecordByTimestamp(
      batch,
      0,
      timestamp,
      Math.max(0, fromOffset - baseOffset),
      this.#parts.config.decompressedMaxBytes,
    );
    if (record === null) return null;
    return { offset: baseOffset + record.offsetDelta, timestamp: record.timestamp, leaderEpoch };
  }
}
