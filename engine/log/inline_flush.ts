/**
 * When to wait for a flush on the shard's thread: a small write that is alone waits longer for the hop to libuv's pool
 * and back than for the device (measured: fdatasync p50 0.24 ms called directly, 0.39 through the pool). Only while the
 * device answers fast, so that one that is slow or stalls holds up the thread once and then no more.
 */
import type { Clock, Disk } from '../ports.ts';

/** A device that takes longer than this is waited for elsewhere. */
const fastMs = 1;
/** Weight of the newest flush in the running mean. */
const newWeight = 0.2;
/** After a slow flush, so long until the next try. */
const pauseMs = 1000;

export class InlineFlush {
  readonly #disk: Disk;
  readonly #clock: Clock;
  readonly #bytesMax: number;
  #meanMs = 0;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;

  /** @param bytesMax largest write that is flushed on the thread; 0 for none */
  constructor(disk: Disk, clock: Clock, bytesMax: number) {
    this.#disk = disk;
    this.#clock = clock;
    this.#bytesMax = bytesMax;
  }

  isWorthIt(bytes: number): boolean {
    return bytes <= this.#bytesMax && this.#clock.monotonicMs() >= this.#pausedUntilMs;
  }

  /** @throws DiskError */
  flush(fd: number): void {
    const startMs = this.#clock.monotonicMs();
    this.#disk.flushSync(fd);
    const endMs = this.#clock.monotonicMs();
    this.#meanMs += (endMs - startMs - this.#meanMs) * newWeight;
    if (this.#meanMs <= fastMs) return;
    this.#pausedUntilMs = endMs + pauseMs;
    this.#meanMs = 0;
  }
}
