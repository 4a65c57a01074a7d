/**
 * `npm run bench`: the micro benchmarks, compared with the stored baseline.
 *
 *   npm run bench                      all, exit 1 if one is slower than tolerated
 *   npm run bench -- batch walk        those whose name contains one of the words
 *   npm run bench -- --update          stores the median of five processes as the new baseline
 *
 * What is compared is a quotient: the time of an operation over that of a calibration measured beside it in the same
 * run (`micro/calibration.ts`), so that the baseline of one machine serves on another. What seems slower is measured
 * again in two new processes (`micro/fresh_process.ts`), and counts only if it is slower in all three.
 */
import { cpus } from 'node:os';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import {
  type Baseline,
  type BaselineEntry,
  type Comparison,
  compare,
  type Entries,
  entriesFor,
  readBaseline,
  writeBaseline,
} from './micro/baseline.ts';
import { type Benchmark, type Suite, tolerances } from './micro/benchmark.ts';
import { Calibration, median } from './micro/calibration.ts';
import { measureAfresh } from './micro/fresh_process.ts';
import { type Measurement, measureAll } from './micro/measure.ts';
import { formatTable } from './micro/report.ts';
import { openBatchSuite } from './suites/batch.ts';
import { openCleanerSuite } from './suites/cleaner.ts';
import { openCodecSuite } from './suites/codec.ts';
import { openFabricSuite } from './suites/fabric.ts';
import { openLogSuite } from './suites/log.ts';

const roundsDefault = 5;
/** Of which a new baseline is the median. */
const baselineProcesses = 5;
/** That must agree that a benchmark is slower, besides the first. */
const confirmingProcesses = 2;
const script = fileURLToPath(import.meta.url);
const processor = cpus()[0]?.model.trim() ?? 'unknown';

const usage = `usage: npm run bench -- [filter]… [options]
  --update         store the median of ${baselineProcesses} processes as the baseline
  --baseline FILE  compare with, or store in, another file than bench/baseline.json
  --once           measure in this process only
  --rounds N       rounds of which the median counts (${roundsDefault})
`;

interface Options {
  readonly filters: readonly string[];
  readonly update: boolean;
  /** In this process and no other. */
  readonly once: boolean;
  readonly baseline: URL;
  readonly rounds: number;
}

function readOptions(args: string[]): Options | null {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      update: { type: 'boolean', default: false },
      once: { type: 'boolean', default: false },
      baseline: { type: 'string' },
      rounds: { type: 'string', default: String(roundsDefault) },
      help: { type: 'boolean', default: false },
    },
  });
  const rounds = Number(values.rounds);
  if (values.help || !(rounds >= 1)) return null;
  const baseline =
    values.baseline === undefined
      ? new URL('./baseline.json', import.meta.url)
      : pathToFileURL(values.baseline);
  const { update, once } = values;
  return { filters: positionals, update, once, baseline, rounds: Math.ceil(rounds) };
}

function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${text.padEnd(60)}\r`);
}

async function measure(
  benchmarks: readonly Benchmark[],
  calibration: Calibration,
  rounds: number,
): Promise<Measurement[]> {
  const measurements = await measureAll(benchmarks, calibration, rounds, (round) => {
    progress(`${benchmarks.length} benchmarks, round ${round} of ${rounds}`);
  });
  progress('');
  return measurements;
}

/** Measures again what seems slower, and keeps the best of all. */
function confirm(
  measurements: readonly Measurement[],
  comparisons: readonly Comparison[],
  rounds: number,
): readonly Measurement[] {
  const slower = comparisons.filter(({ verdict }) => verdict === 'slower').map((c) => c.name);
  let best = measurements;
  for (let left = confirmingProcesses; left > 0; left -= 1) {
    progress(`measuring again what seems slower: ${slower.length} benchmarks`);
    const measured = measureAfresh(script, slower, rounds);
    best = best.map((first) => ({ ...first, ...better(first, measured[first.name]) }));
  }
  progress('');
  return best;
}

function better(first: BaselineEntry, again: BaselineEntry | undefined): BaselineEntry {
  return again !== undefined && again.score < first.score ? again : first;
}

/** Stores the median of several processes as the baseline, beside what they did not measure. */
function update({ filters, baseline, rounds }: Options): void {
  const runs: Entries[] = [];
  while (runs.length < baselineProcesses) {
    progress(`process ${runs.length + 1} of ${baselineProcesses}`);
    runs.push(measureAfresh(script, filters, rounds));
  }
  progress('');
  const medians = Object.keys(runs[0] ?? {}).map((name): [string, BaselineEntry] => {
    const entries = runs.map((run) => run[name]).filter((entry) => entry !== undefined);
    const score = median(entries.map((entry) => entry.score));
    return [name, { score, nsPerOp: median(entries.map((entry) => entry.nsPerOp)) }];
  });
  writeBaseline(baseline, processor, Object.fromEntries(medians), filters.length === 0);
  console.log('baseline stored');
}

/** @returns the process's exit code */
async function runAll(
  options: Options,
  suites: readonly Suite[],
  calibration: Calibration,
): Promise<number> {
  const { filters, rounds } = options;
  const all = suites.flatMap((suite) => suite.benchmarks);
  const chosen = all.filter(
    ({ name }) => filters.length === 0 || filters.some((filter) => name.includes(filter)),
  );
  if (chosen.length === 0) {
    console.log(
      `no benchmark is called like that; there are\n${all.map((b) => b.name).join('\n')}`,
    );
    return 2;
  }
  const complete = chosen.length === all.length;
  const baseline = readBaseline(options.baseline);
  const entries = entriesFor(baseline, processor);
  const calibrationOf = new Map(all.map((benchmark) => [benchmark.name, benchmark.calibration]));
  const toleranceOf = (name: string): number => tolerances[calibrationOf.get(name) ?? 'script'];
  const measurements = await measure(chosen, calibration, rounds);
  if (options.update) {
    const measured = Object.fromEntries(measurements.map((one) => [one.name, one]));
    writeBaseline(options.baseline, processor, measured, complete);
    return 0;
  }
  let comparisons = compare(measurements, entries, toleranceOf, complete);
  if (!options.once && comparisons.some(({ verdict }) => verdict === 'slower')) {
    const best = confirm(measurements, comparisons, rounds);
    comparisons = compare(best, entries, toleranceOf, complete);
  }
  console.log(formatTable(comparisons, chosen));
  const failed = comparisons.filter(({ verdict }) => verdict === 'slower' || verdict === 'gone');
  console.log(`\n${comparisons.length} benchmarks, ${failed.length} slower than tolerated or gone`);
  const { script: usual, disk } = tolerances;
  console.log(
    `tolerance ${usual}x, with flushes and between threads ${disk}x; baseline ${ofWhom(baseline)}`,
  );
  return failed.length === 0 ? 0 : 1;
}

function ofWhom(baseline: Baseline | null): string {
  const known = Object.keys(baseline?.processors ?? {});
  if (known.includes(processor)) return `of this processor, ${processor}`;
  return known.length === 0 ? 'of none' : `of the slower one of ${known.join(', ')} each time`;
}

const options = readOptions(process.argv.slice(2));
if (options === null) {
  process.stdout.write(usage);
  process.exitCode = 2;
} else if (options.update && !options.once) {
  update(options);
} else {
  const suites = [
    openCodecSuite(),
    openBatchSuite(),
    openLogSuite(),
    openCleanerSuite(),
    await openFabricSuite(),
  ];
  const calibration = new Calibration();
  try {
    process.exitCode = await runAll(options, suites, calibration);
  } finally {
    calibration.close();
    for (const suite of suites) await suite.close();
  }
}
