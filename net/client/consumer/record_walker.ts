/**
 * Steps from record to record by their lengths and reads the two deltas in front; key, value and headers stay where they
 * are. No object is made for a record.
 */
import { corrupt } from './record_errors.ts';

export class RecordWalker {
  readonly #bytes: Uint8Array;
  readonly #where: string;
  #left: number;
  /** Of the next record. */
  #next = 0;
  /** Of the record that `next` has stepped to: milliseconds, offsets, and where its key's length stands. */
  timestampDelta = 0;
  offsetDelta = 0;
  at = 0;

  /** @param bytes `count` records, decompressed */
  constructor(bytes: Uint8Array, count: number, where: string) {
    this.#bytes = bytes;
    this.#left = count;
    this.#where = where;
  }

  /** False behind the last record. Throws CORRUPT_MESSAGE. */
  next(): boolean {
    if (this.#left === 0) return false;
    const bytes = this.#bytes;
    const start = this.#next;
    let at = start;
    let byte = bytes[at++] as number;
    let length = byte & 0x7f;
    for (let shift = 7; byte > 0x7f && shift < 35; shift += 7) {
      byte = bytes[at++] as number;
      length |= (byte & 0x7f) << shift;
    }
    const end = at + ((length >>> 1) ^ -(length & 1));
    // Attributes, of which none has a meaning yet.
    at += 1;
    byte = bytes[at++] as number;
    if (byte < 0x80) this.timestampDelta = (byte >>> 1) ^ -(byte & 1);
    else at = this.#longDelta(byte & 0x7f, at);
    byte = bytes[at++] as number;
    let delta = byte & 0x7f;
    for (let shift = 7; byte > 0x7f && shift < 35; shift += 7) {
      byte = bytes[at++] as number;
      delta |= (byte & 0x7f) << shift;
    }
    this.offsetDelta = (delta >>> 1) ^ -(delta & 1);
    // A record holds three bytes at least behind its deltas. Comparisons with undefined, from behind the end, are false.
    if (!(at + 3 <= end && end <= bytes.length)) this.#fail();
    this.at = at;
    this.#next = end;
    this.#left -= 1;
    return true;
  }

  /** A varlong of more than one byte: exact up to 2^53 either way. Returns where it ends. */
  #longDelta(first: number, from: number): number {
    const bytes = this.#bytes;
    let value = first;
    let scale = 128;
    let at = from;
    for (let count = 1; count < 10; count += 1, scale *= 128) {
      const byte = bytes[at++] as number;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) break;
    }
    this.timestampDelta = (first & 1) === 0 ? value / 2 : -(value + 1) / 2;
    return at;
  }

  #fail(): never {
    throw corrupt(`${this.#where}: ${this.#left} records do not fit into their batch`);
  }
}
