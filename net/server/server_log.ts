/**
 * What the connection code needs of a logger (pino has this shape), and a limiter for lines that strangers can
 * cause at will: a flood of bad frames must not become a flood of log lines.
 */

export interface ServerLog {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** At most one line a kind and interval; the next line says how many were left out. Thread: its owner's only. */
export class LimitedLog {
  readonly #log: ServerLog;
  readonly #intervalMs: number;
  readonly #nowMs: () => number;
  readonly #kinds = new Map<string, { lastMs: number; suppressed: number }>();

  constructor(
    log: ServerLog,
    intervalMs: number = 1_000,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#log = log;
    this.#intervalMs = intervalMs;
    this.#nowMs = nowMs;
  }

  /** `kind` groups lines for the limit; keep it to constants, since each kind is remembered for good. */
  warn(kind: string, fields: object, message: string): void {
    const nowMs = this.#nowMs();
    const seen = this.#kinds.get(kind);
    if (seen === undefined) {
      this.#kinds.set(kind, { lastMs: nowMs, suppressed: 0 });
      this.#log.warn(fields, message);
      return;
    }
    if (nowMs - seen.lastMs < this.#intervalMs) {
      seen.suppressed += 1;
      return;
    }
    const suppressed = seen.suppressed;
    seen.lastMs = nowMs;
    seen.suppressed = 0;
    this.#log.warn(suppressed > 0 ? { ...fields, suppressed } : fields, message);
  }
}
