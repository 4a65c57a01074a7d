/** Rules of replication that are broken on purpose, one at a time: simulated clusters must notice each. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { noticedBy } from './cluster/histories.ts';
import { dashed, mutants } from './cluster/mutants.ts';

const test = suite('mutants of clusters');
const seedsMax = 2_000;

for (const mutant of mutants)
  test(`notice ${dashed(mutant)}`, async () => {
    assert((await noticedBy(mutant, 1, seedsMax)) !== -1, `no seed of ${seedsMax} has noticed`);
  });

test.run();
