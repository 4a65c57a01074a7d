/**
 * Writes wire types into memory that grows. Frames are carved one after another out of chunks, so that a finished
 * frame is never copied and small frames share an allocation; a chunk is garbage once all its frames are.
 *
 * Record data that is not in memory (a range of a segment file) is written as its length and a hole: `finish`
 * names the places where the transport has to insert it.
 *
 * Thread: any; an instance belongs to one caller at a time. Wrong values are errors of the program, not of a
 * peer: they throw plain errors that name the message and the field.
 */
import assert from 'node:assert/strict';
import type { ExternalRecords } from './messages.gen.ts';

export interface Hole {
  /** Where the data belongs: it goes before the byte at this offset of `bytes`. */
  readonly at: number;
  readonly value: ExternalRecords;
}

export interface Encoded {
  readonly bytes: Uint8Array;
  /** In ascending order of `at`. */
  readonly holes: readonly Hole[];
}

/** A string takes more bytes than its length has room for: peers can bring that about (`RequestContext.respond`). */
export class StringTooLongError extends Error {
  override readonly name: string = 'StringTooLongError';
}

const chunkBytes = 64 * 1024;
const noHoles: readonly Hole[] = [];
const base64urlValues: Int8Array = base64urlTable();

export class Writer {
  bytes: Buffer;
  view: DataView;
  /** Where the frame starts in `bytes`, and where the next byte goes. Invariant: `start <= pos <= bytes.length`. */
  start = 0;
  pos = 0;
  /** What is being encoded, for error texts: "FetchResponse v12". */
  context = 'frame';
  /** Bytes of all holes so far. */
  externalBytes = 0;
  #holes: Hole[] | null = null;

  constructor(capacity: number = chunkBytes) {
    this.bytes = Buffer.allocUnsafeSlow(capacity);
    this.view = new DataView(this.bytes.buffer);
  }

  /** Bytes of the frame so far, holes not counted. */
  get length(): number {
    return this.pos - this.start;
  }

  /** Called by a codec before the first field. */
  enter(context: string): void {
    this.context = context;
  }

  /** Makes room for `length` bytes and returns their position. `view` and `bytes` may be others afterwards. */
  reserve(length: number): number {
    const position = this.pos;
    if (length > this.bytes.length - position) return this.#grow(length);
    this.pos = position + length;
    return position;
  }

  /**
   * Ends the frame and returns it. It stays valid; the writer goes on behind it. It is a view of a chunk: copy what
   * is kept for long or posted to another thread, or the whole chunk goes along.
   */
  finish(): Encoded {
    const bytes = new Uint8Array(this.bytes.buffer, this.start, this.pos - this.start);
    const holes = this.#holes ?? noHoles;
    this.start = this.pos;
    this.externalBytes = 0;
    this.#holes = null;
    return { bytes, holes };
  }

  /** Drops what was written of the frame, after an error. */
  abandon(): void {
    this.pos = this.start;
    this.externalBytes = 0;
    this.#holes = null;
  }

  uvarint(value: number): void {
    let rest = value;
    let position = this.reserve(5);
    while (rest > 0x7f) {
      this.bytes[position] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
      position += 1;
    }
    this.bytes[position] = rest;
    this.pos = position + 1;
  }

  int8(value: number): void {
    const position = this.reserve(1);
    this.bytes[position] = value;
  }

  int16(value: number): void {
    const position = this.reserve(2);
    this.view.setInt16(position, value);
  }

  int32(value: number): void {
    const position = this.reserve(4);
    this.view.setInt32(position, value);
  }

  /** An int64 into bytes that `reserve` returned. A number must be an integer of at most 53 bits. */
  int64At(position: number, value: bigint | number): void {
    if (typeof value === 'bigint') {
      this.view.setBigInt64(position, value);
      return;
    }
    const high = Math.floor(value / 0x1_0000_0000);
    this.view.setInt32(position, high);
    this.view.setUint32(position + 4, value - high * 0x1_0000_0000);
  }

  /** A uuid in Kafka's text form into bytes that `reserve` returned. */
  uuidAt(position: number, text: string): void {
    if (text.length !== 22) throw new Error(`${this.context}: "${text}" is not a uuid`);
    const bytes = this.bytes;
    let target = position;
    let bits = 0;
    let count = 0;
    for (let at = 0; at < 22; at += 1) {
      const value = base64urlValues[text.charCodeAt(at) & 0x7f] as number;
      if (value < 0) throw new Error(`${this.context}: "${text}" is not a uuid`);
      bits = ((bits << 6) | value) & 0xffff;
      count += 6;
      if (count >= 8) {
        count -= 8;
        bytes[target] = bits >> count;
        target += 1;
      }
    }
  }

  /** A string with an int16 prefix. */
  text16(text: string): void {
    const length = text.length;
    const position = this.reserve(2 + length);
    if (this.#ascii(text, position + 2)) {
      if (length > 0x7fff) this.#failLong(length);
      this.view.setInt16(position, length);
      return;
    }
    this.pos = position;
    const size = Buffer.byteLength(text);
    if (size > 0x7fff) this.#failLong(size);
    this.int16(size);
    this.#utf8(text, size);
  }

  /** A compact string. */
  compactText(text: string): void {
    const length = text.length;
    if (length < 0x7f) {
      const position = this.reserve(1 + length);
      if (this.#ascii(text, position + 1)) {
        this.bytes[position] = length + 1;
        return;
      }
      this.pos = position;
    }
    const size = Buffer.byteLength(text);
    this.uvarint(size + 1);
    this.#utf8(text, size);
  }

  /** Bytes with an int32 prefix. */
  bytes32(value: Uint8Array): void {
    this.int32(value.length);
    this.raw(value);
  }

  compactBytes(value: Uint8Array): void {
    this.uvarint(value.length + 1);
    this.raw(value);
  }

  /** Record data with an int32 prefix; it becomes a hole where it is not in memory. */
  records32(value: Uint8Array | ExternalRecords): void {
    this.int32(value.byteLength);
    this.#records(value);
  }

  compactRecords(value: Uint8Array | ExternalRecords): void {
    this.uvarint(value.byteLength + 1);
    this.#records(value);
  }

  /** Copies `value` as it is. */
  raw(value: Uint8Array): void {
    const position = this.reserve(value.length);
    this.bytes.set(value, position);
  }

  /** Writes a tag and leaves room for a size of one byte; `endTag` takes what this returns. */
  beginTag(tag: number): number {
    this.uvarint(tag);
    return this.reserve(1) + 1 - this.start;
  }

  /** Writes the size of the tagged field, and moves the field where the size takes more than one byte. */
  endTag(begin: number): void {
    const from = this.start + begin;
    const size = this.pos - from;
    if (size < 0x80) {
      this.bytes[from - 1] = size;
      return;
    }
    let extra = 0;
    for (let rest = size >>> 7; rest > 0; rest >>>= 7) extra += 1;
    this.reserve(extra);
    const moved = this.start + begin;
    this.bytes.copyWithin(moved + extra, moved, moved + size);
    this.pos = moved - 1;
    this.uvarint(size);
    this.pos = moved + extra + size;
  }

  failNull(field: string): never {
    return this.fail(field, 'null, which this version does not allow');
  }

  /** For a field that the version does not have and that must not be dropped silently. */
  failAbsent(field: string): never {
    return this.fail(field, 'set, but this version does not have it');
  }

  fail(field: string, reason: string): never {
    throw new Error(`${this.context}: ${field}: ${reason}`);
  }

  #failLong(size: number): never {
    throw new StringTooLongError(`${this.context}: a string of ${size} bytes; the limit is 32767`);
  }

  #records(value: Uint8Array | ExternalRecords): void {
    if (value instanceof Uint8Array) {
      this.raw(value);
      return;
    }
    if (value.byteLength === 0) return;
    this.#holes ??= [];
    this.#holes.push({ at: this.pos - this.start, value });
    this.externalBytes += value.byteLength;
  }

  /** Writes `text` at `position` while it is ASCII; false when it is not. The room is reserved. */
  #ascii(text: string, position: number): boolean {
    const bytes = this.bytes;
    const length = text.length;
    for (let at = 0; at < length; at += 1) {
      const code = text.charCodeAt(at);
      if (code > 0x7f) return false;
      bytes[position + at] = code;
    }
    return true;
  }

  #utf8(text: string, size: number): void {
    const position = this.reserve(size);
    this.bytes.write(text, position, size, 'utf8');
  }

  /** Moves the frame to a new chunk with room for `length` more bytes, and reserves them. */
  #grow(length: number): number {
    const used = this.pos - this.start;
    const needed = used + length;
    assert(needed <= 0x7fffffff, `${this.context}: a frame of ${needed} bytes; the limit is 2 GiB`);
    const bytes = Buffer.allocUnsafeSlow(needed > chunkBytes / 4 ? needed * 2 : chunkBytes);
    bytes.set(this.bytes.subarray(this.start, this.pos));
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer);
    this.start = 0;
    this.pos = used + length;
    return used;
  }
}

function base64urlTable(): Int8Array {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const table = new Int8Array(128).fill(-1);
  for (let value = 0; value < 64; value += 1) table[alphabet.charCodeAt(value)] = value;
  return table;
}
