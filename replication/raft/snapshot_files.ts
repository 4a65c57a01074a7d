/**
 * Snapshots of the metadata on disk: `<end offset>-<epoch>.checkpoint` beside the metadata log, as Kafka keeps them
 * (KIP-630). One is written under another name, flushed and renamed, so that it is there as a whole or not at all.
 *
 * Thread: the quorum's. Concurrency: none. Durability: `PartialSnapshot.finish` is fulfilled when the snapshot and its name
 * are on stable storage; what is removed may come back with a power cut, which does no harm.
 */
import type { Disk, DiskError } from '../../engine/ports.ts';
import type { SnapshotId } from './messages.ts';

const suffix = '.checkpoint';
const partSuffix = '.checkpoint.part';

export class SnapshotFiles {
  readonly #disk: Disk;
  readonly #dir: string;
  /** Invariant: ascending. */
  #ids: SnapshotId[];

  /** Looks what is there, if the directory is, and clears away what was never finished. @throws DiskError */
  constructor(disk: Disk, dir: string) {
    this.#disk = disk;
    this.#dir = dir;
    const names = disk.list(dir) ?? [];
    for (const name of names) if (name.endsWith(partSuffix)) disk.unlink(`${dir}/${name}`);
    const ids = names.map(idOf).filter((id) => id !== null);
    this.#ids = ids.sort((a, b) => a.endOffset - b.endOffset || a.epoch - b.epoch);
  }

  /** Oldest first. Those that turn out to be damaged are `forget`ted. */
  get ids(): readonly SnapshotId[] {
    return this.#ids;
  }

  get latest(): SnapshotId | null {
    return this.#ids.at(-1) ?? null;
  }

  /** The whole of one. @throws DiskError */
  readAll(id: SnapshotId): Uint8Array {
    return this.#disk.readFile(this.#path(id, suffix)) ?? new Uint8Array(0);
  }

  /** A piece of one, and its size; null when there is no such snapshot, or no such place in it. @throws DiskError */
  read(
    id: SnapshotId,
    position: number,
    maxBytes: number,
  ): { readonly size: number; readonly bytes: Uint8Array } | null {
    if (!this.#ids.some((one) => isSame(one, id))) return null;
    const disk = this.#disk;
    const fd = disk.open(this.#path(id, suffix), false);
    try {
      const size = disk.size(fd);
      if (position < 0 || position >= size) return null;
      const bytes = new Uint8Array(Math.min(maxBytes, size - position));
      const count = disk.read(fd, bytes, 0, bytes.length, position);
      return { size, bytes: bytes.subarray(0, count) };
    } finally {
      disk.close(fd);
    }
  }

  /** @throws DiskError */
  begin(id: SnapshotId): PartialSnapshot {
    return new PartialSnapshot({
      disk: this.#disk,
      dir: this.#dir,
      from: this.#path(id, partSuffix),
      to: this.#path(id, suffix),
      onNamed: () => this.#add(id),
    });
  }

  /** It cannot be used: the file stays for people to look at. */
  forget(id: SnapshotId): void {
    this.#ids = this.#ids.filter((one) => !isSame(one, id));
  }

  /** At once: the next file of this name may be another one. @throws DiskError */
  remove(id: SnapshotId): void {
    this.forget(id);
    this.#disk.unlink(this.#path(id, suffix));
  }

  #add(id: SnapshotId): void {
    this.forget(id);
    this.#ids = [...this.#ids, id].sort((a, b) => a.endOffset - b.endOffset || a.epoch - b.epoch);
  }

  #path({ endOffset, epoch }: SnapshotId, ending: string): string {
    const offset = String(endOffset).padStart(20, '0');
    return `${this.#dir}/${offset}-${String(epoch).padStart(10, '0')}${ending}`;
  }
}

interface PartialOptions {
  readonly disk: Disk;
  readonly dir: string;
  readonly from: string;
  readonly to: string;
  readonly onNamed: () => void;
}

/** A snapshot that is being written or received, front to back. */
export class PartialSnapshot {
  readonly #options: PartialOptions;
  #fd: number;
  #size = 0;

  /** @throws DiskError */
  constructor(options: PartialOptions) {
    this.#options = options;
    this.#fd = options.disk.open(options.from, true);
    options.disk.truncate(this.#fd, 0);
  }

  get size(): number {
    return this.#size;
  }

  /** @throws DiskError */
  append(bytes: Uint8Array): void {
    this.#options.disk.write(this.#fd, bytes, 0, bytes.length, this.#size);
    this.#size += bytes.length;
  }

  /** All that was appended. @throws DiskError */
  readAll(): Uint8Array {
    const bytes = new Uint8Array(this.#size);
    const count = this.#options.disk.read(this.#fd, bytes, 0, bytes.length, 0);
    return bytes.subarray(0, count);
  }

  /** Rejects with a DiskError. */
  async finish(): Promise<void> {
    const { disk, dir, from, to, onNamed } = this.#options;
    await flushed((done) => disk.flush(this.#fd, done));
    this.#close();
    disk.rename(from, to);
    await flushed((done) => disk.flushDirectory(dir, done));
    onNamed();
  }

  /** Nothing becomes of it. At once: the same one may be begun anew. @throws DiskError */
  abandon(): void {
    this.#close();
    this.#options.disk.unlink(this.#options.from);
  }

  #close(): void {
    if (this.#fd >= 0) this.#options.disk.close(this.#fd);
    this.#fd = -1;
  }
}

export function isSame(one: SnapshotId, other: SnapshotId): boolean {
  return one.endOffset === other.endOffset && one.epoch === other.epoch;
}

/** Kafka's formatting leaves one that ends at offset 0: what is in it stands in the log as well. */
function idOf(name: string): SnapshotId | null {
  const [, offset, epoch] = /^(\d{20})-(\d{10})\.checkpoint$/.exec(name) ?? [];
  const id = { endOffset: Number(offset ?? 0), epoch: Number(epoch ?? 0) };
  return id.endOffset > 0 ? id : null;
}

function flushed(start: (done: (error: DiskError | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    start((error) => {
      if (error === null) resolve();
      else reject(error);
    });
  });
}
