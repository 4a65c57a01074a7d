import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { codecFor } from '../../../net/protocol/codec.ts';
import { Reader } from '../../../net/protocol/reader.ts';
import { Writer } from '../../../net/protocol/writer.ts';
import { fromHex, toHex } from './golden.ts';

const test = suite('writer');

test('record data that is not in memory leaves a hole where it belongs', () => {
  const first = { byteLength: 1000, position: 4096 };
  const second = { byteLength: 5, position: 0 };
  const partition = { partitionIndex: 0, errorCode: 0, highWatermark: 7 };
  const response = (records: readonly (typeof first | Uint8Array | null)[]) => ({
    responses: [
      { topic: 't', partitions: records.map((value) => ({ ...partition, records: value })) },
    ],
  });
  for (const version of [4, 11, 12]) {
    const writer = new Writer();
    const codec = codecFor('FetchResponse', version);
    codec.encode(writer, response([first, null, new Uint8Array([1, 2, 3]), second]));
    assert.equal(writer.externalBytes, 1005);
    const { bytes, holes } = writer.finish();
    assert.equal(writer.externalBytes, 0);
    assert.deepEqual(
      holes.map((hole) => hole.value),
      [first, second],
    );
    const [a, b] = holes.map((hole) => hole.at) as [number, number];
    const filled = new Uint8Array([
      ...bytes.subarray(0, a),
      ...new Uint8Array(first.byteLength).fill(0xaa),
      ...bytes.subarray(a, b),
      ...new Uint8Array(second.byteLength).fill(0xbb),
      ...bytes.subarray(b),
    ]);
    const reader = new Reader(filled);
    const { partitions } = codec.decode(reader).responses[0] as { partitions: unknown[] };
    assert.equal(reader.remaining, 0);
    const lengths = partitions.map((p) => (p as { records: Uint8Array | null }).records?.length);
    assert.deepEqual(lengths, [1000, undefined, 3, 5]);
    assert.equal((partitions[3] as { records: Uint8Array }).records[4], 0xbb);
  }
});

test('an empty range leaves no hole', () => {
  const writer = new Writer();
  codecFor('FetchSnapshotResponse', 0).encode(writer, {
    errorCode: 0,
    throttleTimeMs: 0,
    topics: [
      {
        name: 't',
        partitions: [
          {
            index: 0,
            errorCode: 0,
            snapshotId: { endOffset: 0, epoch: 0 },
            size: 0,
            position: 0,
            unalignedRecords: { byteLength: 0 },
          },
        ],
      },
    ],
  });
  assert.equal(writer.finish().holes.length, 0);
});

test('finished frames stay as they are while the writer goes on and grows', () => {
  const writer = new Writer(16);
  const codec = codecFor('SaslAuthenticateRequest', 2);
  const frames: { bytes: Uint8Array; want: string }[] = [];
  for (const length of [0, 1, 100, 126, 127, 128, 16383, 70_000, 3, 200_000, 5]) {
    const authBytes = new Uint8Array(length).fill(length);
    codec.encode(writer, { authBytes });
    const { bytes } = writer.finish();
    frames.push({ bytes, want: toHex(bytes) });
    assert.deepEqual(codec.decode(new Reader(bytes)).authBytes, authBytes);
  }
  for (const { bytes, want } of frames) assert.equal(toHex(bytes), want);
});

test('tagged fields of every size have a size of the shortest form', () => {
  const codec = codecFor('FetchRequest', 17);
  const rest = { maxWaitMs: 0, minBytes: 0, topics: [], forgottenTopicsData: [] };
  for (const length of [1, 125, 126, 127, 128, 16379, 16380, 16381, 16382, 16384, 2_100_000]) {
    const clusterId = 'x'.repeat(length);
    const writer = new Writer(64);
    codec.encode(writer, { ...rest, clusterId, replicaState: { replicaId: 3 } });
    const { bytes } = writer.finish();
    // Nobody takes a string of the last length, but its size is one of four bytes.
    if (length <= 0x7fff) {
      const value = codec.decode(new Reader(bytes));
      assert.equal(value.clusterId, clusterId);
      assert.deepEqual(value.replicaState, { replicaId: 3, replicaEpoch: -1n });
    }
    const varint = (n: number) => (n < 0x80 ? 1 : n < 0x4000 ? 2 : n < 0x20_0000 ? 3 : 4);
    const field = varint(length + 1) + length;
    assert.equal(bytes.length, 25 + 1 + 1 + 1 + 1 + (1 + varint(field) + field) - 4 + (1 + 1 + 13));
  }
});

test('int64 takes numbers and bigints alike', () => {
  const writer = new Writer();
  const bytes = new Uint8Array(8);
  const numbers = [0, 1, -1, 255, 2 ** 31, -(2 ** 31), 2 ** 32, -(2 ** 32), 2 ** 32 - 1];
  numbers.push(Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, -(2 ** 32) - 1, 1.7e15);
  for (const value of numbers) {
    new DataView(bytes.buffer).setBigInt64(0, BigInt(value));
    for (const given of [value, BigInt(value)]) {
      writer.int64At(writer.reserve(8), given);
      assert.equal(toHex(writer.finish().bytes), toHex(bytes), `${value}`);
    }
  }
});

test('strings of every kind come back', () => {
  const texts = ['', 'a', 'é', '€', '😀', 'ascii then é', '\u0000\u007f\u0080'];
  for (const length of [125, 126, 127, 128, 16382, 16383, 32767]) texts.push('s'.repeat(length));
  for (const length of [62, 63, 64, 65, 126, 127]) texts.push(`${'s'.repeat(length)}é`);
  for (const version of [0, 3]) {
    const codec = codecFor('FindCoordinatorRequest', version);
    const writer = new Writer(8);
    for (const key of texts) {
      codec.encode(writer, { key });
      const reader = new Reader(writer.finish().bytes);
      assert.equal(codec.decode(reader).key, key);
      assert.equal(reader.remaining, 0);
    }
    codec.encode(writer, { key: '\ud800' });
    assert.equal(codec.decode(new Reader(writer.finish().bytes)).key, '\ufffd');
  }
});

test('values that cannot be said are errors of the program', () => {
  const writer = new Writer();
  const find = codecFor('FindCoordinatorRequest', 0);
  const long = 'FindCoordinatorRequest v0: a string of 32768 bytes; the limit is 32767';
  assert.throws(() => find.encode(writer, { key: 's'.repeat(32768) }), { message: long });
  assert.throws(() => find.encode(writer, { key: 'é'.repeat(16384) }), { message: long });
  assert.throws(() => find.encode(writer, { key: null as unknown as string }), {
    message: 'FindCoordinatorRequest v0: key: null, which this version does not allow',
  });
  const topics = codecFor('MetadataRequest', 12);
  const topic = { name: 't', topicId: 'not a uuid' };
  assert.throws(() => topics.encode(writer, { topics: [topic] }), {
    message: 'MetadataRequest v12: "not a uuid" is not a uuid',
  });
  writer.abandon();
  find.encode(writer, { key: 'k' });
  assert.equal(toHex(writer.finish().bytes), '00016b');
});

test('ids of every kind come back', () => {
  const writer = new Writer();
  for (let at = 0; at < 2000; at += 1) {
    const bytes = new Uint8Array(16).map((_, i) => Math.imul(at * 17 + i, 0x9e3779b1) >>> 24);
    writer.uuidAt(writer.reserve(16), Buffer.from(bytes).toString('base64url'));
    assert.equal(toHex(writer.finish().bytes), toHex(bytes));
  }
  assert.deepEqual(fromHex('00'), new Uint8Array(1));
});

test.run();
