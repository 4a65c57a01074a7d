/**
 * Makes a batch out of another one's header and some of its records: their bytes as they are or, where the base
 * timestamp gives way to a delete horizon, with their timestamp deltas counted from that.
 *
 * Thread: the cleaner's. Memory is used again from batch to batch.
 */
import { crc32c } from '../../batch/crc.ts';
import {
  attributeBits,
  attributesOf,
  batchCrcStart,
  batchHeaderBytes,
  batchOffset,
  batchOverheadBytes,
  writeInt16,
  writeInt32,
  writeInt64,
  writeInt64Number,
} from '../../batch/header.ts';
import { Scratch } from '../../batch/scratch.ts';
import { writeVarint } from '../../batch/varint.ts';
import { RecordCursor, varlongLength, writeVarlongNumber } from './record_cursor.ts';

/** What a record grows by at the most: a delta of ten bytes where there was one, a length of five. */
const growthMax = 14;

export class BatchRewriter {
  /** Ranges of records that stay, as pairs of start and end; neighbours joined. */
  #spans: Int32Array = new Int32Array(256);
  #spanCount = 0;
  #bytes = 0;
  /** Records that stay. */
  count = 0;
  readonly #body = new Scratch();
  readonly #batch = new Scratch();
  readonly #cursor = new RecordCursor();
  #size = 0;
  #memory: Uint8Array = new Uint8Array(0);

  get bytes(): Uint8Array {
    return this.#memory.subarray(0, this.#size);
  }

  clear(): void {
    this.#spanCount = 0;
    this.#bytes = 0;
    this.count = 0;
  }

  /** `count` records from `start` up to `end` stay. Ranges come in order. */
  addSpan(start: number, end: number, count: number): void {
    this.count += count;
    this.#bytes += end - start;
    const at = this.#spanCount * 2;
    if (at > 0 && this.#spans[at - 1] === start) {
      this.#spans[at - 1] = end;
      return;
    }
    if (at === this.#spans.length) {
      const grown = new Int32Array(this.#spans.length * 2);
      grown.set(this.#spans);
      this.#spans = grown;
    }
    this.#spans[at] = start;
    this.#spans[at + 1] = end;
    this.#spanCount += 1;
  }

  /** The records that stay, one behind the other. */
  join(records: Uint8Array): Uint8Array {
    const out = this.#body.reserve(this.#bytes, 0);
    let at = 0;
    for (let span = 0; span < this.#spanCount; span += 1) {
      const start = this.#spans[span * 2] as number;
      const end = this.#spans[span * 2 + 1] as number;
      out.set(records.subarray(start, end), at);
      at += end - start;
    }
    return out.subarray(0, at);
  }

  /** The same with `shift` added to every timestamp delta. */
  rebase(records: Uint8Array, shift: number): Uint8Array {
    const cursor = this.#cursor;
    const out = this.#body.reserve(this.#bytes + this.count * growthMax, 0);
    let at = 0;
    for (let span = 0; span < this.#spanCount; span += 1) {
      cursor.reset(records, this.#spans[span * 2] as number, this.#spans[span * 2 + 1] as number);
      while (!cursor.isAtEnd) {
        cursor.next();
        const delta = cursor.timestampDelta + shift;
        const rest = cursor.end - cursor.afterTimestamp;
        at = writeVarint(out, at, 1 + varlongLength(delta) + rest);
        out[at] = records[cursor.bodyStart] as number;
        at = writeVarlongNumber(out, at + 1, delta);
        out.set(records.subarray(cursor.afterTimestamp, cursor.end), at);
        at += rest;
      }
    }
    return out.subarray(0, at);
  }

  /**
   * Makes the batch: the header at `start` of `buf` with what changes, and `body` as its records.
   * @param horizonMs null: the base timestamp stays
   */
  make(
    buf: Uint8Array,
    start: number,
    body: Uint8Array,
    maxTimestamp: bigint,
    horizonMs: number | null,
  ): void {
    const batch = this.#begin(buf, start, batchHeaderBytes + body.length);
    batch.set(body, batchHeaderBytes);
    if (horizonMs !== null) {
      writeInt16(
        batch,
        batchOffset.attributes,
        attributesOf(buf, start) | attributeBits.deleteHorizon,
      );
      writeInt64Number(batch, batchOffset.baseTimestamp, horizonMs);
    }
    writeInt64(batch, batchOffset.maxTimestamp, maxTimestamp);
    writeInt32(batch, batchOffset.recordCount, this.count);
    this.#seal(batch);
  }

  /** Makes the batch that is left when no record stays: a header that says whose it was and which offsets it had. */
  makeEmpty(buf: Uint8Array, start: number): void {
    const batch = this.#begin(buf, start, batchHeaderBytes);
    const gone = attributeBits.codecMask | attributeBits.deleteHorizon;
    writeInt16(batch, batchOffset.attributes, attributesOf(buf, start) & ~gone);
    const maxTimestampAt = batchOffset.maxTimestamp;
    batch.copyWithin(batchOffset.baseTimestamp, maxTimestampAt, maxTimestampAt + 8);
    writeInt32(batch, batchOffset.recordCount, 0);
    this.#seal(batch);
  }

  #begin(buf: Uint8Array, start: number, size: number): Uint8Array {
    this.#size = size;
    this.#memory = this.#batch.reserve(size, 0);
    this.#memory.set(buf.subarray(start, start + batchHeaderBytes));
    writeInt32(this.#memory, batchOffset.length, size - batchOverheadBytes);
    return this.#memory;
  }

  #seal(batch: Uint8Array): void {
    writeInt32(batch, batchOffset.crc, crc32c(batch.subarray(batchCrcStart, this.#size)) | 0);
  }
}
