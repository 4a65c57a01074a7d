/**
 * Kafka's time index: entries of 12 bytes (timestamp int64, relative offset int32), timestamps strictly growing. An
 * entry says: up to and with this offset no record of the segment has a later timestamp. The offset is the last one of
 * the batch that brought the timestamp.
 */
import { readInt32, readInt64, writeInt32, writeInt64 } from '../batch/header.ts';
import type { Disk } from '../ports.ts';
import { IndexFile } from './index_file.ts';

const entryBytes = 12;
const noTimestamp = -1n;

export class TimeIndex {
  readonly file: IndexFile;
  readonly #baseOffset: number;

  constructor(disk: Disk, baseOffset: number) {
    this.file = new IndexFile(disk, entryBytes);
    this.#baseOffset = baseOffset;
  }

  /** Adds an entry unless the last one says as much. */
  maybeAppend(timestamp: bigint, offset: number): void {
    if (timestamp <= this.lastTimestamp) return;
    const at = this.file.push();
    writeInt64(this.file.bytes, at, timestamp);
    writeInt32(this.file.bytes, at + 8, offset - this.#baseOffset);
  }

  timestampAt(entry: number): bigint {
    return readInt64(this.file.bytes, entry * entryBytes);
  }

  offsetAt(entry: number): number {
    return this.#baseOffset + readInt32(this.file.bytes, entry * entryBytes + 8);
  }

  /** The largest timestamp in the index, -1 when it is empty (Kafka's NO_TIMESTAMP). */
  get lastTimestamp(): bigint {
    return this.file.count === 0 ? noTimestamp : this.timestampAt(this.file.count - 1);
  }

  get lastOffset(): number {
    return this.file.count === 0 ? this.#baseOffset : this.offsetAt(this.file.count - 1);
  }

  /** Number of the last entry whose timestamp is at most `timestamp`, or -1. */
  floorByTimestamp(timestamp: bigint): number {
    let low = 0;
    let high = this.file.count - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      if (this.timestampAt(middle) <= timestamp) low = middle + 1;
      else high = middle - 1;
    }
    return high;
  }

  /** The last entry of the file at `path`, or null when there is none that can be one. For an index that is not loaded. */
  readLast(path: string): { timestamp: bigint; offset: number } | null {
    const bytes = this.file.readLast(path);
    if (bytes === null) return null;
    const timestamp = readInt64(bytes, 0);
    const relativeOffset = readInt32(bytes, 8);
    // Zeros are the padding of a Kafka that crashed.
    if (timestamp < 0n || relativeOffset < 0 || (timestamp === 0n && relativeOffset === 0))
      return null;
    return { timestamp, offset: this.#baseOffset + relativeOffset };
  }

  /** Drops the entries for offsets from `offset` on. */
  truncateTo(offset: number): void {
    let count = this.file.count;
    while (count > 0 && this.offsetAt(count - 1) >= offset) count -= 1;
    this.file.truncate(count);
  }

  /** Keeps the entries that can be true: both fields growing. */
  keepPlausible(): void {
    const { bytes, count } = this.file;
    let lastTimestamp = noTimestamp;
    let lastOffset = -1;
    for (let entry = 0; entry < count; entry += 1) {
      const timestamp = readInt64(bytes, entry * entryBytes);
      const offset = readInt32(bytes, entry * entryBytes + 8);
      // A first entry of zeros is padding more likely than a record of 1970.
      const isZero = timestamp === 0n && offset === 0;
      if (timestamp <= lastTimestamp || offset <= lastOffset || isZero) {
        this.file.truncate(entry);
        return;
      }
      lastTimestamp = timestamp;
      lastOffset = offset;
    }
  }
}
