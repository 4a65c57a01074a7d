/**
 * The LZ4 frame format, as Kafka's clients write it: https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md
 *
 * Decoded here and not by lz4-napi, which cannot bound its output, reads only the first of several frames without
 * saying so and takes a stream that lacks its end mark; it was not faster either. Blocks must be independent of each
 * other: Kafka's Java clients read no others.
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
  let output = scratch.reserve(0, 0);
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
    output = scratch.reserve(limit, length);
    const end = stored
      ? copyBlock(input, at, size, output, length, limit)
      : decodeBlock(input, at, at + size, output, length, limit);
    if (end === blockTooLarge && limit === maxBytes) throw CompressionError.tooLarge(maxBytes);
    if (end < 0) throw corrupt('a block does not decode');
    length = end;
    at += size;
    if (header.blockChecksums) {
      checkHash(input, at, input.subarray(at - size, at), 'block');
      at += 4;
    }
  }
  const result = output.subarray(0, length);
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

/**
 * Decodes the block `input[from, end)` to `output` at `start`, not beyond `limit`; returns where the output ends, or
 * `blockCorrupt` or `blockTooLarge`.
 */
function decodeBlock(
  input: Uint8Array,
  from: number,
  end: number,
  output: Uint8Array,
  start: number,
  limit: number,
): number {
  let at = from;
  let out = start;
  while (at < end) {
    const token = input[at++] as number;
    let literals = token >>> 4;
    if (literals === 15) {
      let byte = 255;
      while (byte === 255 && at < end) {
        byte = input[at++] as number;
        literals += byte;
      }
    }
    if (literals > end - at) return blockCorrupt;
    if (literals > limit - out) return blockTooLarge;
    if (literals <= 32) for (let k = 0; k < literals; k += 1) output[out + k] = input[at + k]!;
    else output.set(input.subarray(at, at + literals), out);
    at += literals;
    out += literals;
    // The last sequence of a block ends after its literals.
    if (at === end) return out;
    if (end - at < 2) return blockCorrupt;
    const distance = (input[at] as number) | ((input[at + 1] as number) << 8);
    at += 2;
    let size = (token & 15) + 4;
    if (size === 19) {
      let byte = 255;
      while (byte === 255 && at < end) {
        byte = input[at++] as number;
        size += byte;
      }
    }
    if (distance === 0 || distance > out - start) return blockCorrupt;
    if (size > limit - out) return blockTooLarge;
    out = copyMatch(output, out, distance, size);
  }
  return blockCorrupt;
}

/** Repeats `size` bytes from `distance` before `out`; where they overlap, the repetition repeats itself. */
function copyMatch(output: Uint8Array, out: number, distance: number, size: number): number {
  const end = out + size;
  if (size <= 32) {
    for (let at = out; at < end; at += 1) output[at] = output[at - distance] as number;
    return end;
  }
  let filled = out;
  let period = distance;
  while (filled < end) {
    const part = Math.min(period, end - filled);
    output.copyWithin(filled, filled - period, filled - period + part);
    filled += part;
    period *= 2;
  }
  return end;
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
