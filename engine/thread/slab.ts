/**
 * Payload memory of one thread: a buddy allocator over SharedArrayBuffer slabs.
 *
 * Thread: each thread has its own allocator, and only that thread allocates and frees. The bytes themselves
 * may be read from other threads, since every slab is a SharedArrayBuffer; a descriptor that crosses threads
 * carries (slab id, offset, length), and a release travels back to the owner.
 * Concurrency: none here. Durability: none, this is memory.
 *
 * A request above `slabBytes` gets a slab of its own, which goes away with it.
 */
import assert from 'node:assert/strict';

export const slabLimits: {
  readonly slabBytes: number;
  readonly blockBytesMin: number;
  readonly regionBytesMax: number;
} = {
  /** One slab. Virtual until touched: a thread that serves nothing pays for no page of it. */
  slabBytes: 4 * 1024 * 1024,
  /** Least block; a smaller request is rounded up to it. */
  blockBytesMin: 512,
  /** The most that one region may have, a guard against a caller's arithmetic, not a policy. */
  regionBytesMax: 2_000_000_000,
};
assert(Number.isInteger(Math.log2(slabLimits.slabBytes / slabLimits.blockBytesMin)));

const blockShift = Math.log2(slabLimits.blockBytesMin);
const ordersCount = Math.log2(slabLimits.slabBytes / slabLimits.blockBytesMin) + 1;
const blocksPerSlab = slabLimits.slabBytes / slabLimits.blockBytesMin;
/** Value in `Slab.state` of a block that is not the head of a free or an allocated run. */
const inner = 0xff;
const freeFlag = 0x40;
const none = -1;

/** One SharedArrayBuffer with the book-keeping of its blocks. */
interface Slab {
  readonly id: number;
  readonly bytes: Buffer<SharedArrayBuffer>;
  /** Per block: order of the run that it heads, plus `freeFlag` while that run is free; else `inner`. */
  readonly state: Uint8Array;
  readonly next: Int32Array;
  readonly previous: Int32Array;
  /** Head block of the free list of each order, -1 when empty. */
  readonly heads: Int32Array;
  /** Invariant: sum of the sizes of the regions handed out from this slab. */
  usedBytes: number;
  /** Whether the slab was empty at the last trim: only what stays empty between two of them is given up. */
  idle: boolean;
}

/**
 * A piece of slab memory. `bytes` is the view over the whole slab, so that no view needs to be made per
 * region: the region is `bytes[offset, offset + capacity)`. It is a Buffer for the sake of `copy`, which moves
 * bytes at 26 GB/s; `set` of a typed array over a SharedArrayBuffer goes word by word, at 2 (measured, 8 KB).
 */
export interface Region {
  readonly bytes: Buffer<SharedArrayBuffer>;
  readonly offset: number;
  /** Usable bytes, at least what was asked for. */
  readonly capacity: number;
  readonly slabId: number;
  /** Order of the block, -1 for a slab of its own, -2 once freed. */
  order: number;
}

/** A view over the first `length` bytes of a region (the whole of it by default). */
export function regionView(
  region: Region,
  length: number = region.capacity,
): Buffer<SharedArrayBuffer> {
  return region.bytes.subarray(region.offset, region.offset + length);
}

const dedicated = -1;
const freed = -2;

export class SlabAllocator {
  readonly #slabs = new Map<number, Slab>();
  #nextSlabId = 0;
  #dedicatedBytes = 0;
  #usedBytes = 0;
  /** The slab that served last, tried first: keeps the working set in few pages. */
  #current: Slab | null = null;
  /** Told of each slab that is given up, for other threads that may hold views of it. */
  onRetired: ((slabId: number) => void) | null = null;

  /** Bytes in regions that are out, rounded to blocks. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Bytes of all slabs, free blocks included (address space; pages never touched cost nothing). */
  get reservedBytes(): number {
    return this.#slabs.size * slabLimits.slabBytes + this.#dedicatedBytes;
  }

  /** A region of at least `bytes` bytes, contents undefined. Throws on a size outside of 1…regionBytesMax. */
  alloc(bytes: number): Region {
    const sound = Number.isInteger(bytes) && bytes > 0 && bytes <= slabLimits.regionBytesMax;
    // Texts are made in the failing case only: these are the hottest functions of a thread.
    if (!sound) assert.fail(`a region of ${bytes} bytes`);
    if (bytes > slabLimits.slabBytes) return this.#allocDedicated(bytes);
    const order = orderOf(bytes);
    if (this.#current !== null) {
      const region = this.#allocFrom(this.#current, order);
      if (region !== null) return region;
    }
    for (const slab of this.#slabs.values()) {
      const region = slab === this.#current ? null : this.#allocFrom(slab, order);
      if (region !== null) {
        this.#current = slab;
        return region;
      }
    }
    const slab = createSlab(this.#nextSlabId++);
    this.#slabs.set(slab.id, slab);
    this.#current = slab;
    const region = this.#allocFrom(slab, order);
    assert(region !== null);
    return region;
  }

  /** Gives a region back; freeing it twice is a broken caller and throws. */
  free(region: Region): void {
    if (region.order === freed) assert.fail(`slab ${region.slabId}: ${region.offset} freed twice`);
    this.#usedBytes -= region.capacity;
    if (region.order === dedicated) {
      this.#dedicatedBytes -= region.capacity;
      region.order = freed;
      this.onRetired?.(region.slabId);
      return;
    }
    const slab = this.#slabs.get(region.slabId);
    if (slab === undefined) assert.fail(`slab ${region.slabId} is not of this thread`);
    slab.usedBytes -= region.capacity;
    release(slab, region.offset >>> blockShift, region.order);
    region.order = freed;
  }

  /**
   * Gives up slabs that were empty at the last call and still are, all but `keep` of them. Call it now and
   * then (seconds), so that a burst does not stay in memory and a steady load does not make slabs afresh.
   */
  trim(keep: number): void {
    let kept = 0;
    for (const slab of this.#slabs.values()) {
      if (slab.usedBytes > 0) slab.idle = false;
      else if (!slab.idle || kept < keep) {
        slab.idle = true;
        kept += 1;
      } else {
        this.#slabs.delete(slab.id);
        if (this.#current === slab) this.#current = null;
        this.onRetired?.(slab.id);
      }
    }
  }

  /** For tests and assertions: whether every slab has merged back into one free block. */
  isPristine(): boolean {
    for (const slab of this.#slabs.values()) {
      if (slab.state[0] !== (freeFlag | (ordersCount - 1))) return false;
    }
    return this.#usedBytes === 0 && this.#dedicatedBytes === 0;
  }

  #allocFrom(slab: Slab, order: number): Region | null {
    const block = take(slab, order);
    if (block === none) return null;
    const capacity = slabLimits.blockBytesMin << order;
    slab.usedBytes += capacity;
    this.#usedBytes += capacity;
    return { bytes: slab.bytes, offset: block << blockShift, capacity, slabId: slab.id, order };
  }

  #allocDedicated(bytes: number): Region {
    const view = Buffer.from(new SharedArrayBuffer(bytes));
    this.#dedicatedBytes += bytes;
    this.#usedBytes += bytes;
    const slabId = this.#nextSlabId++;
    return { bytes: view, offset: 0, capacity: bytes, slabId, order: dedicated };
  }
}

/** The least order whose block holds `bytes`. */
function orderOf(bytes: number): number {
  const blocks = (bytes + slabLimits.blockBytesMin - 1) >>> blockShift;
  return blocks <= 1 ? 0 : 32 - Math.clz32(blocks - 1);
}

function createSlab(id: number): Slab {
  const slab: Slab = {
    id,
    bytes: Buffer.from(new SharedArrayBuffer(slabLimits.slabBytes)),
    state: new Uint8Array(blocksPerSlab).fill(inner),
    next: new Int32Array(blocksPerSlab).fill(none),
    previous: new Int32Array(blocksPerSlab).fill(none),
    heads: new Int32Array(ordersCount).fill(none),
    usedBytes: 0,
    idle: false,
  };
  push(slab, 0, ordersCount - 1);
  return slab;
}

/** Takes a block of this order, splitting a larger one if need be; -1 when there is none. */
function take(slab: Slab, order: number): number {
  let from = order;
  while (from < ordersCount && slab.heads[from] === none) from += 1;
  if (from === ordersCount) return none;
  const block = slab.heads[from] as number;
  unlink(slab, block, from);
  while (from > order) {
    from -= 1;
    push(slab, block + (1 << from), from);
  }
  slab.state[block] = order;
  return block;
}

/** Puts a run back and merges it with its buddy as long as that is free as a whole. */
function release(slab: Slab, start: number, startOrder: number): void {
  if (slab.state[start] !== startOrder) {
    assert.fail(`slab ${slab.id}: block ${start} is not allocated`);
  }
  let block = start;
  let order = startOrder;
  slab.state[block] = inner;
  while (order < ordersCount - 1) {
    const buddy = block ^ (1 << order);
    if (slab.state[buddy] !== (freeFlag | order)) break;
    unlink(slab, buddy, order);
    slab.state[buddy] = inner;
    block = Math.min(block, buddy);
    order += 1;
  }
  push(slab, block, order);
}

function push(slab: Slab, block: number, order: number): void {
  const head = slab.heads[order] as number;
  slab.next[block] = head;
  slab.previous[block] = none;
  if (head !== none) slab.previous[head] = block;
  slab.heads[order] = block;
  slab.state[block] = freeFlag | order;
}

function unlink(slab: Slab, block: number, order: number): void {
  const next = slab.next[block] as number;
  const previous = slab.previous[block] as number;
  if (previous === none) slab.heads[order] = next;
  else slab.next[previous] = next;
  if (next !== none) slab.previous[next] = previous;
}
