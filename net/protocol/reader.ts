/**
 * Reads wire types from a frame. Whatever the bytes say, memory stays bounded by the frame: nothing is allocated
 * for a length or count before the bytes for it are known to be there, and arrays of objects have a budget of
 * elements a message.
 *
 * Thread: any; an instance belongs to one caller at a time and may be used again through `reset`. The frame must
 * not change while values that share its memory (`records`) are in use; all other values are copies.
 */
import { internAscii, internedBytesMax, internUuid } from './interning.ts';

export const decodeLimits = {
  /** Tagged fields in one struct. Kafka's own schemas have at most a handful. */
  taggedFieldsMax: 64,
  /** Structs, strings and byte fields in arrays of one message: an empty one is 1 byte in a frame, 50 in memory. */
  elementsMax: 1_000_000,
} as const;

/** The bytes are not what the protocol asks for. The connection that sent them cannot be trusted any further. */
export class ProtocolError extends Error {
  override readonly name: string = 'ProtocolError';
}

export class Reader {
  bytes: Uint8Array;
  view: DataView;
  /** Invariant: `pos <= end <= bytes.length`, except inside a tagged field, which is checked when it ends. */
  pos: number;
  end: number;
  /** What is being decoded, for error texts: "FetchRequest v12". */
  context = 'frame';
  /** Elements that arrays of this message may still hold; see `decodeLimits.elementsMax`. */
  elementsLeft: number = decodeLimits.elementsMax;

  /** Reads `bytes[offset, end)`. Positions are relative to `bytes`. */
  constructor(bytes: Uint8Array, offset = 0, end: number = bytes.length) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.pos = offset;
    this.end = end;
  }

  /** Starts on another frame. */
  reset(bytes: Uint8Array, offset = 0, end: number = bytes.length): void {
    if (bytes !== this.bytes) {
      this.bytes = bytes;
      this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    this.pos = offset;
    this.end = end;
  }

  /** Called by a codec before the first field. */
  enter(context: string): void {
    this.context = context;
    this.elementsLeft = decodeLimits.elementsMax;
  }

  get remaining(): number {
    return this.end - this.pos;
  }

  /** Skips `length` bytes and returns the position where they start. */
  take(length: number, field: string): number {
    const start = this.pos;
    if (length > this.end - start) this.failUnderrun(length, field);
    this.pos = start + length;
    return start;
  }

  /** An unsigned varint of at most 32 bits. */
  uvarint(field: string): number {
    const first = this.pos < this.end ? (this.bytes[this.pos] as number) : 0x80;
    if (first < 0x80) {
      this.pos += 1;
      return first;
    }
    return this.#longUvarint(field);
  }

  /** Length of a string with an int16 prefix; -1 for null. */
  length16(field: string): number {
    const length = this.view.getInt16(this.take(2, field));
    return this.#checkedLength(length, field);
  }

  /** Length of bytes with an int32 prefix; -1 for null. */
  length32(field: string): number {
    const length = this.view.getInt32(this.take(4, field));
    return this.#checkedLength(length, field);
  }

  /** Length of a compact string; -1 for null. Kafka takes none that the older form could not say. */
  compactTextLength(field: string): number {
    const length = this.compactLength(field);
    if (length > 0x7fff) this.fail(field, `a string of ${length} bytes; the limit is 32767`);
    return length;
  }

  /** Length of compact bytes; -1 for null. */
  compactLength(field: string): number {
    return this.#checkedLength(this.uvarint(field) - 1, field);
  }

  /**
   * Count of an array with an int32 prefix; -1 for null. `elementBytesMin` is the least that an element takes in
   * the frame, `weight` what one costs of the budget of elements: 0 or 1.
   */
  count32(elementBytesMin: number, weight: number, field: string): number {
    const count = this.view.getInt32(this.take(4, field));
    return this.#checkedCount(count, elementBytesMin, weight, field);
  }

  /** Count of a compact array; see `count32`. */
  compactCount(elementBytesMin: number, weight: number, field: string): number {
    return this.#checkedCount(this.uvarint(field) - 1, elementBytesMin, weight, field);
  }

  /** Text of the next `length` bytes, for which `length…` has checked that they are there. */
  text(length: number): string {
    if (length === 0) return '';
    const start = this.pos;
    this.pos = start + length;
    if (length <= internedBytesMax) {
      const text = internAscii(this.bytes, start, length);
      if (text !== null) return text;
    }
    return Buffer.from(this.bytes.buffer, this.bytes.byteOffset + start, length).toString('utf8');
  }

  /** A copy of the next `length` bytes: it does not keep the frame's memory alive. */
  copy(length: number): Uint8Array {
    const copy = new Uint8Array(length);
    copy.set(this.bytes.subarray(this.pos, this.pos + length));
    this.pos += length;
    return copy;
  }

  /** The next `length` bytes where they are: valid as long as the frame's memory is. */
  share(length: number): Uint8Array {
    const start = this.bytes.byteOffset + this.pos;
    this.pos += length;
    return new Uint8Array(this.bytes.buffer, start, length);
  }

  /** The uuid at `position`, inside bytes that `take` returned. */
  uuidAt(position: number): string {
    return internUuid(this.view, position);
  }

  /** Number of tagged fields of a struct. */
  tagCount(field: string): number {
    const count = this.uvarint(field);
    if (count > decodeLimits.taggedFieldsMax) {
      this.fail(
        field,
        `${count} tagged fields, and at most ${decodeLimits.taggedFieldsMax} are allowed`,
      );
    }
    return count;
  }

  /** Reads the size of a tagged field and returns the position where it ends. */
  tagEnd(field: string): number {
    const size = this.uvarint(field);
    if (size > this.end - this.pos) this.failUnderrun(size, field);
    return this.pos + size;
  }

  /** Skips a whole tag section of a struct that knows no tags. */
  skipTags(field: string): void {
    for (let count = this.tagCount(field); count > 0; count -= 1) {
      this.uvarint(field);
      this.pos = this.tagEnd(field);
    }
  }

  failNull(field: string): never {
    return this.fail(field, 'null, which this version does not allow');
  }

  failTag(field: string, tag: number, end: number): never {
    return this.fail(field, `tag ${tag} ends at byte ${this.pos}, but its size says ${end}`);
  }

  failUnderrun(length: number, field: string): never {
    const left = this.end - this.pos;
    return this.fail(field, `${length} bytes announced or needed, ${left} left in the frame`);
  }

  /** Throws a ProtocolError that names the message and the field. */
  fail(field: string, reason: string): never {
    throw new ProtocolError(`${this.context}: ${field}: ${reason}`);
  }

  #longUvarint(field: string): number {
    let value = 0;
    for (let shift = 0; shift <= 28; shift += 7) {
      const byte = this.bytes[this.take(1, field)] as number;
      if (shift === 28 && byte > 0x0f) break;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    return this.fail(field, 'a varint of more than 32 bits');
  }

  #checkedLength(length: number, field: string): number {
    if (length > this.end - this.pos) this.failUnderrun(length, field);
    if (length < -1) this.fail(field, `a negative length, ${length}`);
    return length;
  }

  #checkedCount(count: number, elementBytesMin: number, weight: number, field: string): number {
    const left = this.end - this.pos;
    if (count * elementBytesMin > left) {
      const needed = `${count} elements of at least ${elementBytesMin} bytes`;
      this.fail(field, `${needed} announced, ${left} bytes left in the frame`);
    }
    if (count < -1) this.fail(field, `a negative count, ${count}`);
    if (weight !== 0 && count > 0) {
      this.elementsLeft -= count;
      if (this.elementsLeft < 0) {
        const limit = `a message may hold ${decodeLimits.elementsMax} array elements`;
        this.fail(field, `${limit}: split the request`);
      }
    }
    return count;
  }
}
