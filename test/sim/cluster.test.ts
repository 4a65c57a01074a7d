/**
 * Seeded histories of whole clusters: Raft, controller, partition leaders and followers and their logs, on simulated disks
 * and a simulated network, under the faults of a plan; then everything heals, and the cluster has to come to rest.
 *
 * Rules that are left out on purpose must be noticed. `node test/sim/cluster.test.ts --seed S` replays one seed, with a
 * trace if it fails (`--lines N` of it, after at most `--tries N` runs that leave something out); `--seeds N` runs many,
 * `--first S` from another one on; `--mutant NAME` breaks a rule.
 */
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { suite } from 'uvu';
import { seedsAtLeast } from '../harness/budget.ts';
import { dashed, type Mutant, mutantOf, mutants } from './cluster/mutants.ts';
import { runSeed, seedFails } from './cluster/run_seed.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    first: { type: 'string' },
    mutant: { type: 'string' },
    tries: { type: 'string' },
    lines: { type: 'string' },
  },
});
const mutant = values.mutant === undefined ? null : mutantOf(values.mutant);
const oneSeed = values.seed === undefined ? null : Number(values.seed);
const seeds = values.seeds === undefined ? seedsAtLeast(300) : Number(values.seeds);
const firstSeed = Number(values.first ?? 1);
const explaining = { triesMax: Number(values.tries ?? 60), lines: Number(values.lines ?? 80) };
/** A mutant must be noticed within so many seeds. */
const mutantSeedsMax = 2_000;

const test = suite('histories of clusters');

/** What must have happened for a run of many seeds to have tried anything; numbers are those of the list of faults. */
const wanted = [
  '1 kill',
  '2 power cut of one',
  '2 power cut of all',
  '3 power cut of one while the others are paused',
  '11 leader dies before followers know the high watermark',
  '12 two failovers',
  '13 zombie leaders',
  '14 one-way cuts',
  '15 lone in-sync replica dies',
  '16 slow follower leaves the ISR',
  '17 follower restarts during ISR expansion',
  '18 vote file lost or damaged',
  '21 wall clock jumps',
  '22 produce requests sent again',
  '22 duplicates',
] as const;

function report(totals: Readonly<Record<string, number>>): void {
  for (const what of Object.keys(totals).sort((one, other) => one.localeCompare(other)))
    process.stdout.write(`${String(totals[what]).padStart(10)}  ${what}\n`);
}

async function findMutant(wantedMutant: Mutant, seedsMax: number): Promise<number> {
  for (let seed = firstSeed; seed < firstSeed + seedsMax; seed += 1)
    if ((await seedFails(seed, wantedMutant)) !== null) return seed;
  return -1;
}

if (oneSeed !== null)
  test(`seed ${oneSeed}`, async () => {
    report(await runSeed(oneSeed, mutant, explaining));
  });
else if (mutant !== null)
  test(`notice the mutant ${dashed(mutant)}`, async () => {
    const seed = await findMutant(mutant, seeds);
    assert(seed !== -1, `no seed of ${seeds} has noticed`);
    const error = await seedFails(seed, mutant);
    process.stdout.write(`seed ${seed}: ${error?.message ?? ''}\n`);
  });
else {
  test('keep what was promised, and come to rest', async () => {
    const totals: Record<string, number> = {};
    for (let seed = firstSeed; seed < firstSeed + seeds; seed += 1)
      for (const [what, times] of Object.entries(await runSeed(seed, null, explaining)))
        totals[what] = (totals[what] ?? 0) + times;
    report(totals);
    for (const what of wanted)
      assert((totals[what] ?? 0) >= seeds / 30, `too little of ${what}: ${totals[what] ?? 0}`);
  });

  for (const one of mutants)
    test(`notice the mutant ${dashed(one)}`, async () => {
      assert((await findMutant(one, mutantSeedsMax)) !== -1, 'no seed has noticed');
    });
}

test.run();
