/**
 * What was sent to a compacted partition, and whether what a consumer read from the start of it can be true: every
 * record is one that was sent to its offset, offsets rise, and of each key the latest record is there that was
 * acknowledged before the reading began, or a later one.
 */
import assert from 'node:assert/strict';

export interface KeyedRecord {
  readonly key: string;
  /** Null: a tombstone. Values are unique. */
  readonly value: string | null;
}

export class KeyedHistory {
  /** Acknowledged records, by offset. */
  readonly #acknowledged = new Map<number, KeyedRecord>();
  readonly #latest = new Map<string, number>();
  /** Sent, numbered: they may be there, at whatever offset, as long as it is not acknowledged. */
  readonly #sent = new Map<string, number>();
  /** Number of the tombstone of each key that was sent last, acknowledged or not. */
  readonly #tombstones = new Map<string, number>();
  #count = 0;

  get size(): number {
    return this.#acknowledged.size;
  }

  /** Keys whose latest record is no tombstone. */
  get livingKeys(): number {
    let living = 0;
    for (const offset of this.#latest.values())
      if (this.#acknowledged.get(offset)?.value !== null) living += 1;
    return living;
  }

  acknowledged(baseOffset: number, records: readonly KeyedRecord[]): void {
    for (const [at, record] of records.entries()) {
      this.#acknowledged.set(baseOffset + at, record);
      this.#latest.set(record.key, baseOffset + at);
    }
  }

  /** Before it is sent: readers may be faster than the acknowledgement. */
  sent(records: readonly KeyedRecord[]): void {
    for (const { key, value } of records) {
      this.#count += 1;
      this.#sent.set(`${key}=${value}`, this.#count);
      if (value === null) this.#tombstones.set(key, this.#count);
    }
  }

  /** Takes note of what must be found by a reading that begins now. */
  startReading(): KeyedReading {
    return new KeyedReading(
      this.#acknowledged,
      this.#sent,
      this.#tombstones,
      new Map(this.#latest),
    );
  }
}

class KeyedReading {
  readonly #acknowledged: ReadonlyMap<number, KeyedRecord>;
  readonly #sent: ReadonlyMap<string, number>;
  readonly #tombstones: ReadonlyMap<string, number>;
  /** Offset of the latest record of each key when the reading began. */
  readonly #due: ReadonlyMap<string, number>;
  readonly #found = new Map<string, number>();
  #last = -1;
  count = 0;

  constructor(
    acknowledged: ReadonlyMap<number, KeyedRecord>,
    sentBefore: ReadonlyMap<string, number>,
    tombstones: ReadonlyMap<string, number>,
    due: ReadonlyMap<string, number>,
  ) {
    this.#acknowledged = acknowledged;
    this.#sent = sentBefore;
    this.#tombstones = tombstones;
    this.#due = due;
  }

  see(offset: number, { key, value }: KeyedRecord): void {
    assert(offset > this.#last, `${offset} comes after ${this.#last}`);
    this.#last = offset;
    this.count += 1;
    const sent = this.#acknowledged.get(offset);
    if (sent === undefined) assert(this.#sent.has(`${key}=${value}`), `${offset} was never sent`);
    else assert.deepEqual({ key, value }, { key: sent.key, value: sent.value }, `at ${offset}`);
    this.#found.set(key, offset);
  }

  /**
   * The key's record at `offset` is a tombstone, or one was sent after it: stored, though the broker was gone before it
   * said so, or while the reading went on, that may have done its work and be gone, too.
   */
  #mayBeGone(key: string, offset: number): boolean {
    const value = this.#acknowledged.get(offset)?.value ?? null;
    const sent = this.#sent.get(`${key}=${value}`) ?? 0;
    return value === null || (this.#tombstones.get(key) ?? 0) > sent;
  }

  /** @param mayLoseTombstones delete.retention.ms is shorter than the test takes */
  end(mayLoseTombstones: boolean): void {
    for (const [key, offset] of this.#due) {
      const found = this.#found.get(key) ?? -1;
      if (found >= offset) continue;
      const isTombstone = this.#mayBeGone(key, offset);
      assert(isTombstone && mayLoseTombstones, `${key} at ${offset}: last found at ${found}`);
      assert.equal(found, -1, `${key} is back at ${found} without its tombstone at ${offset}`);
    }
  }
}
