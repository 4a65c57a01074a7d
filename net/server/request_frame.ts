/**
 * One request as it lies in memory: in the thread's shared read buffer (valid only while its handler runs), or in
 * a slab region of its own (valid until the last `release`).
 *
 * Thread: the shard's own. Memory of a retained frame counts against `queued.max.request.bytes` until released.
 */
import assert from 'node:assert/strict';
import type { Region, SlabAllocator } from '../../engine/thread/slab.ts';
import type { MemoryBudget } from './memory_budget.ts';

/** Where retained requests live: the thread's slabs, and the budget that bounds them. */
export interface RequestMemory {
  readonly slabs: SlabAllocator;
  readonly budget: MemoryBudget;
}

export class RequestFrame {
  /** The request is `bytes[offset, end)`, from its header on: the size in front is not part of it. */
  readonly bytes: Uint8Array;
  readonly offset: number;
  readonly end: number;
  readonly #memory: RequestMemory | null;
  readonly #region: Region | null;
  /** Invariant: zero exactly when the region, if any, has been given back. */
  #references = 1;

  /** With `region` null the frame borrows `bytes`; else it owns the region and its reservation of `end - offset`. */
  constructor(
    bytes: Uint8Array,
    offset: number,
    end: number,
    region: Region | null,
    memory: RequestMemory | null,
  ) {
    this.bytes = bytes;
    this.offset = offset;
    this.end = end;
    this.#region = region;
    this.#memory = memory;
  }

  /**
   * Keeps the frame's memory beyond the handler's return; each call needs a `release`. Only for handlers
   * registered with `retainsFrame`, whose frames are in a region of their own from the start.
   */
  retain(): void {
    assert(this.#region !== null, 'retain() of a frame whose handler lacks retainsFrame');
    assert(this.#references > 0, 'retain() of a released frame');
    this.#references += 1;
  }

  /** Of the slab that a retained frame lies in. */
  get slabId(): number {
    assert(this.#region !== null, 'a frame in no slab');
    return this.#region.slabId;
  }

  /** Ends one use. With the last one the memory goes back, and whoever waits for memory gets its turn. */
  release(): void {
    assert(this.#references > 0, 'a frame was released more often than retained');
    this.#references -= 1;
    if (this.#references > 0 || this.#region === null || this.#memory === null) return;
    this.#memory.slabs.free(this.#region);
    this.#memory.budget.release(this.end - this.offset);
  }
}
