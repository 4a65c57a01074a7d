import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { crc32c, crc32cAfterChange } from '../../../engine/batch/crc.ts';
import { splitMix } from '../../harness/split_mix.ts';
import { fromHex, inSharedMemory, randomBytes, readGoldenChecksums } from './support.ts';

const test = suite('batch/crc');

test('gives the checksums that Kafka gives, in shared memory too', () => {
  for (const { data, crc32c: expected } of readGoldenChecksums()) {
    const bytes = fromHex(data);
    assert.equal(crc32c(bytes), expected);
    const { buf, start } = inSharedMemory(bytes);
    assert.equal(crc32c(buf.subarray(start, start + bytes.length)), expected);
  }
});

test('a change is carried into the checksum without reading what lies behind it', () => {
  const random = splitMix(1);
  for (const behind of [0, 1, 2, 3, 63, 64, 1_000, 65_536, 1_000_003, 5_000_000]) {
    const bytes = new Uint8Array(40 + behind).fill(behind % 251);
    const before = crc32c(bytes);
    const oldPart = crc32c(bytes.subarray(0, 40));
    bytes.set(randomBytes(random, 40));
    const newPart = crc32c(bytes.subarray(0, 40));
    assert.equal(crc32cAfterChange(before, oldPart, newPart, behind), crc32c(bytes));
  }
});

test.run();
