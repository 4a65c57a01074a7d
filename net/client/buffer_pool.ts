/**
 * Memory for batches, used again: fresh memory costs a page fault for every 4 KiB.
 *
 * Thread: the client's. Sizes are powers of two; what is kept is bounded.
 */

const bytesMin = 512;
const keptPerSizeMax = 32;

export class BufferPool {
  readonly #keptBytesMax: number;
  readonly #kept = new Map<number, Buffer[]>();
  #keptBytes = 0;

  constructor(keptBytesMax: number) {
    this.#keptBytesMax = keptBytesMax;
  }

  /** Memory of at least `bytes` bytes; what is in it means nothing. */
  take(bytes: number): Buffer {
    const size = sizeFor(bytes);
    const kept = this.#kept.get(size)?.pop();
    if (kept === undefined) return Buffer.allocUnsafeSlow(size);
    this.#keptBytes -= size;
    return kept;
  }

  /** Nobody may use it from now on. */
  give(buffer: Buffer): void {
    const size = buffer.length;
    if (size !== sizeFor(size) || this.#keptBytes + size > this.#keptBytesMax) return;
    let kept = this.#kept.get(size);
    if (kept === undefined) {
      kept = [];
      this.#kept.set(size, kept);
    }
    if (kept.length >= keptPerSizeMax) return;
    kept.push(buffer);
    this.#keptBytes += size;
  }
}

function sizeFor(bytes: number): number {
  return Math.max(bytesMin, 2 ** Math.ceil(Math.log2(bytes)));
}
