import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { encodeBatch, type RecordInput } from '../../../engine/batch/encode.ts';
import { Codec } from '../../../engine/batch/header.ts';
import { iterateRecords } from '../../../engine/batch/records.ts';
import { BufferPool } from '../../../net/client/buffer_pool.ts';
import { RecordBatch, type RecordMetadata } from '../../../net/client/record_batch.ts';
import { encodeHeaders, type Headers } from '../../../net/client/record_headers.ts';

const test = suite('record batches of the producer');

interface Given {
  readonly key: string | null;
  readonly value: string | Uint8Array | null;
  readonly headers?: Headers;
  readonly timestampMs: number;
}

function byteLength(field: string | Uint8Array | null): number {
  if (field === null) return -1;
  return typeof field === 'string' ? Buffer.byteLength(field) : field.length;
}

function append(batch: RecordBatch, { key, value, headers, timestampMs }: Given): number {
  const encoded = encodeHeaders(headers);
  return batch.append(timestampMs, key, byteLength(key), value, byteLength(value), encoded);
}

function newBatch(bytesMax = 1 << 20, bytesExpected = 512): RecordBatch {
  return new RecordBatch(new BufferPool(0), bytesMax, bytesExpected, 0);
}

const utf8 = (text: string | null): Uint8Array | null =>
  text === null ? null : new TextEncoder().encode(text);

const given: readonly Given[] = [
  { key: 'k', value: 'value', timestampMs: 1_000 },
  { key: null, value: 'Grüße 🌍', timestampMs: 1_001 },
  { key: 'ключ', value: null, timestampMs: 990 },
  { key: '', value: '', timestampMs: 1_000, headers: { trace: 'ä', none: null } },
  { key: 'x'.repeat(200), value: Buffer.alloc(20_000, 7), timestampMs: 1_000 },
  { key: 'far', value: 'later', timestampMs: 1_000 + 2 ** 40 },
  { key: 'far', value: 'earlier', timestampMs: 0 },
  ...Array.from({ length: 300 }, (_, k) => ({ key: null, value: `v${k}`, timestampMs: 2_000 + k })),
];

test('the bytes are those that the broker itself would write', () => {
  const records = given.map(
    ({ key, value, headers, timestampMs }): RecordInput => ({
      key: utf8(key),
      value: typeof value === 'string' ? utf8(value) : value,
      headers: Object.entries(headers ?? {}).map(([name, one]) => ({
        key: utf8(name) as Uint8Array,
        value: utf8(one as string | null),
      })),
      timestamp: BigInt(timestampMs),
    }),
  );
  for (const codec of Object.values(Codec)) {
    const batch = newBatch();
    for (const one of given) assert.ok(append(batch, one) > 0);
    batch.baseSequence = 77;
    const { bytes } = batch.seal(codec, 4242, 3);
    const expected = encodeBatch({
      ...{ records, codec, producerId: 4242, producerEpoch: 3, baseSequence: 77 },
    });
    assert.deepEqual(Buffer.from(bytes), Buffer.from(expected), `codec ${codec}`);
  }
});

test('what does not fit is refused, but for a first record', () => {
  const batch = newBatch(1_000);
  const value = Buffer.alloc(400);
  assert.ok(append(batch, { key: null, value, timestampMs: 1 }) > 400);
  assert.ok(append(batch, { key: null, value, timestampMs: 1 }) > 400);
  const before = batch.byteLength;
  assert.equal(append(batch, { key: null, value, timestampMs: 1 }), 0);
  assert.equal(batch.byteLength, before);
  assert.equal(batch.count, 2);
  const large = newBatch(1_000);
  const bytes = append(large, { key: null, value: Buffer.alloc(5_000), timestampMs: 1 });
  assert.equal(large.byteLength, 61 + bytes);
});

test('a batch that is numbered anew leaves the bytes of the old one alone', () => {
  const batch = newBatch();
  append(batch, { key: 'k', value: 'v', timestampMs: 5 });
  batch.baseSequence = 9;
  const old = batch.seal(Codec.none, 1, 0).bytes;
  const copy = Buffer.from(old);
  batch.unseal();
  batch.baseSequence = 0;
  const { bytes } = batch.seal(Codec.none, 1, 1);
  assert.deepEqual(Buffer.from(old), copy);
  assert.notDeepEqual(Buffer.from(bytes), copy);
  assert.equal([...iterateRecords(bytes, 0, 1_000)].length, 1);
});

test('deliveries count from the base offset, and take the time of the append where there is one', async () => {
  const deliver = async (offset: number, timeMs: number): Promise<RecordMetadata[]> => {
    const batch = newBatch();
    const promises = [11, 12].map((timestampMs) => {
      append(batch, { key: null, value: 'v', timestampMs });
      return new Promise<RecordMetadata>((resolve) => batch.settles.push(resolve));
    });
    batch.deliver('t', 3, offset, timeMs);
    return Promise.all(promises);
  };
  const at = { topic: 't', partition: 3 };
  assert.deepEqual(await deliver(100, -1), [
    { ...at, offset: 100, timestampMs: 11 },
    { ...at, offset: 101, timestampMs: 12 },
  ]);
  assert.deepEqual(await deliver(-1, 50), [
    { ...at, offset: -1, timestampMs: 50 },
    { ...at, offset: -1, timestampMs: 50 },
  ]);
});

test('a batch that fails rejects each promise', async () => {
  const batch = newBatch();
  append(batch, { key: null, value: 'v', timestampMs: 1 });
  const promise = new Promise<RecordMetadata>((resolve) => batch.settles.push(resolve));
  batch.fail(new Error('no'));
  await assert.rejects(promise, /^Error: no$/);
});

test.run();
