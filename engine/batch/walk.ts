/**
 * The framing walk: goes over the records of a batch by their lengths, without making an object, a view or a BigInt,
 * and finds out whether every consumer can read them. This is all the per-record work of the produce path.
 *
 * A record (KIP-98), every number but the attributes a zigzag varint:
 *   length, attributes int8, timestamp delta (varlong), offset delta, key length, key, value length, value,
 *   header count, then per header: key length, key, value length, value. Length -1 is null, where null may be.
 *
 * Stricter than Kafka in three ways, see `RecordFault`: offset deltas must count 0, 1, 2, …, a null length is -1 and
 * no other negative number, and the content of compressed records is checked as that of plain ones.
 */
import { recordBytesMin } from './header.ts';

/** Why a walk stopped. `none` means that all is well. */
export const RecordFault = {
  none: 0,
  /** The bytes end before the stated number of records. */
  cut: 1,
  /** A record's length is less than a record needs or passes the end of the bytes. */
  length: 2,
  /** The offset delta is not the record's index. */
  offsetDelta: 3,
  /** The key's length is below -1 or passes the record's end. */
  key: 4,
  /** The value's length is below -1 or passes the record's end. */
  value: 5,
  /** The header count is negative or too large, or a header passes the record's end or has a null key. */
  headers: 6,
  /** The record's length is not what its content uses. */
  slack: 7,
  /** Bytes follow the last record. */
  trailing: 8,
} as const;
export type RecordFault = (typeof RecordFault)[keyof typeof RecordFault];

/** What a walk found; reused from batch to batch. After a fault only `index` means something. */
export interface RecordWalk {
  /** Index of the record at which a walk found a fault. */
  index: number;
  /** Timestamp deltas in milliseconds, smallest and largest; `maxDeltaIndex` is the first record with the largest. */
  minDelta: number;
  maxDelta: number;
  maxDeltaIndex: number;
  /** A timestamp delta beyond 2^53 was seen, so `minDelta` and `maxDelta` are rounded. */
  wide: boolean;
  nullKeys: number;
}

export function newRecordWalk(): RecordWalk {
  return { index: 0, minDelta: 0, maxDelta: 0, maxDeltaIndex: 0, wide: false, nullKeys: 0 };
}

/** Where the last long varint ended, or one past the limit that was given if it was malformed. */
let cursor = 0;
/** A varlong of the current walk did not fit a double. */
let wide = false;
let nullKeys = 0;

/**
 * Walks `count` records that must fill `buf` from `start` to `end` exactly. Reads nothing beyond `end`; allocates
 * nothing.
 *
 * Varints of one and two bytes, nearly all of them, are decoded where they stand: a call for each cost a quarter
 * more. A field is always followed by another byte of its record, so that the second byte needs no check of its own.
 */
export function walkRecords(
  buf: Uint8Array,
  start: number,
  end: number,
  count: number,
  out: RecordWalk,
): RecordFault {
  let at = start;
  let minDelta = 0;
  let maxDelta = 0;
  let maxDeltaIndex = 0;
  wide = false;
  nullKeys = 0;
  for (let index = 0; index < count; index += 1) {
    if (at + 1 >= end) return stop(out, index, RecordFault.cut);
    let number = buf[at++] as number;
    if (number > 0x7f) {
      const second = buf[at] as number;
      number = second < 0x80 ? twoBytes(number, second) : restOfVarint(buf, at, end, number);
      at = second < 0x80 ? at + 1 : cursor;
    }
    const recordEnd = at + unzigzag(number);
    if (recordEnd > end || recordEnd < at + recordBytesMin - 1) {
      return stop(out, index, RecordFault.length);
    }

    at += 1;
    number = buf[at++] as number;
    let delta = unzigzag(number);
    if (number > 0x7f) {
      const second = buf[at] as number;
      delta =
        second < 0x80
          ? unzigzag(twoBytes(number, second))
          : restOfVarlong(buf, at, recordEnd, number);
      at = second < 0x80 ? at + 1 : cursor;
    }
    if (index === 0) {
      minDelta = delta;
      maxDelta = delta;
    } else if (delta > maxDelta) {
      maxDelta = delta;
      maxDeltaIndex = index;
    } else if (delta < minDelta) minDelta = delta;

    if (at + 1 >= recordEnd) return stop(out, index, RecordFault.slack);
    number = buf[at++] as number;
    if (number > 0x7f) {
      const second = buf[at] as number;
      number = second < 0x80 ? twoBytes(number, second) : restOfVarint(buf, at, recordEnd, number);
      at = second < 0x80 ? at + 1 : cursor;
    }
    if (unzigzag(number) !== index) return stop(out, index, RecordFault.offsetDelta);

    const fault = walkContent(buf, at, recordEnd);
    if (fault !== RecordFault.none) return stop(out, index, fault);
    at = recordEnd;
  }
  if (at !== end) return stop(out, count - 1, RecordFault.trailing);
  out.minDelta = minDelta;
  out.maxDelta = maxDelta;
  out.maxDeltaIndex = maxDeltaIndex;
  out.wide = wide;
  out.nullKeys = nullKeys;
  return RecordFault.none;
}

/** Key, value and headers, which must fill `buf` from `start` to `end` exactly. */
function walkContent(buf: Uint8Array, start: number, end: number): RecordFault {
  let at = start;
  if (at + 1 >= end) return RecordFault.key;
  let number = buf[at++] as number;
  if (number > 0x7f) {
    const second = buf[at] as number;
    number = second < 0x80 ? twoBytes(number, second) : restOfVarint(buf, at, end, number);
    at = second < 0x80 ? at + 1 : cursor;
  }
  // Zigzag: an odd number is negative, and 1 stands for -1.
  if ((number & 1) === 0) at += number >>> 1;
  else if (number === 1) nullKeys += 1;
  else return RecordFault.key;

  if (at + 1 >= end) return RecordFault.value;
  number = buf[at++] as number;
  if (number > 0x7f) {
    const second = buf[at] as number;
    number = second < 0x80 ? twoBytes(number, second) : restOfVarint(buf, at, end, number);
    at = second < 0x80 ? at + 1 : cursor;
  }
  if ((number & 1) === 0) at += number >>> 1;
  else if (number !== 1) return RecordFault.value;

  if (at >= end) return RecordFault.headers;
  number = buf[at++] as number;
  if (number !== 0) at = skipHeaders(buf, at, end, number);
  if (at > end) return RecordFault.headers;
  return at === end ? RecordFault.none : RecordFault.slack;
}

function stop(out: RecordWalk, index: number, fault: RecordFault): RecordFault {
  out.index = index;
  return fault;
}

function twoBytes(first: number, second: number): number {
  return (first & 0x7f) | (second << 7);
}

function unzigzag(value: number): number {
  return (value >>> 1) ^ -(value & 1);
}

/** The bytes after a varint's first, which had its high bit set. The result is not yet unzigzagged. */
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
  cursor = limit + 1;
  return 0;
}

/** As `restOfVarint` for 64 bits, unzigzagged: exact up to 2^53 either way, else rounded with `wide` set. */
function restOfVarlong(buf: Uint8Array, from: number, limit: number, first: number): number {
  let at = from;
  let low = first & 0x7f;
  for (let shift = 7; shift < 28 && at < limit; shift += 7) {
    const byte = buf[at++] as number;
    low |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      cursor = at;
      return unzigzag(low);
    }
  }
  return restOfLongVarlong(buf, at, limit, low);
}

function restOfLongVarlong(buf: Uint8Array, from: number, limit: number, low: number): number {
  let at = from;
  let value = low;
  let scale = 2 ** 28;
  for (let count = 4; count < 10 && at < limit; count += 1, scale *= 128) {
    const byte = buf[at++] as number;
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) {
      cursor = at;
      if (value > Number.MAX_SAFE_INTEGER) wide = true;
      return (low & 1) === 0 ? value / 2 : -(value + 1) / 2;
    }
  }
  cursor = limit + 1;
  return 0;
}

/** Returns where the headers end, or a position past `limit` if they are malformed. */
function skipHeaders(buf: Uint8Array, from: number, limit: number, first: number): number {
  let at = from;
  let count = first;
  if (count > 0x7f) {
    count = restOfVarint(buf, at, limit, count);
    at = cursor;
  }
  if ((count & 1) !== 0) return limit + 1;
  for (let left = count >>> 1; left > 0; left -= 1) {
    for (let part = 0; part < 2; part += 1) {
      if (at >= limit) return limit + 1;
      let length = buf[at++] as number;
      if (length > 0x7f) {
        length = restOfVarint(buf, at, limit, length);
        at = cursor;
      }
      if ((length & 1) === 0) at += length >>> 1;
      else if (part === 0 || length !== 1) return limit + 1;
    }
  }
  return at;
}
