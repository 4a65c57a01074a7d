/** What a suite of the micro benchmarks is made of. */
import type { CalibrationName } from './calibration.ts';

export interface Benchmark {
  /** Unique over all suites; the key in the baseline. */
  readonly name: string;
  /** What the machine does alike, so that the quotient of both times holds on another machine. */
  readonly calibration: CalibrationName;
  /** What one run handles, for the table. */
  readonly items?: { readonly count: number; readonly of: string };
  /** One operation. Returns a promise where it waits for something. */
  readonly run: () => void | Promise<void>;
}

export interface Suite {
  readonly benchmarks: readonly Benchmark[];
  /** Releases files and memory. */
  readonly close: () => void | Promise<void>;
}

/**
 * How many times the baseline's quotient is still the same. By measured noise: between runs on two cores with ten
 * other processes on them, quotients of one benchmark differed by up to 1.5 times, and those of flushes by 2.4.
 */
export const tolerances: Readonly<Record<CalibrationName, number>> = {
  script: 1.6,
  native: 1.6,
  threads: 3,
  disk: 3,
  'large flushes': 3,
};

let sink = 0;

/** Takes a result, so that the compiler cannot leave out the work behind it. */
export function consume(result: number): void {
  sink = (sink ^ result) | 0;
}
