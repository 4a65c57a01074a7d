/** The clock of a `ShardWorld`. */
import assert from 'node:assert/strict';
import type { Clock } from '../../../engine/ports.ts';
import type { PurgatoryClock } from '../../../net/server/purgatory.ts';

export const startMs = 1_700_000_000_000;

/** Virtual time for everything: wall, monotonic, and the purgatories' timers. */
export class WorldClock implements Clock, PurgatoryClock {
  ms: number = 0;
  readonly #timers = new Set<{ callback: () => void; atMs: number }>();

  wallMs(): number {
    return startMs + this.ms;
  }
  monotonicMs(): number {
    return this.ms;
  }
  nowMs(): number {
    return this.ms;
  }
  setTimer(callback: () => void, delayMs: number): unknown {
    assert(delayMs >= 0 && delayMs <= 0x7fffffff, `setTimeout cannot wait ${delayMs} ms`);
    const timer = { callback, atMs: this.ms + delayMs };
    this.#timers.add(timer);
    return timer;
  }
  clearTimer(timer: unknown): void {
    this.#timers.delete(timer as { callback: () => void; atMs: number });
  }
  /** Time goes by; timers that are due fire. */
  advance(ms: number): void {
    this.ms += ms;
    for (const timer of [...this.#timers]) {
      if (timer.atMs > this.ms || !this.#timers.delete(timer)) continue;
      timer.callback();
    }
  }
}
