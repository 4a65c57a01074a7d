/**
 * The few Kafka messages that the load clients and the bare sink speak, in old versions without tagged
 * fields that every broker still serves (KIP-896): ApiVersions 0, Metadata 4, CreateTopics 4, Produce 7,
 * Fetch 4, ListOffsets 1, DeleteTopics 3. It shares no code with the broker's codec: a client that used
 * the codec under test would hide its mistakes and change speed with it.
 */
export const ApiKey = {
  produce: 0,
  fetch: 1,
  listOffsets: 2,
  metadata: 3,
  apiVersions: 18,
  createTopics: 19,
  deleteTopics: 20,
} as const;

export const ApiVersion = {
  produce: 7,
  fetch: 4,
  listOffsets: 1,
  metadata: 4,
  createTopics: 4,
  deleteTopics: 3,
} as const;

/** Where the correlation id stands in a request frame, its four bytes of length included. */
export const CORRELATION_AT = 8;

/** Big-endian writer that grows. */
export class ByteWriter {
  #buffer = Buffer.allocUnsafe(256);
  #length = 0;

  #take(bytes: number): number {
    const at = this.#length;
    this.#length += bytes;
    if (this.#length > this.#buffer.length) {
      const grown = Buffer.allocUnsafe(Math.max(this.#length, this.#buffer.length * 2));
      this.#buffer.copy(grown, 0, 0, at);
      this.#buffer = grown;
    }
    return at;
  }

  int8(value: number): this {
    const at = this.#take(1);
    this.#buffer.writeInt8(value, at);
    return this;
  }

  int16(value: number): this {
    const at = this.#take(2);
    this.#buffer.writeInt16BE(value, at);
    return this;
  }

  int32(value: number): this {
    const at = this.#take(4);
    this.#buffer.writeInt32BE(value, at);
    return this;
  }

  /** A 64-bit integer from a safe number. */
  int64(value: number): this {
    const at = this.#take(8);
    this.#buffer.writeBigInt64BE(BigInt(value), at);
    return this;
  }

  string(value: string | null): this {
    if (value === null) return this.int16(-1);
    const bytes = Buffer.from(value, 'utf8');
    return this.int16(bytes.length).raw(bytes);
  }

  /** Length-prefixed bytes (RECORDS, BYTES). */
  bytes(value: Uint8Array): this {
    return this.int32(value.length).raw(value);
  }

  array<T>(values: readonly T[], write: (value: T) => void): this {
    this.int32(values.length);
    for (const value of values) write(value);
    return this;
  }

  raw(value: Uint8Array): this {
    const at = this.#take(value.length);
    this.#buffer.set(value, at);
    return this;
  }

  /** The bytes so far behind their length: a whole frame. */
  frame(): Buffer {
    const frame = Buffer.allocUnsafe(this.#length + 4);
    frame.writeInt32BE(this.#length, 0);
    this.#buffer.copy(frame, 4, 0, this.#length);
    return frame;
  }
}

/** Big-endian reader; out-of-range reads throw Node's RangeError. */
export class ByteReader {
  readonly #buffer: Buffer;
  position: number;

  constructor(buffer: Buffer, position = 0) {
    this.#buffer = buffer;
    this.position = position;
  }

  int8(): number {
    return this.#buffer.readInt8(this.#advance(1));
  }

  int16(): number {
    return this.#buffer.readInt16BE(this.#advance(2));
  }

  int32(): number {
    return this.#buffer.readInt32BE(this.#advance(4));
  }

  /** A 64-bit integer as a number; exact up to 2^53, beyond which no offset of a benchmark goes. */
  int64(): number {
    return Number(this.#buffer.readBigInt64BE(this.#advance(8)));
  }

  string(): string | null {
    const length = this.int16();
    if (length < 0) return null;
    const at = this.#advance(length);
    return this.#buffer.toString('utf8', at, at + length);
  }

  /** Length-prefixed bytes as a view; null bytes are empty. */
  bytes(): Buffer {
    const length = Math.max(0, this.int32());
    const at = this.#advance(length);
    return this.#buffer.subarray(at, at + length);
  }

  /** The next bytes as a view. */
  take(bytes: number): Buffer {
    const at = this.#advance(bytes);
    return this.#buffer.subarray(at, at + bytes);
  }

  array<T>(read: () => T): T[] {
    const count = this.int32();
    const values: T[] = [];
    for (let index = 0; index < count; index += 1) values.push(read());
    return values;
  }

  #advance(bytes: number): number {
    const at = this.position;
    this.position += bytes;
    return at;
  }
}

/** A writer that has the request header (version 1) in it; the correlation id is set when it is sent. */
export function request(apiKey: number, apiVersion: number): ByteWriter {
  return new ByteWriter().int16(apiKey).int16(apiVersion).int32(0).string('millrace-bench');
}
