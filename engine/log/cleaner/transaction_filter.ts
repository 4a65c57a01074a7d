/**
 * Which records of transactions may go, and which markers: the rules of Kafka's CleanedTransactionMetadata. Records of
 * aborted transactions go. A marker goes once nothing of its transaction is left, and then not before its delete
 * horizon (KIP-534).
 *
 * Thread: the cleaner's. Batches must come in order of offsets.
 */
import { readInt64Number, writeInt16, writeInt64Number } from '../../batch/header.ts';

/** An entry of Kafka's `.txnindex`: version int16, then four int64. */
export interface AbortedTransaction {
  readonly producerId: number;
  readonly firstOffset: number;
  readonly lastOffset: number;
  readonly lastStableOffset: number;
}

const entryBytes = 34;
const version = 0;
/** Types of control records. */
const abortMarker = 0;
const commitMarker = 1;

interface Ongoing {
  readonly transaction: AbortedTransaction;
  /** A batch of it is still in the log. */
  isSeen: boolean;
}

export class TransactionFilter {
  /** By first offset. */
  readonly #aborted: readonly AbortedTransaction[];
  #next = 0;
  readonly #ongoingAborted = new Map<number, Ongoing>();
  readonly #ongoingCommitted = new Set<number>();
  /** Aborted transactions whose marker stays: the cleaned segment's index of them. */
  kept: AbortedTransaction[] = [];

  constructor(aborted: readonly AbortedTransaction[]) {
    this.#aborted = [...aborted].sort((a, b) => a.firstOffset - b.firstOffset);
  }

  /** Notes a batch of records; true when it belongs to an aborted transaction. */
  isAborted(producerId: number, lastOffset: number, isTransactional: boolean): boolean {
    this.#beginUpTo(lastOffset);
    if (!isTransactional) return false;
    const ongoing = this.#ongoingAborted.get(producerId);
    if (ongoing === undefined) {
      this.#ongoingCommitted.add(producerId);
      return false;
    }
    ongoing.isSeen = true;
    return true;
  }

  /**
   * Notes a control batch; true when nothing of its transaction was seen, so that it may go.
   * @param type of its record; -1 when it is empty: then an earlier cleaning has kept it for its offset alone
   */
  isMarkerSpent(producerId: number, lastOffset: number, type: number): boolean {
    this.#beginUpTo(lastOffset);
    if (type === -1) return true;
    if (type === commitMarker) return !this.#ongoingCommitted.delete(producerId);
    if (type !== abortMarker) return false;
    const ongoing = this.#ongoingAborted.get(producerId);
    this.#ongoingAborted.delete(producerId);
    if (ongoing?.isSeen !== true) return true;
    this.kept.push(ongoing.transaction);
    return false;
  }

  #beginUpTo(offset: number): void {
    for (;;) {
      const transaction = this.#aborted[this.#next];
      if (transaction === undefined || transaction.firstOffset > offset) return;
      this.#ongoingAborted.set(transaction.producerId, { transaction, isSeen: false });
      this.#next += 1;
    }
  }
}

/** The entries of an index file; one that ends within an entry is read up to there. */
export function parseAborted(bytes: Uint8Array): AbortedTransaction[] {
  const entries: AbortedTransaction[] = [];
  for (let at = 0; at + entryBytes <= bytes.length; at += entryBytes)
    entries.push({
      producerId: readInt64Number(bytes, at + 2),
      firstOffset: readInt64Number(bytes, at + 10),
      lastOffset: readInt64Number(bytes, at + 18),
      lastStableOffset: readInt64Number(bytes, at + 26),
    });
  return entries;
}

export function formatAborted(entries: readonly AbortedTransaction[]): Uint8Array {
  const bytes = new Uint8Array(entries.length * entryBytes);
  for (const [number, entry] of entries.entries()) {
    const at = number * entryBytes;
    writeInt16(bytes, at, version);
    writeInt64Number(bytes, at + 2, entry.producerId);
    writeInt64Number(bytes, at + 10, entry.firstOffset);
    writeInt64Number(bytes, at + 18, entry.lastOffset);
    writeInt64Number(bytes, at + 26, entry.lastStableOffset);
  }
  return bytes;
}
