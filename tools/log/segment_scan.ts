/** Goes over the batches of a segment's file, past what is damaged, and looks into their records. */

import { CompressionError } from '../../engine/batch/compression_error.ts';
import {
  attributeBits,
  baseOffsetOf,
  baseTimestampOf,
  batchHeaderBytes,
  batchMagic,
  hasAttribute,
  lastOffsetDeltaOf,
  magicOf,
  maxTimestampOf,
  recordCountOf,
} from '../../engine/batch/header.ts';
import {
  BatchFormatError,
  type BatchRecord,
  iterateRecordBytes,
  recordBytesOf,
} from '../../engine/batch/records.ts';
import type { Scratch } from '../../engine/batch/scratch.ts';
import { newRecordWalk, RecordFault, walkRecords } from '../../engine/batch/walk.ts';
import { BatchScanner, Scan } from '../../engine/log/batch_scanner.ts';
import { findNextBatch } from '../../engine/log/damage.ts';
import { relativeOffsetMax } from '../../engine/log/offset_index.ts';
import { readOnlyDisk, type SegmentFile } from './log_files.ts';

/** A batch whose checksum is right. The views are good until the next one is asked for. */
export interface ScannedBatch {
  readonly isDamage: false;
  readonly position: number;
  readonly size: number;
  readonly baseOffset: number;
  readonly lastOffset: number;
  /** The header stands here at `at`; the whole batch where `size` is at most `wholeBatchBytes`. */
  readonly buffer: Uint8Array;
  readonly at: number;
}

/** Bytes that are no batch, up to the next one or the file's end. */
interface DamagedBytes {
  readonly isDamage: true;
  readonly position: number;
  readonly length: number;
  readonly fromOffset: number;
  /** Base offset of the next batch, or null when none follows in this file. */
  readonly toOffset: number | null;
  readonly problem: string;
}

/** The scanner keeps batches up to this size in its buffer whole. */
const wholeBatchBytes = 256 * 1024;
/** Far more than any broker lets a batch decompress to. */
const decompressedMaxBytes = 1 << 30;

/** @param file what is read, open as `fd` */
export function* scanSegment(
  file: SegmentFile,
  fd: number,
): Generator<ScannedBatch | DamagedBytes, void, undefined> {
  const { baseOffset, size } = file;
  const newScanner = (position: number, offset: number): BatchScanner =>
    new BatchScanner(readOnlyDisk, fd, position, size, offset, true);
  let scanner = newScanner(0, baseOffset);
  let expected = baseOffset;
  for (;;) {
    const found = scanner.next();
    if (found === Scan.end) return;
    let problem = found === Scan.bad ? scanner.problem : '';
    if (problem === '' && scanner.baseOffset !== expected)
      problem = offsetProblem(scanner, fd, file, expected);
    if (problem === '') {
      expected = scanner.lastOffset + 1;
      yield batchOf(scanner);
      continue;
    }
    const { position } = scanner;
    const next = findNextBatch(readOnlyDisk, { fd, size, baseOffset }, position, expected);
    const end = next === null ? size : next.position;
    const toOffset = next?.baseOffset ?? null;
    const length = end - position;
    yield { isDamage: true, position, length, fromOffset: expected, toOffset, problem };
    if (next === null) return;
    expected = next.baseOffset;
    scanner = newScanner(next.position, next.baseOffset);
  }
}

function batchOf(scanner: BatchScanner): ScannedBatch {
  return {
    isDamage: false,
    position: scanner.position,
    size: scanner.size,
    baseOffset: scanner.baseOffset,
    lastOffset: scanner.lastOffset,
    buffer: scanner.buffer,
    at: scanner.headerAt,
  };
}

/**
 * A batch that leaves offsets out, as compaction does. But the checksum does not cover the base offset: where the batch
 * behind it goes on from an earlier one, it is this batch's offset that is damaged.
 */
function offsetProblem(
  scanner: BatchScanner,
  fd: number,
  { baseOffset, size }: SegmentFile,
  expected: number,
): string {
  const text = `base offset ${scanner.baseOffset} does not fit between ${expected} and what follows`;
  if (scanner.lastOffset - baseOffset > relativeOffsetMax) return text;
  const { nextPosition } = scanner;
  if (nextPosition + batchHeaderBytes > size) return '';
  const header = new Uint8Array(batchHeaderBytes);
  readOnlyDisk.read(fd, header, 0, batchHeaderBytes, nextPosition);
  const isContradicted =
    magicOf(header, 0) === batchMagic && baseOffsetOf(header, 0) <= scanner.lastOffset;
  return isContradicted ? text : '';
}

/** The whole batch, at `at` of what is returned. */
export function wholeBatch(
  { buffer, at, size, position }: ScannedBatch,
  fd: number,
): { readonly bytes: Uint8Array; readonly at: number } {
  if (size <= wholeBatchBytes) return { bytes: buffer, at };
  const bytes = new Uint8Array(size);
  readOnlyDisk.read(fd, bytes, 0, size, position);
  return { bytes, at: 0 };
}

const walk = newRecordWalk();

/** What is wrong with a batch's records, or null. The checksum is right: a producer or broker has written it so. */
export function recordsProblem(bytes: Uint8Array, at: number, scratch: Scratch): string | null {
  const count = recordCountOf(bytes, at);
  const last = lastOffsetDeltaOf(bytes, at);
  if (count < 0 || count > last + 1) return `${count} records do not fit into ${last + 1} offsets`;
  try {
    const records = recordBytesOf(bytes, at, decompressedMaxBytes, scratch);
    if (
      count === last + 1 &&
      walkRecords(records, 0, records.length, count, walk) === RecordFault.none
    )
      return null;
    let previous = -1;
    for (const { offsetDelta } of iterateRecordBytes(records, count, 0n, null)) {
      if (offsetDelta <= previous || offsetDelta > last)
        return `offset delta ${offsetDelta} follows ${previous} in a batch that ends with ${last}`;
      previous = offsetDelta;
    }
    return null;
  } catch (error) {
    if (error instanceof BatchFormatError || error instanceof CompressionError)
      return error.message;
    throw error;
  }
}

/** @throws BatchFormatError, CompressionError */
export function recordsOf(bytes: Uint8Array, at: number): Iterable<BatchRecord> {
  const appendTime = hasAttribute(bytes, at, attributeBits.logAppendTime)
    ? maxTimestampOf(bytes, at)
    : null;
  const records = recordBytesOf(bytes, at, decompressedMaxBytes);
  return iterateRecordBytes(
    records,
    recordCountOf(bytes, at),
    baseTimestampOf(bytes, at),
    appendTime,
  );
}
