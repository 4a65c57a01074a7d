/**
 * From bytes of one connection to its request frames, with as few copies as the sizes allow:
 * - a frame that lies whole in the thread's shared read buffer is handed out in place;
 * - one that does not, or that its handler keeps, gets a slab region; what has arrived is copied there, and if
 *   much is missing, the kernel writes the rest straight into the region;
 * - a frame above `growFromBytes` starts with a region of that size, which doubles as bytes arrive.
 *
 * A frame's whole size is reserved from the budget before memory is taken for it, else the connection waits in
 * line. Bytes that arrived behind a point where the connection has to wait are stashed: at most one read buffer
 * a connection, outside of the budget, since a waiter must not be in its own way.
 *
 * Thread: the shard's own. Concurrency: none, but the owner's callbacks may close the connection (`dispose`).
 */
import assert from 'node:assert/strict';
import type { Region } from '../../engine/thread/slab.ts';
import type { BudgetWaiter } from './memory_budget.ts';
import { RequestFrame, type RequestMemory } from './request_frame.ts';

export const receiveLimits: Readonly<
  Record<'sharedBufferBytes' | 'inPlaceBytesMin' | 'growFromBytes' | 'frameBytesMin', number>
> = {
  /** The read buffer that all connections of a thread share. */
  sharedBufferBytes: 64 * 1024,
  /** A frame that misses no more than this is completed through the shared buffer: the copy costs less than a read. */
  inPlaceBytesMin: 32 * 1024,
  /** Frames above this get memory as their bytes arrive, not as announced. */
  growFromBytes: 1024 * 1024,
  /** API key, version, correlation id: no request is shorter. */
  frameBytesMin: 8,
};
assert(receiveLimits.inPlaceBytesMin < receiveLimits.sharedBufferBytes);

export interface ReceiveOwner {
  /** Whether a request may have this size; false only after the connection was closed (and said why). */
  acceptsSize(size: number): boolean;
  /** Whether the API is served at all; false only after the connection was closed. Spares receiving the rest. */
  knowsApi(apiKey: number): boolean;
  /** Whether requests of this API need memory that outlives the read. */
  retainsFrame(apiKey: number): boolean;
  /** False holds the frame, and everything behind it, until `resume`. */
  mayDispatch(apiKey: number): boolean;
  /** Runs a request. The frame is the owner's to release. */
  onFrame(frame: RequestFrame): void;
  /** Memory was granted: call `resume` soon. */
  onMemoryGranted(): void;
}

const noBytes = Buffer.alloc(0);

export class Receiver implements BudgetWaiter {
  readonly #owner: ReceiveOwner;
  readonly #memory: RequestMemory;
  readonly #shared: Buffer;
  /** Size prefix read so far, and how many bytes of it. */
  #prefix = 0;
  #prefixBytes = 0;
  /** Size of the frame that is being received; -1 between frames. */
  #size = -1;
  #region: Region | null = null;
  /** Invariant: bytes of the frame in `#region`; `0 <= got <= min(size, capacity)`. */
  #got = 0;
  /** The budget holds `#size` bytes for the frame. */
  #reserved: boolean = false;
  #waiting: boolean = false;
  /** Whether the buffer that the socket reads into next is the region itself. */
  #inPlace: boolean = false;
  /** A whole frame that must not run yet. */
  #ready: RequestFrame | null = null;
  /** Bytes not looked at yet: `#stash.bytes[#stashPos, #stashEnd)`. */
  #stash: Region | null = null;
  #stashPos = 0;
  #stashEnd = 0;
  #disposed: boolean = false;
  /** All bytes ever received: progress, for the idle check. */
  bytesTotal = 0;

  constructor(owner: ReceiveOwner, memory: RequestMemory, shared: Buffer) {
    this.#owner = owner;
    this.#memory = memory;
    this.#shared = shared;
  }

  /** Whether reading more makes sense: nothing is held back and nothing waits. */
  get open(): boolean {
    return !this.#disposed && !this.#waiting && this.#ready === null && this.#stash === null;
  }

  /** Whether a frame has begun and is not complete, so that the peer owes us bytes. */
  get partial(): boolean {
    return this.#ready === null && !this.#waiting && (this.#size >= 0 || this.#prefixBytes > 0);
  }

  /** The buffer for the next read. The socket asks after every read, so it may be another one each time. */
  nextBuffer(): Buffer {
    const region = this.#region;
    this.#inPlace =
      region !== null && this.open && this.#size - this.#got > receiveLimits.inPlaceBytesMin;
    if (!this.#inPlace || region === null) return this.#shared;
    const end = Math.min(region.capacity, this.#size);
    return region.bytes.subarray(region.offset + this.#got, region.offset + end);
  }

  /**
   * Takes `length` bytes that were read into `buffer` (the one from `nextBuffer`, or any other one that stays
   * as it is during the call). Returns whether to go on reading.
   */
  received(length: number, buffer: Buffer): boolean {
    this.bytesTotal += length;
    if (this.#disposed) return false;
    if (this.#inPlace) {
      this.#inPlace = false;
      this.#got += length;
      this.#afterFill();
      this.#consume(noBytes, 0, 0);
    } else {
      const position = this.#consume(buffer, 0, length);
      if (position < length && !this.#disposed) this.#keep(buffer, position, length);
    }
    return this.open;
  }

  /** Goes on with what was held back. Returns whether to go on reading. */
  resume(): boolean {
    if (this.#disposed || this.#waiting) return false;
    const stash = this.#stash;
    if (stash === null) {
      this.#consume(noBytes, 0, 0);
      return this.open;
    }
    const position = this.#consume(stash.bytes, this.#stashPos, this.#stashEnd);
    // The connection may have been closed on the way, and then the stash is gone already.
    if (this.#stash !== stash) return false;
    this.#stashPos = position;
    if (position === this.#stashEnd) this.#dropStash();
    return this.open;
  }

  onMemoryGranted(): void {
    this.#waiting = false;
    this.#reserved = true;
    this.#owner.onMemoryGranted();
  }

  /** Gives back all memory. The socket must not read into a buffer of ours any more. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    if (this.#waiting) this.#memory.budget.cancel(this);
    this.#waiting = false;
    this.#ready?.release();
    this.#ready = null;
    if (this.#region !== null) this.#memory.slabs.free(this.#region);
    this.#region = null;
    if (this.#reserved) this.#memory.budget.release(this.#size);
    this.#reserved = false;
    this.#dropStash();
  }

  /** Works through `bytes[start, end)` and returns where it had to stop. */
  #consume(bytes: Buffer, start: number, end: number): number {
    let position = start;
    while (!this.#disposed) {
      if (this.#ready !== null) {
        if (!this.#deliverReady()) return position;
      } else if (this.#region !== null) {
        if (position === end) return position;
        position = this.#fill(this.#region, bytes, position, end);
      } else if (this.#size < 0) {
        position = this.#readSize(bytes, position, end);
        if (this.#size < 0) return position;
      } else if (end - position >= this.#size && !this.#needsRegion(bytes, position)) {
        if (!this.#owner.mayDispatch(apiKeyAt(bytes, position))) return position;
        position = this.#deliverInPlace(bytes, position);
      } else if (position === end && !this.#reserved) {
        // Not a byte of it is here: reserve when the first one is.
        return position;
      } else if (end - position >= 2 && !this.#owner.knowsApi(apiKeyAt(bytes, position))) {
        return end;
      } else if (!this.#takeRegion()) return position;
    }
    return position;
  }

  #readSize(bytes: Buffer, start: number, end: number): number {
    let position = start;
    while (this.#prefixBytes < 4 && position < end) {
      this.#prefix = (this.#prefix << 8) | (bytes[position] as number);
      this.#prefixBytes += 1;
      position += 1;
    }
    if (this.#prefixBytes < 4) return position;
    const size = this.#prefix;
    this.#prefix = 0;
    this.#prefixBytes = 0;
    if (!this.#owner.acceptsSize(size)) {
      assert(this.#disposed, 'a connection with a bad frame stays open');
      return end;
    }
    this.#size = size;
    return position;
  }

  #needsRegion(bytes: Buffer, position: number): boolean {
    return this.#reserved || this.#owner.retainsFrame(apiKeyAt(bytes, position));
  }

  #deliverInPlace(bytes: Buffer, position: number): number {
    const end = position + this.#size;
    this.#size = -1;
    this.#owner.onFrame(new RequestFrame(bytes, position, end, null, null));
    return end;
  }

  #deliverReady(): boolean {
    const frame = this.#ready as RequestFrame;
    if (!this.#owner.mayDispatch(apiKeyAt(frame.bytes, frame.offset))) return false;
    this.#ready = null;
    this.#owner.onFrame(frame);
    return true;
  }

  /** Reserves memory for the frame and takes a region; false if it has to wait. */
  #takeRegion(): boolean {
    if (this.#waiting) return false;
    if (!this.#reserved) {
      if (!this.#memory.budget.tryReserve(this.#size)) {
        this.#waiting = true;
        this.#memory.budget.wait(this, this.#size);
        return false;
      }
      this.#reserved = true;
    }
    this.#region = this.#memory.slabs.alloc(Math.min(this.#size, receiveLimits.growFromBytes));
    this.#got = 0;
    return true;
  }

  #fill(region: Region, bytes: Buffer, position: number, end: number): number {
    const room = Math.min(region.capacity, this.#size) - this.#got;
    const length = Math.min(room, end - position);
    bytes.copy(region.bytes, region.offset + this.#got, position, position + length);
    this.#got += length;
    this.#afterFill();
    return position + length;
  }

  #afterFill(): void {
    const region = this.#region as Region;
    const size = this.#size;
    if (this.#got < size) {
      if (this.#got === region.capacity) this.#region = this.#grow(region);
      return;
    }
    const { bytes, offset } = region;
    this.#ready = new RequestFrame(bytes, offset, offset + size, region, this.#memory);
    this.#region = null;
    this.#reserved = false;
    this.#size = -1;
    this.#got = 0;
  }

  #grow(region: Region): Region {
    const grown = this.#memory.slabs.alloc(Math.min(this.#size, region.capacity * 2));
    region.bytes.copy(grown.bytes, grown.offset, region.offset, region.offset + this.#got);
    this.#memory.slabs.free(region);
    return grown;
  }

  #keep(bytes: Buffer, position: number, end: number): void {
    assert(this.#stash === null, 'bytes were read although others are held back');
    const stash = this.#memory.slabs.alloc(end - position);
    bytes.copy(stash.bytes, stash.offset, position, end);
    this.#stash = stash;
    this.#stashPos = stash.offset;
    this.#stashEnd = stash.offset + (end - position);
  }

  #dropStash(): void {
    if (this.#stash !== null) this.#memory.slabs.free(this.#stash);
    this.#stash = null;
  }
}

function apiKeyAt(bytes: Uint8Array, position: number): number {
  return (((bytes[position] as number) << 8) | (bytes[position + 1] as number)) & 0xffff;
}
