/**
 * Goes over the records of a batch by their framing, for the cleaner: where each begins and ends, its offset delta,
 * timestamp, key and whether it has a value. Makes no object a record; see `walk.ts` for the format.
 *
 * Thread: the cleaner's. Unlike the produce path's walk it takes offset deltas with gaps, as compaction leaves them.
 */

/** A batch that no consumer could read; the text says what is wrong. */
export class UnreadableBatchError extends Error {
  override readonly name = 'UnreadableBatchError';
}

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

  /**
   * The next record. Varints of one and two bytes, nearly all of them, are decoded where they stand, as in `walk.ts`. What
   * reads past the end of the records reads zeros or bytes of its own, and is found by the comparisons with `end`.
   * @throws UnreadableBatchError
   */
  next(): void {
    const buf = this.#buf;
    const limit = this.#end;
    let at = this.#at;
    this.start = at;
    let number = buf[at++] as number;
    if (number > 0x7f) {
      const second = buf[at] as number;
      number =
        second < 0x80 ? (number & 0x7f) | (second << 7) : restOfVarint(buf, at, limit, number);
      at = second < 0x80 ? at + 1 : cursor;
    }
    const end = at + unzigzag(number);
    this.bodyStart = at;
    if (end > limit || end < at + 6)
      throw new UnreadableBatchError(`a record of ${end - at} bytes where ${limit - at} are left`);
    at += 1;
    number = buf[at++] as number;
    this.isWide = false;
    if (number < 0x80) this.timestampDelta = unzigzag(number);
    else {
      this.timestampDelta = restOfVarlong(buf, at, end, number);
      this.isWide = isLastWide;
      at = cursor;
    }
    this.afterTimestamp = at;
    number = buf[at++] as number;
    if (number > 0x7f) {
      const second = buf[at] as number;
      number = second < 0x80 ? (number & 0x7f) | (second << 7) : restOfVarint(buf, at, end, number);
      at = second < 0x80 ? at + 1 : cursor;
    }
    this.offsetDelta = unzigzag(number);
    number = buf[at++] as number;
    if (number > 0x7f) {
      const second = buf[at] as number;
      number = second < 0x80 ? (number & 0x7f) | (second << 7) : restOfVarint(buf, at, end, number);
      at = second < 0x80 ? at + 1 : cursor;
    }
    const keyLength = unzigzag(number);
    this.keyLength = keyLength;
    this.keyStart = at;
    if (keyLength > 0) at += keyLength;
    if (keyLength < -1 || at >= end)
      throw new UnreadableBatchError(`a record's key of ${keyLength} bytes passes its end`);
    number = buf[at++] as number;
    if (number > 0x7f) {
      number = restOfVarint(buf, at, end, number);
      at = cursor;
    }
    const valueLength = unzigzag(number);
    this.hasValue = valueLength >= 0;
    if (valueLength < -1 || at + valueLength > end)
      throw new UnreadableBatchError(`a record's value of ${valueLength} bytes passes its end`);
    this.end = end;
    this.#at = end;
  }
}

/** Where the last long varint ended. */
let cursor = 0;
/** The last varlong did not fit a double. */
let isLastWide = false;

function unzigzag(value: number): number {
  return (value >>> 1) ^ -(value & 1);
}

/** The bytes after a varint's first, which had its high bit set. */
function restOfVarint(buf: Uint8Array, from: number, limit: number, first: number): number {
  let at = from;
  let value = first & 0x7f;
  for (let shift = 7; shift < 35 && at < limit; shift += 7) {
    const byte = buf[at++] as number;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      cursor = at;
      return value;
    }
  }
  throw new UnreadableBatchError('a varint of more than five bytes, or that does not end');
}

function restOfVarlong(buf: Uint8Array, from: number, limit: number, first: number): number {
  let at = from;
  let value = first & 0x7f;
  isLastWide = false;
  for (let scale = 128; at < limit && at < from + 9; scale *= 128) {
    const byte = buf[at++] as number;
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) {
      cursor = at;
      if (value > Number.MAX_SAFE_INTEGER) isLastWide = true;
      return (first & 1) === 0 ? value / 2 : -(value + 1) / 2;
    }
  }
  throw new UnreadableBatchError('a varlong of more than ten bytes, or that does not end');
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
