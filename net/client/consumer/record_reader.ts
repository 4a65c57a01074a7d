/**
 * Goes over the records that a broker has sent for one partition: batch by batch, each checked against its checksum and
 * decompressed when it is its turn, so that no more than one lies decompressed. What a reader must not see is left out:
 * control records, transactions that were aborted (read_committed), records before the offset that was asked for.
 *
 * Thread: the client's. Memory: the bytes belong to the answer, or were decompressed for this batch alone.
 */
import { CompressionError } from '../../../engine/batch/compression_error.ts';
import { crc32c } from '../../../engine/batch/crc.ts';
import {
  attributeBits,
  baseOffsetOf,
  baseTimestampOf,
  batchCrcStart,
  batchHeaderBytes,
  batchMagic,
  crcOf,
  hasAttribute,
  lastOffsetOf,
  leaderEpochOf,
  magicOf,
  maxTimestampOf,
  producerIdOf,
  readInt16,
  recordCountOf,
  sizeOf,
} from '../../../engine/batch/header.ts';
import { recordBytesOf } from '../../../engine/batch/records.ts';
import type { Deserializer } from '../serializers.ts';
import { Message, type MessageBatch } from './message.ts';
import { corrupt } from './record_errors.ts';
import { RecordWalker } from './record_walker.ts';
import type { TopicPartition } from './topic_partition.ts';

export interface AbortedTransaction {
  readonly producerId: bigint;
  readonly firstOffset: bigint;
}

/** What is the same for all partitions of a consumer. */
export interface ReaderOptions<K, V> {
  readonly keys: Deserializer<K>;
  readonly values: Deserializer<V>;
  readonly checksCrc: boolean;
  /** Messages of aborted transactions are left out (read_committed). */
  readonly isCommitted: boolean;
  /** Most that one batch may decompress to. */
  readonly decompressedBytesMax: number;
}

/** In a control record's key: version, then this type. */
const abortMarker = 0;

/** Bytes of whole batches at the beginning of `bytes`, and the offset behind them. A broker may cut the last one. */
export function measureBatches(
  bytes: Uint8Array,
  fromOffset: number,
): { length: number; nextOffset: number; lastEpoch: number } {
  let at = 0;
  let nextOffset = fromOffset;
  let lastEpoch = -1;
  while (bytes.length - at >= batchHeaderBytes) {
    const magic = magicOf(bytes, at);
    if (magic !== batchMagic)
      throw corrupt(`records in format ${magic}, which brokers before Kafka 0.11 wrote`);
    const size = sizeOf(bytes, at);
    if (size < batchHeaderBytes) throw corrupt(`a batch of ${size} bytes`);
    if (size > bytes.length - at) break;
    nextOffset = Math.max(nextOffset, lastOffsetOf(bytes, at) + 1);
    lastEpoch = leaderEpochOf(bytes, at);
    at += size;
  }
  return { length: at, nextOffset, lastEpoch };
}

export class RecordReader<K, V> {
  readonly #where: TopicPartition;
  readonly #bytes: Uint8Array;
  readonly #options: ReaderOptions<K, V>;
  /** By first offset, the next one last. Null where everything is read. */
  readonly #aborted: AbortedTransaction[] | null;
  /** Producers within a transaction that will be aborted. */
  readonly #aborting = new Set<number>();
  /** Of the next batch. */
  #at = 0;
  #batch: MessageBatch<K, V> | null = null;
  #walker: RecordWalker | null = null;
  #nextOffset: number;
  #lastEpoch = -1;

  /**
   * @param bytes whole batches, see `measureBatches`
   * @param fromOffset records before it are left out
   * @param aborted of the answer
   */
  constructor(
    where: TopicPartition,
    bytes: Uint8Array,
    fromOffset: number,
    aborted: readonly AbortedTransaction[] | null,
    options: ReaderOptions<K, V>,
  ) {
    this.#where = where;
    this.#bytes = bytes;
    this.#nextOffset = fromOffset;
    this.#options = options;
    this.#aborted =
      aborted === null ? null : [...aborted].sort((a, b) => Number(b.firstOffset - a.firstOffset));
  }

  /** Bytes of the batches that have not been begun. */
  get bytesLeft(): number {
    return this.#bytes.length - this.#at;
  }

  /** Of the first record in the batch that is being read, or is next; null behind the last. */
  get batchTimestampMs(): number | null {
    if (this.#at === this.#bytes.length) return null;
    return Number(baseTimestampOf(this.#bytes, this.#at));
  }

  /** Behind what has been returned or left out so far. */
  get nextOffset(): number {
    return this.#nextOffset;
  }

  /** Of the batch that `nextOffset` is in or behind; -1 before the first. */
  get lastEpoch(): number {
    return this.#batch?.leaderEpoch ?? this.#lastEpoch;
  }

  /** The next message, or null at the end. Throws CORRUPT_MESSAGE, and again at the same place when called again. */
  next(): Message<K, V> | null {
    for (;;) {
      const walker = this.#walker;
      if (walker !== null) {
        const batch = this.#batch as MessageBatch<K, V>;
        const { baseOffset } = batch;
        while (walker.next()) {
          const offset = baseOffset + walker.offsetDelta;
          if (offset < this.#nextOffset) continue;
          this.#nextOffset = offset + 1;
          return new Message(batch, walker.offsetDelta, walker.timestampDelta, walker.at);
        }
        this.#endBatch();
      }
      if (this.#at === this.#bytes.length) return null;
      this.#beginBatch();
    }
  }

  #beginBatch(): void {
    const bytes = this.#bytes;
    const at = this.#at;
    if (lastOffsetOf(bytes, at) < this.#nextOffset) {
      this.#noteMarker(at);
      this.#at = at + sizeOf(bytes, at);
      return;
    }
    this.#check(at);
    if (this.#noteMarker(at) || this.#isAborted(at)) {
      this.#endBatch();
      return;
    }
    this.#batch = this.#describe(at);
    const count = recordCountOf(bytes, at);
    this.#walker = new RecordWalker(
      this.#batch.bytes,
      count,
      `${this.#name} at ${baseOffsetOf(bytes, at)}`,
    );
  }

  #endBatch(): void {
    const bytes = this.#bytes;
    this.#nextOffset = Math.max(this.#nextOffset, lastOffsetOf(bytes, this.#at) + 1);
    this.#lastEpoch = leaderEpochOf(bytes, this.#at);
    this.#at += sizeOf(bytes, this.#at);
    this.#batch = null;
    this.#walker = null;
  }

  get #name(): string {
    return `${this.#where.topic}-${this.#where.partition}`;
  }

  #check(at: number): void {
    if (!this.#options.checksCrc) return;
    const bytes = this.#bytes;
    const found = crc32c(bytes.subarray(at + batchCrcStart, at + sizeOf(bytes, at))) >>> 0;
    if (found !== crcOf(bytes, at))
      throw corrupt(`the batch at ${baseOffsetOf(bytes, at)} of ${this.#name} is damaged`);
  }

  /** True for a control batch; the end of an aborted transaction is taken note of. */
  #noteMarker(at: number): boolean {
    const bytes = this.#bytes;
    if (!hasAttribute(bytes, at, attributeBits.control)) return false;
    if (this.#aborted === null) return true;
    this.#beginAborted(at);
    if (markerType(bytes, at) === abortMarker) this.#aborting.delete(producerIdOf(bytes, at));
    return true;
  }

  #isAborted(at: number): boolean {
    if (this.#aborted === null || !hasAttribute(this.#bytes, at, attributeBits.transactional))
      return false;
    this.#beginAborted(at);
    return this.#aborting.has(producerIdOf(this.#bytes, at));
  }

  /** Transactions that begin in this batch or before. */
  #beginAborted(at: number): void {
    const aborted = this.#aborted ?? [];
    const last = lastOffsetOf(this.#bytes, at);
    for (let one = aborted.at(-1); one !== undefined; one = aborted.at(-1)) {
      if (Number(one.firstOffset) > last) return;
      aborted.pop();
      this.#aborting.add(Number(one.producerId));
    }
  }

  #describe(at: number): MessageBatch<K, V> {
    const bytes = this.#bytes;
    const { keys, values, decompressedBytesMax } = this.#options;
    const isAppendTime = hasAttribute(bytes, at, attributeBits.logAppendTime);
    return {
      topic: this.#where.topic,
      partition: this.#where.partition,
      leaderEpoch: leaderEpochOf(bytes, at),
      baseOffset: baseOffsetOf(bytes, at),
      baseTimestampMs: Number(baseTimestampOf(bytes, at)),
      appendTimeMs: isAppendTime ? Number(maxTimestampOf(bytes, at)) : -1,
      bytes: this.#records(at, decompressedBytesMax),
      keys,
      values,
    };
  }

  #records(at: number, maxBytes: number): Buffer {
    try {
      const bytes = recordBytesOf(this.#bytes, at, maxBytes);
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    } catch (error) {
      if (!(error instanceof CompressionError)) throw error;
      const base = baseOffsetOf(this.#bytes, at);
      throw corrupt(`the batch at ${base} of ${this.#name}: ${error.message}`, error);
    }
  }
}

/** Control batches hold one record and are never compressed: length, attributes, two deltas, key length, key. */
function markerType(bytes: Uint8Array, at: number): number {
  const end = at + sizeOf(bytes, at);
  let from = at + batchHeaderBytes;
  const skipVarint = (): void => {
    while (from < end && (bytes[from] as number) > 0x7f) from += 1;
    from += 1;
  };
  skipVarint();
  from += 1;
  for (let count = 0; count < 3; count += 1) skipVarint();
  return from + 4 <= end ? readInt16(bytes, from + 2) : -1;
}
