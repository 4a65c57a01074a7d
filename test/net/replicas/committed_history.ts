/** What has been committed of a partition, by what replicas held for it, and what producers were told of it. */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { PartitionReplica } from '../../../replication/partition/replica.ts';
import { splitBatches } from '../../sim/log_world.ts';

/** Of a batch: what stamps do not change. */
const recordsAt = 61;

export class CommittedHistory {
  /** Batches by base offset, as they were when they were first seen below a high watermark. */
  readonly #committed = new Map<number, Buffer>();
  #end = 0;
  /** Below it, a replica's log has been compared. */
  readonly #compared = new Map<PartitionReplica, number>();
  /** By end offset. */
  readonly #acknowledged = new Map<number, Buffer>();

  /** Batches. */
  get count(): number {
    return this.#committed.size;
  }

  acknowledged(endOffset: number, batch: Uint8Array): void {
    this.#acknowledged.set(endOffset, Buffer.from(batch));
  }

  /** What the replica holds for committed is what others have held for committed. */
  compare(who: string, replica: PartitionReplica): void {
    const { log, highWatermark } = replica;
    assert(highWatermark <= log.logEndOffset, `${who}: ${highWatermark} > ${log.logEndOffset}`);
    let next = Math.max(this.#compared.get(replica) ?? 0, log.logStartOffset);
    const end = Math.min(highWatermark, log.writtenOffset);
    while (next < end) {
      const slice = log.read(next, 10_000, end, true);
      // The log began anew in the middle of this batch, and so did the high watermark.
      if (slice === ErrorCode.NONE) break;
      assert(typeof slice === 'object', `${who}: read at ${next} of ${end}: ${slice as number}`);
      for (const { baseOffset, lastOffset, bytes } of splitBatches(log.copy(slice))) {
        this.#compareBatch(who, replica, baseOffset, lastOffset, Buffer.from(bytes));
        next = lastOffset + 1;
      }
    }
    this.#compared.set(replica, Math.max(next, end));
  }

  #compareBatch(
    who: string,
    { log }: PartitionReplica,
    baseOffset: number,
    lastOffset: number,
    bytes: Buffer,
  ): void {
    const known = this.#committed.get(baseOffset);
    if (known !== undefined) {
      assert(known.equals(bytes), `${who}: another batch at ${baseOffset} than was committed`);
      return;
    }
    assert(
      baseOffset >= this.#end || baseOffset < log.logStartOffset,
      `${who}: a batch at ${baseOffset}, committed up to ${this.#end}`,
    );
    this.#committed.set(baseOffset, bytes);
    this.#end = Math.max(this.#end, lastOffset + 1);
  }

  /** Everything that producers were told of is there. */
  checkAcknowledged(): void {
    for (const [endOffset, batch] of this.#acknowledged) {
      const [view] = splitBatches(batch);
      const baseOffset = endOffset - (view!.lastOffset - view!.baseOffset + 1);
      const found = this.#committed.get(baseOffset);
      assert(found !== undefined, `what was acknowledged up to ${endOffset} is not there`);
      assert(
        found.subarray(recordsAt).equals(batch.subarray(recordsAt)),
        `another batch up to ${endOffset}`,
      );
    }
  }
}
