/** Which voter sets a metadata log names, and where: the newest counts, committed or not (KIP-853). */
import assert from 'node:assert/strict';
import type { Voter } from '../metadata/records.ts';

interface VoterSet {
  readonly offset: number;
  readonly voters: readonly Voter[];
}

export class VoterSets {
  /** Invariant: in the order of `offset`. */
  readonly #sets: VoterSet[] = [];

  get newest(): VoterSet | null {
    return this.#sets.at(-1) ?? null;
  }

  /** What counts for a log that ends at `endOffset`. */
  before(endOffset: number): readonly Voter[] | null {
    return this.#sets.findLast(({ offset }) => offset < endOffset)?.voters ?? null;
  }

  note(offset: number, voters: readonly Voter[]): void {
    this.#sets.push({ offset, voters });
  }

  /** Those of the configuration, for a log that names none. */
  assume(voters: readonly Voter[]): void {
    assert(this.#sets.length === 0, 'the metadata log names its voters');
    this.note(-1, voters);
  }

  forgetFrom(endOffset: number): void {
    while ((this.newest?.offset ?? -1) >= endOffset) this.#sets.pop();
  }

  clear(): void {
    this.#sets.length = 0;
  }
}
