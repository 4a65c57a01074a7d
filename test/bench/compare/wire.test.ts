import assert from 'node:assert/strict';
import { suite } from 'uvu';
import {
  BATCH_HEADER_BYTES,
  BatchField,
  buildBatch,
  varint,
} from '../../../bench/compare/batch.ts';
import { FrameSplitter } from '../../../bench/compare/frames.ts';
import { produceError, produceFrame } from '../../../bench/compare/requests.ts';
import { ByteReader, ByteWriter } from '../../../bench/compare/wire.ts';

const test = suite('bench/compare/wire');

test('zigzag variable-length integers', () => {
  const cases: [number, string][] = [
    [0, '00'],
    [-1, '01'],
    [1, '02'],
    [63, '7e'],
    [64, '8001'],
    [1_024, '8010'],
  ];
  for (const [value, hex] of cases) assert.equal(varint(value).toString('hex'), hex);
});

test('a batch has the length, count and last offset delta that its records need', () => {
  const batch = buildBatch(3, 100, 1_700_000_000_000);
  assert.equal(batch.readInt32BE(BatchField.length), batch.length - 12);
  assert.equal(batch.readInt8(BatchField.magic), 2);
  assert.equal(batch.readInt32BE(BatchField.lastOffsetDelta), 2);
  assert.equal(batch.readInt32BE(BatchField.recordCount), 3);
  assert.equal(batch.readBigInt64BE(43), -1n);
  // A record: length (2), attributes, timestamp delta, offset delta, key, value length (2), value, headers.
  assert.equal(batch.length, BATCH_HEADER_BYTES + 3 * (2 + 4 + 2 + 100 + 1));
});

test('a splitter hands out the same frames, however the stream is cut', () => {
  const bodies = [4, 5, 70_000, 4, 300].map((length, index) => Buffer.alloc(length, index + 1));
  const stream = Buffer.concat(bodies.map((body) => new ByteWriter().raw(body).frame()));
  for (const size of [1, 3, 7, 1_000, 65_536, stream.length]) {
    const frames: Buffer[] = [];
    const splitter = new FrameSplitter((frame) => frames.push(Buffer.from(frame)));
    for (let at = 0; at < stream.length; at += size) splitter.push(stream.subarray(at, at + size));
    assert.deepEqual(frames, bodies, `chunks of ${size}`);
  }
});

test('a length that no answer has ends the stream', () => {
  const splitter = new FrameSplitter(() => {});
  assert.throws(() => splitter.push(Buffer.from('ffffffff', 'hex')), /frame of -1 bytes/);
});

test('the error code of a produce answer is found behind a topic name of any length', () => {
  for (const topic of ['t', 'a-longer-name']) {
    const answer = new ByteWriter().int32(1).string(topic).int32(1).int32(0).int16(37).frame();
    assert.equal(produceError(answer.subarray(4)), 37);
  }
});

test('a produce frame reads back', () => {
  const batch = buildBatch(1, 10, 0);
  const reader = new ByteReader(produceFrame('topic', 3, batch, -1), 4);
  assert.deepEqual([reader.int16(), reader.int16(), reader.int32()], [0, 7, 0]);
  assert.deepEqual([reader.string(), reader.string()], ['millrace-bench', null]);
  assert.deepEqual([reader.int16(), reader.int32()], [-1, 60_000]);
  assert.deepEqual([reader.int32(), reader.string()], [1, 'topic']);
  assert.deepEqual([reader.int32(), reader.int32()], [1, 3]);
  assert.deepEqual(reader.bytes(), batch);
});

test.run();
