/**
 * One response of a leader as it lies in a slab of the replication thread, until nobody needs its records any more.
 *
 * Thread: the replication thread. Memory: the region is given back with the last `release`; owners of partitions read
 * from it until they have answered.
 */
import assert from 'node:assert/strict';
import type { Region, SlabAllocator } from '../../engine/thread/slab.ts';

export class ResponseFrame {
  /** The response is `bytes[offset, end)`, from its header on. */
  readonly bytes: Buffer<SharedArrayBuffer>;
  readonly offset: number;
  readonly end: number;
  readonly slabId: number;
  readonly #region: Region;
  readonly #slabs: SlabAllocator;
  /** Invariant: zero exactly when the region has been given back. */
  #references = 1;

  constructor(region: Region, size: number, slabs: SlabAllocator) {
    this.bytes = region.bytes;
    this.offset = region.offset;
    this.end = region.offset + size;
    this.slabId = region.slabId;
    this.#region = region;
    this.#slabs = slabs;
  }

  /** One more use, which ends with a `release` of its own. */
  retain(): void {
    assert(this.#references > 0, 'retain() of a released response');
    this.#references += 1;
  }

  release(): void {
    assert(this.#references > 0, 'a response was released more often than retained');
    this.#references -= 1;
    if (this.#references === 0) this.#slabs.free(this.#region);
  }
}
