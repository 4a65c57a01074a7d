/** What the tests of batches share. */
import { readFileSync } from 'node:fs';
import type { RecordInput } from '../../../engine/batch/encode.ts';
import type { Codec } from '../../../engine/batch/header.ts';
import type { BatchRules } from '../../../engine/batch/rules.ts';
import type { Random } from '../../harness/split_mix.ts';

export interface GoldenRecord {
  offset: string;
  timestamp: string;
  sequence: number;
  key: GoldenBytes;
  value: GoldenBytes;
  headers: { key: string; value: GoldenBytes }[];
}

export type GoldenBytes = string | null | { repeat: string; times: number };

export interface GoldenBatch {
  position: number;
  sizeInBytes: number;
  magic: number;
  baseOffset: string;
  lastOffset: string;
  partitionLeaderEpoch: number;
  crc: number;
  attributes: number;
  lastOffsetDelta: number;
  baseTimestamp: string;
  maxTimestamp: string;
  producerId: string;
  producerEpoch: number;
  baseSequence: number;
  compression: keyof typeof Codec;
  timestampType: 'CreateTime' | 'LogAppendTime';
  transactional: boolean;
  control: boolean;
  count: number;
  records: GoldenRecord[];
  deleteHorizonMs?: string;
}

type Step = 'ok' | { exception: string };

export interface Golden {
  valid: { name: string; note: string; batches: GoldenBatch[]; hex: string }[];
  damaged: {
    name: string;
    wrong: string;
    kafka: { ensureValid: Step; produceRequest: Step; logValidator: Step };
    hex: string;
  }[];
}

function readGolden(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`../../golden/${name}`, import.meta.url), 'utf8'));
}

export function readGoldenBatches(): Golden {
  return readGolden('record-batches.json') as Golden;
}

export function readGoldenChecksums(): { data: string; crc32c: number }[] {
  return (readGolden('murmur2.json') as { crc32c: { data: string; crc32c: number }[] }).crc32c;
}

export function fromHex(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'));
}

export function goldenBytes(value: GoldenBytes): Uint8Array | null {
  if (value === null) return null;
  return fromHex(typeof value === 'string' ? value : value.repeat.repeat(value.times));
}

/** The same bytes in shared memory, at an odd position, with other bytes before and behind. */
export function inSharedMemory(bytes: Uint8Array): { buf: Uint8Array; start: number } {
  const start = 13;
  const buf = new Uint8Array(new SharedArrayBuffer(bytes.length + start + 7)).fill(0xff);
  buf.set(bytes, start);
  return { buf, start };
}

/** A topic that takes every timestamp; the clock stands at 1,700,000,000,000. */
export const easyRules: BatchRules = {
  maxMessageBytes: 1024 * 1024,
  timestampType: 'CreateTime',
  timestampBeforeMaxMs: Number.POSITIVE_INFINITY,
  timestampAfterMaxMs: Number.POSITIVE_INFINITY,
  compacted: false,
  nowMs: 1_700_000_000_000,
  decompressedMaxBytes: 16 * 1024 * 1024,
  trustProducers: false,
  isInternal: false,
};

export function randomBytes(random: Random, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  // Few letters, so that there is something to compress.
  let draw = 0;
  for (let k = 0; k < length; k += 1) {
    draw = k % 3 === 0 ? random(0x100_0000) : draw >>> 8;
    bytes[k] = (draw & 3) === 0 ? draw : 97 + (draw & 7);
  }
  return bytes;
}

/** Records with timestamps around `aroundMs`, some null keys and values, some headers, lengths of one to three bytes. */
export function randomRecords(random: Random, count: number, aroundMs: bigint): RecordInput[] {
  return Array.from({ length: count }, () => ({
    timestamp: random(20) === 0 ? -1n : aroundMs + BigInt(random(10_000)) - 5_000n,
    key: random(3) === 0 ? null : randomBytes(random, random(70)),
    value: random(5) === 0 ? null : randomBytes(random, random(random(30) === 0 ? 20_000 : 300)),
    headers: Array.from({ length: random(4) === 0 ? random(70) : 0 }, () => ({
      key: randomBytes(random, random(5)),
      value: random(4) === 0 ? null : randomBytes(random, random(9)),
    })),
  }));
}
