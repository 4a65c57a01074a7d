const bytesMin = 64 * 1024;
/** Memory kept from one use to the next, at most. */
const bytesKept = 4 * 1024 * 1024;

/**
 * Output memory that is used again and again. One a thread suffices for work that is done with a result before it
 * asks for the next one.
 *
 * Thread: the one that made it; not shared. What it returned is overwritten by the next user.
 */
export class Scratch {
  #memory: Uint8Array = new Uint8Array(0);

  /** Memory of at least `bytes` bytes, of which the first `keep` are what they were in the one returned before. */
  reserve(bytes: number, keep: number): Uint8Array {
    if (bytes > this.#memory.length) {
      // By half at least: results that grow a little at a time would be copied a thousand times otherwise.
      const ahead = Math.max(Math.min(bytes * 2, bytesKept), Math.ceil(this.#memory.length * 1.5));
      const grown = new Uint8Array(Math.max(bytesMin, bytes, ahead));
      grown.set(this.#memory.subarray(0, keep));
      this.#memory = grown;
    }
    return this.#memory;
  }

  /** Lets go of memory that is too large to keep. Views given out stay valid. */
  trim(): void {
    if (this.#memory.length > bytesKept) this.#memory = new Uint8Array(0);
  }
}
