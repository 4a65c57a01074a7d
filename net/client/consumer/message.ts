/**
 * Messages as they are handed out: a few numbers and the place in the received bytes. Key, value and headers are read when
 * they are asked for, and the deserializers run then; what nobody looks at costs nothing.
 *
 * Memory: a message keeps the bytes of the whole answer that it came in alive (at most `maxBytes` of the consumer's
 * options). Who keeps many messages for long copies what it needs.
 */
import { type Deserializer, stringDeserializer } from '../serializers.ts';
import { corrupt } from './record_errors.ts';

/** Name and value; a name may come several times. */
export type MessageHeader = readonly [name: string, value: Buffer | null];

/** What the messages of one record batch share. */
export interface MessageBatch<K, V> {
  readonly topic: string;
  readonly partition: number;
  readonly leaderEpoch: number;
  readonly baseOffset: number;
  readonly baseTimestampMs: number;
  /** Of every message where the topic says so (LogAppendTime); -1 where each has its own. */
  readonly appendTimeMs: number;
  readonly bytes: Buffer;
  readonly keys: Deserializer<K>;
  readonly values: Deserializer<V>;
}

/** `undefined` stands for "not read yet". */
export class Message<K, V> {
  readonly #batch: MessageBatch<K, V>;
  readonly #offsetDelta: number;
  readonly #timestampDelta: number;
  /** Where the length of the key stands. */
  readonly #at: number;
  #key: K | null | undefined = undefined;
  #value: V | null | undefined = undefined;

  constructor(batch: MessageBatch<K, V>, offsetDelta: number, timestampDelta: number, at: number) {
    this.#batch = batch;
    this.#offsetDelta = offsetDelta;
    this.#timestampDelta = timestampDelta;
    this.#at = at;
  }

  get topic(): string {
    return this.#batch.topic;
  }

  get partition(): number {
    return this.#batch.partition;
  }

  get offset(): number {
    return this.#batch.baseOffset + this.#offsetDelta;
  }

  /** Since 1970; -1 for none. */
  get timestampMs(): number {
    const { appendTimeMs, baseTimestampMs } = this.#batch;
    return appendTimeMs >= 0 ? appendTimeMs : baseTimestampMs + this.#timestampDelta;
  }

  /** Of the leader that took it in, which a commit passes on; -1 if not known. */
  get leaderEpoch(): number {
    return this.#batch.leaderEpoch;
  }

  /** Throws what the deserializer throws. */
  get key(): K | null {
    if (this.#key !== undefined) return this.#key;
    const { bytes, keys } = this.#batch;
    const length = readVarint(bytes, this.#at);
    this.#key = length < 0 ? null : decode(bytes, cursor, length, keys);
    return this.#key;
  }

  /** Throws what the deserializer throws. */
  get value(): V | null {
    if (this.#value !== undefined) return this.#value;
    const { bytes, values } = this.#batch;
    skipField(bytes, this.#at);
    const length = readVarint(bytes, cursor);
    this.#value = length < 0 ? null : decode(bytes, cursor, length, values);
    return this.#value;
  }

  get headers(): readonly MessageHeader[] {
    const { bytes } = this.#batch;
    skipField(bytes, this.#at);
    skipField(bytes, cursor);
    const count = readVarint(bytes, cursor);
    const headers: MessageHeader[] = [];
    for (let left = count; left > 0; left -= 1) {
      const keyLength = readVarint(bytes, cursor);
      const at = cursor;
      const key = bytes.toString('utf8', at, at + keyLength);
      const valueLength = readVarint(bytes, at + keyLength);
      const valueAt = cursor;
      const value = valueLength < 0 ? null : bytes.subarray(valueAt, valueAt + valueLength);
      cursor = valueAt + Math.max(0, valueLength);
      headers.push([key, value]);
    }
    return headers;
  }

  toJSON(): Record<string, unknown> {
    const { topic, partition, offset, timestampMs, key, value, headers } = this;
    return { topic, partition, offset, timestampMs, key, value, headers };
  }
}

/** For `console.log`, to which what lies behind getters is nothing. */
Object.defineProperty(Message.prototype, Symbol.for('nodejs.util.inspect.custom'), {
  value(this: Message<unknown, unknown>): Record<string, unknown> {
    return this.toJSON();
  },
});

function decode<T>(bytes: Buffer, at: number, length: number, deserializer: Deserializer<T>): T {
  const end = at + length;
  if (end > bytes.length) throw corrupt('a field ends behind its batch');
  // The usual one: without a view that nobody sees.
  if (deserializer === (stringDeserializer as unknown)) return bytes.toString('utf8', at, end) as T;
  return deserializer(bytes.subarray(at, end));
}

/** Where the last varint ended. */
let cursor = 0;

/** A zigzag varint of 32 bits. */
function readVarint(bytes: Uint8Array, from: number): number {
  const first = bytes[from] as number;
  if (first < 0x80) {
    cursor = from + 1;
    return (first >>> 1) ^ -(first & 1);
  }
  let value = first & 0x7f;
  let at = from + 1;
  for (let shift = 7; shift < 35; shift += 7) {
    const byte = bytes[at] as number;
    at += 1;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      cursor = at;
      return (value >>> 1) ^ -(value & 1);
    }
  }
  throw corrupt('a length of more than five bytes');
}

function skipField(bytes: Uint8Array, from: number): void {
  const length = readVarint(bytes, from);
  if (length > 0) cursor += length;
}
