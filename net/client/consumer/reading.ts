/**
 * The loops over a consumer: `for await` over messages or over batches. One at a time, since what is in hand is what the
 * loop has not come back from.
 *
 * What is ready is handed out without waiting, so that a loop whose body never waits would keep everything else from
 * running: heartbeats, fetches. Now and then the loop is therefore held up for one turn of the event loop.
 *
 * Thread: the client's.
 */
import { setImmediate as turnOfTheLoop } from 'node:timers/promises';
import { abortable } from '../retry.ts';

/** What a loop needs from its consumer. */
export interface ReadingOwner<T> {
  /** It has been begun, and the reader has not been away. */
  readonly isPresent: boolean;
  /** Throws its reason where a signal has ended the consumer. */
  isClosed(): boolean;
  /** What is ready, null for nothing. Throws what the reader must know. */
  take(): T | null;
  /** Begins, or comes back. */
  begin(): Promise<void>;
  /** Resolves when another `take` may find something. */
  change(): Promise<void>;
  /** Whether the reader waits for a message, and does not work on one. */
  onWaiting(isWaiting: boolean): void;
  /** The loop has ended; what it had in hand may not have been processed. */
  onLoopEnd(): void;
}

/** The event loop gets a turn after so much time. */
const busyMs = 10;
/** Messages between two looks at the clock, at most. */
const strideMax = 128;

export class Reading<T> implements AsyncIterableIterator<T, undefined> {
  readonly #owner: ReadingOwner<T>;
  readonly #signal: AbortSignal | undefined;
  #isOver: boolean = false;
  #left = 0;
  #stride = 1;
  #lookedAtMs = 0;
  #turnedAtMs = 0;

  constructor(owner: ReadingOwner<T>, signal: AbortSignal | undefined) {
    this.#owner = owner;
    this.#signal = signal;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#left > 0 && this.#owner.isPresent && !this.#isOver) {
      this.#left -= 1;
      let value: T | null;
      try {
        value = this.#owner.take();
      } catch (error) {
        return this.#fail(error);
      }
      if (value !== null) return Promise.resolve({ done: false, value });
    }
    return this.#next();
  }

  return(): Promise<IteratorReturnResult<undefined>> {
    this.#end();
    return Promise.resolve({ done: true, value: undefined });
  }

  async #next(): Promise<IteratorResult<T, undefined>> {
    try {
      await this.#keepTurns();
      for (;;) {
        if (this.#isOver || this.#owner.isClosed()) break;
        this.#signal?.throwIfAborted();
        if (!this.#owner.isPresent) await abortable(this.#owner.begin(), this.#signal);
        // Before the look, so that nothing that comes between both is missed.
        const changed = this.#owner.change();
        const value = this.#owner.take();
        if (value !== null) return { done: false, value };
        this.#owner.onWaiting(true);
        await abortable(changed, this.#signal).finally(() => this.#owner.onWaiting(false));
        this.#turnedAtMs = performance.now();
      }
    } catch (error) {
      return this.#fail(error);
    }
    return this.return();
  }

  /** Where a single message takes long, the clock is looked at for each. */
  async #keepTurns(): Promise<void> {
    const nowMs = performance.now();
    const tookMs = nowMs - this.#lookedAtMs;
    this.#lookedAtMs = nowMs;
    this.#stride = tookMs > 1 ? this.#stride >> 2 : Math.min(strideMax, this.#stride * 2 + 1);
    this.#left = this.#stride;
    if (nowMs - this.#turnedAtMs < busyMs) return;
    await turnOfTheLoop();
    this.#turnedAtMs = performance.now();
  }

  #fail(error: unknown): Promise<never> {
    this.#end();
    return Promise.reject(error);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#owner.onLoopEnd();
  }
}
