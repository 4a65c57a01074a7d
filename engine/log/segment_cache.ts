/**
 * Bounds what segments that nobody writes to hold open: descriptors and indexes. The one used longest ago goes first;
 * pinned ones stay. One for each thread.
 */
export interface Releasable {
  /** Lets go, or returns false when in use. */
  release(): boolean;
}

export class SegmentCache {
  readonly #capacity: number;
  // In order of use, latest last.
  readonly #segments = new Set<Releasable>();

  /** @param capacity number of segments that may be open at a time (more only while all are in use) */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#segments.size;
  }

  touch(segment: Releasable): void {
    this.#segments.delete(segment);
    this.#segments.add(segment);
    if (this.#segments.size <= this.#capacity) return;
    for (const oldest of this.#segments) {
      if (oldest === segment) break;
      if (!oldest.release()) continue;
      this.#segments.delete(oldest);
      if (this.#segments.size <= this.#capacity) break;
    }
  }

  forget(segment: Releasable): void {
    this.#segments.delete(segment);
  }
}
