/**
 * What is to be delivered to one partition, in order, and the sequences by which the broker keeps it in order over retries
 * (KIP-98, KIP-360).
 *
 * Sequences are given when a batch is sent for the first time, and stay. A batch that fails for good after that leaves a gap
 * which the broker may refuse to step over. So nothing new is sent until all batches with sequences are settled, or the one
 * right behind the gap is refused; then the partition goes on in a new epoch, from sequence 0. What is numbered anew was
 * refused behind a gap, so that it cannot be stored already.
 *
 * A broker tells a producer's last five batches from new ones. The answer to a batch may be long in coming, from a leader that
 * has fallen silent, while those behind it are taken by the next leader: none is sent that is five or more behind the
 * oldest one without an answer, or that one could not be told from a batch behind a gap.
 *
 * Thread: the client's.
 */
import type { MillraceError } from './errors.ts';
import type { RecordBatch } from './record_batch.ts';
import { Backoff } from './retry.ts';

/** What the broker knows the producer by; -1 and -1 where it is not idempotent. */
export interface ProducerIdentity {
  readonly producerId: number;
  readonly epoch: number;
}

const epochMax = 0x7fff;
const sequenceModulus = 0x8000_0000;
/** As many batches of a producer as a broker remembers for each partition. */
export const rememberedBatches = 5;

export class PartitionQueue {
  readonly topic: string;
  readonly partition: number;
  /** Not settled yet, the oldest first; the last one may still take records. */
  readonly batches: RecordBatch[] = [];
  /** Batches in requests that are not answered yet. */
  inFlight = 0;
  /** Nothing is sent before this, by `performance.now()`. */
  notBeforeMs = 0;
  readonly backoff: Backoff = new Backoff(20, 1_000);
  /** Why it was last sent in vain. */
  lastError: MillraceError | null = null;
  /** About the size of the last batches: the next one's memory to begin with. */
  bytesExpected = 0;
  #identity: ProducerIdentity | null = null;
  #used: ProducerIdentity | null = null;
  #nextSequence = 0;
  #nextOrdinal = 0;
  /**
   * The broker has taken a batch of this epoch. Before that it takes one with any sequence, so that a second one could overtake
   * a first one that fails: only one is on its way.
   */
  #isKnown: boolean = false;
  #hasGap: boolean = false;
  #isRefused: boolean = false;

  constructor(topic: string, partition: number) {
    this.topic = topic;
    this.partition = partition;
  }

  get name(): string {
    return `${this.topic}-${this.partition}`;
  }

  /** Whether a new producer id is needed before anything can be sent: there was none, or its epochs are used up. */
  get needsIdentity(): boolean {
    return this.#identity === null;
  }

  get identity(): ProducerIdentity {
    return this.#identity ?? { producerId: -1, epoch: -1 };
  }

  /** The identity whose epochs are used up, if any. */
  get used(): ProducerIdentity | null {
    return this.#used;
  }

  setIdentity(identity: ProducerIdentity): void {
    this.#identity = identity;
    this.#nextSequence = 0;
    this.#isKnown = false;
  }

  /**
   * The batch to be sent next, or null.
   *
   * @param mayTake whether a batch that could still take records is to be sent as it is
   */
  next(mayTake: (batch: RecordBatch) => boolean): RecordBatch | null {
    if (this.#isRefused) this.#renumber();
    if (this.#isRefused || (this.inFlight > 0 && !this.#isKnown)) return null;
    const end = this.#ordinalOf(this.batches[0]) + rememberedBatches;
    for (const batch of this.batches) {
      if (batch.isSent) continue;
      if (this.#ordinalOf(batch) >= end) return null;
      if (batch.baseSequence >= 0) return batch;
      if (this.#hasGap || !(batch.isClosed || mayTake(batch))) return null;
      return batch;
    }
    return null;
  }

  /** Takes a batch for a request; gives it its sequence if it has none. */
  begin(batch: RecordBatch, isIdempotent: boolean): void {
    batch.isClosed = true;
    batch.isSent = true;
    batch.attempts += 1;
    this.inFlight += 1;
    this.bytesExpected = Math.max(batch.byteLength, this.bytesExpected >> 1);
    if (!isIdempotent || batch.baseSequence >= 0) return;
    this.#number(batch);
  }

  /** The request has been answered, or never will be. */
  end(batch: RecordBatch): void {
    batch.isSent = false;
    this.inFlight -= 1;
  }

  /** Delivered. */
  settle(batch: RecordBatch): void {
    this.#isKnown = true;
    this.#remove(batch);
  }

  /** Failed for good: if it has been sent, those behind it may be refused. */
  abandon(batch: RecordBatch): void {
    if (batch.baseSequence >= 0) this.#hasGap = true;
    this.#remove(batch);
  }

  /** The broker misses what came before `batch`. Where that is still to come nothing is wrong. */
  refuse(batch: RecordBatch): void {
    if (this.batches[0] === batch) this.#isRefused = true;
  }

  /** Puts `parts` in the place of a batch that was refused for its size: they have its records and sequences. */
  replace(batch: RecordBatch, parts: readonly RecordBatch[]): void {
    let sequence = batch.baseSequence;
    const more = batch.ordinal < 0 ? 0 : parts.length - 1;
    for (const later of this.batches) if (later.ordinal > batch.ordinal) later.ordinal += more;
    this.#nextOrdinal += more;
    for (const [index, part] of parts.entries()) {
      part.isClosed = true;
      part.baseSequence = sequence;
      if (sequence < 0) continue;
      part.ordinal = batch.ordinal + index;
      sequence = (sequence + part.count) % sequenceModulus;
    }
    this.batches.splice(this.batches.indexOf(batch), 1, ...parts);
  }

  #ordinalOf(batch: RecordBatch | undefined): number {
    return batch === undefined || batch.ordinal < 0 ? this.#nextOrdinal : batch.ordinal;
  }

  #remove(batch: RecordBatch): void {
    const index = this.batches.indexOf(batch);
    if (index >= 0) this.batches.splice(index, 1);
    this.#closeGap();
  }

  /** With nothing numbered left to wait for, a gap is of no more consequence. */
  #closeGap(): void {
    if (!this.#hasGap || this.batches.some((batch) => batch.baseSequence >= 0)) return;
    this.#hasGap = false;
    this.#isRefused = false;
    this.#nextEpoch();
  }

  /** Once nothing is in flight any more, all that was numbered is numbered anew. */
  #renumber(): void {
    if (this.inFlight > 0) return;
    this.#nextEpoch();
    this.#hasGap = false;
    for (const batch of this.batches) {
      if (batch.baseSequence < 0) continue;
      batch.unseal();
      batch.baseSequence = -1;
      batch.ordinal = -1;
    }
    this.#isRefused = false;
  }

  #nextEpoch(): void {
    const old = this.#identity;
    this.#nextSequence = 0;
    this.#isKnown = false;
    if (old === null) return;
    this.#used = old;
    this.#identity = old.epoch < epochMax ? { ...old, epoch: old.epoch + 1 } : null;
  }

  #number(batch: RecordBatch): void {
    batch.baseSequence = this.#nextSequence;
    this.#nextSequence = (this.#nextSequence + batch.count) % sequenceModulus;
    batch.ordinal = this.#nextOrdinal;
    this.#nextOrdinal += 1;
  }
}
