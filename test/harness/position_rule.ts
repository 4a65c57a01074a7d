/**
 * What may be said of the positions of a group's members (I6), given what each of them has noted and what was committed
 * when somebody looked. No clock and no broker.
 *
 * - What is committed never goes back.
 * - A member goes on: each record is the one behind its last. One that the group has given up does so for a while with what
 *   it has fetched.
 * - After a rebalance it may begin a partition anew, once: not before what was committed at the last look before that
 *   rebalance, since it asks for its position later, and behind a record that some member has noted, since only what is
 *   noted is committed. If it has gone on since then, what counts is the last look before the record.
 * - A client that is told that its commit failed may try the record in hand again: it cannot know whether the broker has
 *   the commit, and does not ask while it keeps the partition.
 *
 * Every gap is a skipped record: the rule is for topics without compaction and transactions.
 */
import assert from 'node:assert/strict';

/** A line of a member's life: its partitions after a rebalance, a record before its commit, a commit that failed. */
export type MemberEvent =
  | { readonly assigned: readonly number[] }
  | { readonly partition: number; readonly offset: number }
  | { readonly failed: { readonly partition: number; readonly offset: number } };

/** One member's reading of one partition. */
interface Reading {
  /** Null before its first record. */
  last: number | null;
  /** Where it may begin anew, or null once it has done so since the rebalance. */
  floor: number | null;
  /** It has read since the rebalance. */
  goesOn: boolean;
  /** The commit of `last` has failed. */
  isInHand: boolean;
}

export class PositionRule {
  /** By member and partition. */
  readonly #readings = new Map<string, Reading>();
  /** `partition offset` of all records that somebody has noted. */
  readonly #noted = new Set<string>();
  /** What a member of the last look has begun behind, as in `#noted`, with who and where. */
  #behind: (readonly [record: string, where: string])[] = [];
  #committed: ReadonlyMap<number, number> = new Map();

  /**
   * `committed`, by partition, was asked for before `lives` were read: what each member, by name, has noted since the look
   * before. Throws if a position is lost or a record skipped.
   */
  look(
    committed: ReadonlyMap<number, number>,
    lives: ReadonlyMap<string, readonly MemberEvent[]>,
  ): void {
    for (const [partition, before] of this.#committed) {
      const now = committed.get(partition) ?? -1;
      assert(
        now >= before,
        `${now} is committed for partition ${partition}, it was ${before} before`,
      );
    }
    // Lives are read one after the other: what one begins behind another may have noted after it was read.
    const behind = this.#behind;
    this.#behind = [];
    for (const [name, events] of lives) for (const event of events) this.#take(name, event);
    for (const [record, where] of behind)
      assert(this.#noted.has(record), `${where}, and nobody has read the record before`);
    this.#committed = committed;
  }

  #take(name: string, event: MemberEvent): void {
    if ('assigned' in event) {
      for (const partition of event.assigned) {
        const reading = this.#reading(name, partition);
        reading.floor = this.#position(partition);
        reading.goesOn = false;
      }
    } else if ('failed' in event) {
      const { partition, offset } = event.failed;
      const reading = this.#reading(name, partition);
      reading.isInHand = reading.last === offset;
    } else this.#read(name, event.partition, event.offset);
  }

  #read(name: string, partition: number, offset: number): void {
    const reading = this.#reading(name, partition);
    const { last, floor, goesOn, isInHand } = reading;
    reading.last = offset;
    reading.goesOn = true;
    reading.isInHand = false;
    this.#noted.add(`${partition} ${offset}`);
    if ((last !== null && offset === last + 1) || (isInHand && offset === last)) return;
    const where = `${name} reads ${offset} of partition ${partition} after ${last}`;
    assert(floor !== null, `${where}, without a rebalance`);
    const least = goesOn ? Math.max(floor, this.#position(partition)) : floor;
    assert(offset >= least, `${where}, and ${least} was committed`);
    reading.floor = null;
    if (offset > 0) this.#behind.push([`${partition} ${offset - 1}`, where]);
  }

  /** Where a group without a commit begins is the start. */
  #position(partition: number): number {
    return this.#committed.get(partition) ?? 0;
  }

  #reading(name: string, partition: number): Reading {
    const key = `${name} ${partition}`;
    const known = this.#readings.get(key);
    if (known !== undefined) return known;
    const reading = { last: null, floor: null, goesOn: false, isInHand: false };
    this.#readings.set(key, reading);
    return reading;
  }
}
