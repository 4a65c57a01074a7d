/** A file of the simulated disk: what the page cache holds, what the device holds, and the changes between them. */
import type { SeededRandom } from './seeded_random.ts';

export type FileChange =
  | { readonly type: 'write'; readonly position: number; readonly bytes: Uint8Array }
  | { readonly type: 'truncate'; readonly size: number };

/** Bytes that grow as they are written; what was never written reads as zeros. */
class GrowingBytes {
  #bytes: Uint8Array = new Uint8Array(0);
  size = 0;

  apply(change: FileChange): void {
    if (change.type === 'write') this.write(change.position, change.bytes);
    else this.truncate(change.size);
  }

  write(position: number, bytes: Uint8Array): void {
    this.#reserve(position + bytes.length);
    this.#bytes.set(bytes, position);
    this.size = Math.max(this.size, position + bytes.length);
  }

  truncate(size: number): void {
    this.#reserve(size);
    this.#bytes.fill(0, Math.min(size, this.size), this.size);
    this.size = size;
  }

  slice(from: number, to: number): Uint8Array {
    return this.#bytes.slice(from, Math.min(to, this.size));
  }

  copy(): GrowingBytes {
    const copy = new GrowingBytes();
    copy.write(0, this.slice(0, this.size));
    return copy;
  }

  #reserve(size: number): void {
    if (size <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(size, this.#bytes.length * 2, 1024));
    grown.set(this.#bytes.subarray(0, this.size));
    this.#bytes = grown;
  }
}

const pageBytes = 4096;
const sectorBytes = 512;

export class SimFile {
  cache: GrowingBytes = new GrowingBytes();
  durable: GrowingBytes = new GrowingBytes();
  /** Changes that are in the cache and not known to be on the device, in order. */
  pending: FileChange[] = [];

  change(change: FileChange): void {
    this.cache.apply(change);
    this.pending.push(change);
  }

  /** A flush that began when there were `count` changes has ended well. */
  makeDurable(changes: readonly FileChange[]): void {
    const covered = new Set(changes);
    for (const change of this.pending) if (covered.has(change)) this.durable.apply(change);
    this.pending = this.pending.filter((change) => !covered.has(change));
  }

  /** A flush has failed: part of it may be on the device, and the pages are clean all the same. */
  loseChanges(changes: readonly FileChange[], random: SeededRandom): void {
    const covered = new Set(changes);
    for (const change of this.pending)
      if (covered.has(change)) applyPartly(this.durable, change, random);
    this.pending = this.pending.filter((change) => !covered.has(change));
  }

  /** Clean pages from `position` on are read from the device again. The size, which is the inode's, stays. */
  dropCache(position: number): void {
    const reread = this.durable.copy();
    for (const change of this.pending) reread.apply(change);
    const { size } = this.cache;
    if (reread.size < size) reread.truncate(size);
    const from = position - (position % pageBytes);
    this.cache.write(from, reread.slice(from, size));
  }

  /**
   * What a power cut would leave: of the changes not known to be on the device, some are, in whole or in part. A truncation is a change
   * of metadata that later writes build on: without it they are not there either.
   */
  afterCrash(random: SeededRandom): GrowingBytes {
    const bytes = this.durable.copy();
    for (const change of this.pending) {
      if (change.type === 'truncate' && change.size < bytes.size && random.chance(0.5)) break;
      applyPartly(bytes, change, random);
    }
    return bytes;
  }

  crash(random: SeededRandom): void {
    this.durable = this.afterCrash(random);
    this.pending = [];
    this.cache = this.durable.copy();
  }
}

/** All, nothing, or some of the sectors or pages of a change. */
function applyPartly(target: GrowingBytes, change: FileChange, random: SeededRandom): void {
  if (change.type === 'truncate') {
    target.apply(change);
    return;
  }
  const fate = random.below(4);
  if (fate === 0) return;
  if (fate === 1) {
    target.apply(change);
    return;
  }
  const unit = fate === 2 ? sectorBytes : pageBytes;
  const { position, bytes } = change;
  let at = 0;
  while (at < bytes.length) {
    const end = Math.min(bytes.length, at + unit - ((position + at) % unit));
    if (random.chance(0.6)) target.write(position + at, bytes.subarray(at, end));
    at = end;
  }
}
