/**
 * The idempotent producers of one partition: which batch may come next, and which one has been here before. Rules of
 * Kafka's ProducerStateManager and ProducerAppendInfo (2.5 and newer: a producer that is not known may begin with any
 * sequence, KIP-360), and one more: not behind its own batch that was refused for now (`refused_sequences.ts`).
 *
 * Thread: the partition's shard. Durability: derived from the log; snapshots save reading all of it (`snapshot`,
 * `restore`).
 *
 * Appends between `beginRound` and the write that makes them real can be undone together (`undoRound`).
 */
import { ErrorCode } from '../error_code.gen.ts';
import type { LastBatches } from './cleaner/cleaning_job.ts';
import { incrementSequence, type ProducedBatch, ProducerEntry } from './producer_entry.ts';
import type { ProducerFields } from './producer_fields.ts';
import { decodeProducerSnapshot, encodeProducerSnapshot } from './producer_snapshot.ts';
import { RefusedSequences } from './refused_sequences.ts';

const noEpoch = -1;
const noSequence = -1;
/** About a millisecond's worth of `lastBatches`. */
const producersAtATime = 2000;

/** Of all logs that no idempotent producer has written to. Nothing is ever put into it. */
const noEntries = new Map<number, ProducerEntry>();

/** A producer that the round has made known, and how it began. */
interface Added {
  readonly producerId: number;
  readonly epoch: number;
  readonly sequence: number;
}

export class ProducerState {
  #entries: Map<number, ProducerEntry> = noEntries;
  #round = 1;
  readonly #undo: ProducerEntry[] = [];
  #undoCount = 0;
  readonly #added: Added[] = [];
  readonly #refused = new RefusedSequences();
  /** The batch that the last `check` found again. Meaningful only when it returned DUPLICATE_SEQUENCE_NUMBER. */
  duplicate: ProducedBatch | null = null;

  get size(): number {
    return this.#entries.size;
  }

  /** Producers of which only a refused batch is known. */
  get refusedCount(): number {
    return this.#refused.size;
  }

  values(): Iterable<Readonly<ProducerEntry>> {
    return this.#entries.values();
  }

  get(producerId: number): ProducerEntry | undefined {
    return this.#entries.get(producerId);
  }

  /** The sequence that a producer has to go on with in an epoch; 0 also where anything goes. */
  expectedSequence(batch: ProducerFields): number {
    const entry = this.#entries.get(batch.producerId);
    if (entry === undefined) return Math.max(0, this.#refused.expected(batch));
    return batch.producerEpoch === entry.epoch ? incrementSequence(entry.lastSequence, 1) : 0;
  }

  /**
   * Whether the batch may be appended: NONE, or DUPLICATE_SEQUENCE_NUMBER for one of the producer's last five batches
   * (`duplicate` says which: the caller answers with its offsets as a success), INVALID_PRODUCER_EPOCH,
   * OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_TXN_STATE. Changes nothing.
   */
  check(batch: ProducerFields): ErrorCode {
    const entry = this.#entries.get(batch.producerId);
    if (entry === undefined) {
      const expected = this.#refused.expected(batch);
      return expected < 0 || expected === batch.baseSequence
        ? ErrorCode.NONE
        : ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER;
    }
    const { producerEpoch, baseSequence } = batch;
    const lastSequence = incrementSequence(baseSequence, batch.lastOffsetDelta);
    this.duplicate = entry.findDuplicate(producerEpoch, baseSequence, lastSequence);
    if (this.duplicate !== null) return ErrorCode.DUPLICATE_SEQUENCE_NUMBER;
    if (producerEpoch < entry.epoch) return ErrorCode.INVALID_PRODUCER_EPOCH;
    if (!mayFollow(entry, producerEpoch, baseSequence))
      return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER;
    if (entry.currentTxnFirstOffset >= 0 && !batch.isTransactional)
      return ErrorCode.INVALID_TXN_STATE;
    return ErrorCode.NONE;
  }

  /** Notes a batch that was refused for now: what is in flight behind it must not be taken before it. */
  refuse(batch: ProducerFields, nowMs: number): void {
    const { producerId, producerEpoch, baseSequence } = batch;
    if (!this.#entries.has(producerId))
      this.#refused.note(producerId, producerEpoch, baseSequence, nowMs);
  }

  /** Notes an appended batch. The caller has checked it, or it comes from the log or from a leader. */
  record(batch: ProducerFields, baseOffset: number, timestamp: bigint, nowMs: number): void {
    const entry = this.#entryToChange(batch.producerId, batch.producerEpoch, batch.baseSequence);
    entry.setEpoch(batch.producerEpoch);
    const lastSequence = incrementSequence(batch.baseSequence, batch.lastOffsetDelta);
    entry.addBatch(
      batch.baseSequence,
      lastSequence,
      baseOffset + batch.lastOffsetDelta,
      batch.lastOffsetDelta,
      timestamp,
    );
    entry.lastAppendMs = nowMs;
    if (batch.isTransactional && entry.currentTxnFirstOffset < 0)
      entry.currentTxnFirstOffset = baseOffset;
  }

  /** Notes a transaction's end marker. */
  recordMarker(
    producerId: number,
    producerEpoch: number,
    coordinatorEpoch: number,
    offset: number,
    timestamp: bigint,
    nowMs: number,
  ): void {
    const entry = this.#entryToChange(producerId, producerEpoch, noSequence);
    entry.setEpoch(producerEpoch);
    entry.coordinatorEpoch = coordinatorEpoch;
    entry.currentTxnFirstOffset = -1;
    entry.lastTimestamp = timestamp;
    entry.lastOffset = offset;
    entry.lastAppendMs = nowMs;
  }

  /** Forgets producers that have appended nothing for `expirationMs`, unless they have a transaction open. */
  expire(nowMs: number, expirationMs: number): void {
    for (const [producerId, entry] of this.#entries) {
      if (entry.currentTxnFirstOffset < 0 && nowMs - entry.lastAppendMs >= expirationMs)
        this.#entries.delete(producerId);
    }
    this.#refused.expire(nowMs, expirationMs);
  }

  /** First offset of the oldest open transaction, or -1. */
  get firstOpenTransactionOffset(): number {
    let first = -1;
    for (const entry of this.#entries.values()) {
      const offset = entry.currentTxnFirstOffset;
      if (offset >= 0 && (first < 0 || offset < first)) first = offset;
    }
    return first;
  }

  /**
   * The last batches that lie below `offset`, so that the cleaner keeps them and their sequences are not forgotten.
   * Yields between some thousands of producers, for others to have their turn; what comes meanwhile lies past `offset`.
   */
  *lastBatches(offset: number): Generator<void, LastBatches, void> {
    const producerIds: number[] = [];
    const lastOffsets: number[] = [];
    const epochs: number[] = [];
    let seen = 0;
    for (const { producerId, batches, batchCount, epoch } of this.#entries.values()) {
      seen += 1;
      if (seen % producersAtATime === 0) yield;
      const last = batchCount === 0 ? -1 : (batches[batchCount - 1] as ProducedBatch).lastOffset;
      if (last >= offset) continue;
      producerIds.push(producerId);
      lastOffsets.push(last);
      epochs.push(epoch);
    }
    return {
      producerIds: new Float64Array(producerIds),
      lastOffsets: new Float64Array(lastOffsets),
      epochs: new Int16Array(epochs),
    };
  }

  /** Everything recorded from here on can be undone until the next call. */
  beginRound(): void {
    this.#round += 1;
    this.#undoCount = 0;
    this.#added.length = 0;
  }

  undoRound(): void {
    for (let at = 0; at < this.#undoCount; at += 1) {
      const saved = this.#undo[at] as ProducerEntry;
      const entry = this.#entries.get(saved.producerId);
      if (entry !== undefined) entry.copyFrom(saved);
    }
    for (const { producerId, epoch, sequence } of this.#added) {
      const entry = this.#entries.get(producerId);
      if (entry === undefined) continue;
      this.#entries.delete(producerId);
      // An epoch that came second began at 0.
      const first = entry.epoch === epoch ? sequence : 0;
      if (entry.batchCount > 0)
        this.#refused.note(producerId, entry.epoch, first, entry.lastAppendMs);
    }
    this.beginRound();
  }

  clear(): void {
    this.#entries.clear();
    this.beginRound();
  }

  /** The state as Kafka's `.snapshot` file. */
  snapshot(): Uint8Array {
    return encodeProducerSnapshot(this.#entries.values());
  }

  /** Takes over a snapshot's producers as if they had appended at `nowMs`; false when its bytes are damaged. */
  restore(bytes: Uint8Array, nowMs: number): boolean {
    const entries = decodeProducerSnapshot(bytes, nowMs);
    if (entries === null) return false;
    for (const entry of entries) this.#put(entry);
    return true;
  }

  #entryToChange(producerId: number, epoch: number, sequence: number): ProducerEntry {
    let entry = this.#entries.get(producerId);
    if (entry === undefined) {
      entry = new ProducerEntry();
      entry.producerId = producerId;
      entry.undoRound = this.#round;
      this.#put(entry);
      this.#added.push({ producerId, epoch, sequence });
      this.#refused.forget(producerId);
    } else if (entry.undoRound !== this.#round) {
      entry.undoRound = this.#round;
      this.#keepForUndo(entry);
    }
    return entry;
  }

  #put(entry: ProducerEntry): void {
    if (this.#entries === noEntries) this.#entries = new Map();
    this.#entries.set(entry.producerId, entry);
  }

  #keepForUndo(entry: ProducerEntry): void {
    let saved = this.#undo[this.#undoCount];
    if (saved === undefined) {
      saved = new ProducerEntry();
      this.#undo.push(saved);
    }
    saved.copyFrom(entry);
    this.#undoCount += 1;
  }
}

/** Kafka's `checkSequence`. */
function mayFollow(entry: ProducerEntry, epoch: number, baseSequence: number): boolean {
  if (entry.epoch === noEpoch) return true;
  if (epoch !== entry.epoch) return baseSequence === 0;
  return baseSequence === incrementSequence(entry.lastSequence, 1);
}
