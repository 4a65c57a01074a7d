/**
 * The time that retention goes by: the wall clock, but for its leaps forward. A clock that jumps ahead (a bad time
 * server, a virtual machine's host) would let every segment expire at once, and what is deleted cannot be brought back.
 * So this time never runs more than twice as fast as the monotonic clock, and reaches a wall clock that has been put
 * right, or a machine that has slept, after as long as they were away. Leaps back are followed at once: they keep
 * records for longer.
 *
 * Thread: the shard's own.
 */
import type { Clock } from '../../engine/ports.ts';

const paceMax = 2;

export class RetentionClock {
  readonly #clock: Clock;
  #nowMs: number;
  #monotonicMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#nowMs = clock.wallMs();
    this.#monotonicMs = clock.monotonicMs();
  }

  /** Milliseconds since 1970, at most the wall clock's. */
  nowMs(): number {
    const monotonicMs = this.#clock.monotonicMs();
    const mostMs = this.#nowMs + paceMax * (monotonicMs - this.#monotonicMs);
    this.#nowMs = Math.min(this.#clock.wallMs(), mostMs);
    this.#monotonicMs = monotonicMs;
    return this.#nowMs;
  }

  /** By how much the wall clock was ahead of `nowMs` when that was last asked. Milliseconds. */
  get leapMs(): number {
    return Math.max(0, this.#clock.wallMs() - this.#nowMs);
  }
}
