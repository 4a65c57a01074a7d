/**
 * Runs `RetentionHistory` over seeds, and over broken rules that it must notice. A failure prints its seed; `node
 * test/sim/retention.test.ts SEED` replays that one.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { seedsAtLeast } from '../harness/budget.ts';
import { type Mutation, RetentionHistory } from './retention_history.ts';

const test = suite('retention histories');
const oneSeed = Number(process.argv[2] ?? 0);
const seeds = seedsAtLeast(150);

function runSeed(seed: number, mutation: Mutation = {}): Record<string, number> {
  const history = new RetentionHistory(seed, mutation);
  try {
    history.run();
  } catch (error) {
    throw new Error(`seed ${seed}: ${(error as Error).message}\n${(error as Error).stack}`, {
      cause: error,
    });
  }
  return history.counts;
}

test('whatever the history, deleted stays deleted and the rest stays', () => {
  if (oneSeed > 0) {
    runSeed(oneSeed);
    return;
  }
  const totals: Record<string, number> = {};
  for (let seed = 1; seed <= seeds; seed += 1)
    for (const [what, count] of Object.entries(runSeed(seed)))
      totals[what] = (totals[what] ?? 0) + count;
  for (const what of [
    'appends',
    'retention',
    'deleteRecords',
    'removals',
    'active ones',
    'in place',
    'failed checkpoints',
    'refused',
    'kills',
    'power cuts',
  ])
    assert((totals[what] ?? 0) > seeds / 10, `too little of ${what}: ${JSON.stringify(totals)}`);
});

const mutants: readonly (readonly [string, Mutation, RegExp])[] = [
  ['the log start counts before it is written down', { advancesEarly: true }, /the log began at/],
  ['segments go before producers are safe', { forgetsProducers: true }, /producer|last five/],
  ['unflushed records count as committed', { ignoresHighWatermark: true }, /committed up to/],
  ['a clock that is ahead is believed', { clockAheadMs: 80 }, /ms old/],
];

for (const [name, mutation, noticed] of mutants)
  test(`mutant: ${name}`, () => {
    assert.throws(() => {
      for (let seed = 1; seed <= 100; seed += 1) runSeed(seed, mutation);
    }, noticed);
  });

test.run();
