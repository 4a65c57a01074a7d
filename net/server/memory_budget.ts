/**
 * Admission of requests against `queued.max.request.bytes`: a request's whole size is reserved before its
 * first byte is kept, or its connection waits in line and its socket stays paused. So requests that are half
 * received cannot fill memory while none of them completes.
 *
 * Thread: the shard's own; nothing is shared. Concurrency: none. A grant is never made from within `release`:
 * the owner calls `grantWaiting` at a moment when it may run request handlers.
 */
import assert from 'node:assert/strict';

/** One that waits for memory; at most one reservation of it waits at a time. */
export interface BudgetWaiter {
  /** Called once the bytes are reserved for it. */
  onMemoryGranted(): void;
}

interface Waiting {
  waiter: BudgetWaiter | null;
  readonly bytes: number;
}

export class MemoryBudget {
  readonly limitBytes: number;
  /** Invariant: sum of all reservations not yet released; above the limit only for a lone giant. */
  #usedBytes = 0;
  /** First come, first served: a later small request does not overtake an earlier large one. */
  #waiting: Waiting[] = [];
  #cancelled = 0;
  /** Called when a release may have made room for somebody who waits. */
  onRoom: (() => void) | null = null;
  /** Reservations that had to wait, ever. */
  waitsTotal = 0;

  constructor(limitBytes: number) {
    assert(limitBytes > 0, `a request memory budget of ${limitBytes} bytes`);
    this.limitBytes = limitBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  get waitingCount(): number {
    return this.#waiting.length - this.#cancelled;
  }

  /**
   * Reserves `bytes` if nobody waits and they fit. A request larger than the whole budget is let in when
   * nothing else is held, since otherwise it could never be served.
   */
  tryReserve(bytes: number): boolean {
    if (this.waitingCount > 0 || !this.#fits(bytes)) return false;
    this.#usedBytes += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#usedBytes -= bytes;
    assert(this.#usedBytes >= 0, 'request memory released twice');
    if (this.waitingCount > 0) this.onRoom?.();
  }

  /** Puts a waiter at the end of the line. */
  wait(waiter: BudgetWaiter, bytes: number): void {
    this.waitsTotal += 1;
    this.#waiting.push({ waiter, bytes });
    // Nothing may be in use at all by now (the giant's case), and then no release would ever come.
    if (this.#fits(this.#head()?.bytes ?? bytes)) this.onRoom?.();
  }

  /** Takes a waiter out of the line; nothing happens if it is not in it. */
  cancel(waiter: BudgetWaiter): void {
    const entry = this.#waiting.find((one) => one.waiter === waiter);
    if (entry === undefined) return;
    entry.waiter = null;
    this.#cancelled += 1;
    if (this.waitingCount > 0) this.onRoom?.();
  }

  /** Serves the line in order as far as memory allows. */
  grantWaiting(): void {
    // Whoever queues up again while being served belongs to the next round.
    for (let left = this.#waiting.length; left > 0; left -= 1) {
      const entry = this.#waiting[0];
      if (entry === undefined) return;
      if (entry.waiter === null) {
        this.#waiting.shift();
        this.#cancelled -= 1;
        continue;
      }
      if (!this.#fits(entry.bytes)) return;
      this.#waiting.shift();
      this.#usedBytes += entry.bytes;
      entry.waiter.onMemoryGranted();
    }
  }

  #head(): Waiting | undefined {
    return this.#waiting.find((one) => one.waiter !== null);
  }

  #fits(bytes: number): boolean {
    return this.#usedBytes + bytes <= this.limitBytes || this.#usedBytes === 0;
  }
}
