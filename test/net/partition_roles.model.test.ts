/**
 * Seeded histories of a partition's replicas, see `replica_model.ts`, and rules left out on purpose, which must be noticed.
 * `node test/net/partition_roles.model.test.ts SEED` replays one seed.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { InSyncReplicas } from '../../replication/partition/isr.ts';
import { seedsAtLeast } from '../harness/budget.ts';
import { type Mutant, ReplicaModel, type RunCounts } from './replicas/replica_model.ts';

const test = suite('replicas of a partition');

const steps = 700;
const oneSeed = Number(process.argv[2] ?? 0);
const seeds = oneSeed > 0 ? 1 : seedsAtLeast(80);

async function run(seed: number, mutant: Mutant = 'none'): Promise<RunCounts> {
  const model = new ReplicaModel(seed, mutant);
  try {
    await model.run(steps);
  } catch (error) {
    if (mutant === 'none') process.stderr.write(`seed ${seed}\n`);
    throw error;
  }
  return model.counts;
}

test('whatever brokers and connections do, what is committed stays, and all replicas become one', async () => {
  const sum: Record<string, number> = {};
  const first = oneSeed || 1;
  for (let seed = first; seed < first + seeds; seed += 1)
    for (const [name, count] of Object.entries(await run(seed)))
      sum[name] = (sum[name] ?? 0) + count;
  if (oneSeed > 0 || seeds > 80) process.stdout.write(`${JSON.stringify(sum)}\n`);
  if (oneSeed > 0) return;
  for (const [name, count] of Object.entries(sum)) assert(count > 5, `${name}: only ${count}`);
});

/** Runs seeds until one fails; how many that took. */
async function seedsUntilCaught(mutant: Mutant): Promise<number> {
  for (let seed = 1; seed <= 400; seed += 1) {
    try {
      await run(seed, mutant);
    } catch (error) {
      assert(error instanceof assert.AssertionError, String(error));
      return seed;
    }
  }
  return assert.fail(`nobody notices: ${mutant}`);
}

for (const mutant of [
  'fetch before the flush',
  'truncation to the high watermark',
  'divergence not looked for',
] as const)
  test(`mutant: ${mutant}`, async () => {
    await seedsUntilCaught(mutant);
  });

/** With another method in place of the production one. */
async function withMethod<Name extends 'committable' | 'maybeExpand'>(
  name: Name,
  method: InSyncReplicas[Name],
  body: () => Promise<unknown>,
): Promise<void> {
  const original = InSyncReplicas.prototype[name];
  InSyncReplicas.prototype[name] = method;
  try {
    await body();
  } finally {
    InSyncReplicas.prototype[name] = original;
  }
}

test('mutant: high watermark ahead of the ISR', async () => {
  const ownEnd = (end: number): number => end;
  await withMethod('committable', ownEnd, () =>
    seedsUntilCaught('high watermark ahead of the ISR'),
  );
});

test('mutant: expansion before the follower has reached the high watermark', async () => {
  const { maybeExpand } = InSyncReplicas.prototype;
  const early = function (this: InSyncReplicas, id: number): void {
    maybeExpand.call(this, id, 0);
  };
  await withMethod('maybeExpand', early, () => seedsUntilCaught('expansion too early'));
});

test.run();
