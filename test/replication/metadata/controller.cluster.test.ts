/**
 * Seeded histories of a cluster's controller; see `cluster_history.ts` for what is checked. Rules that are left out on
 * purpose must be noticed. `node test/replication/metadata/controller.cluster.test.ts SEED` replays one seed.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { ControllerRule } from '../../../replication/metadata/partition_control.ts';
import { seedsAtLeast } from '../../harness/budget.ts';
import { ClusterHistory, type Totals } from './cluster_history.ts';

const test = suite('histories of a cluster');
const oneSeed = Number(process.argv[2] ?? 0);
const seeds = oneSeed > 0 ? 1 : seedsAtLeast(100);
const steps = 4_000;

function runSeeds(first: number, count: number, without: readonly ControllerRule[] = []): Totals {
  const totals: Totals = {};
  for (let seed = first; seed < first + count; seed += 1) {
    let history: ClusterHistory;
    try {
      history = new ClusterHistory(seed, without);
      history.run(steps);
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
    }
    for (const [what, count] of Object.entries(history.totals))
      totals[what] = (totals[what] ?? 0) + count;
  }
  return totals;
}

test('no leader lacks what was committed, and epochs fence', () => {
  const totals = runSeeds(oneSeed || 1, seeds);
  if (oneSeed > 0 || seeds > 100) process.stdout.write(`${JSON.stringify(totals)}\n`);
  if (oneSeed > 0) return;
  for (const what of [
    'ISRs changed',
    'ISR error 95',
    'ISR error 107',
    'crashes',
    'lossy crashes',
    'fast restarts',
    'controlled shutdowns',
    'other controllers',
    'duplicate registrations',
    'reassigned',
    'cancelled',
    'unclean elections',
  ])
    assert((totals[what] ?? 0) > seeds / 20, `too little of ${what}: ${JSON.stringify(totals)}`);
});

const rules: readonly ControllerRule[] = [
  'broker epochs',
  'partition epochs',
  'active members',
  'lossy replicas',
  'clean elections',
  'eligible below the minimum',
];
for (const rule of rules)
  test(`notice when a controller has no rule "${rule}"`, () => {
    if (oneSeed > 0) return;
    assert.throws(
      () => runSeeds(1, 2_000, [rule]),
      ({ cause }) => cause instanceof assert.AssertionError,
    );
  });

test.run();
