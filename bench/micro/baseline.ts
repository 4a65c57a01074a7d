/** The stored baseline and the comparison with it. */
import { readFileSync, writeFileSync } from 'node:fs';
import type { Measurement } from './measure.ts';

export interface Baseline {
  /** For people; nothing is computed from it. */
  readonly machine: string;
  readonly benchmarks: Readonly<Record<string, BaselineEntry>>;
}

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

/** @param kept entries of the old baseline that were not measured and stay */
export function writeBaseline(
  path: URL,
  machine: string,
  measurements: readonly Measurement[],
  kept: Readonly<Record<string, BaselineEntry>>,
): void {
  const entries = new Map(Object.entries(kept));
  for (const { name, score, nsPerOp } of measurements) {
    entries.set(name, { score: rounded(score), nsPerOp: rounded(nsPerOp) });
  }
  const sorted = [...entries].sort(([a], [b]) => a.localeCompare(b, 'en'));
  const baseline: Baseline = { machine, benchmarks: Object.fromEntries(sorted) };
  writeFileSync(path, `${JSON.stringify(baseline, null, 2)}\n`);
}

/**
 * @param toleranceOf how many times the baseline's score a benchmark's may be
 * @param complete all benchmarks were measured, so that those of the baseline that are missing are gone
 */
export function compare(
  measurements: readonly Measurement[],
  baseline: Baseline | null,
  toleranceOf: (name: string) => number,
  complete: boolean,
): Comparison[] {
  const entries = baseline?.benchmarks ?? {};
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
