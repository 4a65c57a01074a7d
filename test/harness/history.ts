/**
 * What a test asked a broker to keep, and whether it did: the history checker of the scenario tests.
 *
 * Every record carries a unique id. A record is *unknown* from the moment it is sent (the broker may have it or not),
 * *acked* once its acknowledgement is here, *failed* once the broker has said that it took nothing. A record that a
 * consumer saw counts as acked: what was visible once must stay. At the end each partition's records are held against
 * that; see `Violation` for what can be wrong.
 *
 * Producers here keep their order (idempotence, or one request in flight), so that a producer's records in a
 * partition must stand in the order in which they were first sent.
 */
import assert from 'node:assert/strict';

/**
 * lost: acked and not there. moved: acked at another offset than where it is. duplicated: there more than once.
 * reordered: behind a later record of the same producer. phantom: never sent, sent elsewhere, damaged, or refused.
 * gap: offsets do not follow each other.
 */
export type ViolationKind = 'lost' | 'moved' | 'duplicated' | 'reordered' | 'phantom' | 'gap';

export interface Violation {
  readonly kind: ViolationKind;
  readonly text: string;
}

/** A record as a consumer finds it; `id` is null when its bytes are not what any producer sends. */
export interface Observed {
  readonly offset: number;
  readonly id: string | null;
}

interface Entry {
  readonly partition: string;
  readonly producer: string;
  /** Position among the producer's records of the partition. */
  readonly order: number;
  outcome: 'unknown' | 'acked' | 'failed';
  /** -1: not known. */
  offset: number;
  /** When it was acked, on the test's own scale; Infinity before. */
  ackedAt: number;
}

/** More would only hide the first ones. */
const violationsMax = 20;

export class History {
  readonly #entries = new Map<string, Entry>();
  readonly #byPartition = new Map<string, string[]>();
  readonly #orders = new Map<string, number>();

  /** A record is about to be sent for the first time. Ids are unique over all partitions. */
  sent(id: string, partition: string, producer: string): void {
    assert(!this.#entries.has(id), `the id ${id} is used twice`);
    const key = `${producer} ${partition}`;
    const order = this.#orders.get(key) ?? 0;
    this.#orders.set(key, order + 1);
    this.#entries.set(id, {
      partition,
      producer,
      order,
      outcome: 'unknown',
      offset: -1,
      ackedAt: Number.POSITIVE_INFINITY,
    });
    const ids = this.#byPartition.get(partition);
    if (ids === undefined) this.#byPartition.set(partition, [id]);
    else ids.push(id);
  }

  /** The broker acknowledged it at `offset` (-1: it did not say); `at` is a point on the scale of `check`. */
  acked(id: string, offset: number, at = 0): void {
    const entry = this.#entry(id);
    assert(entry.outcome !== 'failed', `${id} was refused and then acknowledged`);
    entry.outcome = 'acked';
    entry.ackedAt = Math.min(entry.ackedAt, at);
    if (entry.offset === -1) entry.offset = offset;
    assert(
      offset === -1 || entry.offset === offset,
      `${id} was acknowledged at ${entry.offset} and at ${offset}`,
    );
  }

  /** The broker said that it did not take it and never will. */
  failed(id: string): void {
    const entry = this.#entry(id);
    assert(entry.outcome === 'unknown', `${id} was ${entry.outcome} and then refused`);
    entry.outcome = 'failed';
  }

  /** A consumer saw it: from now on it must stay where it is. */
  seen(partition: string, { offset, id }: Observed, at = 0): void {
    const entry = id === null ? undefined : this.#entries.get(id);
    assert(
      entry !== undefined && id !== null && entry.partition === partition,
      `${partition}: a consumer saw ${id ?? 'damaged bytes'} at ${offset}, which was not sent there`,
    );
    this.acked(id, offset, at);
  }

  get partitions(): string[] {
    return [...this.#byPartition.keys()];
  }

  count(outcome: Entry['outcome']): number {
    let count = 0;
    for (const entry of this.#entries.values()) if (entry.outcome === outcome) count += 1;
    return count;
  }

  /**
   * Holds all records of a partition, in the order of the log from its start, against the history. With `at`, only
   * what was acked at or before that point must be there.
   */
  check(
    partition: string,
    observed: readonly Observed[],
    at: number = Number.POSITIVE_INFINITY,
  ): Violation[] {
    const violations: Violation[] = [];
    const report = (kind: ViolationKind, text: string): void => {
      if (violations.length < violationsMax)
        violations.push({ kind, text: `${partition}: ${text}` });
    };
    const found = this.#checkObserved(partition, observed, report);
    for (const id of this.#byPartition.get(partition) ?? []) {
      const { outcome, offset, ackedAt } = this.#entry(id);
      if (outcome !== 'acked' || ackedAt > at) continue;
      const there = found.get(id);
      if (there === undefined)
        report('lost', `${id}, acknowledged at ${offset}, is not there (${observed.length} are)`);
      else if (offset !== -1 && there !== offset)
        report('moved', `${id}, acknowledged at ${offset}, is at ${there}`);
    }
    return violations;
  }

  /** Everything that what is there says by itself. Returns the first offset of each id. */
  #checkObserved(
    partition: string,
    observed: readonly Observed[],
    report: (kind: ViolationKind, text: string) => void,
  ): Map<string, number> {
    const found = new Map<string, number>();
    const lastOrders = new Map<string, { order: number; id: string }>();
    let expected = observed[0]?.offset ?? 0;
    for (const { offset, id } of observed) {
      if (offset !== expected) report('gap', `offset ${offset} where ${expected} was due`);
      expected = offset + 1;
      const entry = id === null ? undefined : this.#entries.get(id);
      if (id === null || entry === undefined || entry.partition !== partition) {
        report('phantom', `${id ?? 'damaged bytes'} at ${offset}, which was never sent there`);
        continue;
      }
      if (entry.outcome === 'failed') report('phantom', `${id} at ${offset}, which was refused`);
      const before = found.get(id);
      if (before !== undefined) {
        report('duplicated', `${id} at ${before} and at ${offset}`);
        continue;
      }
      found.set(id, offset);
      const last = lastOrders.get(entry.producer);
      if (last !== undefined && last.order > entry.order)
        report('reordered', `${id} at ${offset} stands behind ${last.id}, which was sent later`);
      else lastOrders.set(entry.producer, { order: entry.order, id });
    }
    return found;
  }

  #entry(id: string): Entry {
    const entry = this.#entries.get(id);
    assert(entry !== undefined, `${id} was never sent`);
    return entry;
  }
}

/** Throws with everything that is wrong, if anything is. */
export function assertNoViolations(violations: readonly Violation[]): void {
  if (violations.length === 0) return;
  const lines = violations.map(({ kind, text }) => `  ${kind}: ${text}`);
  throw new Error(`the log is not what was promised:\n${lines.join('\n')}`);
}

const separator = 0x7c;

/** A value of `length` bytes at least that carries `id` and whose every byte follows from it; it does not compress. */
export function valueFor(id: string, length: number): Uint8Array {
  const prefix = Buffer.from(`${id}|`);
  const value = Buffer.alloc(Math.max(length, prefix.length));
  prefix.copy(value);
  let state = seedOf(id);
  let at = prefix.length;
  for (; at + 4 <= value.length; at += 4) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    value.writeInt32LE(state, at);
  }
  return value;
}

/** The id that a value carries; null when it is not exactly what `valueFor` makes. */
export function idOf(value: Uint8Array | null): string | null {
  const end = value?.indexOf(separator) ?? -1;
  if (value === null || end < 0) return null;
  const id = Buffer.from(value.subarray(0, end)).toString();
  return Buffer.compare(valueFor(id, value.length), value) === 0 ? id : null;
}

/** FNV-1a; never zero, where the generator would stay. */
function seedOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < id.length; at += 1) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  return hash | 1;
}
