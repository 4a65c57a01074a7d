/**
 * Requests that wait for something: parked under keys (partitions), woken by key, given up at a deadline. Who waits is
 * noted at the keys themselves. Kafka calls it the delayed-operation purgatory.
 *
 * Thread: the shard's own. Concurrency: none; `wake` calls requests synchronously, and those may park, wake or
 * cancel from within. One timer serves all of them: it stands at the earliest deadline, or not at all.
 */
import assert from 'node:assert/strict';
import type { Awaited } from '../../engine/awaited.ts';
import { type Deadlined, DeadlineHeap } from './deadline_heap.ts';

/** What the owner of a parked request provides. Exactly one of: `tryComplete` returned true, `expire`, cancel. */
export interface Parkable {
  /** Called when one of its keys was woken: answer if there is enough now, and return true if so. */
  tryComplete(): boolean;
  /** Called once, when the deadline has come: answer with what there is. It is not parked any more then. */
  expire(): void;
}

/** Clock and timer, so that a test or a simulator can drive them. Milliseconds on a monotonic clock. */
export interface PurgatoryClock {
  nowMs(): number;
  setTimer(callback: () => void, delayMs: number): unknown;
  clearTimer(timer: unknown): void;
}

const monotonicClock: PurgatoryClock = {
  nowMs: () => performance.now(),
  // Without a reference: sockets keep a broker alive, a timer that may fire for nothing must not.
  setTimer: (callback, delayMs) => setTimeout(callback, delayMs).unref(),
  clearTimer: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

/** The longest that a timer of Node can wait; a longer delay would count as none. */
const timerMsMax = 0x7fffffff;

/** The handle of a parked request, for `cancel`. */
export interface Parked<Key> extends Deadlined {
  readonly request: Parkable;
  readonly keys: readonly Key[];
}

export class Purgatory<Key extends Awaited> {
  readonly #clock: PurgatoryClock;
  readonly #deadlines = new DeadlineHeap<Parked<Key>>();
  #timer: unknown = null;
  #timerAtMs = Number.POSITIVE_INFINITY;

  constructor(clock: PurgatoryClock = monotonicClock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#deadlines.size;
  }

  nowMs(): number {
    return this.#clock.nowMs();
  }

  /**
   * Parks a request until one of its keys is woken and it completes, or for `waitMs` milliseconds from now.
   * Check the condition once more after parking only if it can change within this call; on one thread it cannot.
   */
  park(request: Parkable, keys: readonly Key[], waitMs: number): Parked<Key> {
    const deadlineMs = this.#clock.nowMs() + Math.max(0, waitMs);
    const parked: Parked<Key> = { request, keys, deadlineMs, heapIndex: -1 };
    this.#deadlines.push(parked);
    for (const key of keys) {
      const { waiters } = key;
      if (waiters === null) key.waiters = [parked];
      // It may name a key twice.
      else if (waiters.at(-1) !== parked) waiters.push(parked);
    }
    this.#armTimer();
    return parked;
  }

  /**
   * Lets every request parked under the keys try to complete, once each: a look of one that waits for thousands of partitions
   * visits them all, and thousands may change together. Returns how many did.
   */
  wake(keys: readonly Key[]): number {
    if (!keys.some((key) => this.hasWaiters(key))) return 0;
    let completed = 0;
    // A copy: completing may park the client's next request under the same keys, to be looked at another time.
    const found = new Set<Parked<Key>>();
    for (const { waiters } of keys)
      for (const parked of (waiters ?? []) as Parked<Key>[]) found.add(parked);
    for (const parked of found) {
      if (parked.heapIndex < 0 || !parked.request.tryComplete()) continue;
      completed += 1;
      this.cancel(parked);
    }
    return completed;
  }

  /** Whether anybody waits for the key: lets a hot path skip the work of preparing a wake. */
  hasWaiters(key: Key): boolean {
    return key.waiters !== null && key.waiters.length > 0;
  }

  /** Takes a request out without calling it; false if it was not parked any more. */
  cancel(parked: Parked<Key>): boolean {
    if (parked.heapIndex < 0) return false;
    this.#deadlines.remove(parked);
    for (const key of parked.keys) {
      const waiters = key.waiters ?? [];
      const at = waiters.indexOf(parked);
      if (at === waiters.length - 1) waiters.pop();
      else if (at >= 0) waiters.splice(at, 1);
    }
    return true;
  }

  /** Expires everything now, deadline or not: the broker is stopping, and clients get what there is. */
  expireAll(): void {
    for (let left = this.#deadlines.size; left > 0; left -= 1) {
      const parked = this.#deadlines.peek();
      if (parked === null) return;
      this.cancel(parked);
      parked.request.expire();
    }
  }

  #armTimer(): void {
    const first = this.#deadlines.peek();
    assert(first !== null);
    // A timer that stands earlier than needed fires for nothing once, and is then set right: far cheaper
    // than moving it with every long poll that ends early, so `cancel` leaves it where it is.
    if (this.#timer !== null && this.#timerAtMs <= first.deadlineMs) return;
    this.#disarmTimer();
    this.#timerAtMs = first.deadlineMs;
    const leftMs = Math.ceil(first.deadlineMs - this.#clock.nowMs());
    const delayMs = Math.min(timerMsMax, Math.max(0, leftMs));
    this.#timer = this.#clock.setTimer(() => this.#onTimer(), delayMs);
  }

  #disarmTimer(): void {
    if (this.#timer !== null) this.#clock.clearTimer(this.#timer);
    this.#timer = null;
    this.#timerAtMs = Number.POSITIVE_INFINITY;
  }

  #onTimer(): void {
    this.#timer = null;
    this.#timerAtMs = Number.POSITIVE_INFINITY;
    const nowMs = this.#clock.nowMs();
    for (;;) {
      const parked = this.#deadlines.peek();
      if (parked === null || parked.deadlineMs > nowMs) break;
      this.cancel(parked);
      parked.request.expire();
    }
    if (this.#deadlines.size > 0) this.#armTimer();
  }
}
