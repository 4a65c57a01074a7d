/**
 * What every scenario test takes from its command line, and what it says when it fails: the seed, the command that
 * repeats the run, and the data directory, which then stays.
 */
import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { inspect, parseArgs } from 'node:util';
import { type Random, splitMix } from './split_mix.ts';

export interface ScenarioOptions {
  readonly seed: number;
  /** Rounds, cuts, or whatever the test has many of; null: as many as it does by default. */
  readonly rounds: number | null;
  /** The one kind of rounds that the test does; null: all of them. */
  readonly only?: string | null;
}

export function scenarioOptions(): ScenarioOptions {
  const { values } = parseArgs({
    options: { seed: { type: 'string' }, rounds: { type: 'string' }, only: { type: 'string' } },
    strict: true,
  });
  const seed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed);
  const rounds = values.rounds === undefined ? null : Number(values.rounds);
  for (const value of [seed, rounds ?? 0])
    if (!Number.isSafeInteger(value) || value < 0)
      throw new Error('usage: node test/scenario/<name>.test.ts [--seed N] [--rounds N]');
  return { seed, rounds, only: values.only ?? null };
}

export interface ScenarioRun {
  /** Removed after a run that passes. */
  readonly dataDir: string;
  readonly random: Random;
  readonly seed: number;
}

/**
 * Runs `body` with a directory and a seeded generator. When it throws, the directory stays and the error says how to
 * repeat the run; the timing of processes is not part of the seed, so a repetition may need several tries.
 */
export async function runScenario(
  options: ScenarioOptions,
  body: (run: ScenarioRun) => Promise<void>,
): Promise<void> {
  const { seed, rounds, only } = options;
  const dataDir = mkdtempSync(join(tmpdir(), 'millrace-scenario-'));
  try {
    await body({ dataDir, random: splitMix(seed), seed });
  } catch (error) {
    const file = relative(process.cwd(), process.argv[1] ?? '');
    const more = `${rounds === null ? '' : ` --rounds ${rounds}`}${typeof only !== 'string' ? '' : ` --only '${only}'`}`;
    const repeat = `seed ${seed}; again: node ${file} --seed ${seed}${more}\ndata: ${dataDir}`;
    // The reporter prints one stack and no causes.
    console.error(`\n${inspect(error)}\n${repeat}`);
    throw new Error(repeat, { cause: error });
  }
  rmSync(dataDir, { recursive: true, force: true });
}
