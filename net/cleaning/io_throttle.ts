/**
 * Spreads a thread's reads and writes over time: `log.cleaner.io.max.bytes.per.second`.
 *
 * Thread: the cleaner's. Bursts are no longer than what is asked for at a time.
 */
export class IoThrottle {
  readonly #bytesPerSecond: number;
  /** Up to when, on the caller's clock, the bytes so far have been paid for. */
  #paidUntilMs = Number.NEGATIVE_INFINITY;

  constructor(bytesPerSecond: number) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** Notes bytes that were read or written; returns how long to wait before the next, milliseconds. */
  spend(bytes: number, nowMs: number): number {
    const costMs = (bytes / this.#bytesPerSecond) * 1000;
    this.#paidUntilMs = Math.max(this.#paidUntilMs, nowMs - costMs) + costMs;
    return Math.max(0, this.#paidUntilMs - nowMs);
  }
}
