/**
 * The real page cache: asks the kernel what is in it, and brings in what is not.
 *
 * Thread: any; one for each. Memory: a small buffer for each fill under way, whose contents nobody looks at. Durable:
 * nothing.
 */
import fs from 'node:fs';
import { constants } from 'node:os';
import { type Native, native } from './native.ts';
import type { PageCache } from './ports.ts';

export const pageCacheLimits: Readonly<
  Record<'fillBytesMax' | 'stepBytes' | 'strideBytes' | 'guessBytesMax', number>
> = {
  /**
   * Flushes wait behind it at the device (measured, reads without a pause: fdatasync p50 0.5 ms beside pieces of 128 KB,
   * 0.85 ms beside 512 KB, 0.35 ms alone).
   */
  fillBytesMax: 128 * 1024,
  /** Read by a fill into the same memory again and again (measured: half the CPU of reading into memory of its own). */
  stepBytes: 64 * 1024,
  /** Where the kernel has no cachestat, one byte in so many is asked for. */
  strideBytes: 64 * 1024,
  /** Where the kernel tells nothing, ranges up to this count as cached. */
  guessBytesMax: 16 * 1024,
};

const pageBytes = 4096;
const eagain = -constants.errno.EAGAIN;
/** Not in this kernel, or kept from us. */
const withheld: ReadonlySet<number> = new Set([-constants.errno.ENOSYS, -constants.errno.EPERM]);

export class NodePageCache implements PageCache {
  readonly fillBytesMax: number = pageCacheLimits.fillBytesMax;
  readonly #native: Native | null;
  #hasCachestat: boolean = true;
  readonly #buffers: Uint8Array[] = [];

  constructor(calls: Native | null = native()) {
    this.#native = calls;
  }

  isCached(fd: number, position: number, length: number): boolean {
    if (length <= 0) return true;
    const calls = this.#native;
    if (calls === null) return length <= pageCacheLimits.guessBytesMax;
    const last = position + length - 1;
    if (this.#hasCachestat) {
      const count = calls.cachedPages(fd, position, length);
      // Pages that another reader is waiting for count as cached, and come in order: the last one tells.
      if (count >= 0) return count >= pagesOf(position, last) && this.#isReady(calls, fd, last);
      this.#hasCachestat = !withheld.has(count);
    }
    for (let at = position; at < last; at += pageCacheLimits.strideBytes) {
      const answer = calls.peek(fd, at);
      if (answer === eagain) return false;
      if (answer < 0) return length <= pageCacheLimits.guessBytesMax;
    }
    return this.#isReady(calls, fd, last);
  }

  /** Asking for a page that is not there would begin to read it, on this thread: cachestat comes first. */
  #isReady(calls: Native, fd: number, position: number): boolean {
    return calls.peek(fd, position) !== eagain;
  }

  fill(fd: number, position: number, length: number, done: () => void): void {
    // Or the kernel goes on with a window of its own, megabytes of it, for everyone else to wait behind.
    this.#native?.stopReadAhead(fd);
    const buffer = this.#buffers.pop() ?? new Uint8Array(pageCacheLimits.stepBytes);
    const views: Uint8Array[] = [];
    for (let left = length; left > 0; left -= buffer.length)
      views.push(left < buffer.length ? buffer.subarray(0, left) : buffer);
    fs.readv(fd, views, position, () => {
      this.#buffers.push(buffer);
      done();
    });
  }

  deviceOf(fd: number): number {
    return fs.fstatSync(fd).dev;
  }
}

function pagesOf(first: number, last: number): number {
  return Math.floor(last / pageBytes) - Math.floor(first / pageBytes) + 1;
}
