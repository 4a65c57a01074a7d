/**
 * Which leader epoch wrote which offsets (KIP-101): an entry for each epoch with the offset of its first batch, as
 * Kafka's LeaderEpochFileCache keeps it in `leader-epoch-checkpoint`.
 *
 * Thread: the partition's shard. Durability: `isDirty` until the log's checkpoint has stored it; entries for batches
 * past the recovery point come back from the batches themselves.
 */
import { formatCheckpoint, parseCheckpoint } from './checkpoint_text.ts';

/** Kafka's UNDEFINED_EPOCH and UNDEFINED_EPOCH_OFFSET. */
const undefinedEpoch = -1;
const undefinedEpochOffset = -1;

export interface EpochEndOffset {
  /** The requested epoch, or the largest known one below it, or -1. */
  readonly epoch: number;
  /** Where that epoch ends: the first offset that does not belong to it. -1 when unknown. */
  readonly endOffset: number;
}

export class EpochCache {
  // Invariant: both grow strictly from entry to entry. They seldom do: no room is kept for more.
  #epochs: number[] = [];
  #startOffsets: number[] = [];
  /** Entries that the log's start has left behind. */
  #passed = 0;
  /** There are entries that `toFile` has not been asked for. */
  isDirty: boolean = false;
  /** A file with entries waits, flushed or not, to get its name. */
  isStaged: boolean = false;

  /** Number of entries that there have been; what `truncateEntries` takes to undo later ones. */
  get count(): number {
    return this.#passed + this.#epochs.length;
  }

  get latestEpoch(): number {
    return this.#epochs.length === 0
      ? undefinedEpoch
      : (this.#epochs[this.#epochs.length - 1] as number);
  }

  get entries(): Array<{ epoch: number; startOffset: number }> {
    return this.#epochs.map((epoch, at) => ({
      epoch,
      startOffset: this.#startOffsets[at] as number,
    }));
  }

  /** Notes that `epoch` wrote at `startOffset`. A conflicting end (by epoch or offset) gives way, as in Kafka. */
  assign(epoch: number, startOffset: number): void {
    if (epoch < 0 || epoch === this.latestEpoch) return;
    let count = this.#epochs.length;
    while (
      count > 0 &&
      ((this.#epochs[count - 1] as number) >= epoch ||
        (this.#startOffsets[count - 1] as number) >= startOffset)
    ) {
      count -= 1;
    }
    this.#keep(count);
    this.#epochs = this.#epochs.concat(epoch);
    this.#startOffsets = this.#startOffsets.concat(startOffset);
    this.isDirty = true;
  }

  /** @param count as `count` said it */
  truncateEntries(count: number): void {
    this.#keep(Math.max(0, count - this.#passed));
  }

  #keep(count: number): void {
    if (count >= this.#epochs.length) return;
    this.#epochs.length = count;
    this.#startOffsets.length = count;
    this.isDirty = true;
  }

  /** Drops the epochs that begin at or past the log's end. */
  truncateFromEnd(logEndOffset: number): void {
    let count = this.#epochs.length;
    while (count > 0 && (this.#startOffsets[count - 1] as number) >= logEndOffset) count -= 1;
    this.#keep(count);
  }

  /** Drops the epochs that end at or below the log's start; the one that holds it begins there now. */
  truncateFromStart(logStartOffset: number): void {
    let floor = this.#epochs.length - 1;
    while (floor >= 0 && (this.#startOffsets[floor] as number) > logStartOffset) floor -= 1;
    if (floor < 0 || this.#startOffsets[floor] === logStartOffset) {
      if (floor <= 0) return;
    }
    this.#passed += floor;
    this.#epochs.splice(0, floor);
    this.#startOffsets.splice(0, floor);
    this.#startOffsets[0] = logStartOffset;
    this.isDirty = true;
  }

  /** The epoch that wrote `offset`, or -1. */
  epochFor(offset: number): number {
    for (let at = this.#epochs.length - 1; at >= 0; at -= 1) {
      if ((this.#startOffsets[at] as number) <= offset) return this.#epochs[at] as number;
    }
    return undefinedEpoch;
  }

  /** As Kafka's `endOffsetFor`: what OffsetForLeaderEpoch answers (KIP-101, KIP-279). */
  endOffsetFor(requested: number, logEndOffset: number): EpochEndOffset {
    if (requested === undefinedEpoch)
      return { epoch: undefinedEpoch, endOffset: undefinedEpochOffset };
    if (requested === this.latestEpoch) return { epoch: requested, endOffset: logEndOffset };
    let higher = 0;
    while (higher < this.#epochs.length && (this.#epochs[higher] as number) <= requested)
      higher += 1;
    if (higher === this.#epochs.length)
      return { epoch: undefinedEpoch, endOffset: undefinedEpochOffset };
    const endOffset = this.#startOffsets[higher] as number;
    if (higher === 0) return { epoch: requested, endOffset };
    return { epoch: this.#epochs[higher - 1] as number, endOffset };
  }

  /**
   * Whether a log that ends at `offset`, with a batch of the epoch, can be the beginning of this one: by `endOffsetFor` the
   * epoch is known here and ends no earlier. Makes no object, for it is asked of each partition in every fetch.
   */
  reaches(epoch: number, offset: number, logEndOffset: number): boolean {
    if (epoch === this.latestEpoch) return offset <= logEndOffset;
    let higher = 0;
    while (higher < this.#epochs.length && (this.#epochs[higher] as number) <= epoch) higher += 1;
    if (higher === this.#epochs.length || offset > (this.#startOffsets[higher] as number))
      return false;
    return higher === 0 || this.#epochs[higher - 1] === epoch;
  }

  toFile(): Uint8Array {
    return formatCheckpoint(
      this.#epochs.map((epoch, at) => `${epoch} ${this.#startOffsets[at] as number}`),
    );
  }

  /** Takes over the entries of a file; false (and no entries) when it cannot be read. */
  load(bytes: Uint8Array): boolean {
    this.#epochs.length = 0;
    this.#startOffsets.length = 0;
    const lines = parseCheckpoint(bytes);
    if (lines === null) return false;
    for (const line of lines) {
      const [epoch, startOffset, ...rest] = line.split(' ').map(Number);
      const isEntry =
        Number.isSafeInteger(epoch) && Number.isSafeInteger(startOffset) && rest.length === 0;
      if (!isEntry) {
        this.#keep(0);
        return false;
      }
      this.assign(epoch as number, startOffset as number);
    }
    this.isDirty = false;
    return true;
  }
}
