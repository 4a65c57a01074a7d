/**
 * Offsets that were committed in transactions (KIP-98), in a log that Kafka has written: they count once the marker of
 * their transaction says so, and never if it says otherwise.
 *
 * Thread: the shard of the partition, for as long as its coordinator loads. What is not decided at the log's end is
 * dropped: nobody is left who could decide it.
 */
import { readInt16 } from '../../engine/batch/header.ts';
import type { GroupRecord } from '../../engine/groups/group_records.ts';

const commitMarker = 1;

/** Whether the key of a control record says that a transaction has been committed. */
export function isCommitMarker(bytes: Uint8Array, keyAt: number, keyLength: number): boolean {
  return keyLength >= 4 && readInt16(bytes, keyAt + 2) === commitMarker;
}

export class TransactionalOffsets {
  readonly #byProducer = new Map<number, GroupRecord[]>();

  /** Records of a transaction that goes on. */
  add(producerId: number, records: readonly GroupRecord[]): void {
    const before = this.#byProducer.get(producerId) ?? [];
    this.#byProducer.set(producerId, [...before, ...records]);
  }

  /** Records of no transaction: what stands before them in the log must not come after them now. */
  overtake(records: readonly GroupRecord[]): void {
    if (this.#byProducer.size === 0) return;
    const keys = new Set(records.map(keyOf));
    for (const [producerId, before] of this.#byProducer)
      this.#byProducer.set(
        producerId,
        before.filter((record) => !keys.has(keyOf(record))),
      );
  }

  /** The marker of the producer's transaction: what counts from here on. */
  end(producerId: number, isCommitted: boolean): readonly GroupRecord[] {
    const records = this.#byProducer.get(producerId) ?? [];
    this.#byProducer.delete(producerId);
    return isCommitted ? records : [];
  }
}

function keyOf({ type, key }: GroupRecord): string {
  return JSON.stringify([type, key]);
}
