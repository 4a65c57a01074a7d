/**
 * Snappy as Kafka's clients write it: either the framing of xerial's snappy-java (Kafka's Java client, librdkafka,
 * franz-go) or one raw block (sarama and others). Framed: a header of 16 bytes, then blocks of an int32 size and a
 * raw block. Raw block: https://github.com/google/snappy/blob/main/format_description.txt
 *
 * The frames of framing_format.txt in Google's repository are a third format, which Kafka does not use.
 */
import { createRequire } from 'node:module';
import { CompressionError } from './compression_error.ts';
import { readInt32, writeInt32 } from './header.ts';
import type { Scratch } from './scratch.ts';

const xerialMagic = [0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00] as const;
const xerialHeaderBytes = 16;
const xerialVersion = 1;
/** Block size of snappy-java's streams, before compression. */
const blockBytes = 32 * 1024;
/** A copy of 64 bytes takes at least three. */
const expansionMax = 22;

interface Snappy {
  compressSync(input: Uint8Array, options: { copyOutputData: boolean }): Uint8Array;
  uncompressSync(input: Uint8Array, options: { copyOutputData: boolean }): Uint8Array;
}
let snappy: Snappy | null = null;
const copied = { copyOutputData: true };

function load(): Snappy {
  snappy ??= createRequire(import.meta.url)('snappy') as Snappy;
  return snappy;
}

/** Xerial's framing, blocks of 32 KiB. */
export function compressSnappy(input: Uint8Array): Uint8Array {
  const header = new Uint8Array(xerialHeaderBytes);
  header.set(xerialMagic);
  writeInt32(header, 8, xerialVersion);
  writeInt32(header, 12, xerialVersion);
  const parts: Uint8Array[] = [header];
  for (let at = 0; at < input.length; at += blockBytes) {
    const block = load().compressSync(input.subarray(at, at + blockBytes), copied);
    const size = new Uint8Array(4);
    writeInt32(size, 0, block.length);
    parts.push(size, block);
  }
  return Buffer.concat(parts);
}

/** @throws CompressionError */
export function decompressSnappy(
  input: Uint8Array,
  maxBytes: number,
  scratch: Scratch,
): Uint8Array {
  if (!isXerial(input)) return decompressBlock(input, 0, maxBytes);
  let output = scratch.reserve(0, 0);
  let length = 0;
  let at = xerialHeaderBytes;
  while (at < input.length) {
    if (input.length - at < 4) throw corrupt('a block size is cut off');
    const size = readInt32(input, at);
    at += 4;
    if (size < 0 || size > input.length - at) throw corrupt(`a block of ${size} bytes is cut off`);
    const block = decompressBlock(input.subarray(at, at + size), length, maxBytes);
    output = scratch.reserve(length + block.length, length);
    output.set(block, length);
    length += block.length;
    at += size;
  }
  return output.subarray(0, length);
}

function isXerial(input: Uint8Array): boolean {
  return input.length >= xerialHeaderBytes && xerialMagic.every((byte, k) => input[k] === byte);
}

/** The library allocates what a block says it holds, so that is looked at first. */
function decompressBlock(block: Uint8Array, bytesBefore: number, maxBytes: number): Uint8Array {
  const announced = announcedBytes(block);
  if (announced > block.length * expansionMax) {
    throw corrupt(`a block of ${block.length} bytes cannot hold ${announced}`);
  }
  if (bytesBefore + announced > maxBytes) throw CompressionError.tooLarge(maxBytes);
  try {
    return load().uncompressSync(block, copied);
  } catch (error) {
    throw corrupt(`a block does not decode: ${error instanceof Error ? error.message : error}`);
  }
}

/** A raw block starts with its decompressed size, a varint of at most five bytes. */
function announcedBytes(block: Uint8Array): number {
  let bytes = 0;
  let scale = 1;
  for (let at = 0; at < 5 && at < block.length; at += 1, scale *= 128) {
    const byte = block[at] as number;
    bytes += (byte & 0x7f) * scale;
    if (byte < 0x80) return bytes;
  }
  throw corrupt('a block does not start with its size');
}

function corrupt(what: string): CompressionError {
  return new CompressionError('corrupt', `snappy: ${what}`);
}
