/**
 * Zigzag varints of records, for reading and writing records as objects. The produce path does not come here: see
 * `walk.ts`.
 */

/** Reads varints one after the other. Throws a RangeError on bytes that end too early or a number that is too long. */
export class VarintReader {
  readonly buf: Uint8Array;
  readonly end: number;
  at: number;

  constructor(buf: Uint8Array, at: number, end: number) {
    this.buf = buf;
    this.at = at;
    this.end = end;
  }

  /** A 32-bit number, of five bytes at most. */
  varint(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte();
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return (value >>> 1) ^ -(value & 1);
    }
    throw new RangeError(`varint of more than five bytes at ${this.at}`);
  }

  /** A 64-bit number, of ten bytes at most. */
  varlong(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.byte();
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) {
        value = BigInt.asUintN(64, value);
        return BigInt.asIntN(64, (value >> 1n) ^ -(value & 1n));
      }
    }
    throw new RangeError(`varlong of more than ten bytes at ${this.at}`);
  }

  byte(): number {
    if (this.at >= this.end) throw new RangeError(`the bytes end at ${this.end}`);
    return this.buf[this.at++] as number;
  }

  /** A view of the next `length` bytes, or null for -1. */
  bytes(length: number): Uint8Array | null {
    if (length === -1) return null;
    if (length < 0 || length > this.end - this.at) {
      throw new RangeError(`length ${length} at ${this.at} of ${this.end}`);
    }
    this.at += length;
    return this.buf.subarray(this.at - length, this.at);
  }
}

export function varintBytes(value: number): number {
  return unsignedBytes(((value << 1) ^ (value >> 31)) >>> 0);
}

export function varlongBytes(value: bigint): number {
  let rest = zigzag64(value);
  let bytes = 1;
  for (; rest > 0x7fn; rest >>= 7n) bytes += 1;
  return bytes;
}

/** Writes at `at` and returns where the number ends. */
export function writeVarint(buf: Uint8Array, at: number, value: number): number {
  let rest = ((value << 1) ^ (value >> 31)) >>> 0;
  let end = at;
  for (; rest > 0x7f; rest >>>= 7) buf[end++] = (rest & 0x7f) | 0x80;
  buf[end++] = rest;
  return end;
}

/** Writes at `at` and returns where the number ends. */
export function writeVarlong(buf: Uint8Array, at: number, value: bigint): number {
  let rest = zigzag64(value);
  let end = at;
  for (; rest > 0x7fn; rest >>= 7n) buf[end++] = Number(rest & 0x7fn) | 0x80;
  buf[end++] = Number(rest);
  return end;
}

function unsignedBytes(value: number): number {
  if (value < 1 << 7) return 1;
  if (value < 1 << 14) return 2;
  if (value < 1 << 21) return 3;
  return value < 1 << 28 ? 4 : 5;
}

function zigzag64(value: bigint): bigint {
  return BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
}
