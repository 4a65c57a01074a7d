/**
 * What a reader of one partition sees of transactions (KIP-98): control batches never, and with read_committed nothing of
 * those in the answer's list of aborted ones, which begins to count at each one's first offset and ends at its marker.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { encodeBatch } from '../../../../engine/batch/encode.ts';
import { Codec } from '../../../../engine/batch/header.ts';
import {
  type AbortedTransaction,
  measureBatches,
  type ReaderOptions,
  RecordReader,
} from '../../../../net/client/consumer/record_reader.ts';
import { stringDeserializer } from '../../../../net/client/serializers.ts';

const test = suite('record reader');

const options: ReaderOptions<string, string> = {
  ...{ keys: stringDeserializer, values: stringDeserializer, checksCrc: true },
  ...{ isCommitted: true, decompressedBytesMax: 1 << 20 },
};

/** Batches one behind the other, each beginning where the one before ends. */
class Log {
  readonly #batches: Uint8Array[] = [];
  end = 0;

  constructor(baseOffset = 0) {
    this.end = baseOffset;
  }

  /** `count` records of a producer; without one outside of transactions. */
  records(count: number, producerId = -1, rest: object = {}): this {
    const records = Array.from({ length: count }, (_, index) => ({
      value: Buffer.from(`${this.end + index}`),
    }));
    const transactional = producerId >= 0;
    const input = { records, baseOffset: this.end, producerId, transactional, leaderEpoch: 5 };
    this.#batches.push(encodeBatch({ ...input, ...rest }));
    this.end += count;
    return this;
  }

  /** A control record: version 0, then its type, 0 for abort and 1 for commit. */
  marker(type: 'abort' | 'commit', producerId: number): this {
    const key = Buffer.from([0, 0, 0, type === 'abort' ? 0 : 1]);
    const records = [{ key, value: Buffer.alloc(6) }];
    const input = { records, baseOffset: this.end, producerId, leaderEpoch: 5 };
    this.#batches.push(encodeBatch({ ...input, transactional: true, control: true }));
    this.end += 1;
    return this;
  }

  get bytes(): Uint8Array {
    return Buffer.concat(this.#batches);
  }
}

function aborted(...list: [producerId: number, firstOffset: number][]): AbortedTransaction[] {
  return list.map(([id, offset]) => ({ producerId: BigInt(id), firstOffset: BigInt(offset) }));
}

/** Offsets that are handed out, and where the reader is then. */
function read(
  bytes: Uint8Array,
  list: readonly AbortedTransaction[] | null,
  fromOffset = 0,
): { offsets: number[]; nextOffset: number } {
  const reader = new RecordReader({ topic: 't', partition: 0 }, bytes, fromOffset, list, options);
  const offsets: number[] = [];
  for (let one = reader.next(); one !== null; one = reader.next()) {
    assert.equal(one.value, `${one.offset}`);
    offsets.push(one.offset);
  }
  return { offsets, nextOffset: reader.nextOffset };
}

test('control records are left out under either isolation, and moved past', () => {
  const { bytes } = new Log().records(2, 7).marker('commit', 7).records(1).marker('abort', 8);
  for (const list of [null, []])
    assert.deepEqual(read(bytes, list), { offsets: [0, 1, 3], nextOffset: 5 });
});

test('read_uncommitted sees what was aborted', () => {
  const { bytes } = new Log().records(2, 7).marker('abort', 7).records(1);
  assert.deepEqual(read(bytes, null).offsets, [0, 1, 3]);
});

test('a transaction that was aborted is left out up to its marker, and no further', () => {
  const { bytes } = new Log()
    .records(2, 7)
    .records(1, 7)
    .marker('abort', 7)
    .records(2, 7)
    .marker('commit', 7);
  assert.deepEqual(read(bytes, aborted([7, 0])), { offsets: [4, 5], nextOffset: 7 });
});

test('others that write meanwhile are not concerned', () => {
  const { bytes } = new Log()
    .records(1, 8)
    .records(1, 7)
    .records(2)
    .records(1, 8)
    .marker('abort', 7)
    .marker('commit', 8)
    .records(1, 7);
  assert.deepEqual(read(bytes, aborted([7, 1])).offsets, [0, 2, 3, 4, 7]);
});

test('what a producer committed before its aborted transaction stays', () => {
  const { bytes } = new Log()
    .records(2, 7)
    .marker('commit', 7)
    .records(2, 7)
    .marker('abort', 7)
    .records(1);
  assert.deepEqual(read(bytes, aborted([7, 3])).offsets, [0, 1, 6]);
});

test('several aborted ones, of the same and of other producers, in any order of the list', () => {
  const log = new Log()
    .records(1, 7)
    .records(1, 8)
    .marker('abort', 7)
    .records(1, 7)
    .marker('abort', 8)
    .records(1, 8)
    .marker('abort', 7)
    .marker('commit', 8);
  const list = aborted([7, 0], [8, 1], [7, 3]);
  assert.deepEqual(read(log.bytes, list).offsets, [5]);
  assert.deepEqual(read(log.bytes, list.toReversed()).offsets, [5]);
});

test('one that began before the answer does is in its list', () => {
  // The broker lists every aborted transaction that overlaps with what it sends.
  const { bytes } = new Log(100).records(2, 7).marker('abort', 7).records(1, 7);
  assert.deepEqual(read(bytes, aborted([7, 40]), 100).offsets, [103]);
});

test('a marker in front of the offset that was asked for counts', () => {
  const { bytes } = new Log().records(2, 7).marker('abort', 7).records(2, 7);
  // Batches are sent whole, so that those before the offset come, too.
  assert.deepEqual(read(bytes, aborted([7, 0]), 3).offsets, [3, 4]);
});

test('records of the same producer outside of a transaction are no part of it', () => {
  const { bytes } = new Log().records(1, 7).records(1, 7, { transactional: false });
  assert.deepEqual(read(bytes, aborted([7, 0])).offsets, [1]);
});

test('nothing of an aborted batch is decompressed', () => {
  const { bytes } = new Log().records(3, 7, { codec: Codec.gzip }).marker('abort', 7).records(1);
  const small = { ...options, decompressedBytesMax: 10 };
  const where = { topic: 't', partition: 0 };
  const reader = new RecordReader(where, bytes, 0, aborted([7, 0]), small);
  assert.equal(reader.next()?.offset, 4);
});

test('a batch that compaction has emptied at its end is moved past', () => {
  const { bytes } = new Log().records(2, -1, { lastOffsetDelta: 9 });
  assert.deepEqual(read(bytes, []), { offsets: [0, 1], nextOffset: 10 });
});

test('a batch in the middle of which reading begins, and one that is cut off', () => {
  const whole = new Log().records(4);
  assert.deepEqual(read(whole.bytes, [], 2).offsets, [2, 3]);
  const both = whole.records(3).bytes;
  const { length, nextOffset, lastEpoch } = measureBatches(both.subarray(0, both.length - 1), 0);
  assert.deepEqual([nextOffset, lastEpoch], [4, 5]);
  assert.deepEqual(read(both.subarray(0, length), []).offsets, [0, 1, 2, 3]);
});

test('damage is told with its place, each time it is met, and what came before is handed out', () => {
  const log = new Log().records(2);
  const first = log.bytes.length;
  const bytes = Buffer.from(log.records(2).bytes);
  bytes[first + 70] = (bytes[first + 70] as number) ^ 1;
  const reader = new RecordReader({ topic: 't', partition: 0 }, bytes, 0, [], options);
  assert.deepEqual([reader.next()?.offset, reader.next()?.offset], [0, 1]);
  for (let time = 0; time < 2; time += 1)
    assert.throws(() => reader.next(), { code: 'CORRUPT_MESSAGE', message: /at 2 of t-0/ });
  assert.equal(reader.nextOffset, 2);
});

test.run();
