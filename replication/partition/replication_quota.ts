/**
 * How much of the replication traffic that is throttled a broker may send, or fetch (KIP-73): a rate in bytes per second,
 * measured over the windows that are past and the one of now. It says whether the rate is exceeded; what is recorded was
 * sent all the same. So single answers go over the rate, and the mean over the windows comes down to it.
 *
 * No clock: times are the caller's, monotonic milliseconds.
 */
import assert from 'node:assert/strict';

/** Bytes that all who have a part in the quota have recorded; may be other threads. Grows only. */
export interface ByteCounter {
  readonly total: number;
  add(bytes: number): void;
}

export interface QuotaOptions {
  /** `replication.quota.window.num`: that count, the one of now among them. At least 1. */
  readonly windows: number;
  /** `replication.quota.window.size.seconds`, in milliseconds. */
  readonly windowMs: number;
  readonly counter: ByteCounter;
}

interface Window {
  readonly startMs: number;
  bytes: number;
}

/** A counter of one thread's own. */
export class LocalCounter implements ByteCounter {
  total = 0;

  add(bytes: number): void {
    this.total += bytes;
  }
}

export class ReplicationQuota {
  readonly #options: QuotaOptions;
  /** Oldest first. */
  #windows: Window[] = [];
  /** Of the counter, in the windows or older than those. */
  #seen: number;
  /** Bytes per second. */
  #rate: number = Number.POSITIVE_INFINITY;

  constructor(options: QuotaOptions) {
    assert(options.windows >= 1 && options.windowMs > 0, 'a quota without windows');
    this.#options = options;
    this.#seen = options.counter.total;
  }

  /** @param bytesPerSecond 0: one answer, and the next when that has left the windows */
  limit(bytesPerSecond: number): void {
    this.#rate = bytesPerSecond;
  }

  record(bytes: number, nowMs: number): void {
    this.#options.counter.add(bytes);
    this.observe(nowMs);
  }

  /** Notes when others have recorded what they have; to be called at least once a window. */
  observe(nowMs: number): void {
    const { windows, windowMs, counter } = this.#options;
    const oldestMs = nowMs - windows * windowMs;
    this.#windows = this.#windows.filter(({ startMs }) => startMs > oldestMs);
    const { total } = counter;
    if (total === this.#seen) return;
    let last = this.#windows.at(-1);
    if (last === undefined || nowMs - last.startMs >= windowMs) {
      last = { startMs: nowMs, bytes: 0 };
      this.#windows.push(last);
    }
    last.bytes += total - this.#seen;
    this.#seen = total;
  }

  isExceeded(nowMs: number): boolean {
    return this.freeAtMs(nowMs) > nowMs;
  }

  /** When to look again: now while the rate is not exceeded, else when it will not be if nothing is recorded until then. */
  freeAtMs(nowMs: number): number {
    this.observe(nowMs);
    const { windows, windowMs } = this.#options;
    const bytes = this.#windows.reduce((sum, window) => sum + window.bytes, 0);
    const first = this.#windows[0];
    if (first === undefined) return nowMs;
    // As in Kafka: in the first window the rate is that of the whole window, so that no single answer looks like a flood.
    const elapsedMs = Math.max(windowMs, nowMs - first.startMs);
    if (bytes * 1_000 <= this.#rate * elapsedMs) return nowMs;
    const enoughMs = first.startMs + (bytes * 1_000) / this.#rate;
    return Math.min(enoughMs, first.startMs + windows * windowMs);
  }
}
