/**
 * Log lines, as text for people or as JSON for machines.
 *
 * Threads: each makes its own logger from the same `LoggerOptions` (a plain value that can be posted); nothing is
 * shared. A line leaves its thread in one synchronous write before the call returns, so that lines of all threads
 * come out whole and in the order in which they happened, and the last line before a fail-stop is never lost.
 *
 * JSON lines are pino's. Text lines are not: loading pino costs 20 to 30 ms a thread, more than it does for
 * a broker that starts in 300, so it is loaded only where somebody asks for JSON.
 */
import { writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { LineWriter, textLine } from './log_lines.ts';

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
export type LogLevel = (typeof logLevels)[number];

export type LogFormat = 'text' | 'json';

/** Values beside the message. An `Error` under any name is written with its stack. */
export type LogFields = object;

/** As pino's: a message, or values and a message. */
export interface LogMethod {
  (message: string): void;
  (fields: LogFields, message: string): void;
}

export interface LoggerOptions {
  readonly format: LogFormat;
  /** Lines below this level are dropped. */
  readonly level: LogLevel;
  /** Name of the thread, written with each line; left out on main. */
  readonly thread?: string;
  /** Descriptor to write to; standard output if left out. */
  readonly descriptor?: number;
}

export interface Logger {
  /** What this logger was made with: post it to a thread to get the like there. */
  readonly options: LoggerOptions;
  readonly trace: LogMethod;
  readonly debug: LogMethod;
  readonly info: LogMethod;
  readonly warn: LogMethod;
  readonly error: LogMethod;
  readonly fatal: LogMethod;
  isEnabled(level: LogLevel): boolean;
  /**
   * At most one line per `key` in `intervalMs` milliseconds: for what a client or a disk can make happen thousands of
   * times a second. The next line that gets through says how many were left out (`leftOut`).
   */
  logLimited(
    key: string,
    intervalMs: number,
    level: LogLevel,
    fields: LogFields,
    message: string,
  ): void;
}

/** Where lines go: takes a level, message and fields that passed the level check. */
export type LineSink = (level: LogLevel, message: string, fields: LogFields | undefined) => void;

/** Makes the logger of this thread. */
export function createLogger(options: LoggerOptions): Logger {
  const descriptor = options.descriptor ?? 1;
  const writer = new LineWriter((bytes, offset) => writeSync(descriptor, bytes, offset));
  const sink = options.format === 'json' ? jsonSink(options, writer) : textSink(options, writer);
  return new LevelLogger(options, sink, () => performance.now());
}

function textSink(options: LoggerOptions, writer: LineWriter): LineSink {
  return (level, message, fields) =>
    writer.write(textLine(Date.now(), level, options.thread, message, fields));
}

function jsonSink(options: LoggerOptions, writer: LineWriter): LineSink {
  const pino = createRequire(import.meta.url)('pino') as typeof import('pino').pino;
  const logger = pino(
    {
      level: options.level,
      base: options.thread === undefined ? {} : { thread: options.thread },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: pino.stdSerializers.err },
    },
    { write: (line: string) => writer.write(line) },
  );
  return (level, message, fields) => logger[level](fields ?? {}, message);
}

interface Limit {
  untilMs: number;
  leftOut: number;
}

/** Keys remembered by `logLimited`; past this the oldest is forgotten, so that keys from outside cannot fill memory. */
const limitedKeysMax = 1_000;

/** The logger proper: levels and rate limits over any sink. `nowMs` is a monotonic clock. */
export class LevelLogger implements Logger {
  readonly options: LoggerOptions;
  readonly trace: LogMethod;
  readonly debug: LogMethod;
  readonly info: LogMethod;
  readonly warn: LogMethod;
  readonly error: LogMethod;
  readonly fatal: LogMethod;
  readonly #sink: LineSink;
  readonly #nowMs: () => number;
  readonly #limits = new Map<string, Limit>();

  constructor(options: LoggerOptions, sink: LineSink, nowMs: () => number) {
    this.options = options;
    this.#sink = sink;
    this.#nowMs = nowMs;
    this.trace = this.#method('trace');
    this.debug = this.#method('debug');
    this.info = this.#method('info');
    this.warn = this.#method('warn');
    this.error = this.#method('error');
    this.fatal = this.#method('fatal');
  }

  isEnabled(level: LogLevel): boolean {
    return logLevels.indexOf(level) >= logLevels.indexOf(this.options.level);
  }

  logLimited(
    key: string,
    intervalMs: number,
    level: LogLevel,
    fields: LogFields,
    message: string,
  ): void {
    if (!this.isEnabled(level)) return;
    const now = this.#nowMs();
    const limit = this.#limits.get(key);
    if (limit !== undefined && now < limit.untilMs) {
      limit.leftOut += 1;
      return;
    }
    const leftOut = limit?.leftOut ?? 0;
    this.#remember(key, { untilMs: now + intervalMs, leftOut: 0 });
    this.#sink(level, message, leftOut === 0 ? fields : { ...fields, leftOut });
  }

  #remember(key: string, limit: Limit): void {
    this.#limits.delete(key);
    this.#limits.set(key, limit);
    if (this.#limits.size <= limitedKeysMax) return;
    for (const oldest of this.#limits.keys()) {
      this.#limits.delete(oldest);
      return;
    }
  }

  #method(level: LogLevel): LogMethod {
    if (!this.isEnabled(level)) return ignore;
    return (first: LogFields | string, message?: string) => {
      if (typeof first === 'string') this.#sink(level, first, undefined);
      else this.#sink(level, message ?? '', first);
    };
  }
}

function ignore(): void {}
