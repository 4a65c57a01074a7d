/** Waiting, giving up and trying again: back-off with jitter, bounded by time, and ended by an AbortSignal. */

/** Times between attempts: doubling, with a fifth of jitter either way, so that clients do not come back in step. */
export class Backoff {
  readonly #minMs: number;
  readonly #maxMs: number;
  #failures = 0;

  constructor(minMs = 50, maxMs = 1_000) {
    this.#minMs = minMs;
    this.#maxMs = maxMs;
  }

  /** Attempts that have failed since the last `reset`. */
  get failures(): number {
    return this.#failures;
  }

  /** How long to wait before the next attempt, in milliseconds. */
  next(): number {
    const base = Math.min(this.#maxMs, this.#minMs * 2 ** Math.min(this.#failures, 20));
    this.#failures += 1;
    return base * (0.8 + Math.random() * 0.4);
  }

  reset(): void {
    this.#failures = 0;
  }
}

/** Resolves after `ms`; rejects with the signal's reason when that comes first. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return abortable(
    new Promise((resolve) => {
      setTimeout(resolve, Math.max(0, ms));
    }),
    signal,
  );
}

/** What `promise` comes to, or the signal's reason if that comes first; what `promise` stands for goes on. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) {
      abort();
      promise.catch(() => undefined);
      return;
    }
    signal.addEventListener('abort', abort, { once: true });
    promise.then(
      (value) => {
        signal.removeEventListener('abort', abort);
        resolve(value);
      },
      (error: unknown) => {
        signal.removeEventListener('abort', abort);
        reject(error);
      },
    );
  });
}
