import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { CompressionError } from '../../../engine/batch/compression_error.ts';
import { encodeBatch } from '../../../engine/batch/encode.ts';
import { Codec } from '../../../engine/batch/header.ts';
import {
  BatchFormatError,
  findRecordByTimestamp,
  iterateRecords,
} from '../../../engine/batch/records.ts';
import { rewriteTimestamps } from '../../../engine/batch/stamp.ts';

const test = suite('batch/records');
const maxBytes = 1024 * 1024;
const timestamps = [100n, 130n, 110n, -1n, 130n, 150n];
const records = timestamps.map((timestamp) => ({ timestamp, value: Buffer.from('v') }));

for (const codec of [Codec.none, Codec.zstd]) {
  test(`codec ${codec}: the first record at or after a time, with its own timestamp`, () => {
    const batch = encodeBatch({ records, codec, baseOffset: 1_000 });
    const find = (target: bigint, from = 0): unknown =>
      findRecordByTimestamp(batch, 0, target, from, maxBytes);
    assert.deepEqual(find(-5n), { offsetDelta: 0, timestamp: 100n });
    assert.deepEqual(find(100n), { offsetDelta: 0, timestamp: 100n });
    assert.deepEqual(find(101n), { offsetDelta: 1, timestamp: 130n });
    assert.deepEqual(find(130n, 2), { offsetDelta: 4, timestamp: 130n });
    assert.deepEqual(find(150n), { offsetDelta: 5, timestamp: 150n });
    assert.equal(find(151n), null);
    assert.equal(find(100n, 6), null);
  });

  test(`codec ${codec}: under LogAppendTime every record has the batch's time`, () => {
    const batch = encodeBatch({ records, codec });
    rewriteTimestamps(batch, 0, batch.length, 'LogAppendTime', 777n);
    const found = findRecordByTimestamp(batch, 0, 500n, 2, maxBytes);
    assert.deepEqual(found, { offsetDelta: 2, timestamp: 777n });
    assert.equal(findRecordByTimestamp(batch, 0, 778n, 0, maxBytes), null);
  });
}

test('a batch behind others in the same memory is read alone', () => {
  const one = encodeBatch({ records: [{ value: Buffer.from('one') }] });
  const two = encodeBatch({ records, codec: Codec.gzip });
  const buf = Buffer.concat([one, two, one]);
  assert.equal([...iterateRecords(buf, one.length, maxBytes)].length, records.length);
});

test('what cannot be read throws an error that says why, and one that the caller knows', () => {
  const batch = encodeBatch({ records });
  batch[60] = 7;
  assert.throws(
    () => [...iterateRecords(batch, 0, maxBytes)],
    (error) => error instanceof BatchFormatError && /record 6 of 7/.test(error.message),
  );
  const bomb = encodeBatch({ records: [{ value: new Uint8Array(maxBytes) }], codec: Codec.gzip });
  assert.throws(() => [...iterateRecords(bomb, 0, maxBytes)], CompressionError);
});

test.run();
