/**
 * A batch that is being filled: records are encoded straight into the memory that goes to the socket, so that a record
 * costs no object but the promise of its delivery.
 *
 * Thread: the client's. Memory: its own, from a pool of the producer's; not changed between `seal` and the answer.
 */
import { compress } from '../../engine/batch/compression.ts';
import { crc32c } from '../../engine/batch/crc.ts';
import {
  batchCrcStart,
  batchHeaderBytes,
  batchMagic,
  batchOffset,
  batchOverheadBytes,
  Codec,
  writeInt16,
  writeInt32,
  writeInt64Number,
} from '../../engine/batch/header.ts';
import { varlongBytes, writeVarlong } from '../../engine/batch/varint.ts';
import type { BufferPool } from './buffer_pool.ts';
import type { HeldRecords } from './call.ts';

/** Where a delivered message is. */
export interface RecordMetadata {
  readonly topic: string;
  readonly partition: number;
  /** -1 where the broker does not say: with acks 0, and where a message had been stored long before it was asked again. */
  readonly offset: number;
  /** The message's own, or the broker's, where the topic has message.timestamp.type=LogAppendTime. */
  readonly timestampMs: number;
}

/** Settles one message's promise: with where it is, or with a promise that is rejected. */
export type Settle = (outcome: RecordMetadata | Promise<never>) => void;

/** Text is written as UTF-8. */
export type Field = string | Uint8Array | null;

/** No headers: their count. */
export const noHeaderBytes: Uint8Array = new Uint8Array(1);
const deltaMax = 0x3fff_ffff;

export class RecordBatch {
  /** When the first record came in, by `performance.now()`. */
  readonly createdMs: number;
  readonly timestamps: number[] = [];
  readonly settles: Settle[] = [];
  /** Of the first record; -1 until the batch is sent for the first time. */
  baseSequence = -1;
  /** Its place among the batches with sequences of its partition; what it is cut into counts as well. */
  ordinal = -1;
  isSent: boolean = false;
  /** Takes no more records. */
  isClosed: boolean = false;
  /** Requests that have carried it. */
  attempts = 0;
  /** Called once it is delivered or has failed. */
  onDone: (() => void)[] | null = null;
  readonly #pool: BufferPool;
  readonly #bytesMax: number;
  #bytes: Buffer;
  #end: number = batchHeaderBytes;
  #baseTimestamp = 0;
  #maxTimestamp = -1;
  #sealed: HeldRecords | null = null;

  /** @param bytesMax what it may hold, unless its first record alone is larger */
  constructor(pool: BufferPool, bytesMax: number, bytesExpected: number, createdMs: number) {
    this.#pool = pool;
    this.#bytesMax = bytesMax;
    this.createdMs = createdMs;
    this.#bytes = pool.take(Math.min(bytesMax, bytesExpected));
  }

  get count(): number {
    return this.timestamps.length;
  }

  /** Bytes so far, with the header, not compressed. */
  get byteLength(): number {
    return this.#end;
  }

  /** Bytes that go over the wire; known once sealed. */
  get sealedBytes(): number {
    return this.#sealed?.byteLength ?? this.#end;
  }

  /**
   * Adds a record, whose promise `settles` is to be given right after. Returns the bytes that it takes, or 0 when it does not
   * fit.
   *
   * @param keyLength bytes of the key, -1 for null; so for the value
   * @param headers count and headers, encoded
   */
  append(
    timestampMs: number,
    key: Field,
    keyLength: number,
    value: Field,
    valueLength: number,
    headers: Uint8Array,
  ): number {
    const index = this.timestamps.length;
    if (index === 0) this.#baseTimestamp = timestampMs;
    const delta = timestampMs - this.#baseTimestamp;
    const isNear = delta <= deltaMax && delta >= -deltaMax;
    const length =
      1 +
      (isNear ? varintLength(delta) : varlongBytes(BigInt(delta))) +
      varintLength(index) +
      (keyLength < 0 ? 1 : varintLength(keyLength) + keyLength) +
      (valueLength < 0 ? 1 : varintLength(valueLength) + valueLength) +
      headers.length;
    const whole = varintLength(length) + length;
    const end = this.#end + whole;
    if (end > this.#bytesMax && index > 0) return 0;
    if (end > this.#bytes.length) this.#grow(end);
    const bytes = this.#bytes;
    let at = writeVarint(bytes, this.#end, length);
    bytes[at] = 0;
    at += 1;
    at = isNear ? writeVarint(bytes, at, delta) : writeVarlong(bytes, at, BigInt(delta));
    at = writeVarint(bytes, at, index);
    at = writeField(bytes, at, key, keyLength);
    at = writeField(bytes, at, value, valueLength);
    if (headers.length === 1) bytes[at] = headers[0] as number;
    else bytes.set(headers, at);
    this.#end = end;
    if (timestampMs > this.#maxTimestamp) this.#maxTimestamp = timestampMs;
    this.timestamps.push(timestampMs);
    return whole;
  }

  /** The batch as it goes over the wire. Compressed and put together once, unless `unseal` was called. */
  seal(codec: Codec, producerId: number, producerEpoch: number): HeldRecords {
    if (this.#sealed !== null) return this.#sealed;
    let bytes: Uint8Array = this.#bytes.subarray(0, this.#end);
    if (codec !== Codec.none) {
      const body = compress(codec, bytes.subarray(batchHeaderBytes));
      bytes = Buffer.allocUnsafeSlow(batchHeaderBytes + body.length);
      bytes.set(body, batchHeaderBytes);
    }
    writeInt64Number(bytes, batchOffset.baseOffset, 0);
    writeInt32(bytes, batchOffset.length, bytes.length - batchOverheadBytes);
    writeInt32(bytes, batchOffset.leaderEpoch, -1);
    bytes[batchOffset.magic] = batchMagic;
    writeInt16(bytes, batchOffset.attributes, codec);
    writeInt32(bytes, batchOffset.lastOffsetDelta, this.count - 1);
    writeInt64Number(bytes, batchOffset.baseTimestamp, this.#baseTimestamp);
    writeInt64Number(bytes, batchOffset.maxTimestamp, this.#maxTimestamp);
    writeInt64Number(bytes, batchOffset.producerId, producerId);
    writeInt16(bytes, batchOffset.producerEpoch, producerEpoch);
    writeInt32(bytes, batchOffset.baseSequence, this.baseSequence);
    writeInt32(bytes, batchOffset.recordCount, this.count);
    writeInt32(bytes, batchOffset.crc, crc32c(bytes.subarray(batchCrcStart)) | 0);
    this.#sealed = { byteLength: bytes.length, bytes };
    return this.#sealed;
  }

  /** The next `seal` puts it together anew: with another producer epoch and sequence. */
  unseal(): void {
    // What may still lie in a socket's queue must not change.
    if (this.#sealed !== null && this.#sealed.bytes.buffer === this.#bytes.buffer)
      this.#bytes = Buffer.from(this.#bytes.subarray(0, this.#end));
    this.#sealed = null;
  }

  /** The records, not compressed, and what their timestamps count from. */
  records(): { bytes: Uint8Array; baseTimestamp: bigint } {
    const bytes = this.#bytes.subarray(batchHeaderBytes, this.#end);
    return { bytes, baseTimestamp: BigInt(this.#baseTimestamp) };
  }

  /** Delivered. `appendTimeMs` is -1 where the records keep their own timestamps. */
  deliver(topic: string, partition: number, baseOffset: number, appendTimeMs: number): void {
    const { settles, timestamps } = this;
    for (let index = 0; index < settles.length; index += 1) {
      const offset = baseOffset < 0 ? -1 : baseOffset + index;
      const timestampMs = appendTimeMs < 0 ? (timestamps[index] as number) : appendTimeMs;
      (settles[index] as Settle)({ topic, partition, offset, timestampMs });
    }
    // An earlier attempt's socket may still refer to it.
    if (this.attempts <= 1) this.#pool.give(this.#bytes);
    this.#done();
  }

  /** Its memory may still be referred to by a socket, and is not used again. */
  fail(error: unknown): void {
    for (const settle of this.settles) settle(Promise.reject(error));
    this.#done();
  }

  /** `parts` hold its records and promises from now on. */
  handOver(parts: readonly RecordBatch[]): void {
    let left = parts.length;
    const done = (): void => {
      left -= 1;
      if (left === 0) this.#done();
    };
    for (const part of parts) part.onDone = [done];
  }

  #done(): void {
    for (const done of this.onDone ?? []) done();
    this.onDone = null;
  }

  #grow(needed: number): void {
    const capacity = Math.max(needed, Math.min(this.#bytesMax, this.#bytes.length * 2));
    const grown = this.#pool.take(capacity);
    grown.set(this.#bytes.subarray(0, this.#end));
    this.#pool.give(this.#bytes);
    this.#bytes = grown;
  }
}

/** Bytes of a signed varint. */
function varintLength(value: number): number {
  const zigzag = ((value << 1) ^ (value >> 31)) >>> 0;
  if (zigzag < 1 << 7) return 1;
  if (zigzag < 1 << 14) return 2;
  if (zigzag < 1 << 21) return 3;
  return zigzag < 1 << 28 ? 4 : 5;
}

function writeVarint(bytes: Uint8Array, start: number, value: number): number {
  let rest = ((value << 1) ^ (value >> 31)) >>> 0;
  let at = start;
  while (rest > 0x7f) {
    bytes[at] = (rest & 0x7f) | 0x80;
    at += 1;
    rest >>>= 7;
  }
  bytes[at] = rest;
  return at + 1;
}

/** Text of up to this many bytes is copied in a loop, which takes less than the call into the runtime. */
const loopBytesMax = 24;

function writeField(bytes: Buffer, start: number, field: Field, length: number): number {
  const at = writeVarint(bytes, start, length);
  if (field === null) return at;
  if (typeof field !== 'string') {
    bytes.set(field, at);
  } else if (length <= loopBytesMax && length === field.length) {
    // As many bytes as characters: all ASCII.
    for (let index = 0; index < length; index += 1) bytes[at + index] = field.charCodeAt(index);
  } else {
    bytes.write(field, at, length, 'utf8');
  }
  return at + length;
}
