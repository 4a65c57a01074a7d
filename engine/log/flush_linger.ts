/**
 * The wait of a log directory's writes that nobody is in a hurry for: until the first of them has waited as long as it
 * may, or the directory is written to for another reason.
 *
 * Thread: the shard's, through its `FlushGroup`. A timer that comes late or for nothing does no harm.
 */
import type { Clock } from '../ports.ts';

/** Runs the function after so many milliseconds. */
export type Delay = (run: () => void, ms: number) => void;

export class FlushLinger {
  readonly #clock: Clock;
  readonly #delay: Delay | undefined;
  readonly #onEnd: () => void;
  /** On the monotonic clock; infinite: nothing waits that was not written since. */
  #endMs = Number.POSITIVE_INFINITY;

  /** @param delay none: nothing waits */
  constructor(clock: Clock, delay: Delay | undefined, onEnd: () => void) {
    this.#clock = clock;
    this.#delay = delay;
    this.#onEnd = onEnd;
  }

  /** Has `onEnd` called within so many milliseconds; false: it is not to wait. */
  start(ms: number): boolean {
    if (this.#delay === undefined || !(ms > 0)) return false;
    const endMs = this.#clock.monotonicMs() + ms;
    if (endMs >= this.#endMs) return true;
    this.#endMs = endMs;
    this.#delay(this.#onEnd, ms);
    return true;
  }

  /** What waited has been written. */
  clear(): void {
    this.#endMs = Number.POSITIVE_INFINITY;
  }
}
