import assert from 'node:assert/strict';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { xxh32 } from '@node-rs/xxhash';
import snappy from 'snappy';
import { suite } from 'uvu';
import { compress, decompress } from '../../../engine/batch/compression.ts';
import {
  CompressionError,
  type CompressionFault,
} from '../../../engine/batch/compression_error.ts';
import { Codec } from '../../../engine/batch/header.ts';
import { Scratch } from '../../../engine/batch/scratch.ts';
import { splitMix } from '../../harness/split_mix.ts';
import { fromHex, inSharedMemory, randomBytes, readGoldenBatches } from './support.ts';

const test = suite('batch/compression');
const codecs = [Codec.gzip, Codec.snappy, Codec.lz4, Codec.zstd];
const megabyte = 1024 * 1024;
const scratch = new Scratch();

function same(actual: Uint8Array, expected: Uint8Array): void {
  assert.equal(actual.length, expected.length);
  assert(Buffer.from(actual.buffer, actual.byteOffset, actual.length).equals(expected));
}

function refuses(codec: number, bytes: Uint8Array, fault: CompressionFault, max = megabyte): void {
  assert.throws(
    () => decompress(codec, bytes, max, scratch),
    (error) => error instanceof CompressionError && error.fault === fault,
  );
}

const samples: Uint8Array[] = [
  new Uint8Array(0),
  new Uint8Array([7]),
  new Uint8Array(300_000),
  ...[10, 1_000, 65_536, 65_537, 300_000].map((n) => randomBytes(splitMix(n), n)),
  new Uint8Array(200_000).map((_, k) => (k * k * 31) >> 7),
];

for (const codec of codecs) {
  test(`codec ${codec} gives back what it took, from shared memory too`, () => {
    for (const sample of samples) {
      const packed = compress(codec, sample);
      same(decompress(codec, packed, megabyte), sample);
      const { buf, start } = inSharedMemory(packed);
      same(
        decompress(codec, buf.subarray(start, start + packed.length), megabyte, scratch),
        sample,
      );
    }
  });

  test(`codec ${codec} stops at the limit and not one byte before it`, () => {
    for (const sample of samples) {
      const packed = compress(codec, sample);
      if (sample.length === 0) continue;
      same(decompress(codec, packed, sample.length, scratch), sample);
      if (sample.length > 1) refuses(codec, packed, 'tooLarge', sample.length - 1);
    }
  });

  test(`codec ${codec} refuses a stream that is cut at any byte, or followed by bytes`, () => {
    const packed = compress(codec, randomBytes(splitMix(9), 5_000));
    for (let length = 1; length < packed.length; length += length < 40 ? 1 : 97) {
      // Framed snappy has no end mark: cut between two blocks it is a stream of fewer blocks.
      if (codec === Codec.snappy && length === 16) continue;
      refuses(codec, packed.subarray(0, length), 'corrupt');
    }
    refuses(codec, packed.subarray(0, packed.length - 1), 'corrupt');
    refuses(codec, Buffer.concat([packed, new Uint8Array([1])]), 'corrupt');
  });

  test(`codec ${codec} survives every change of its bytes`, () => {
    const random = splitMix(codec);
    const packed = compress(codec, randomBytes(random, 3_000));
    for (let round = 0; round < 150; round += 1) {
      const changed = packed.slice();
      for (let k = 0; k <= random(3); k += 1) changed[random(changed.length)] = random(256);
      try {
        assert(decompress(codec, changed, 100_000, scratch).length <= 100_000);
      } catch (error) {
        assert(error instanceof CompressionError, `round ${round}: ${error}`);
      }
    }
  });
}

test('a bomb is refused, by what it says or by what comes out', () => {
  const zeros = new Uint8Array(5 * megabyte);
  for (const codec of codecs) refuses(codec, compress(codec, zeros), 'tooLarge', 4 * megabyte);
});

test('codecs that are not assigned', () => {
  for (const codec of [5, 6, 7, -1]) refuses(codec, new Uint8Array(9), 'unsupported');
});

test('snappy: one raw block, as sarama writes it', () => {
  const sample = randomBytes(splitMix(4), 100_000);
  same(decompress(Codec.snappy, snappy.compressSync(sample), megabyte), sample);
});

test('snappy: a size that its bytes cannot hold is not believed', () => {
  refuses(Codec.snappy, new Uint8Array([0xff, 0xff, 0x3f, 0, 0]), 'corrupt');
  refuses(Codec.snappy, new Uint8Array([0xff, 0xff, 0xff, 0xff, 0xff, 0]), 'corrupt');
});

test('gzip of several members and zstd of several frames are one stream', () => {
  const halves = [randomBytes(splitMix(5), 500), randomBytes(splitMix(6), 70_000)];
  const whole = Buffer.concat(halves);
  const gzip = Buffer.concat(halves.map((half) => gzipSync(half)));
  same(decompress(Codec.gzip, gzip, megabyte), whole);
  const zstd = Buffer.concat(halves.map((half) => zstdCompressSync(half)));
  same(decompress(Codec.zstd, zstd, megabyte), whole);
  refuses(Codec.zstd, zstd, 'tooLarge', whole.length - 1);
  const many = Buffer.concat(Array.from({ length: 65 }, () => zstdCompressSync(new Uint8Array(1))));
  refuses(Codec.zstd, many, 'corrupt');
});

test('zstd: a window of 128 MiB is read, as the highest level writes it', () => {
  // Magic, descriptor 0, window 2^27, then a last block of one raw byte.
  same(decompress(Codec.zstd, fromHex('28b52ffd008809000061'), 10), new Uint8Array([0x61]));
});

const goldenLz4 = fromHex(readGoldenBatches().valid.find((v) => v.name === 'codec-lz4-large')!.hex);

/** Kafka's frame with other flags or another block size, its header checksum right, `extra` behind the header. */
function lz4Frame(
  flags: number,
  blocks: number,
  extra = '',
  rest = goldenLz4.slice(68),
): Uint8Array {
  const descriptor = Buffer.concat([Buffer.from([flags, blocks]), Buffer.from(extra, 'hex')]);
  const hash = (xxh32(descriptor) >>> 8) & 0xff;
  return Buffer.concat([fromHex('04224d18'), descriptor, Buffer.from([hash]), rest]);
}

test('LZ4: flags that Kafka clients write, and those that none could read', () => {
  const plain = decompress(Codec.lz4, goldenLz4.subarray(61), megabyte);
  assert.equal(plain.length, 140_023);
  same(decompress(Codec.lz4, lz4Frame(0x60, 0x70), megabyte), plain);
  same(decompress(Codec.lz4, lz4Frame(0x68, 0x40, 'f722020000000000'), megabyte), plain);
  refuses(Codec.lz4, lz4Frame(0x40, 0x40), 'corrupt');
  refuses(Codec.lz4, lz4Frame(0xa0, 0x40), 'corrupt');
  refuses(Codec.lz4, lz4Frame(0x61, 0x40), 'corrupt');
  refuses(Codec.lz4, lz4Frame(0x60, 0x30), 'corrupt');
  const wrongHash = goldenLz4.slice(61);
  wrongHash[6] = wrongHash[6]! ^ 1;
  refuses(Codec.lz4, wrongHash, 'corrupt');
});

test('LZ4: checksums of blocks and of the content are looked at', () => {
  const size = Buffer.from([5, 0, 0, 0x80]);
  const text = Buffer.from('hello');
  const hash = Buffer.alloc(4);
  hash.writeUInt32LE(xxh32(text) >>> 0);
  const end = Buffer.alloc(4);
  for (const flags of [0x70, 0x64, 0x74]) {
    const inBlock = (flags & 0x10) !== 0 ? [hash] : [];
    const behind = (flags & 0x04) !== 0 ? [hash] : [];
    const rest = Buffer.concat([size, text, ...inBlock, end, ...behind]);
    same(decompress(Codec.lz4, lz4Frame(flags, 0x40, '', rest), 5), text);
    rest[5] = rest[5]! ^ 1;
    refuses(Codec.lz4, lz4Frame(flags, 0x40, '', rest), 'corrupt');
  }
});

function lz4Block(block: Uint8Array): Uint8Array {
  const size = Buffer.alloc(4);
  size.writeUInt32LE(block.length);
  return lz4Frame(0x60, 0x40, '', Buffer.concat([size, block, Buffer.alloc(4)]));
}

/** A length beyond what the token's half holds: bytes that are added up, the last of them below 255. */
function lz4Rest(length: number): number[] {
  if (length < 15) return [];
  const rest = length - 15;
  return [...Array<number>(Math.floor(rest / 255)).fill(255), rest % 255];
}

test('LZ4: every combination of literals, distance and match length, beside a decoder without tricks', () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const random = splitMix(seed);
    const block: number[] = [];
    const expected: number[] = [];
    for (let left = 1 + random(40); left > 0; left -= 1) {
      const literals = randomBytes(
        random,
        (expected.length === 0 ? 1 : 0) + random(random(4) === 0 ? 300 : 20),
      );
      const size = 4 + random(random(4) === 0 ? 600 : 40);
      block.push((Math.min(15, literals.length) << 4) | Math.min(15, size - 4));
      block.push(...lz4Rest(literals.length), ...literals);
      expected.push(...literals);
      const distance = 1 + random(Math.min(expected.length, random(2) === 0 ? 9 : 65_535));
      block.push(distance & 0xff, distance >> 8, ...lz4Rest(size - 4));
      for (let k = 0; k < size; k += 1) expected.push(expected[expected.length - distance]!);
    }
    block.push(0x10, 0x7a);
    expected.push(0x7a);
    const output = decompress(Codec.lz4, lz4Block(Buffer.from(block)), expected.length, scratch);
    same(output, Buffer.from(expected));
    refuses(Codec.lz4, lz4Block(Buffer.from(block)), 'tooLarge', expected.length - 1);
  }
});

test('LZ4: distances that reach before the block, and a block that ends with a match', () => {
  // Two literals, 104 bytes from two back, one literal.
  const good = '2f61620200551063';
  same(
    decompress(Codec.lz4, lz4Block(fromHex(good)), megabyte),
    Buffer.from(`${'ab'.repeat(53)}c`),
  );
  for (const bad of ['2f61620300551063', '2f61620000551063', '2f6162020055']) {
    refuses(Codec.lz4, lz4Block(fromHex(bad)), 'corrupt');
  }
});

test.run();
