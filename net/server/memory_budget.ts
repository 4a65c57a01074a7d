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

/**
 * Requests above this are large. They have a line and a share of their own, so that a few that never end (or only
 * arrive slowly) do not hold up everybody else's.
 */
const smallBytesMax = 1024 * 1024;
/** What large requests leave to the small ones, as a part of the whole. */
const smallShare = 1 / 4;

/** First come, first served: within a line a later small request does not overtake an earlier large one. */
class Line {
  #waiting: Waiting[] = [];
  #cancelled = 0;

  get count(): number {
    return this.#waiting.length - this.#cancelled;
  }

  head(): Waiting | undefined {
    return this.#waiting.find((one) => one.waiter !== null);
  }

  push(waiter: BudgetWaiter, bytes: number): void {
    this.#waiting.push({ waiter, bytes });
  }

  cancel(waiter: BudgetWaiter): boolean {
    const entry = this.#waiting.find((one) => one.waiter === waiter);
    if (entry === undefined) return false;
    entry.waiter = null;
    this.#cancelled += 1;
    return true;
  }

  /** Takes the first waiters out, one by one, as long as `take` reserves what they ask for. */
  serve(take: (bytes: number) => boolean): void {
    // Whoever queues up again while being served belongs to the next round.
    for (let left = this.#waiting.length; left > 0; left -= 1) {
      const entry = this.#waiting[0];
      if (entry === undefined) return;
      if (entry.waiter !== null && !take(entry.bytes)) return;
      this.#waiting.shift();
      if (entry.waiter === null) this.#cancelled -= 1;
      else entry.waiter.onMemoryGranted();
    }
  }
}

export class MemoryBudget {
  readonly limitBytes: number;
  readonly #smallBytes: number;
  /** Invariant: sum of all reservations not yet released; above the limit only for a giant among large ones. */
  #usedBytes = 0;
  /** Invariant: the part of `usedBytes` that large requests hold. */
  #usedByLarge = 0;
  readonly #small: Line = new Line();
  readonly #large: Line = new Line();
  /** Called when a release may have made room for somebody who waits. */
  onRoom: (() => void) | null = null;
  /** Reservations that had to wait, ever. */
  waitsTotal = 0;

  constructor(limitBytes: number) {
    assert(limitBytes > 0, `a request memory budget of ${limitBytes} bytes`);
    this.limitBytes = limitBytes;
    this.#smallBytes = limitBytes * smallShare;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  get waitingCount(): number {
    return this.#small.count + this.#large.count;
  }

  /**
   * Reserves `bytes` if nobody waits in its line and they fit. A request larger than the whole budget is let in
   * when none of its kind is held, since otherwise it could never be served.
   */
  tryReserve(bytes: number): boolean {
    return this.#line(bytes).count === 0 && this.#take(bytes);
  }

  release(bytes: number): void {
    this.#usedBytes -= bytes;
    if (isLarge(bytes)) this.#usedByLarge -= bytes;
    assert(this.#usedBytes >= 0, 'request memory released twice');
    if (this.waitingCount > 0) this.onRoom?.();
  }

  /** Puts a waiter at the end of the line. */
  wait(waiter: BudgetWaiter, bytes: number): void {
    this.waitsTotal += 1;
    const line = this.#line(bytes);
    line.push(waiter, bytes);
    // Nothing may be in use at all by now (the giant's case), and then no release would ever come.
    if (this.#fits(line.head()?.bytes ?? bytes)) this.onRoom?.();
  }

  /** Takes a waiter out of the line; nothing happens if it is not in it. */
  cancel(waiter: BudgetWaiter): void {
    const found = this.#small.cancel(waiter) || this.#large.cancel(waiter);
    if (found && this.waitingCount > 0) this.onRoom?.();
  }

  /** Serves both lines in order as far as memory allows. */
  grantWaiting(): void {
    const take = (bytes: number): boolean => this.#take(bytes);
    this.#large.serve(take);
    this.#small.serve(take);
  }

  #line(bytes: number): Line {
    return isLarge(bytes) ? this.#large : this.#small;
  }

  #take(bytes: number): boolean {
    if (!this.#fits(bytes)) return false;
    this.#usedBytes += bytes;
    if (isLarge(bytes)) this.#usedByLarge += bytes;
    return true;
  }

  /** Small requests may have the large ones' share while none of those waits, but never the other way round. */
  #fits(bytes: number): boolean {
    const used = this.#usedBytes;
    const usedBySmall = used - this.#usedByLarge;
    const fitsAll = used + bytes <= this.limitBytes;
    if (!isLarge(bytes))
      return (
        used === 0 ||
        usedBySmall + bytes <= this.#smallBytes ||
        (fitsAll && this.#large.count === 0)
      );
    if (this.#usedByLarge === 0) return fitsAll || usedBySmall <= this.#smallBytes;
    return fitsAll && this.#usedByLarge + bytes <= this.limitBytes - this.#smallBytes;
  }
}

function isLarge(bytes: number): boolean {
  return bytes > smallBytesMax;
}
