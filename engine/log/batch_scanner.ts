/**
 * Walks over the batch headers in a range of a segment's file, with or without checking the checksums.
 *
 * All scanners of a thread share one buffer: a scanner's `header` is good until the next scan on the thread begins.
 */
import { crc32c } from '@node-rs/crc32';
import {
  baseOffsetOf,
  batchCrcStart,
  batchHeaderBytes,
  batchMagic,
  crcOf,
  lastOffsetDeltaOf,
  magicOf,
  sizeOf,
} from '../batch/header.ts';
import type { Disk } from '../ports.ts';

export const Scan = { batch: 0, end: 1, bad: 2 } as const;
export type Scan = (typeof Scan)[keyof typeof Scan];

const bufferBytes = 256 * 1024;
const firstReadBytes = 4096;
let sharedBuffer: Uint8Array | null = null;

export class BatchScanner {
  readonly #disk: Pick<Disk, 'read'>;
  readonly #fd: number;
  readonly #end: number;
  readonly #checkCrc: boolean;
  readonly #buffer: Uint8Array;
  #bufferStart = 0;
  #bufferLength = 0;
  #readBytes: number;
  #next: number;

  /** The batch that `next` found: where it begins and its size in bytes. After `bad`, where the damage begins. */
  position = 0;
  size = 0;
  baseOffset = -1;
  lastOffset: number;
  /** Its header stands in `buffer` at `headerAt`. */
  headerAt = 0;
  /** After `bad`: what is wrong there, for people. */
  problem = '';

  /**
   * @param position where a batch begins
   * @param end where the range ends, in bytes
   * @param offset the first batch's base offset is at least this
   */
  constructor(
    disk: Pick<Disk, 'read'>,
    fd: number,
    position: number,
    end: number,
    offset: number,
    checkCrc: boolean,
  ) {
    sharedBuffer ??= new Uint8Array(bufferBytes);
    this.#disk = disk;
    this.#fd = fd;
    this.#next = position;
    this.#end = end;
    this.#checkCrc = checkCrc;
    this.#buffer = sharedBuffer;
    this.#readBytes = checkCrc ? bufferBytes : firstReadBytes;
    this.position = position;
    this.lastOffset = offset - 1;
  }

  get buffer(): Uint8Array {
    return this.#buffer;
  }

  /** First byte after the batches seen so far. */
  get nextPosition(): number {
    return this.#next;
  }

  /** Goes to the next batch. After `end` or `bad` the answer stays the same. */
  next(): Scan {
    const position = this.#next;
    const left = this.#end - position;
    this.position = position;
    if (left <= 0) return Scan.end;
    if (left < batchHeaderBytes) return this.#bad(`${left} bytes are too few for a batch`);
    if (!this.#fill(position, batchHeaderBytes)) return this.#bad('the file ends early');
    const { headerAt } = this;
    const buffer = this.#buffer;
    const magic = magicOf(buffer, headerAt);
    if (magic !== batchMagic) return this.#bad(`magic ${magic} is not ${batchMagic}`);
    const size = sizeOf(buffer, headerAt);
    if (size < batchHeaderBytes || size > left)
      return this.#bad(`a batch of ${size} bytes with ${left} bytes left`);
    const baseOffset = baseOffsetOf(buffer, headerAt);
    const lastOffset = baseOffset + lastOffsetDeltaOf(buffer, headerAt);
    if (baseOffset <= this.lastOffset || lastOffset < baseOffset)
      return this.#bad(`offsets ${baseOffset} to ${lastOffset} do not follow ${this.lastOffset}`);
    if (this.#checkCrc && !this.#isIntact(position, size))
      return this.#bad('the checksum does not match');
    this.size = size;
    this.baseOffset = baseOffset;
    this.lastOffset = lastOffset;
    this.#next = position + size;
    return Scan.batch;
  }

  /** Makes the next call of `next` find the present batch again. Once, and only after `next` said that there is one. */
  stepBack(): void {
    this.#next = this.position;
    this.lastOffset = this.baseOffset - 1;
  }

  #bad(problem: string): Scan {
    this.problem = problem;
    return Scan.bad;
  }

  #isIntact(position: number, size: number): boolean {
    if (size > bufferBytes) return this.#isLargeIntact(position, size);
    if (!this.#fill(position, size)) return false;
    const { headerAt } = this;
    const covered = this.#buffer.subarray(headerAt + batchCrcStart, headerAt + size);
    return crc32c(covered) === crcOf(this.#buffer, headerAt);
  }

  /** In pieces, so that a length that is itself damaged cannot ask for any amount of memory. */
  #isLargeIntact(position: number, size: number): boolean {
    if (!this.#fill(position, batchHeaderBytes)) return false;
    const expected = crcOf(this.#buffer, this.headerAt);
    let at = position + batchCrcStart;
    const end = position + size;
    let crc = 0;
    while (at < end) {
      const length = Math.min(bufferBytes, end - at);
      if (this.#disk.read(this.#fd, this.#buffer, 0, length, at) < length) return false;
      crc = crc32c(this.#buffer.subarray(0, length), crc);
      at += length;
    }
    this.#bufferLength = 0;
    return this.#fill(position, batchHeaderBytes) && crc === expected;
  }

  /** Has `length` bytes from `position` on in the buffer, at `headerAt`. */
  #fill(position: number, length: number): boolean {
    const start = position - this.#bufferStart;
    if (start >= 0 && start + length <= this.#bufferLength) {
      this.headerAt = start;
      return true;
    }
    if (!this.#checkCrc) {
      // Small batches lie side by side and are read in growing pieces; of large ones only the headers are.
      const isNear = start >= 0 && start <= this.#bufferLength;
      this.#readBytes = isNear ? Math.min(bufferBytes, this.#readBytes * 2) : firstReadBytes;
    }
    const wanted = Math.min(Math.max(length, this.#readBytes), this.#end - position);
    this.#bufferStart = position;
    this.#bufferLength = this.#disk.read(this.#fd, this.#buffer, 0, wanted, position);
    this.headerAt = 0;
    return this.#bufferLength >= length;
  }
}
