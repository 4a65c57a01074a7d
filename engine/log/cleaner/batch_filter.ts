/**
 * Decides what of a batch stays when a log is compacted, and makes the batch that is left: the rules of Kafka's Cleaner
 * and of its MemoryRecords.filterTo, for message format 2.
 *
 * A record stays when its key has no later one below the end of what the offset map covers. A tombstone (a null value)
 * that stays gets its batch a delete horizon, now plus delete.retention.ms (KIP-534: in the base timestamp's place, with
 * an attribute bit); after that it goes. Offsets, sequence numbers and the last offset of a batch never change. A batch
 * without records stays when it is its producer's last one, so that its sequence number is not forgotten, and when it
 * is its segment's last one, so that a segment still ends where the next begins.
 *
 * Thread: the cleaner's. `bytes` is overwritten by the next call.
 */
import { compress } from '../../batch/compression.ts';
import {
  attributeBits,
  attributesOf,
  baseOffsetOf,
  batchHeaderBytes,
  batchOffset,
  type Codec,
  codecOf,
  hasAttribute,
  lastOffsetOf,
  producerEpochOf,
  producerIdOf,
  readInt16,
  readInt64,
  readInt64Number,
  recordCountOf,
} from '../../batch/header.ts';
import { Scratch } from '../../batch/scratch.ts';
import { BatchRewriter } from './batch_rewriter.ts';
import type { CleaningCounts, LastBatches } from './cleaning_job.ts';
import type { OffsetMap } from './offset_map.ts';
import { RecordChunk } from './record_chunk.ts';
import { RecordCursor } from './record_cursor.ts';
import { storedRecords } from './stored_records.ts';
import type { TransactionFilter } from './transaction_filter.ts';

export const Verdict = { keep: 0, drop: 1, replace: 2 } as const;
export type Verdict = (typeof Verdict)[keyof typeof Verdict];

export interface FilterRules {
  readonly map: OffsetMap;
  readonly transactions: TransactionFilter;
  readonly producers: LastBatches;
  readonly logStartOffset: number;
  readonly nowMs: number;
  readonly deleteRetentionMs: number;
  readonly decompressedMaxBytes: number;
}

export class BatchFilter {
  readonly #rules: FilterRules;
  readonly #counts: CleaningCounts;
  readonly #producers = new Map<number, { lastOffset: number; epoch: number }>();
  readonly #cursor = new RecordCursor();
  readonly #chunk = new RecordChunk();
  readonly #rewriter = new BatchRewriter();
  readonly #scratch = new Scratch();
  // What `#survey` found in the batch.
  #hasTombstones: boolean = false;
  #maxDelta = 0;
  #isWide: boolean = false;

  constructor(rules: FilterRules, counts: CleaningCounts) {
    this.#rules = rules;
    this.#counts = counts;
    const { producerIds, lastOffsets, epochs } = rules.producers;
    for (let at = 0; at < producerIds.length; at += 1)
      this.#producers.set(producerIds[at] as number, {
        lastOffset: lastOffsets[at] as number,
        epoch: epochs[at] as number,
      });
  }

  /** The batch that takes the other's place, after `Verdict.replace`. */
  get bytes(): Uint8Array {
    return this.#rewriter.bytes;
  }

  /**
   * @param isLast it ends its segment
   * @throws UncleanableError, UnreadableBatchError
   */
  filter(buf: Uint8Array, start: number, size: number, isLast: boolean): Verdict {
    if (hasAttribute(buf, start, attributeBits.control))
      return this.#filterMarker(buf, start, size, isLast);
    const { transactions, map, logStartOffset } = this.#rules;
    const lastOffset = lastOffsetOf(buf, start);
    const isTransactional = hasAttribute(buf, start, attributeBits.transactional);
    const producerId = producerIdOf(buf, start);
    const isAborted = transactions.isAborted(producerId, lastOffset, isTransactional);
    const count = recordCountOf(buf, start);
    this.#counts.recordsRead += count;
    if (count === 0 || isAborted || lastOffset < logStartOffset)
      return this.#dropRecords(buf, start, isLast);
    if (baseOffsetOf(buf, start) > map.latestOffset) {
      this.#counts.recordsKept += count;
      return Verdict.keep;
    }
    const records = storedRecords(buf, start, this.#rules.decompressedMaxBytes, this.#scratch);
    const from = records === buf ? start + batchHeaderBytes : 0;
    const end = records === buf ? start + size : records.length;
    this.#survey(buf, start, records, from, end);
    const kept = this.#rewriter.count;
    this.#counts.recordsKept += kept;
    if (kept === 0) return this.#dropRecords(buf, start, isLast);
    const horizonMs = this.#hasTombstones ? this.#newHorizon(buf, start) : null;
    if (kept === count && horizonMs === null) return Verdict.keep;
    this.#rewrite(buf, start, records, horizonMs);
    return Verdict.replace;
  }

  #filterMarker(buf: Uint8Array, start: number, size: number, isLast: boolean): Verdict {
    const { transactions, nowMs } = this.#rules;
    const count = recordCountOf(buf, start);
    this.#counts.recordsRead += count;
    const type = count === 0 ? -1 : this.#markerType(buf, start, size);
    const isSpent = transactions.isMarkerSpent(
      producerIdOf(buf, start),
      lastOffsetOf(buf, start),
      type,
    );
    const hasHorizon = hasAttribute(buf, start, attributeBits.deleteHorizon);
    const isPast = hasHorizon && readInt64Number(buf, start + batchOffset.baseTimestamp) <= nowMs;
    if (count === 0 || (isSpent && isPast)) return this.#dropRecords(buf, start, isLast);
    this.#counts.recordsKept += count;
    if (!isSpent || hasHorizon) return Verdict.keep;
    this.#rewriter.clear();
    this.#rewriter.addSpan(start + batchHeaderBytes, start + size, count);
    this.#maxDelta = this.#cursor.timestampDelta;
    this.#isWide = this.#cursor.isWide;
    const horizonMs = this.#newHorizon(buf, start);
    if (horizonMs === null) return Verdict.keep;
    this.#rewrite(buf, start, buf, horizonMs);
    return Verdict.replace;
  }

  /** Of the batch's one control record, at which the cursor stands then. */
  #markerType(buf: Uint8Array, start: number, size: number): number {
    const cursor = this.#cursor;
    cursor.reset(buf, start + batchHeaderBytes, start + size);
    cursor.next();
    return cursor.keyLength < 4 ? -2 : readInt16(buf, cursor.keyStart + 2);
  }

  /** Notes in the rewriter which records stay, and what there is to know about those. */
  #survey(buf: Uint8Array, start: number, records: Uint8Array, from: number, end: number): void {
    const { map, nowMs, logStartOffset } = this.#rules;
    const { latestOffset } = map;
    const cursor = this.#cursor;
    const rewriter = this.#rewriter;
    const baseOffset = baseOffsetOf(buf, start);
    const areTombstonesPast =
      hasAttribute(buf, start, attributeBits.deleteHorizon) &&
      readInt64Number(buf, start + batchOffset.baseTimestamp) <= nowMs;
    const chunk = this.#chunk;
    const { starts, keyLengths, offsetDeltas, timestampDeltas, hasValue, isWide } = chunk;
    rewriter.clear();
    this.#hasTombstones = false;
    this.#isWide = false;
    let maxDelta = Number.NEGATIVE_INFINITY;
    cursor.reset(records, from, end);
    while (!cursor.isAtEnd) {
      chunk.fill(cursor);
      this.#stageKeys(records);
      for (let at = 0; at < chunk.count; at += 1) {
        const offset = baseOffset + (offsetDeltas[at] as number);
        let isKept = offset > latestOffset;
        if (!isKept && keyLengths[at] === -1) this.#counts.keylessRecords += 1;
        else if (!isKept)
          isKept =
            (hasValue[at] === 1 || !areTombstonesPast) &&
            offset >= logStartOffset &&
            offset >= map.get(at);
        if (!isKept) continue;
        rewriter.addSpan(starts[at] as number, starts[at + 1] as number, 1);
        if (hasValue[at] === 0) this.#hasTombstones = true;
        if (isWide[at] === 1) this.#isWide = true;
        const delta = timestampDeltas[at] as number;
        if (delta > maxDelta) maxDelta = delta;
      }
    }
    this.#maxDelta = maxDelta;
  }

  #stageKeys(records: Uint8Array): void {
    const { map } = this.#rules;
    const { count, keyStarts, keyLengths } = this.#chunk;
    for (let at = 0; at < count; at += 1)
      map.stage(at, records, keyStarts[at] as number, Math.max(0, keyLengths[at] as number));
    map.bring(count);
  }

  /**
   * When the tombstones of the batch may go, if that is not said yet; null: nothing is to be said. Records with times
   * from beyond the range that doubles hold exactly keep their tombstones for good.
   */
  #newHorizon(buf: Uint8Array, start: number): number | null {
    if (hasAttribute(buf, start, attributeBits.deleteHorizon) || this.#isWide) return null;
    const base = readInt64(buf, start + batchOffset.baseTimestamp);
    const isExact = base > -(2n ** 51n) && base < 2n ** 51n && Math.abs(this.#maxDelta) < 2 ** 51;
    return isExact ? this.#rules.nowMs + this.#rules.deleteRetentionMs : null;
  }

  #dropRecords(buf: Uint8Array, start: number, isLast: boolean): Verdict {
    if (!isLast && !this.#isLastOfProducer(buf, start)) return Verdict.drop;
    if (recordCountOf(buf, start) === 0) return Verdict.keep;
    this.#rewriter.makeEmpty(buf, start);
    return Verdict.replace;
  }

  /** Kafka's `isBatchLastRecordOfProducer`. */
  #isLastOfProducer(buf: Uint8Array, start: number): boolean {
    const producer = this.#producers.get(producerIdOf(buf, start));
    if (producer === undefined) return false;
    if (producer.lastOffset >= 0) return producer.lastOffset === lastOffsetOf(buf, start);
    return (
      hasAttribute(buf, start, attributeBits.control) &&
      producer.epoch === producerEpochOf(buf, start)
    );
  }

  #rewrite(buf: Uint8Array, start: number, records: Uint8Array, horizonMs: number | null): void {
    const rewriter = this.#rewriter;
    const base = readInt64(buf, start + batchOffset.baseTimestamp);
    const isAppendTime = (attributesOf(buf, start) & attributeBits.logAppendTime) !== 0;
    const maxTimestamp =
      isAppendTime || this.#isWide
        ? readInt64(buf, start + batchOffset.maxTimestamp)
        : base + BigInt(this.#maxDelta);
    const codec = codecOf(buf, start) as Codec;
    const body =
      horizonMs === null
        ? rewriter.join(records)
        : rewriter.rebase(records, Number(base) - horizonMs);
    rewriter.make(buf, start, compress(codec, body), maxTimestamp, horizonMs);
  }
}
