/**
 * From bytes of a leader's connection to whole responses, each in a slab region of its own: the kernel writes large ones
 * straight into it, small ones are copied there from the buffer that all connections of the thread share.
 *
 * Thread: the replication thread. Memory: of one response at a time, taken when its size is known; what comes of that is
 * bounded by how many requests are under way. Concurrency: none, but `onResponse` may dispose.
 */
import type { Region, SlabAllocator } from '../../engine/thread/slab.ts';
import { ResponseFrame } from './response_frame.ts';

/** What misses no more than this is completed through the shared buffer: the copy costs less than a read. */
const directBytesMin = 32 * 1024;
/** Its correlation id. */
const responseBytesMin = 4;

export interface ReceiverOptions {
  readonly slabs: SlabAllocator;
  /** Every read that has no region lands here, and is used up within the callback. */
  readonly shared: Buffer;
  readonly frameBytesMax: number;
  /** The frame is the caller's to release. */
  readonly onResponse: (frame: ResponseFrame) => void;
}

export class ResponseReceiver {
  readonly #options: ReceiverOptions;
  /** Size prefix read so far, and how many bytes of it. */
  #prefix = 0;
  #prefixBytes = 0;
  #size = 0;
  /** Of the response that is being received. */
  #region: Region | null = null;
  /** Invariant: bytes of it in `#region`; `0 <= got < size`. */
  #got = 0;
  /** The last `nextBuffer` was the region itself. */
  #isDirect: boolean = false;
  #isDisposed: boolean = false;

  constructor(options: ReceiverOptions) {
    this.#options = options;
  }

  /** Where the next read goes. */
  nextBuffer(): Buffer {
    const region = this.#region;
    this.#isDirect = region !== null && this.#size - this.#got > directBytesMin;
    if (!this.#isDirect || region === null) return this.#options.shared;
    return region.bytes.subarray(region.offset + this.#got, region.offset + this.#size);
  }

  /** Takes `length` bytes that were read into the last `nextBuffer`. Returns why the connection must end; null: it need not. */
  received(length: number, buffer: Buffer): string | null {
    if (this.#isDirect) {
      this.#isDirect = false;
      this.#got += length;
      this.#deliverIfWhole();
      return null;
    }
    let at = 0;
    while (at < length && !this.#isDisposed) {
      if (this.#region !== null) at = this.#fill(this.#region, buffer, at, length);
      else {
        at = this.#readSize(buffer, at, length);
        if (this.#prefixBytes < 4) break;
        const refusal = this.#begin();
        if (refusal !== null) return refusal;
      }
    }
    return null;
  }

  /** Gives the memory back. The socket must not read any more. */
  dispose(): void {
    this.#isDisposed = true;
    if (this.#region !== null) this.#options.slabs.free(this.#region);
    this.#region = null;
  }

  #readSize(buffer: Buffer, start: number, end: number): number {
    let at = start;
    while (this.#prefixBytes < 4 && at < end) {
      this.#prefix = (this.#prefix << 8) | (buffer[at] as number);
      this.#prefixBytes += 1;
      at += 1;
    }
    return at;
  }

  #begin(): string | null {
    const size = this.#prefix;
    const { slabs, frameBytesMax } = this.#options;
    this.#prefix = 0;
    this.#prefixBytes = 0;
    if (size < responseBytesMin || size > frameBytesMax)
      return `a response of ${size} bytes; allowed are ${responseBytesMin} to ${frameBytesMax}`;
    this.#size = size;
    this.#got = 0;
    this.#region = slabs.alloc(size);
    return null;
  }

  #fill(region: Region, buffer: Buffer, start: number, end: number): number {
    const length = Math.min(end - start, this.#size - this.#got);
    buffer.copy(region.bytes, region.offset + this.#got, start, start + length);
    this.#got += length;
    this.#deliverIfWhole();
    return start + length;
  }

  #deliverIfWhole(): void {
    const region = this.#region;
    if (region === null || this.#got < this.#size) return;
    this.#region = null;
    const { slabs, onResponse } = this.#options;
    onResponse(new ResponseFrame(region, this.#size, slabs));
  }
}
