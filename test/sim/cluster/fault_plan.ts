/**
 * What is going to go wrong in a run: drawn from the seed before it begins, so that a failing run can be tried again
 * with less of it.
 *
 * A fault strikes at a time of the clock, or in ambush: when something happens for the n-th time that is delicate. Whom
 * it strikes is said by role, as it is at that moment.
 */
import { SeededRandom } from '../seeded_random.ts';

export const faultKinds = [
  'kill',
  'kill controller',
  'power cut',
  'power cut of all',
  'power cut beside paused nodes',
  'pause',
  'pause leader',
  'one-way cut',
  'isolation',
  'clog of clients',
  'slow follower',
  'lagging replica',
  'lone replica',
  'two failovers',
  'clock jump',
  'vote file lost',
  'bit rot',
  'ambush',
  'ambush of a joining follower',
] as const;

export type FaultKind = (typeof faultKinds)[number];

/** Delicate moments, as the hosts of the cores name them. */
const moments = [
  /** A batch was appended and not yet flushed. */
  'appended',
  /** A flush has ended and its answers are not out yet. */
  'flushed',
  /** An answer to acks=all leaves. */
  'acknowledged',
  /** A follower has appended and not yet flushed. */
  'replicated',
  /** A leader asks for a larger ISR. */
  'expanding',
  /** A leader asks for a smaller ISR. */
  'shrinking',
  /** A voter has promised its vote to itself or another. */
  'voted',
  /** A node has become the controller. */
  'elected',
  /** A partition has got its leader on a node. */
  'leading',
  /** A follower has cut its log. */
  'truncated',
  /** A node has been sent a piece of a snapshot of the metadata, has written one, or puts one in the place of its log. */
  'snapshot',
] as const;

export type Moment = (typeof moments)[number];

export interface Fault {
  readonly kind: FaultKind;
  readonly atMs: number;
  /** For who and how long; a run without other faults strikes the same. */
  readonly seed: number;
  /** An ambush waits for this from `atMs` on, and lets so many pass. */
  readonly moment: Moment;
  readonly skips: number;
}

export interface PlanOptions {
  readonly seed: number;
  readonly kinds: readonly FaultKind[];
  readonly everyMs: number;
  readonly untilMs: number;
}

export function planFaults({ seed, kinds, everyMs, untilMs }: PlanOptions): Fault[] {
  const random = new SeededRandom(seed * 8 + 2);
  const faults: Fault[] = [];
  if (kinds.length === 0) return faults;
  let atMs = 1_000;
  for (;;) {
    atMs += Math.round(-Math.log(1 - random.next()) * everyMs);
    if (atMs >= untilMs) return faults;
    const kind = kinds[random.below(kinds.length)] as FaultKind;
    const seed = random.below(1 << 30);
    const moment = moments[random.below(moments.length)] as Moment;
    const skips = random.below(20);
    const isJoin = kind === 'ambush of a joining follower';
    faults.push(
      isJoin
        ? { kind, atMs, seed, moment: 'expanding', skips: skips % 2 }
        : { kind, atMs, seed, moment, skips },
    );
  }
}
