/**
 * The stored baseline and the comparison with it. Processors differ by more than any calibration evens out (one inflates
 * zstd at twice the speed of another), so there are entries for each processor that was measured.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import type { Measurement } from './measure.ts';

export interface Baseline {
  /** By the processor's name, as `os.cpus()` has it. */
  readonly processors: Readonly<Record<string, Entries>>;
}

/** By the benchmark's name. */
export type Entries = Readonly<Record<string, BaselineEntry>>;

export interface BaselineEntry {
  /** See `Measurement.score`: this is what is compared. */
  readonly score: number;
  /** As it was on that machine; for people. */
  readonly nsPerOp: number;
}

/**
 * `gone`: in the baseline, but no benchmark of that name any more. `faster` than tolerated is no failure; it says that
 * the baseline no longer guards what has been reached.
 */
export type Verdict = 'same' | 'faster' | 'slower' | 'new' | 'gone';

export interface Comparison {
  readonly name: string;
  readonly measurement: Measurement | null;
  /** Score over the baseline's, null where there is none. Above 1 is slower. */
  readonly ratio: number | null;
  readonly verdict: Verdict;
}

/** Null if the file does not exist. Throws on one that is not a baseline. */
export function readBaseline(path: URL): Baseline | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
  return JSON.parse(text) as Baseline;
}

/** What counts on a processor: its own entries; where it has none, the slowest of the others'. */
export function entriesFor(baseline: Baseline | null, processor: string): Entries {
  const entries = new Map<string, BaselineEntry>();
  for (const others of Object.values(baseline?.processors ?? {}))
    for (const [name, entry] of Object.entries(others))
      if (entry.score > (entries.get(name)?.score ?? 0)) entries.set(name, entry);
  return { ...Object.fromEntries(entries), ...baseline?.processors[processor] };
}

/** Stores what was measured for the processor. @param complete all was measured: what else it had is gone */
export function writeBaseline(
  path: URL,
  processor: string,
  measured: Entries,
  complete: boolean,
): void {
  const before = readBaseline(path)?.processors ?? {};
  const entries = new Map(Object.entries(complete ? {} : (before[processor] ?? {})));
  for (const [name, { score, nsPerOp }] of Object.entries(measured))
    entries.set(name, { score: rounded(score), nsPerOp: rounded(nsPerOp) });
  const sorted = [...entries].sort(([a], [b]) => a.localeCompare(b, 'en'));
  const processors = { ...before, [processor]: Object.fromEntries(sorted) };
  writeFileSync(path, `${JSON.stringify({ processors }, null, 2)}\n`);
}

/**
 * @param toleranceOf how many times the baseline's score a benchmark's may be
 * @param complete all benchmarks were measured, so that those of the baseline that are missing are gone
 */
export function compare(
  measurements: readonly Measurement[],
  entries: Entries,
  toleranceOf: (name: string) => number,
  complete: boolean,
): Comparison[] {
  const comparisons: Comparison[] = measurements.map((measurement) => {
    const { name, score } = measurement;
    const entry = entries[name];
    if (entry === undefined) return { name, measurement, ratio: null, verdict: 'new' };
    const ratio = score / entry.score;
    return { name, measurement, ratio, verdict: verdictOf(ratio, toleranceOf(name)) };
  });
  if (!complete) return comparisons;
  const measured = new Set(measurements.map(({ name }) => name));
  for (const name of Object.keys(entries)) {
    if (measured.has(name)) continue;
    comparisons.push({ name, measurement: null, ratio: null, verdict: 'gone' });
  }
  return comparisons;
}

function verdictOf(ratio: number, tolerance: number): Verdict {
  if (ratio > tolerance) return 'slower';
  return ratio < 1 / tolerance ? 'faster' : 'same';
}

/** Four digits: more would be noise in the diff. */
function rounded(value: number): number {
  return Number(value.toPrecision(4));
}
