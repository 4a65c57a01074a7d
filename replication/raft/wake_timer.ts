/** One timer that goes off when something that may change its mind wants it to. Thread: its caller's. */
import type { RaftTimers } from './raft_options.ts';

export class WakeTimer {
  readonly #timers: RaftTimers;
  readonly #run: () => void;
  #atMs = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | null = null;

  constructor(timers: RaftTimers, run: () => void) {
    this.#timers = timers;
    this.#run = run;
  }

  /** @param atMs monotonic, Infinity: never */
  wakeAt(atMs: number): void {
    if (atMs === this.#atMs && this.#cancel !== null) return;
    this.stop();
    this.#atMs = atMs;
    if (!Number.isFinite(atMs)) return;
    this.#cancel = this.#timers.setTimer(Math.max(0, atMs - this.#timers.now()), () => {
      this.#cancel = null;
      this.#run();
    });
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }
}
