/**
 * `npm run bench`: the micro benchmarks, compared with the stored baseline.
 *
 *   npm run bench                      all, exit 1 if one is slower than tolerated
 *   npm run bench -- batch walk        those whose name contains one of the words
 *   npm run bench -- --update          stores what was measured as the new baseline
 *
 * What is compared is a quotient: the time of an operation over that of a calibration measured beside it in the same
 * run (`micro/calibration.ts`), so that the baseline of one machine serves on another. What seems slower is measured
 * once more, in twice the rounds, and counts only if it is slower again.
 */
import { cpus } from 'node:os';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { type Comparison, compare, readBaseline, writeBaseline } from './micro/baseline.ts';
import { type Benchmark, type Suite, tolerances } from './micro/benchmark.ts';
import { Calibration } from './micro/calibration.ts';
import { type Measurement, measureAll } from './micro/measure.ts';
import { formatTable } from './micro/report.ts';
import { openBatchSuite } from './suites/batch.ts';
import { openCleanerSuite } from './suites/cleaner.ts';
import { openCodecSuite } from './suites/codec.ts';
import { openFabricSuite } from './suites/fabric.ts';
import { openLogSuite } from './suites/log.ts';

const roundsDefault = 5;

const usage = `usage: npm run bench -- [filter]… [options]
  --update         store what was measured as the baseline
  --baseline FILE  compare with, or store in, another file than bench/baseline.json
  --rounds N       rounds of which the median counts (${roundsDefault})
`;

interface Options {
  readonly filters: readonly string[];
  readonly update: boolean;
  readonly baseline: URL;
  readonly rounds: number;
}

function readOptions(args: string[]): Options | null {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      update: { type: 'boolean', default: false },
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
  const { update } = values;
  return { filters: positionals, update, baseline, rounds: Math.ceil(rounds) };
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

/** Measures again what seems slower, and keeps the better of both. */
async function confirm(
  measurements: readonly Measurement[],
  comparisons: readonly Comparison[],
  benchmarks: readonly Benchmark[],
  calibration: Calibration,
  rounds: number,
): Promise<Measurement[]> {
  const slower = new Set(comparisons.filter((c) => c.verdict === 'slower').map((c) => c.name));
  const suspects = benchmarks.filter(({ name }) => slower.has(name));
  const second = new Map<string, Measurement>();
  for (const again of await measure(suspects, calibration, rounds * 2))
    second.set(again.name, again);
  return measurements.map((first) => {
    const again = second.get(first.name);
    return again !== undefined && again.score < first.score ? again : first;
  });
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
  const calibrationOf = new Map(all.map((benchmark) => [benchmark.name, benchmark.calibration]));
  const toleranceOf = (name: string): number => tolerances[calibrationOf.get(name) ?? 'script'];
  let measurements = await measure(chosen, calibration, rounds);
  let comparisons = compare(measurements, baseline, toleranceOf, complete);
  if (!options.update && comparisons.some(({ verdict }) => verdict === 'slower')) {
    measurements = await confirm(measurements, comparisons, chosen, calibration, rounds);
    comparisons = compare(measurements, baseline, toleranceOf, complete);
  }
  console.log(formatTable(comparisons, chosen));
  if (options.update) {
    const machine = `${cpus()[0]?.model.trim()}, Node ${process.versions.node}`;
    writeBaseline(
      options.baseline,
      machine,
      measurements,
      complete ? {} : (baseline?.benchmarks ?? {}),
    );
    console.log('\nbaseline stored');
    return 0;
  }
  const failed = comparisons.filter(({ verdict }) => verdict === 'slower' || verdict === 'gone');
  console.log(`\n${comparisons.length} benchmarks, ${failed.length} slower than tolerated or gone`);
  const { script, disk } = tolerances;
  console.log(
    `tolerance ${script}x, with flushes ${disk}x; baseline of ${baseline?.machine ?? 'none'}`,
  );
  return failed.length === 0 ? 0 : 1;
}

const options = readOptions(process.argv.slice(2));
if (options === null) {
  process.stdout.write(usage);
  process.exitCode = 2;
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
