/**
 * What has been committed to one partition of a simulated cluster: put together from every replica's high watermark, and
 * compared with every replica and every reader from then on.
 *
 *   I1 what acks=all acknowledged stays at its offset, with the same bytes
 *   I2 below the high watermark all replicas agree
 *   I3 a producer's batches stand in their order, I4 each of them once
 */
import assert from 'node:assert/strict';
import {
  baseOffsetOf,
  baseSequenceOf,
  lastOffsetOf,
  leaderEpochOf,
  producerIdOf,
  recordCountOf,
  sizeOf,
} from '../../../engine/batch/header.ts';

interface CommittedBatch {
  readonly bytes: Uint8Array;
  readonly baseOffset: number;
  /** Who says so, for people. */
  readonly by: string;
}

export class CommittedLog {
  readonly name: string;
  readonly #batches = new Map<number, CommittedBatch>();
  /** `producer,first sequence` to the base offset. */
  readonly #sequences = new Map<string, number>();
  /** By producer id: the sequence that must come next. */
  readonly #nextSequences = new Map<number, number>();
  #endOffset = 0;
  /** Leader epoch, and what had been committed when a leader of it was last heard of. Invariant: ascending epochs. */
  readonly #endByEpoch: [epoch: number, endOffset: number][] = [];
  acknowledged = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** The offset behind the last batch that is known to be committed. */
  get endOffset(): number {
    return this.#endOffset;
  }

  /** What a leader of this epoch must have: all that leaders before it have committed. */
  endBefore(leaderEpoch: number): number {
    let end = 0;
    for (const [epoch, endOffset] of this.#endByEpoch)
      if (epoch < leaderEpoch) end = Math.max(end, endOffset);
    return end;
  }

  /** A leader of this epoch shows everything below `highWatermark`. */
  noteLeader(leaderEpoch: number, highWatermark: number): void {
    const last = this.#endByEpoch.at(-1);
    if (last !== undefined && last[0] === leaderEpoch) {
      last[1] = Math.max(last[1], highWatermark);
      return;
    }
    this.#endByEpoch.push([leaderEpoch, highWatermark]);
    this.#endByEpoch.sort(([a], [b]) => a - b);
  }

  /**
   * `who` has these batches below its high watermark, without a gap from `fromOffset` on. What nobody has had there before
   * is committed now.
   */
  verify(who: string, bytes: Uint8Array, fromOffset: number): void {
    let next = fromOffset;
    for (let at = 0; at < bytes.length; ) {
      const size = sizeOf(bytes, at);
      assert(size > 0 && at + size <= bytes.length, `${this.name}: ${who} has half a batch`);
      const baseOffset = baseOffsetOf(bytes, at);
      assert(
        at === 0 ? baseOffset <= next : baseOffset === next,
        `I2 ${this.name}: ${who} has nothing from offset ${next} to ${baseOffset}`,
      );
      next = lastOffsetOf(bytes, at) + 1;
      this.#verifyBatch(who, bytes.subarray(at, at + size));
      at += size;
    }
  }

  #verifyBatch(who: string, bytes: Uint8Array): void {
    const baseOffset = baseOffsetOf(bytes, 0);
    const known = this.#batches.get(baseOffset);
    if (known !== undefined) {
      if (Buffer.compare(known.bytes, bytes) === 0) return;
      assert.fail(
        `I2 ${this.name}: at offset ${baseOffset} ${who} has ${describe(bytes)}, and ${known.by} had committed ${describe(known.bytes)}`,
      );
    }
    assert.equal(
      baseOffset,
      this.#endOffset,
      `I2 ${this.name}: ${who} has ${describe(bytes)} below its high watermark, committed is up to ${this.#endOffset}`,
    );
    this.#checkSequence(who, bytes, baseOffset);
    this.#batches.set(baseOffset, { bytes: bytes.slice(), baseOffset, by: who });
    this.#endOffset = lastOffsetOf(bytes, 0) + 1;
  }

  #checkSequence(who: string, bytes: Uint8Array, baseOffset: number): void {
    const producerId = producerIdOf(bytes, 0);
    if (producerId < 0) return;
    const sequence = baseSequenceOf(bytes, 0);
    const expected = this.#nextSequences.get(producerId) ?? 0;
    assert.equal(
      sequence,
      expected,
      `I3/I4 ${this.name}: ${who} has ${describe(bytes)} where producer ${producerId} is at sequence ${expected}`,
    );
    this.#nextSequences.set(producerId, sequence + recordCountOf(bytes, 0));
    this.#sequences.set(`${producerId},${sequence}`, baseOffset);
  }

  /** A client was told that its batch is at this offset (-1: somewhere) with acks=all. */
  acknowledge(producerId: number, sequence: number, offset: number): void {
    this.acknowledged += 1;
    const found = this.#sequences.get(`${producerId},${sequence}`);
    assert(
      found !== undefined,
      `I1 ${this.name}: sequence ${sequence} of producer ${producerId} is acknowledged at ${offset}, and not committed (up to ${this.#endOffset})`,
    );
    if (offset !== -1)
      assert.equal(
        offset,
        found,
        `I1 ${this.name}: sequence ${sequence} of producer ${producerId} is acknowledged at another offset`,
      );
  }

  /** All batches from the beginning, one after another. */
  bytes(): Uint8Array {
    const batches = [...this.#batches.values()].sort((a, b) => a.baseOffset - b.baseOffset);
    return Buffer.concat(batches.map(({ bytes }) => bytes));
  }
}

function describe(bytes: Uint8Array): string {
  const producerId = producerIdOf(bytes, 0);
  const from =
    producerId < 0 ? '' : ` of producer ${producerId} from sequence ${baseSequenceOf(bytes, 0)}`;
  return `a batch${from} (offsets ${baseOffsetOf(bytes, 0)} to ${lastOffsetOf(bytes, 0)}, epoch ${leaderEpochOf(bytes, 0)}, ${bytes.length} bytes)`;
}
