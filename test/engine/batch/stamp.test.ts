import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { crc32c } from '../../../engine/batch/crc.ts';
import { encodeBatch } from '../../../engine/batch/encode.ts';
import {
  attributeBits,
  baseOffsetOf,
  Codec,
  crcOf,
  hasAttribute,
  leaderEpochOf,
  maxTimestampOf,
} from '../../../engine/batch/header.ts';
import { iterateRecords } from '../../../engine/batch/records.ts';
import { rewriteTimestamps, stampBatch } from '../../../engine/batch/stamp.ts';
import { splitMix } from '../../harness/split_mix.ts';
import { inSharedMemory, randomRecords } from './support.ts';

const test = suite('batch/stamp');
const maxBytes = 1024 * 1024;

function storedChecksumIsRight(buf: Uint8Array, start: number, length: number): boolean {
  return crc32c(buf.subarray(start + 21, start + length)) === crcOf(buf, start);
}

test('base offset and leader epoch are set, the checksum stays right, nothing around changes', () => {
  const bytes = encodeBatch({ records: randomRecords(splitMix(2), 20, 1_700_000_000_000n) });
  for (const offset of [0, 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1]) {
    const { buf, start } = inSharedMemory(bytes);
    stampBatch(buf, start, offset, 7);
    assert.equal(baseOffsetOf(buf, start), offset);
    assert.equal(leaderEpochOf(buf, start), 7);
    assert(storedChecksumIsRight(buf, start, bytes.length));
    assert.deepEqual(buf.slice(start + 16, start + bytes.length), bytes.slice(16));
    assert(buf.subarray(0, start).every((byte) => byte === 0xff));
    assert(buf.subarray(start + bytes.length).every((byte) => byte === 0xff));
  }
});

test('LogAppendTime gives every record the one time, and CreateTime each its own again', () => {
  for (const codec of [Codec.none, Codec.gzip]) {
    const records = randomRecords(splitMix(3), 50, 1_700_000_000_000n);
    const bytes = encodeBatch({ records, codec });
    const { buf, start } = inSharedMemory(bytes);
    const now = 1_700_000_123_456n;
    rewriteTimestamps(buf, start, bytes.length, 'LogAppendTime', now);
    assert(storedChecksumIsRight(buf, start, bytes.length));
    assert(hasAttribute(buf, start, attributeBits.logAppendTime));
    const read = [...iterateRecords(buf, start, maxBytes)];
    assert(read.every((record) => record.timestamp === now));
    rewriteTimestamps(buf, start, bytes.length, 'CreateTime', maxTimestampOf(bytes, 0));
    assert.deepEqual(buf.slice(start, start + bytes.length), bytes);
  }
});

test('timestamps keep all 64 bits', () => {
  const bytes = encodeBatch({ records: [{ timestamp: 5n }] });
  for (const max of [-1n, 2n ** 63n - 1n, 1_700_000_000_123_456_789n]) {
    rewriteTimestamps(bytes, 0, bytes.length, 'CreateTime', max);
    assert.equal(maxTimestampOf(bytes, 0), max);
    assert(storedChecksumIsRight(bytes, 0, bytes.length));
  }
});

test.run();
