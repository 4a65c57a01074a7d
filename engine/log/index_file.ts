/**
 * The bytes of an index: entries of one size, in memory in the file's own form, so that loading and storing are one
 * read and one write. What an entry means is the business of `offset_index.ts` and `time_index.ts`.
 *
 * Thread: the partition's shard. Durability: past the recovery point none is needed, there indexes are made again from the
 * log; `store` puts new entries into the page cache, and a checkpoint flushes them before it moves the recovery point.
 */
import { batchHeaderBytes } from '../batch/header.ts';
import { ColdRead, type Disk, DiskError } from '../ports.ts';

const firstCapacityEntries = 16;
/** Of all indexes that have no entries: most partitions of a broker take few records. */
const noBytes = new Uint8Array(0);

export class IndexFile {
  readonly entryBytes: number;
  readonly #disk: Disk;
  /** Invariant: while `loaded`, entries 0 to `count` - 1 stand here. */
  bytes: Uint8Array = noBytes;
  count = 0;
  loaded: boolean = false;
  /** Entries that the file holds already, in its page cache. Invariant: `stored` <= `count`. */
  stored = 0;
  /** This process has written to the file, and it may not be on stable storage. */
  isWritten: boolean = false;
  /** The file holds more than `stored` entries (padding, damage, or entries of a tail that was cut). */
  #fileTooLong: boolean = false;
  #hasFile: boolean = false;

  constructor(disk: Disk, entryBytes: number) {
    this.#disk = disk;
    this.entryBytes = entryBytes;
  }

  /** Starts an index that has no file yet. */
  create(): void {
    this.loaded = true;
  }

  /** Takes over entries that the file holds as well. */
  adopt(bytes: Uint8Array): void {
    this.bytes = bytes;
    this.count = Math.floor(bytes.length / this.entryBytes);
    this.stored = this.count;
    this.loaded = true;
    this.#hasFile = true;
    this.#fileTooLong = false;
  }

  /**
   * Reads the file. Entries are not judged here: the caller calls `truncate` for those that are no good.
   * @param logBytes size of the segment's log: no more entries are read than that could have batches, since a Kafka that
   *   crashed leaves the file at its full preallocated size
   * @throws DiskError, ColdRead
   */
  load(path: string, logBytes: number): void {
    const fd = this.#openExisting(path);
    this.#hasFile = fd >= 0;
    if (fd < 0) {
      this.forget();
      this.loaded = true;
      return;
    }
    const size = this.#disk.size(fd);
    const most = (Math.floor(logBytes / batchHeaderBytes) + 1) * this.entryBytes;
    const bytes = new Uint8Array(Math.min(size, most));
    const read = this.#readAndClose(fd, bytes, 0);
    this.loaded = true;
    this.bytes = bytes;
    this.count = Math.floor(read / this.entryBytes);
    this.stored = this.count;
    this.#fileTooLong = size !== this.count * this.entryBytes;
  }

  /** The bytes of the last entry in the file, or null when it has none or ends within one. */
  readLast(path: string): Uint8Array | null {
    const fd = this.#openExisting(path);
    if (fd < 0) return null;
    const { entryBytes } = this;
    const size = this.#disk.size(fd);
    if (size === 0 || size % entryBytes !== 0) {
      this.#disk.close(fd);
      return null;
    }
    const bytes = new Uint8Array(entryBytes);
    return this.#readAndClose(fd, bytes, size - entryBytes) === entryBytes ? bytes : null;
  }

  /** Returns the number of bytes read. A ColdRead takes the descriptor along. */
  #readAndClose(fd: number, bytes: Uint8Array, position: number): number {
    try {
      const count = this.#disk.read(fd, bytes, 0, bytes.length, position);
      this.#disk.close(fd);
      return count;
    } catch (error) {
      if (error instanceof ColdRead) error.release = () => this.#disk.close(fd);
      else this.#disk.close(fd);
      throw error;
    }
  }

  #openExisting(path: string): number {
    try {
      return this.#disk.open(path, false);
    } catch (error) {
      if (error instanceof DiskError && error.code === 'ENOENT') return -1;
      throw error;
    }
  }

  /** Makes room for one more entry and returns where in `bytes` it goes. */
  push(): number {
    const at = this.count * this.entryBytes;
    if (at + this.entryBytes > this.bytes.length) this.#grow();
    this.count += 1;
    return at;
  }

  /** Drops the entries from number `count` on. */
  truncate(count: number): void {
    if (count >= this.count) return;
    this.count = count;
    if (this.stored > count) {
      this.stored = count;
      this.#fileTooLong = true;
    }
  }

  get isStored(): boolean {
    return this.stored === this.count && !this.#fileTooLong;
  }

  /**
   * Brings the file up to date. An index without entries has a file too: Kafka's tools expect one.
   * @throws DiskError; the entries stay in memory and the next call tries again
   */
  store(path: string): void {
    if (!this.loaded || (this.isStored && this.#hasFile)) return;
    const fd = this.#disk.open(path, true);
    this.isWritten = true;
    try {
      const from = this.stored * this.entryBytes;
      const to = this.count * this.entryBytes;
      if (this.#fileTooLong) {
        this.#disk.truncate(fd, from);
        this.#fileTooLong = false;
      }
      if (to > from) this.#disk.write(fd, this.bytes, from, to - from, from);
      this.stored = this.count;
      this.#hasFile = true;
    } catch (error) {
      // Part of an entry may stand behind `stored` now.
      this.#fileTooLong = true;
      throw error;
    } finally {
      this.#disk.close(fd);
    }
  }

  /** Forgets what the file holds as well. The caller loads again when it needs it. */
  release(): void {
    if (this.isStored) this.forget();
  }

  /** Forgets all entries, those too that the file lacks: the log has them. */
  forget(): void {
    this.bytes = noBytes;
    this.count = 0;
    this.stored = 0;
    this.#fileTooLong = false;
    this.loaded = false;
  }

  #grow(): void {
    const capacity = Math.max(firstCapacityEntries, this.count * 2) * this.entryBytes;
    const grown = new Uint8Array(capacity);
    grown.set(this.bytes.subarray(0, this.count * this.entryBytes));
    this.bytes = grown;
  }
}
