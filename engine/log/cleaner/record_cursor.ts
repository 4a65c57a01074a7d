/**
 * Goes over the records of a batch by their framing, for the cleaner: where each begins and ends, its offset delta,
 * timestamp, key and whether it has a value. Makes no object a record; see `walk.ts` for the format.
 *
 * Thread: the cleaner's. Unlike the produce path's walk it takes offset deltas with gaps, as compaction leaves them.
 */

/** A batch that no consumer could read; the text says what is wrong. */
export class UnreadableBatchError extends Error {}

const two31 = 0x8000_0000;

export class RecordCursor {
  #buf: Uint8Array = new Uint8Array(0);
  #at = 0;
  #end = 0;
  /** The record that `next` found lies in the bytes from `start` up to `end`, its length field included. */
  start = 0;
  end = 0;
  /** After the length field: the record's attributes. */
  bodyStart = 0;
  /** Behind the timestamp delta. */
  afterTimestamp = 0;
  /** Milliseconds after the batch's base timestamp; beyond 2^53 either way it is rounded, and `isWide` set. */
  timestampDelta = 0;
  isWide: boolean = false;
  offsetDelta = 0;
  keyStart = 0;
  /** -1: no key. */
  keyLength = 0;
  hasValue: boolean = false;

  /** Begins with the records that fill `buf` from `start` to `end`. */
  reset(buf: Uint8Array, start: number, end: number): void {
    this.#buf = buf;
    this.#at = start;
    this.#end = end;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#end;
  }

  /** The next record. @throws UnreadableBatchError */
  next(): void {
    this.start = this.#at;
    const length = this.#varint();
    this.bodyStart = this.#at;
    const end = this.#at + length;
    if (length < 6 || end > this.#end)
      throw new UnreadableBatchError(
        `a record of ${length} bytes where ${this.#end - this.#at} are left`,
      );
    this.#at += 1;
    this.timestampDelta = this.#varlong();
    this.afterTimestamp = this.#at;
    this.offsetDelta = this.#varint();
    this.keyLength = this.#varint();
    this.keyStart = this.#at;
    if (this.keyLength > 0) this.#at += this.keyLength;
    if (this.keyLength < -1 || this.#at >= end)
      throw new UnreadableBatchError(`a record's key of ${this.keyLength} bytes passes its end`);
    const valueLength = this.#varint();
    this.hasValue = valueLength >= 0;
    if (valueLength < -1 || this.#at + Math.max(0, valueLength) > end)
      throw new UnreadableBatchError(`a record's value of ${valueLength} bytes passes its end`);
    this.end = end;
    this.#at = end;
  }

  #varint(): number {
    const first = this.#byte();
    if (first < 0x80) return (first >>> 1) ^ -(first & 1);
    let value = first & 0x7f;
    for (let shift = 7; shift < 35; shift += 7) {
      const byte = this.#byte();
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return (value >>> 1) ^ -(value & 1);
    }
    throw new UnreadableBatchError('a varint of more than five bytes');
  }

  #varlong(): number {
    let byte = this.#byte();
    this.isWide = false;
    if (byte < 0x80) return (byte >>> 1) ^ -(byte & 1);
    let value = byte & 0x7f;
    const isOdd = (byte & 1) !== 0;
    let scale = 128;
    for (let count = 1; count < 10; count += 1, scale *= 128) {
      byte = this.#byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (value > Number.MAX_SAFE_INTEGER) this.isWide = true;
        return isOdd ? -(value + 1) / 2 : value / 2;
      }
    }
    throw new UnreadableBatchError('a varlong of more than ten bytes');
  }

  #byte(): number {
    if (this.#at >= this.#end) throw new UnreadableBatchError('the records end early');
    return this.#buf[this.#at++] as number;
  }
}

/** Bytes of a zigzag varlong; `value` is an integer within 2^52 either way. */
export function varlongLength(value: number): number {
  let rest = value >= 0 ? value * 2 : -value * 2 - 1;
  let bytes = 1;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes += 1;
  return bytes;
}

/** Writes it at `at` and returns where it ends. */
export function writeVarlongNumber(buf: Uint8Array, at: number, value: number): number {
  let rest = value >= 0 ? value * 2 : -value * 2 - 1;
  let end = at;
  while (rest >= two31) {
    buf[end++] = (rest % 128) | 0x80;
    rest = Math.floor(rest / 128);
  }
  for (; rest > 0x7f; rest >>>= 7) buf[end++] = (rest & 0x7f) | 0x80;
  buf[end++] = rest;
  return end;
}
