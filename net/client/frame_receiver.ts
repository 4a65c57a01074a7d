/**
 * From the bytes of one connection to answer frames. A frame that lies whole in what was read is handed out in place,
 * unless its receiver keeps it; another one gets memory of its own, of exactly its size.
 *
 * Thread: the client's. Memory: what is handed out in place means nothing once the callback has returned.
 */

export interface FrameOwner {
  /** Whether the next answer's memory is kept after `onFrame`, as that of fetched records is. */
  keepsFrame(): boolean;
  /** A frame without its size. May close the connection, upon which `feed` is not called again. */
  onFrame(frame: Uint8Array): void;
  /** The size that stands there cannot be an answer's; `begin` are the first bytes. */
  onBadSize(size: number, begin: Uint8Array): void;
}

const sizeBytes = 4;
/** Every answer begins with its correlation id. */
const frameBytesMin = 4;
/** Answers to fetches are 50 MiB unless asked for more. */
const frameBytesMax = 256 * 1024 * 1024;

export class FrameReceiver {
  readonly #owner: FrameOwner;
  readonly #size: Uint8Array = new Uint8Array(sizeBytes);
  /** Bytes in `#size`, while there is no `#frame`. */
  #sizeGot = 0;
  #frame: Uint8Array | null = null;
  /** Bytes in `#frame`. */
  #got = 0;
  #stopped: boolean = false;

  constructor(owner: FrameOwner) {
    this.#owner = owner;
  }

  /** Whether an answer has begun and not ended. */
  get isInside(): boolean {
    return this.#sizeGot > 0 || this.#frame !== null;
  }

  /** Nothing more is handed out, and memory is let go. */
  stop(): void {
    this.#stopped = true;
    this.#frame = null;
    this.#sizeGot = 0;
  }

  feed(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length && !this.#stopped) {
      if (this.#frame !== null) at = this.#fill(chunk, at, this.#frame);
      else if (this.#sizeGot > 0 || chunk.length - at < sizeBytes) at = this.#fillSize(chunk, at);
      else at = this.#begin(chunk, at);
    }
  }

  #begin(chunk: Uint8Array, at: number): number {
    const size = readSize(chunk, at);
    if (!this.#accepts(size, chunk, at)) return chunk.length;
    const start = at + sizeBytes;
    if (chunk.length - start < size || this.#owner.keepsFrame()) {
      this.#frame = Buffer.allocUnsafeSlow(size);
      this.#got = 0;
      return start;
    }
    this.#owner.onFrame(chunk.subarray(start, start + size));
    return start + size;
  }

  #fillSize(chunk: Uint8Array, at: number): number {
    const length = Math.min(sizeBytes - this.#sizeGot, chunk.length - at);
    this.#size.set(chunk.subarray(at, at + length), this.#sizeGot);
    this.#sizeGot += length;
    if (this.#sizeGot < sizeBytes) return at + length;
    const size = readSize(this.#size, 0);
    if (!this.#accepts(size, this.#size, 0)) return chunk.length;
    this.#sizeGot = 0;
    this.#frame = Buffer.allocUnsafeSlow(size);
    this.#got = 0;
    return at + length;
  }

  #fill(chunk: Uint8Array, at: number, frame: Uint8Array): number {
    const length = Math.min(frame.length - this.#got, chunk.length - at);
    frame.set(chunk.subarray(at, at + length), this.#got);
    this.#got += length;
    if (this.#got === frame.length) {
      this.#frame = null;
      this.#owner.onFrame(frame);
    }
    return at + length;
  }

  #accepts(size: number, bytes: Uint8Array, at: number): boolean {
    if (size >= frameBytesMin && size <= frameBytesMax) return true;
    this.stop();
    this.#owner.onBadSize(size, bytes.slice(at, at + 16));
    return false;
  }
}

function readSize(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)
  );
}
