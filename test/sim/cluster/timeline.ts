/**
 * Virtual time of a simulated cluster: what happens next, one event after another.
 *
 * Production code that waits with promises runs on within the event that fulfilled them: after each event the loop lets
 * all of them run before it goes on, so that the order of everything hangs on the seed alone.
 */
import { EventQueue } from '../event_queue.ts';

export class Timeline {
  readonly #queue = new EventQueue();
  nowMs = 0;
  /** Events that have run. */
  events = 0;
  /** Called after each event, once all is quiet again: looks and changes nothing. */
  afterEvent: () => void = () => {};
  #failure: { readonly error: unknown } | null = null;

  /** Runs the function after so many milliseconds; what was put first comes first. Returns what calls it off. */
  after(delayMs: number, run: () => void): () => void {
    const entry: { isDue: boolean } = { isDue: true };
    this.#queue.add(this.nowMs + delayMs, () => {
      if (!entry.isDue) return;
      this.events += 1;
      run();
    });
    return () => {
      entry.isDue = false;
    };
  }

  /** Something has gone wrong where nobody catches it: `run` throws it. */
  fail(error: unknown): void {
    this.#failure ??= { error };
  }

  /** Goes on until `isDone` says so, or virtual time has come to `untilMs`. */
  async run(isDone: () => boolean, untilMs: number): Promise<void> {
    while (!isDone()) {
      const { nextMs } = this.#queue;
      if (nextMs > untilMs) {
        this.nowMs = Math.max(this.nowMs, untilMs);
        return;
      }
      this.nowMs = Math.max(this.nowMs, nextMs);
      const { events } = this;
      this.#queue.take()();
      if (this.events === events) continue;
      await quiet();
      if (this.#failure !== null) throw this.#failure.error;
      this.afterEvent();
    }
  }
}

/** All promises that are fulfilled have told those who wait. */
function quiet(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
