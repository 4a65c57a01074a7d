/** Runs many seeds of simulated clusters, and says what has happened in them. */
import assert from 'node:assert/strict';
import type { Mutant } from './mutants.ts';
import { type Explaining, runSeed, seedFails } from './run_seed.ts';

export type Counts = Readonly<Record<string, number>>;

/** What must have happened for a run of many seeds to have tried anything; numbers are those of the list of faults. */
const wanted = [
  '1 kill',
  '2 power cut of one',
  '2 power cut of all',
  '3 power cut of one while the others are paused',
  '5 bit rot',
  '11 leader dies before followers know the high watermark',
  '12 logs cut where histories part',
  '12 two failovers',
  '13 zombie leaders',
  '14 isolated nodes',
  '14 one-way cuts',
  '15 lone in-sync replica dies',
  '16 slow follower leaves the ISR',
  '17 follower restarts during ISR expansion',
  '18 vote file lost or damaged',
  '20 crash during a snapshot',
  '20 snapshots installed',
  '21 wall clock jumps',
  '22 clogs of clients',
  '22 duplicates',
  '22 produce requests sent again',
  '27 group coordinator dies',
  '27 group: commits',
] as const;

/** @throws an error that names the first seed that fails, and shows how */
export async function runHistories(
  first: number,
  count: number,
  explaining: Explaining,
): Promise<Counts> {
  const totals: Record<string, number> = {};
  for (let seed = first; seed < first + count; seed += 1)
    for (const [what, times] of Object.entries(await runSeed(seed, null, explaining)))
      totals[what] = (totals[what] ?? 0) + times;
  return totals;
}

/** Every kind of fault has occurred, most of them often. */
export function checkEnough(totals: Counts, seeds: number): void {
  for (const what of wanted)
    assert((totals[what] ?? 0) > seeds / 100, `too little of ${what}: ${totals[what] ?? 0}`);
}

export function report(totals: Counts): void {
  for (const what of Object.keys(totals).sort((one, other) => one.localeCompare(other)))
    process.stdout.write(`${String(totals[what]).padStart(10)}  ${what}\n`);
}

/** The first of the seeds that notices the mutant, -1 if none does. */
export async function noticedBy(mutant: Mutant, first: number, seedsMax: number): Promise<number> {
  for (let seed = first; seed < first + seedsMax; seed += 1)
    if ((await seedFails(seed, mutant)) !== null) return seed;
  return -1;
}
