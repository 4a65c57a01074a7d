/** Cuts a byte stream into frames of the Kafka protocol (four bytes of length, then the body). */

/** Far above what any broker sends to these clients; a larger length means a stream out of step. */
const FRAME_BYTES_MAX = 256 * 1_024 * 1_024;

export class FrameSplitter {
  /** Bytes of a frame that is not complete yet: `#held[0, #heldLength)`. */
  #held = Buffer.allocUnsafe(64 * 1_024);
  #heldLength = 0;
  readonly #onFrame: (frame: Buffer) => void;

  /**
   * `onFrame` gets each body without its length. The bytes are lent: they are overwritten by the next
   * chunk, so whoever keeps them copies them.
   */
  constructor(onFrame: (frame: Buffer) => void) {
    this.#onFrame = onFrame;
  }

  push(chunk: Buffer): void {
    if (this.#heldLength === 0) {
      const used = this.#emit(chunk, chunk.length);
      this.#hold(chunk, used);
      return;
    }
    this.#hold(chunk, 0);
    const used = this.#emit(this.#held, this.#heldLength);
    if (used === 0) return;
    this.#held.copyWithin(0, used, this.#heldLength);
    this.#heldLength -= used;
  }

  /** Hands out all complete frames of `buffer[0, end)` and returns how many bytes they took. */
  #emit(buffer: Buffer, end: number): number {
    let at = 0;
    while (end - at >= 4) {
      const length = buffer.readInt32BE(at);
      if (length < 4 || length > FRAME_BYTES_MAX) throw new Error(`frame of ${length} bytes`);
      if (end - at - 4 < length) break;
      this.#onFrame(buffer.subarray(at + 4, at + 4 + length));
      at += 4 + length;
    }
    return at;
  }

  #hold(chunk: Buffer, from: number): void {
    const length = this.#heldLength + chunk.length - from;
    if (length > this.#held.length) {
      const grown = Buffer.allocUnsafe(Math.max(length, this.#held.length * 2));
      this.#held.copy(grown, 0, 0, this.#heldLength);
      this.#held = grown;
    }
    chunk.copy(this.#held, this.#heldLength, from);
    this.#heldLength = length;
  }
}
