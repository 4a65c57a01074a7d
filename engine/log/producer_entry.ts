/** What a partition remembers of one idempotent producer: Kafka's ProducerStateEntry. */

/** Batches remembered for each producer: as many as an idempotent producer may have in flight. */
const batchesKept = 5;
const sequenceMax = 0x7fff_ffff;
const noSequence = -1;

export interface ProducedBatch {
  baseSequence: number;
  lastSequence: number;
  lastOffset: number;
  offsetDelta: number;
  timestamp: bigint;
}

export class ProducerEntry {
  producerId = -1;
  epoch = -1;
  coordinatorEpoch = -1;
  /** Max timestamp of the last batch, or of the last transaction marker. */
  lastTimestamp = -1n;
  /** Last offset of the last batch or marker. */
  lastOffset = -1;
  /** First offset of the open transaction, or -1. */
  currentTxnFirstOffset = -1;
  /** Wall time of the append, not the records' time, so that producers with odd clocks do not expire. */
  lastAppendMs = 0;
  /** All of `epoch`, oldest first. Slots past `batchCount` are spare. */
  readonly batches: ProducedBatch[] = [];
  batchCount = 0;
  /** Number of the undo round that has kept a copy of this entry. */
  undoRound = 0;

  get lastSequence(): number {
    return this.batchCount === 0
      ? noSequence
      : (this.batches[this.batchCount - 1] as ProducedBatch).lastSequence;
  }

  /** The remembered batch with exactly this range of sequences, or null. */
  findDuplicate(epoch: number, baseSequence: number, lastSequence: number): ProducedBatch | null {
    if (epoch !== this.epoch) return null;
    for (let at = 0; at < this.batchCount; at += 1) {
      const batch = this.batches[at] as ProducedBatch;
      if (batch.baseSequence === baseSequence && batch.lastSequence === lastSequence) return batch;
    }
    return null;
  }

  /** A new epoch forgets the batches of the one before. */
  setEpoch(epoch: number): void {
    if (epoch === this.epoch) return;
    this.epoch = epoch;
    this.batchCount = 0;
  }

  addBatch(
    baseSequence: number,
    lastSequence: number,
    lastOffset: number,
    offsetDelta: number,
    timestamp: bigint,
  ): void {
    const { batches } = this;
    let slot: ProducedBatch | undefined;
    if (this.batchCount === batchesKept) {
      slot = batches[0] as ProducedBatch;
      for (let at = 1; at < batchesKept; at += 1) batches[at - 1] = batches[at] as ProducedBatch;
      batches[batchesKept - 1] = slot;
    } else {
      slot = batches[this.batchCount];
      this.batchCount += 1;
    }
    if (slot === undefined) {
      batches.push({ baseSequence, lastSequence, lastOffset, offsetDelta, timestamp });
    } else {
      slot.baseSequence = baseSequence;
      slot.lastSequence = lastSequence;
      slot.lastOffset = lastOffset;
      slot.offsetDelta = offsetDelta;
      slot.timestamp = timestamp;
    }
    this.lastTimestamp = timestamp;
    this.lastOffset = lastOffset;
  }

  copyFrom(other: ProducerEntry): void {
    this.producerId = other.producerId;
    this.epoch = -1;
    this.setEpoch(other.epoch);
    this.batchCount = 0;
    for (let at = 0; at < other.batchCount; at += 1) {
      const batch = other.batches[at] as ProducedBatch;
      this.addBatch(
        batch.baseSequence,
        batch.lastSequence,
        batch.lastOffset,
        batch.offsetDelta,
        batch.timestamp,
      );
    }
    this.coordinatorEpoch = other.coordinatorEpoch;
    this.lastTimestamp = other.lastTimestamp;
    this.lastOffset = other.lastOffset;
    this.currentTxnFirstOffset = other.currentTxnFirstOffset;
    this.lastAppendMs = other.lastAppendMs;
  }
}

/** The sequence `increment` after `sequence`; 0 follows 2^31 - 1. */
export function incrementSequence(sequence: number, increment: number): number {
  return sequence > sequenceMax - increment
    ? increment - (sequenceMax - sequence) - 1
    : sequence + increment;
}

/** The sequence `decrement` before `sequence`; 2^31 - 1 comes before 0. */
export function decrementSequence(sequence: number, decrement: number): number {
  return sequence < decrement ? sequenceMax - (decrement - sequence) + 1 : sequence - decrement;
}
