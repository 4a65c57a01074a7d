/**
 * Seeded histories of whole clusters: Raft, controller, partition leaders and followers, their logs and the coordinators of
 * groups, on simulated disks and a simulated network, under the faults of a plan; then everything heals, and the cluster
 * has to come to rest with all that it has promised.
 *
 * `node test/sim/cluster.test.ts --seed S` replays one seed, with a trace if it fails (`--lines N` of it, after at most
 * `--tries N` runs that leave something out); `--seeds N` runs many, `--first S` from another one on; `--mutant NAME` breaks
 * a rule (`cluster_mutants.long.test.ts` has them all).
 */
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { suite } from 'uvu';
import { checkEnough, noticedBy, report, runHistories } from './cluster/histories.ts';
import { dashed, mutantOf } from './cluster/mutants.ts';
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
const seeds = Number(values.seeds ?? 40);
const first = Number(values.first ?? 1);
const explaining = { triesMax: Number(values.tries ?? 60), lines: Number(values.lines ?? 80) };

/**
 * Of seeds that have failed, those that others do not stand for.
 *
 * 5118, 10229: the power of all fails while a broker is down whose log is damaged. It was the last member of an ISR that
 * shrank only because the others came back before it.
 */
const found = values.seeds === undefined ? [5118, 10_229] : [];

const test = suite('histories of clusters');

if (values.seed !== undefined)
  test(`seed ${values.seed}`, async () => {
    report(await runSeed(Number(values.seed), mutant, explaining));
  });
else if (mutant !== null)
  test(`notice the mutant ${dashed(mutant)}`, async () => {
    const seed = await noticedBy(mutant, first, seeds);
    assert(seed !== -1, `no seed of ${seeds} has noticed`);
    const error = await seedFails(seed, mutant);
    process.stdout.write(`seed ${seed}: ${error?.message ?? ''}\n`);
  });
else {
  for (const seed of found)
    test(`seed ${seed} again`, async () => {
      await runSeed(seed, null, explaining);
    });
  test('keep what was promised, and come to rest', async () => {
    const totals = await runHistories(first, seeds, explaining);
    if (seeds >= 300) checkEnough(totals, seeds);
    if (values.seeds !== undefined || seeds > 40) report(totals);
  });
}

test.run();
