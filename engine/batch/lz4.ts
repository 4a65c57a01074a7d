/**
 * The LZ4 frame format, as Kafka's clients write it: https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md
 *
 * Decoded here and not by lz4-napi, which cannot bound its output, reads only the first of several frames without
 * saying so, takes a frame without its end mark, and leaves its results to be freed when the event loop turns: a
 * thousand batches of a megabyte checked in one turn kept a gigabyte. Blocks must be independent of each other:
 * Kafka's Java clients read no others.
 */
import { createRequire } from 'node:module';
import { CompressionError } from './compression_error.ts';
import type { Scratch } from './scratch.ts';

const frameMagic = 0x184d_2204;
const flagBits = {
  versionMask: 0xc0,
  version: 0x40,
  independent: 0x20,
  blockChecksums: 0x10,
  contentSize: 0x08,
  contentChecksum: 0x04,
  reserved: 0x02,
  dictionary: 0x01,
} as const;
/** In a block's size: the block is stored as it is. */
const storedBit = 0x8000_0000;
/** A byte of a compressed block stands for at most this many. */
const expansionMax = 255;
/** What `decodeBlock` returns instead of a position. */
const blockCorrupt = -1;
const blockTooLarge = -2;

interface Hashing {
  xxh32(input: Uint8Array): number;
}
interface Lz4 {
  compressFrameSync(data: Buffer): Buffer;
}
let hashing: Hashing | null = null;
let lz4: Lz4 | null = null;

/** One frame of independent blocks, without checksums of blocks or content. */
export function compressLz4Frame(input: Uint8Array): Uint8Array {
  lz4 ??= createRequire(import.meta.url)('lz4-napi') as Lz4;
  return lz4.compressFrameSync(Buffer.from(input.buffer, input.byteOffset, input.byteLength));
}

/** Decompresses one frame that `input` holds exactly. @throws CompressionError */
export function decompressLz4Frame(
  input: Uint8Array,
  maxBytes: number,
  scratch: Scratch,
): Uint8Array {
  const header = readFrameHeader(input);
  const source = memoryOf(input);
  let target = memoryOf(scratch.reserve(0, 0));
  let length = 0;
  let at = header.end;
  for (;;) {
    const word = readUint32(input, at);
    at += 4;
    if (word === 0) break;
    const stored = word >= storedBit;
    const size = stored ? word - storedBit : word;
    if (size > header.blockBytesMax)
      throw corrupt(`a block of ${size} bytes is larger than it may`);
    if (size > input.length - at) throw corrupt('the last block is cut off');
    const blockLimit = length + Math.min(header.blockBytesMax, stored ? size : size * expansionMax);
    const limit = Math.min(blockLimit, maxBytes);
    const output = scratch.reserve(limit, length);
    if (output !== target.bytes) target = memoryOf(output);
    const end = stored
      ? copyBlock(input, at, size, output, length, limit)
      : decodeBlock(source, at, at + size, target, length, limit);
    if (end === blockTooLarge && limit === maxBytes) throw CompressionError.tooLarge(maxBytes);
    if (end < 0) throw corrupt('a block does not decode');
    length = end;
    at += size;
    if (header.blockChecksums) {
      checkHash(input, at, input.subarray(at - size, at), 'block');
      at += 4;
    }
  }
  const result = target.bytes.subarray(0, length);
  if (header.contentChecksum) {
    checkHash(input, at, result, 'content');
    at += 4;
  }
  if (at !== input.length) throw corrupt(`${input.length - at} bytes follow its end`);
  return result;
}

interface FrameHeader {
  blockBytesMax: number;
  blockChecksums: boolean;
  contentChecksum: boolean;
  /** Where the first block's size stands. */
  end: number;
}

function readFrameHeader(input: Uint8Array): FrameHeader {
  if (readUint32(input, 0) !== frameMagic) throw corrupt('does not start with its magic number');
  const flags = input[4] ?? 0;
  const blockCode = ((input[5] ?? 0) >> 4) & 0x07;
  if ((flags & flagBits.versionMask) !== flagBits.version) throw corrupt('version is not 1');
  if ((flags & flagBits.independent) === 0) {
    throw corrupt('its blocks depend on each other, which Kafka clients in Java cannot read');
  }
  if ((flags & (flagBits.reserved | flagBits.dictionary)) !== 0) {
    throw corrupt('needs a dictionary or an unknown feature');
  }
  if (blockCode < 4) throw corrupt(`block size code ${blockCode} is not assigned`);
  const end = (flags & flagBits.contentSize) !== 0 ? 15 : 7;
  if (end > input.length) throw corrupt('is cut off in its header');
  const hash = (xxh32(input.subarray(4, end - 1)) >>> 8) & 0xff;
  if (input[end - 1] !== hash) throw corrupt('the header checksum is wrong');
  return {
    // 64 KiB, 256 KiB, 1 MiB, 4 MiB.
    blockBytesMax: 1 << (8 + 2 * blockCode),
    blockChecksums: (flags & flagBits.blockChecksums) !== 0,
    contentChecksum: (flags & flagBits.contentChecksum) !== 0,
    end,
  };
}

function copyBlock(
  input: Uint8Array,
  from: number,
  size: number,
  output: Uint8Array,
  length: number,
  limit: number,
): number {
  if (size > limit - length) return blockTooLarge;
  output.set(input.subarray(from, from + size), length);
  return length + size;
}

/** Memory with a view of it that copies four bytes at once. */
interface Memory {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** Up to here, copies may go 32 bytes beyond what they are asked for: what lies there is not yet in use. */
  readonly wideEnd: number;
}

function memoryOf(bytes: Uint8Array): Memory {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { bytes, view, wideEnd: bytes.length - 32 };
}

/**
 * Decodes the block `source[from, end)` to `target` at `start`, not beyond `limit`; returns where the output ends, or
 * `blockCorrupt` or `blockTooLarge`. A block is a row of sequences: literals, then a match, a copy of bytes that came
 * before. The last one ends after its literals.
 */
function decodeBlock(
  source: Memory,
  from: number,
  end: number,
  target: Memory,
  start: number,
  limit: number,
): number {
  const input = source.bytes;
  let at = from;
  let out = start;
  while (at < end) {
    const token = input[at++] as number;
    let literals = token >>> 4;
    for (let byte = literals === 15 ? 255 : 0; byte === 255 && at < end; ) {
      byte = input[at++] as number;
      literals += byte;
    }
    if (literals > end - at) return blockCorrupt;
    if (literals > limit - out) return blockTooLarge;
    copyLiterals(source, at, target, out, literals);
    at += literals;
    out += literals;
    if (at === end) return out;
    if (end - at < 2) return blockCorrupt;
    const distance = (input[at] as number) | ((input[at + 1] as number) << 8);
    at += 2;
    let size = (token & 15) + 4;
    for (let byte = size === 19 ? 255 : 0; byte === 255 && at < end; ) {
      byte = input[at++] as number;
      size += byte;
    }
    if (distance === 0 || distance > out - start) return blockCorrupt;
    if (size > limit - out) return blockTooLarge;
    copyMatch(target, out, distance, size);
    out += size;
  }
  return blockCorrupt;
}

/** Most literals are few: they are copied in steps of fixed size, which may go too far. */
function copyLiterals(source: Memory, at: number, target: Memory, out: number, size: number): void {
  if (size <= 16 && at <= source.wideEnd && out <= target.wideEnd) {
    const { view: from } = source;
    const { view: to } = target;
    to.setInt32(out, from.getInt32(at));
    to.setInt32(out + 4, from.getInt32(at + 4));
    if (size <= 8) return;
    to.setInt32(out + 8, from.getInt32(at + 8));
    to.setInt32(out + 12, from.getInt32(at + 12));
  } else if (size <= 32) {
    for (let k = 0; k < size; k += 1) target.bytes[out + k] = source.bytes[at + k] as number;
  } else target.bytes.set(source.bytes.subarray(at, at + size), out);
}

/** Repeats `size` bytes from `distance` before `out`; where they overlap, the repetition repeats itself. */
function copyMatch(
  { bytes, view, wideEnd }: Memory,
  out: number,
  distance: number,
  size: number,
): void {
  const end = out + size;
  if (size <= 32 && distance >= 4 && out <= wideEnd) {
    view.setInt32(out, view.getInt32(out - distance));
    view.setInt32(out + 4, view.getInt32(out + 4 - distance));
    if (size <= 8) return;
    for (let to = out + 8; to < end; to += 4) view.setInt32(to, view.getInt32(to - distance));
  } else if (size <= 32) {
    for (let to = out; to < end; to += 1) bytes[to] = bytes[to - distance] as number;
  } else {
    // Each step copies all that has been repeated so far.
    for (let to = out, period = distance; to < end; period *= 2) {
      const part = Math.min(period, end - to);
      bytes.copyWithin(to, to - period, to - period + part);
      to += part;
    }
  }
}

function checkHash(input: Uint8Array, at: number, bytes: Uint8Array, what: string): void {
  if (readUint32(input, at) !== xxh32(bytes)) throw corrupt(`a ${what} checksum is wrong`);
}

function xxh32(bytes: Uint8Array): number {
  hashing ??= createRequire(import.meta.url)('@node-rs/xxhash') as Hashing;
  return hashing.xxh32(bytes) >>> 0;
}

function readUint32(input: Uint8Array, at: number): number {
  if (at + 4 > input.length) throw corrupt('is cut off');
  return (
    ((input[at] as number) |
      ((input[at + 1] as number) << 8) |
      ((input[at + 2] as number) << 16) |
      ((input[at + 3] as number) << 24)) >>>
    0
  );
}

function corrupt(what: string): CompressionError {
  return new CompressionError('corrupt', `LZ4 frame: ${what}`);
}
