/** What a compacted log must hold, told by everything that was ever appended to it: the reference of the cleaning tests. */
import assert from 'node:assert/strict';
import { crc32c } from '@node-rs/crc32';
import { iterateRecords } from '../../engine/batch/records.ts';
import { splitBatches } from './log_world.ts';

export interface ModelRecord {
  readonly offset: number;
  readonly timestamp: number;
  /** Null: no key. */
  readonly key: string | null;
  /** Null: a tombstone. */
  readonly value: string | null;
}

const decoder = new TextDecoder();
const text = (bytes: Uint8Array | null): string | null =>
  bytes === null ? null : decoder.decode(bytes);

/** The records of whole batches, each of which is checked: checksum, offsets in order, as many as it says. */
export function recordsIn(bytes: Uint8Array): ModelRecord[] {
  const records: ModelRecord[] = [];
  let last = -1;
  for (const batch of splitBatches(bytes)) {
    const view = new DataView(batch.bytes.buffer, batch.bytes.byteOffset);
    assert.equal(view.getUint32(17), crc32c(batch.bytes.subarray(21)), 'the checksum is right');
    assert(batch.baseOffset > last, `${batch.baseOffset} follows ${last}`);
    last = batch.lastOffset;
    let maxTimestamp = -1n;
    for (const { offsetDelta, timestamp, key, value } of iterateRecords(batch.bytes, 0, 1 << 24)) {
      const offset = batch.baseOffset + offsetDelta;
      assert(offset <= last);
      records.push({ offset, timestamp: Number(timestamp), key: text(key), value: text(value) });
      if (timestamp > maxTimestamp) maxTimestamp = timestamp;
    }
    if (view.getInt32(57) > 0) assert.equal(view.getBigInt64(35), maxTimestamp);
  }
  return records;
}

export class CompactedModel {
  readonly records: ModelRecord[] = [];
  /** By offset of a tombstone: when a cleaning that came to it began at the earliest. */
  readonly #firstCleanedMs = new Map<number, number>();
  /** No cleaning was to touch anything from here on. */
  #untouchedFrom = 0;
  /** Youngest time that any cleaning was allowed to touch. */
  #youngestMs = Number.NEGATIVE_INFINITY;
  /** Everything below was cleaned by a cleaning that came to its end. */
  #cleanedOffset = 0;
  readonly #deleteRetentionMs: number;

  constructor(deleteRetentionMs: number) {
    this.#deleteRetentionMs = deleteRetentionMs;
  }

  add(record: ModelRecord): void {
    this.records.push(record);
  }

  /** A cleaning of offsets below `uncleanableOffset` begins. */
  begin(uncleanableOffset: number, nowMs: number, minLagMs: number): void {
    this.#untouchedFrom = Math.max(this.#untouchedFrom, uncleanableOffset);
    if (minLagMs > 0) this.#youngestMs = Math.max(this.#youngestMs, nowMs - minLagMs);
    else this.#youngestMs = Number.POSITIVE_INFINITY;
    for (const { offset, value } of this.records)
      if (value === null && offset < uncleanableOffset && !this.#firstCleanedMs.has(offset))
        this.#firstCleanedMs.set(offset, nowMs);
  }

  end(cleanedOffset: number): void {
    this.#cleanedOffset = cleanedOffset;
  }

  /** Compares with what is in the log from `logStartOffset` on. */
  check(found: readonly ModelRecord[], logStartOffset: number, nowMs: number): void {
    const byOffset = new Map(found.map((record) => [record.offset, record]));
    const all = this.records.filter(({ offset }) => offset >= logStartOffset);
    const known = new Map(all.map((record) => [record.offset, record]));
    for (const record of found)
      if (record.offset >= logStartOffset)
        assert.deepEqual(record, known.get(record.offset), `${record.offset} is what was appended`);
    const latest = new Map<string, ModelRecord>();
    const latestCleaned = new Map<string, number>();
    for (const record of all) {
      const { offset, timestamp, key } = record;
      const isFound = byOffset.has(offset);
      if (offset >= this.#untouchedFrom || timestamp > this.#youngestMs)
        assert(isFound, `${offset} is not to be touched`);
      if (key === null) {
        assert(!(isFound && offset < this.#cleanedOffset), `${offset} has no key and goes`);
        continue;
      }
      latest.set(key, record);
      if (offset < this.#cleanedOffset) latestCleaned.set(key, offset);
    }
    for (const { offset, key } of all)
      if (key !== null && offset < (latestCleaned.get(key) ?? -1))
        assert(!byOffset.has(offset), `${offset} has a later record of ${key} and goes`);
    for (const [key, { offset, value }] of latest) {
      if (byOffset.has(offset)) continue;
      assert.equal(value, null, `the latest record of ${key}, at ${offset}, is there`);
      const firstMs = this.#firstCleanedMs.get(offset);
      assert(firstMs !== undefined, `the tombstone at ${offset} was never to be cleaned`);
      assert(nowMs >= firstMs + this.#deleteRetentionMs, `the tombstone at ${offset} goes early`);
      const older = all.find((one) => one.key === key && byOffset.has(one.offset));
      assert(older === undefined, `${older?.offset} of ${key} is back without its tombstone`);
    }
  }
}
