/**
 * Kafka's offset index: entries of 8 bytes (relative offset int32, position int32), both strictly growing. An entry
 * names the last offset of a batch and the position where that batch begins in the segment's file.
 */
import { readInt32, writeInt32 } from '../batch/header.ts';
import type { Disk } from '../ports.ts';
import { IndexFile } from './index_file.ts';

const entryBytes = 8;
/** No batch of a segment lies further from its base offset: the indexes hold the distance in 32 bits. */
export const relativeOffsetMax = 0x7fff_ffff;

export class OffsetIndex {
  readonly file: IndexFile;
  readonly #baseOffset: number;

  constructor(disk: Disk, baseOffset: number) {
    this.file = new IndexFile(disk, entryBytes);
    this.#baseOffset = baseOffset;
  }

  /** @param offset last offset of the batch at `position`; beyond the last entry's */
  append(offset: number, position: number): void {
    const at = this.file.push();
    writeInt32(this.file.bytes, at, offset - this.#baseOffset);
    writeInt32(this.file.bytes, at + 4, position);
  }

  offsetAt(entry: number): number {
    return this.#baseOffset + readInt32(this.file.bytes, entry * entryBytes);
  }

  positionAt(entry: number): number {
    return readInt32(this.file.bytes, entry * entryBytes + 4);
  }

  /** Number of the last entry whose offset is at most `offset`, or -1. */
  floorByOffset(offset: number): number {
    let low = 0;
    let high = this.file.count - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      if (this.offsetAt(middle) <= offset) low = middle + 1;
      else high = middle - 1;
    }
    return high;
  }

  /** Number of the last entry whose position is at most `position`, or -1. */
  floorByPosition(position: number): number {
    let low = 0;
    let high = this.file.count - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      if (this.positionAt(middle) <= position) low = middle + 1;
      else high = middle - 1;
    }
    return high;
  }

  /**
   * Keeps the entries that can be true: growing, and inside a log of `logBytes`. A broker that crashed leaves Kafka's
   * preallocated index padded with zeros; the padding ends the growth.
   */
  keepPlausible(logBytes: number): void {
    const { bytes, count } = this.file;
    let lastOffset = -1;
    let lastPosition = 0;
    for (let entry = 0; entry < count; entry += 1) {
      const offset = readInt32(bytes, entry * entryBytes);
      const position = readInt32(bytes, entry * entryBytes + 4);
      if (offset <= lastOffset || position <= lastPosition || position >= logBytes) {
        this.file.truncate(entry);
        return;
      }
      lastOffset = offset;
      lastPosition = position;
    }
  }
}
