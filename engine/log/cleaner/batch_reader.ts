/**
 * Reads a segment's batches one after the other, whole, and checks each one's checksum: what the cleaner writes gets a
 * checksum of its own, and damage must not be made to look sound by it.
 *
 * Thread: the cleaner's. A batch lies in `buf` until the next call of `next`.
 */
import { crc32c } from '../../batch/crc.ts';
import {
  baseOffsetOf,
  batchCrcStart,
  batchHeaderBytes,
  batchMagic,
  crcOf,
  lastOffsetDeltaOf,
  magicOf,
  sizeOf,
} from '../../batch/header.ts';
import type { Disk } from '../../ports.ts';
import { UncleanableError } from './cleaning_job.ts';

export class BatchReader {
  readonly #disk: Disk;
  #fd = -1;
  #fileEnd = 0;
  #name = '';
  /** The bytes of the file from `#bufferPosition` on, `#length` of them. */
  buf: Uint8Array;
  #bufferPosition = 0;
  #length = 0;
  /** The batch that `next` found: where in `buf`, where in the file, and its size in bytes. */
  start = 0;
  position = 0;
  size = 0;
  baseOffset = -1;
  lastOffset = -1;
  /** Bytes read so far, from all files. */
  bytesRead = 0;

  /** @param bufferBytes more is taken only while a batch is larger */
  constructor(disk: Disk, bufferBytes: number) {
    this.#disk = disk;
    this.buf = new Uint8Array(Math.max(bufferBytes, 4096));
  }

  /**
   * Begins with the batches in the first `size` bytes of a file, which the caller has opened.
   * @param name for people
   * @param offset the first batch's base offset is at least this
   */
  open(fd: number, size: number, name: string, offset: number): void {
    this.#fd = fd;
    this.#fileEnd = size;
    this.#name = name;
    this.#bufferPosition = 0;
    this.#length = 0;
    this.position = 0;
    this.size = 0;
    this.lastOffset = offset - 1;
  }

  get isLast(): boolean {
    return this.position + this.size === this.#fileEnd;
  }

  /** Goes to the next batch; false at the end. @throws UncleanableError when it is damaged; DiskError */
  next(): boolean {
    const position = this.position + this.size;
    const left = this.#fileEnd - position;
    if (left === 0) return false;
    this.position = position;
    if (left < batchHeaderBytes) this.#refuse(`${left} bytes are too few for a batch`);
    this.#fill(position, batchHeaderBytes);
    const magic = magicOf(this.buf, this.start);
    if (magic !== batchMagic) this.#refuse(`its format, ${magic}, is not ${batchMagic}`);
    const size = sizeOf(this.buf, this.start);
    if (size < batchHeaderBytes || size > left)
      this.#refuse(`it claims ${size} bytes with ${left} left`);
    this.#fill(position, size);
    const { buf, start } = this;
    if (crc32c(buf.subarray(start + batchCrcStart, start + size)) !== crcOf(buf, start))
      this.#refuse('its checksum does not match');
    const baseOffset = baseOffsetOf(buf, start);
    const lastOffset = baseOffset + lastOffsetDeltaOf(buf, start);
    if (baseOffset <= this.lastOffset || lastOffset < baseOffset)
      this.#refuse(`its offsets, ${baseOffset} to ${lastOffset}, do not follow ${this.lastOffset}`);
    this.size = size;
    this.baseOffset = baseOffset;
    this.lastOffset = lastOffset;
    return true;
  }

  #refuse(problem: string): never {
    throw new UncleanableError(
      `the batch at byte ${this.position} of ${this.#name} is damaged: ${problem}`,
    );
  }

  /** Has `length` bytes from `position` on in `buf`, at `start`. */
  #fill(position: number, length: number): void {
    const start = position - this.#bufferPosition;
    this.start = start;
    if (start >= 0 && start + length <= this.#length) return;
    const kept = Math.max(0, this.#length - start);
    if (length > this.buf.length) {
      const grown = new Uint8Array(length);
      grown.set(this.buf.subarray(start, start + kept));
      this.buf = grown;
    } else this.buf.copyWithin(0, start, start + kept);
    const wanted = Math.min(this.buf.length, this.#fileEnd - position) - kept;
    const read = this.#disk.read(this.#fd, this.buf, kept, wanted, position + kept);
    this.bytesRead += read;
    this.#bufferPosition = position;
    this.#length = kept + read;
    this.start = 0;
    if (this.#length < length) this.#refuse('the file ends within it');
  }
}
