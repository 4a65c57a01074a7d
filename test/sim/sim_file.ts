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
  /** Wall clock, of the last write. */
  modifiedMs = 0;
  /** Changes that are in the cache and not known to be on the device, in order. */
  pending: FileChange[] = [];

  change(change: FileChange): void {
    this.cache.apply(change);
    if (change.type === 'truncate') {
      this.pending.push(change);
      return;
    }
    // What is dirty is the page: all of it goes to the device, and with it what a failed flush had left behind there.
    const start = change.position - (change.position % pageBytes);
    const bytes = this.cache.slice(start, change.position + change.bytes.length);
    this.pending.push({ type: 'write', position: start, bytes });
  }

  /** A flush that began when there were `count` changes has ended well. */
  makeDurable(changes: readonly FileChange[]): void {
    const covered = new Set(changes);
    for (const change of this.pending) if (covered.has(change)) this.durable.apply(change);
    this.pending = this.pending.filter((change) => !covered.has(change));
  }

  /**
   * A flush has failed: part of what it covered may be on the device, and the pages are clean all the same. The size is
   * the inode's, which stays dirty: a truncation is either on the device, or waits for the next flush.
   */
  loseChanges(changes: readonly FileChange[], random: SeededRandom): void {
    const covered = new Set(changes);
    const isPartly = random.chance(0.6);
    const lost = this.pending.filter((change) => covered.has(change));
    if (isPartly) applySome(this.durable, lost, random, 1);
    this.pending = this.pending.filter(
      (change) => !covered.has(change) || (change.type === 'truncate' && !isPartly),
    );
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

  /** What a power cut would leave: of the changes not known to be on the device, some are, in whole or in part. */
  afterCrash(random: SeededRandom): GrowingBytes {
    const bytes = this.durable.copy();
    applySome(bytes, this.pending, random, 0.5);
    return bytes;
  }

  crash(random: SeededRandom): void {
    this.durable = this.afterCrash(random);
    this.pending = [];
    this.cache = this.durable.copy();
  }
}

type Write = Extract<FileChange, { type: 'write' }>;

/**
 * What of `changes` the device may have got; truncations with probability `truncates`. The device gets sectors or pages, each as the cache had it at some time:
 * with the first few of the writes that touch it, in any combination with the others. A truncation is a change of
 * metadata that later writes build on: without it they are not there either.
 */
function applySome(
  target: GrowingBytes,
  changes: readonly FileChange[],
  random: SeededRandom,
  truncates: number,
): void {
  let writes: Write[] = [];
  for (const change of changes) {
    if (change.type === 'write') {
      writes.push(change);
      continue;
    }
    applySomeWrites(target, writes, random);
    writes = [];
    if (change.size < target.size && !random.chance(truncates)) return;
    target.apply(change);
  }
  applySomeWrites(target, writes, random);
}

function applySomeWrites(
  target: GrowingBytes,
  writes: readonly Write[],
  random: SeededRandom,
): void {
  const fate = random.below(5);
  if (fate === 0) return;
  if (fate === 1) {
    for (const write of writes) target.apply(write);
    return;
  }
  const unitBytes = fate === 2 ? pageBytes : sectorBytes;
  const keeps = 0.2 + random.next() * 0.8;
  for (const [unit, touching] of writesByUnit(writes, unitBytes)) {
    const kept = random.chance(keeps) ? touching.length : random.below(touching.length + 1);
    for (const { position, bytes } of touching.slice(0, kept)) {
      const from = Math.max(position, unit * unitBytes);
      const to = Math.min(position + bytes.length, (unit + 1) * unitBytes);
      target.write(from, bytes.subarray(from - position, to - position));
    }
  }
}

/** For each sector or page the writes that touch it, in order. */
function writesByUnit(writes: readonly Write[], unitBytes: number): Map<number, Write[]> {
  const units = new Map<number, Write[]>();
  for (const write of writes) {
    const first = Math.floor(write.position / unitBytes);
    const last = Math.floor((write.position + Math.max(1, write.bytes.length) - 1) / unitBytes);
    for (let unit = first; unit <= last; unit += 1) {
      const touching = units.get(unit);
      if (touching === undefined) units.set(unit, [write]);
      else touching.push(write);
    }
  }
  return units;
}
