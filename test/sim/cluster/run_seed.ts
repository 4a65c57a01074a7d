/** Runs simulated clusters by seed, and makes what failed small enough to be looked at. */

import { ClusterWorld } from './cluster_world.ts';
import { type Fault, planFaults } from './fault_plan.ts';
import type { Mutant } from './mutants.ts';
import { type Swarm, swarmOf } from './swarm.ts';

/** How a failing seed is explained. */
export interface Explaining {
  /** Runs that may be spent on making it smaller. */
  readonly triesMax: number;
  /** Of the trace. */
  readonly lines: number;
}

interface Outcome {
  readonly counts: Readonly<Record<string, number>>;
  /** Null: it went well. */
  readonly error: Error | null;
  readonly world: ClusterWorld;
}

/** What made a seed fail, said so that it can be looked into. */
class SeedFailure extends Error {}

function planOf(swarm: Swarm): Fault[] {
  const { seed, faultKinds, faultEveryMs, safetyMs } = swarm;
  return planFaults({ seed, kinds: faultKinds, everyMs: faultEveryMs, untilMs: safetyMs });
}

async function runPlan(
  swarm: Swarm,
  plan: readonly Fault[],
  mutant: Mutant | null,
  isTraced: boolean,
): Promise<Outcome> {
  const world = new ClusterWorld({ swarm, plan, mutant, isTraced });
  const onRejection = (error: unknown): void => world.timeline.fail(error);
  process.on('unhandledRejection', onRejection);
  try {
    await world.run();
    return { counts: world.counts, error: null, world };
  } catch (error) {
    return {
      counts: world.counts,
      error: error instanceof Error ? error : new Error(String(error)),
      world,
    };
  } finally {
    process.off('unhandledRejection', onRejection);
  }
}

/** Runs one seed. Returns what happened how often. @throws SeedFailure, with a trace of as few faults as still fail */
export async function runSeed(
  seed: number,
  mutant: Mutant | null,
  explaining: Explaining,
): Promise<Readonly<Record<string, number>>> {
  const swarm = swarmOf(seed);
  const plan = planOf(swarm);
  const { counts, error } = await runPlan(swarm, plan, mutant, false);
  if (error === null) return counts;
  throw await explain(swarm, plan, mutant, error, explaining);
}

/** Whether the seed fails, without any more ado: for mutants. */
export async function seedFails(seed: number, mutant: Mutant | null): Promise<Error | null> {
  const swarm = swarmOf(seed);
  return (await runPlan(swarm, planOf(swarm), mutant, false)).error;
}

async function explain(
  swarm: Swarm,
  plan: readonly Fault[],
  mutant: Mutant | null,
  first: Error,
  { triesMax, lines }: Explaining,
): Promise<SeedFailure> {
  const smaller = await shrink(swarm, plan, mutant, triesMax);
  const { error, world } = await runPlan(smaller.swarm, smaller.plan, mutant, true);
  const failure = error ?? first;
  const faults = smaller.plan.map(
    ({ kind, atMs, moment, skips }) =>
      `  ${String(atMs).padStart(7)} ms  ${kind}${kind.startsWith('ambush') ? ` when ${moment}, ${skips} later` : ''}`,
  );
  const text = [
    `seed ${swarm.seed}${mutant === null ? '' : ` with mutant "${mutant}"`}: ${first.message}`,
    `replay: node test/sim/cluster.test.ts --seed ${swarm.seed}${mutant === null ? '' : ` --mutant ${mutant.replaceAll(' ', '-')}`}`,
    `swarm: ${JSON.stringify(smaller.swarm)}`,
    `faults left of ${plan.length}:`,
    ...faults,
    `at ${world.timeline.nowMs} ms, after ${world.timeline.events} events: ${failure.message}`,
    ...world.trace.last(lines),
    failure.stack ?? '',
  ];
  const told = new SeedFailure(text.join('\n'), { cause: failure });
  told.stack = '';
  return told;
}

/** Leaves out faults and clients as long as the run fails, whatever with. */
async function shrink(
  swarm: Swarm,
  plan: readonly Fault[],
  mutant: Mutant | null,
  triesMax: number,
): Promise<{ swarm: Swarm; plan: readonly Fault[] }> {
  let left = plan;
  let least = swarm;
  let tries = 0;
  const fails = async (trial: Swarm, faults: readonly Fault[]): Promise<boolean> => {
    tries += 1;
    return tries <= triesMax && (await runPlan(trial, faults, mutant, false)).error !== null;
  };
  for (
    let size = Math.ceil(left.length / 2);
    size >= 1;
    size = size === 1 ? 0 : Math.ceil(size / 2)
  )
    for (let at = 0; at < left.length; ) {
      const without = [...left.slice(0, at), ...left.slice(at + size)];
      if (await fails(least, without)) left = without;
      else at += size;
    }
  for (const change of [
    { hastyProducers: 0 },
    { readers: 1 },
    { members: 0 },
    { producers: 1 },
    { breakChance: 0 },
    { recordsMax: 1 },
  ]) {
    const trial = { ...least, ...change };
    if (await fails(trial, left)) least = trial;
  }
  return { swarm: least, plan: left };
}
