/**
 * What the connection code needs of a logger; `net/logger.ts` has it all. A flood of bad frames must not become a flood
 * of log lines, so that what strangers can cause at will goes through `logLimited`.
 */

export interface ServerLog {
  debug(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** At most one line per `key` in `intervalMs`. See `Logger.logLimited`. */
  logLimited(key: string, intervalMs: number, level: 'warn', fields: object, message: string): void;
}

/** Between two lines of one kind that strangers cause. */
export const strangersIntervalMs = 1_000;
