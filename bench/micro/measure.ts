/** Measures benchmarks in rounds, each beside a calibration of its own, since a machine's speed changes meanwhile. */
import { Bench } from 'tinybench';
import type { Benchmark } from './benchmark.ts';
import { type Calibration, median, undisturbed } from './calibration.ts';

export interface Measurement {
  readonly name: string;
  /** Median over the rounds; of a round, what a sample takes that nothing disturbs (`undisturbed`). */
  readonly nsPerOp: number;
  /** Time of an operation over that of the calibration next to it: median over the rounds. */
  readonly score: number;
  /** Largest over smallest score of the rounds. */
  readonly spread: number;
}

/** What a sample is made to take at least: below, the clock's own cost would count. */
const sampleNsMin = 50_000;
const roundMs = 80;
const samplesMin = 10;

/** Measures all benchmarks, round by round, so that a disturbance does not hit all rounds of one. */
export async function measureAll(
  benchmarks: readonly Benchmark[],
  calibration: Calibration,
  rounds: number,
  onRound: (round: number) => void,
): Promise<Measurement[]> {
  const runs = benchmarks.map((benchmark) => ({ benchmark, batch: 0, ns: [], scores: [] }) as Run);
  for (const run of runs) run.batch = await batchSize(run.benchmark);
  for (let round = 1; round <= rounds; round += 1) {
    onRound(round);
    for (const run of runs) await measureRound(run, calibration);
  }
  return runs.map(({ benchmark, ns, scores }) => ({
    name: benchmark.name,
    nsPerOp: median(ns),
    score: median(scores),
    spread: Math.max(...scores) / Math.min(...scores),
  }));
}

interface Run {
  readonly benchmark: Benchmark;
  /** Operations a sample. */
  batch: number;
  readonly ns: number[];
  readonly scores: number[];
}

async function measureRound(run: Run, calibration: Calibration): Promise<void> {
  const { benchmark, batch } = run;
  const before = calibration.measure(benchmark.calibration);
  const bench = new Bench({
    time: roundMs,
    iterations: samplesMin,
    warmupTime: 10,
    retainSamples: true,
    throws: true,
  });
  const { run: operation } = benchmark;
  bench.add(
    benchmark.name,
    batch === 1
      ? operation
      : () => {
          for (let k = 0; k < batch; k += 1) operation() as undefined;
        },
  );
  const [task] = await bench.run();
  const after = calibration.measure(benchmark.calibration);
  const result = task?.result;
  if (result?.state !== 'completed') throw new Error(`${benchmark.name}: ${result?.state}`);
  const ns = (undisturbed(result.latency.samples ?? []) * 1e6) / batch;
  run.ns.push(ns);
  run.scores.push(ns / ((before + after) / 2));
}

/** How many operations fill a sample; also the first warm-up. Operations that wait are measured one by one. */
async function batchSize(benchmark: Benchmark): Promise<number> {
  for (let count = 1; ; count *= 2) {
    const start = performance.now();
    for (let k = 0; k < count; k += 1) {
      const pending = benchmark.run();
      if (pending instanceof Promise) {
        await pending;
        return 1;
      }
    }
    const elapsedNs = (performance.now() - start) * 1e6;
    // The first runs are slow, before the code is compiled: go on until the number says something.
    if (elapsedNs > sampleNsMin * 20)
      return Math.max(1, Math.ceil((count * sampleNsMin) / elapsedNs));
  }
}
