/** What the command line hands to `millrace start`, and what the process hands back. */
import type { LogFormat, LogLevel } from '../net/logger.ts';

/** Exit codes: `--help` lists them for people and service managers. */
export const ExitCode = {
  stopped: 0,
  failed: 1,
  usage: 2,
  cannotStart: 3,
} as const;

export interface StartOptions {
  readonly config?: string;
  readonly set: readonly string[];
  readonly logFormat: LogFormat;
  readonly logLevel: LogLevel;
}
