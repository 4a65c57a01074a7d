/**
 * Stamped batches that wait for the end of the turn, as views of the memory in which they were received, and the one
 * gathered write that stores them.
 *
 * Thread: the partition's shard; all logs of a thread share one gather buffer.
 */
import type { Disk } from '../ports.ts';

/** Below this sum, copying into one buffer is cheaper than a vector of many small pieces. */
const gatherBytes = 64 * 1024;
let sharedGather: Buffer | null = null;

export class PendingBatches {
  readonly #buffers: Uint8Array[] = [];
  readonly #starts: number[] = [];
  readonly #lengths: number[] = [];
  count = 0;
  bytes = 0;

  push(buf: Uint8Array, start: number, length: number): void {
    const at = this.count;
    this.#buffers[at] = buf;
    this.#starts[at] = start;
    this.#lengths[at] = length;
    this.count = at + 1;
    this.bytes += length;
  }

  /** Forgets the batches, and with them the memory they lie in. */
  clear(): void {
    this.#buffers.length = 0;
    this.count = 0;
    this.bytes = 0;
  }

  /** @throws DiskError; some of the bytes may be in the file then */
  writeTo(disk: Disk, fd: number, position: number): void {
    if (this.count === 1) {
      const buf = this.#buffers[0] as Uint8Array;
      disk.write(fd, buf, this.#starts[0] as number, this.#lengths[0] as number, position);
    } else if (this.bytes <= gatherBytes) {
      sharedGather ??= Buffer.allocUnsafeSlow(gatherBytes);
      this.#gather(sharedGather);
      disk.write(fd, sharedGather, 0, this.bytes, position);
    } else {
      const views: Uint8Array[] = [];
      for (let at = 0; at < this.count; at += 1) {
        const start = this.#starts[at] as number;
        views.push(
          (this.#buffers[at] as Uint8Array).subarray(start, start + (this.#lengths[at] as number)),
        );
      }
      disk.writev(fd, views, this.bytes, position);
    }
  }

  #gather(target: Buffer): void {
    let to = 0;
    for (let at = 0; at < this.count; at += 1) {
      const start = this.#starts[at] as number;
      const length = this.#lengths[at] as number;
      // Node's copy takes positions, so that no view has to be made; it works on any Uint8Array.
      Buffer.prototype.copy.call(this.#buffers[at] as Buffer, target, to, start, start + length);
      to += length;
    }
  }
}
