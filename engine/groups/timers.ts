/**
 * The time-outs of all groups of a coordinator: a heap of deadlines that costs nothing when a deadline moves later.
 *
 * A heartbeat only overwrites its timer's deadline. The entry in the heap stays where it is and is put back by what is
 * left when it comes up, so that thousands of heartbeats between two expiries are thousands of assignments.
 *
 * Thread and concurrency: as `GroupCoordinator`, through whose runtime alone it is used.
 */

/** One time-out. It fires once for each time that it is set. */
export interface Timer {
  /** Monotonic milliseconds; infinite while it is not running. Set by `TimerQueue` alone. */
  deadlineMs: number;
  /** The earliest entry of the heap that is this timer's; infinite for none. Invariant: <= `deadlineMs`. */
  queuedMs: number;
  readonly fire: () => void;
}

interface Entry {
  readonly atMs: number;
  readonly timer: Timer;
}

export function newTimer(fire: () => void): Timer {
  return { deadlineMs: Infinity, queuedMs: Infinity, fire };
}

export class TimerQueue {
  readonly #heap: Entry[] = [];

  /** The earliest deadline, infinite if no timer runs. */
  get nextDeadlineMs(): number {
    this.#settleTop();
    return this.#heap[0]?.atMs ?? Infinity;
  }

  set(timer: Timer, deadlineMs: number): void {
    timer.deadlineMs = deadlineMs;
    if (deadlineMs >= timer.queuedMs) return;
    timer.queuedMs = deadlineMs;
    this.#push({ atMs: deadlineMs, timer });
  }

  clear(timer: Timer): void {
    timer.deadlineMs = Infinity;
  }

  /** The timer that is due the longest, no longer running; null if none is due. */
  takeDue(nowMs: number): Timer | null {
    if (this.nextDeadlineMs > nowMs) return null;
    const { timer } = this.#pop();
    timer.deadlineMs = Infinity;
    timer.queuedMs = Infinity;
    return timer;
  }

  /** Makes the top of the heap tell the truth. */
  #settleTop(): void {
    for (let top = this.#heap[0]; top !== undefined; top = this.#heap[0]) {
      const { atMs, timer } = top;
      if (atMs === timer.queuedMs && atMs === timer.deadlineMs) return;
      this.#pop();
      if (atMs !== timer.queuedMs) continue;
      timer.queuedMs = Infinity;
      if (timer.deadlineMs < Infinity) this.set(timer, timer.deadlineMs);
    }
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as Entry;
      if (above.atMs <= entry.atMs) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): Entry {
    const heap = this.#heap;
    const top = heap[0] as Entry;
    const last = heap.pop() as Entry;
    const length = heap.length;
    if (length === 0) return top;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= length) break;
      if (child + 1 < length && (heap[child + 1] as Entry).atMs < (heap[child] as Entry).atMs)
        child += 1;
      const below = heap[child] as Entry;
      if (below.atMs >= last.atMs) break;
      heap[at] = below;
      at = child;
    }
    heap[at] = last;
    return top;
  }
}
