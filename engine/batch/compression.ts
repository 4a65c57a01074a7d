/**
 * Compression of a batch's records: gzip, snappy, LZ4 and zstd, as Kafka's clients write them.
 *
 * Every decoder is bounded: it never produces more than the limit it is given, whatever the bytes promise, and what it
 * allocates is bounded by that limit and by what bytes of the input's number can expand to. A stream must end where
 * the input ends: some consumers choke on bytes behind it.
 *
 * Libraries are loaded at first use, so that a broker that never meets a codec does not pay for it.
 */
import { createRequire } from 'node:module';
import { CompressionError } from './compression_error.ts';
import { Codec } from './header.ts';
import { compressLz4Frame, decompressLz4Frame } from './lz4.ts';
import { Scratch } from './scratch.ts';
import { compressSnappy, decompressSnappy } from './snappy.ts';

/** Concatenated zstd frames that are read as one stream, at most; clients write one. */
const zstdFramesMax = 64;
/** zlib's output memory a step; it is made anew for each call. */
const chunkBytesMin = 16 * 1024;
const chunkBytesMax = 1024 * 1024;

type Zlib = typeof import('node:zlib');
let zlib: Zlib | null = null;

function loadZlib(): Zlib {
  zlib ??= createRequire(import.meta.url)('node:zlib') as Zlib;
  return zlib;
}

/**
 * Decompresses `input`, at most to `maxBytes` bytes. The result may lie in `scratch` and is then valid until that is
 * used again; without a scratch it is memory of its own (or `input` itself, under `Codec.none`).
 *
 * @param codec as in a batch's attributes, any number
 * @throws CompressionError and nothing else
 */
export function decompress(
  codec: number,
  input: Uint8Array,
  maxBytes: number,
  scratch: Scratch = new Scratch(),
): Uint8Array {
  switch (codec) {
    case Codec.none:
      return input;
    case Codec.gzip:
      return runZlib('gzip', input, maxBytes, loadZlib().gunzipSync).output;
    case Codec.snappy:
      return decompressSnappy(input, maxBytes, scratch);
    case Codec.lz4:
      return decompressLz4Frame(input, maxBytes, scratch);
    case Codec.zstd:
      return decompressZstd(input, maxBytes);
    default:
      throw new CompressionError(
        'unsupported',
        `compression codec ${codec} is not assigned (0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd)`,
      );
  }
}

/** Compresses `input` at the codec's default level. The result is memory of its own (or `input`, under `none`). */
export function compress(codec: Codec, input: Uint8Array): Uint8Array {
  switch (codec) {
    case Codec.none:
      return input;
    case Codec.gzip:
      return loadZlib().gzipSync(input);
    case Codec.snappy:
      return compressSnappy(input);
    case Codec.lz4:
      return compressLz4Frame(input);
    case Codec.zstd:
      return loadZlib().zstdCompressSync(input);
  }
}

/** Node's zstd stops after the first frame and says how far it came. */
function decompressZstd(input: Uint8Array, maxBytes: number): Uint8Array {
  const decode = loadZlib().zstdDecompressSync;
  const first = runZlib('zstd', input, maxBytes, decode, true);
  if (first.consumed === input.length) return first.output;
  const parts = [first.output];
  let at = first.consumed;
  let left = maxBytes - first.output.length;
  while (at < input.length) {
    if (parts.length === zstdFramesMax) {
      throw new CompressionError('corrupt', `zstd: more than ${zstdFramesMax} frames`);
    }
    const { output, consumed } = runZlib('zstd', input.subarray(at), left, decode, true);
    parts.push(output);
    at += consumed;
    left -= output.length;
  }
  return Buffer.concat(parts);
}

/** With the option `info` these functions return, beside the output, the stream that made it. */
interface ZlibInfo {
  buffer: Uint8Array;
  engine: { bytesWritten: number };
}

type Decode = (
  input: Uint8Array,
  options: { info: boolean; maxOutputLength: number; chunkSize: number },
) => unknown;

function runZlib(
  name: string,
  input: Uint8Array,
  maxBytes: number,
  decode: Decode,
  framesMayFollow = false,
): { output: Uint8Array; consumed: number } {
  const chunkSize = Math.min(Math.max(input.length * 4, chunkBytesMin), chunkBytesMax);
  let result: ZlibInfo;
  try {
    result = decode(input, { info: true, maxOutputLength: maxBytes, chunkSize }) as ZlibInfo;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if ('code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') {
      throw CompressionError.tooLarge(maxBytes);
    }
    throw new CompressionError('corrupt', `${name}: ${error.message}`);
  }
  const consumed = result.engine.bytesWritten;
  if (!framesMayFollow && consumed !== input.length) {
    throw new CompressionError(
      'corrupt',
      `${name}: ${input.length - consumed} bytes follow its end`,
    );
  }
  return { output: result.buffer, consumed };
}
