import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { type BatchInput, encodeBatch } from '../../../../engine/batch/encode.ts';
import {
  attributeBits,
  baseOffsetOf,
  baseSequenceOf,
  baseTimestampOf,
  codecOf,
  hasAttribute,
  lastOffsetOf,
  maxTimestampOf,
  producerIdOf,
  recordCountOf,
} from '../../../../engine/batch/header.ts';
import { iterateRecords } from '../../../../engine/batch/records.ts';
import {
  BatchFilter,
  type FilterRules,
  Verdict,
} from '../../../../engine/log/cleaner/batch_filter.ts';
import type { CleaningCounts } from '../../../../engine/log/cleaner/cleaning_job.ts';
import { OffsetMap } from '../../../../engine/log/cleaner/offset_map.ts';
import {
  type AbortedTransaction,
  TransactionFilter,
} from '../../../../engine/log/cleaner/transaction_filter.ts';

const test = suite('batch_filter');
const nowMs = 1_700_000_500_000;
const retentionMs = 60_000;
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const textOf = (bytes: Uint8Array | null): string | null =>
  bytes === null ? null : new TextDecoder().decode(bytes);

interface Setting {
  /** Latest offset by key. */
  readonly latest?: Readonly<Record<string, number>>;
  readonly latestOffset?: number;
  readonly rules?: Partial<FilterRules>;
  readonly aborted?: readonly AbortedTransaction[];
}

function makeFilter({ latest = {}, latestOffset = 1_000, rules, aborted = [] }: Setting): {
  run: (input: BatchInput, isLast?: boolean) => Uint8Array | null;
  counts: CleaningCounts;
} {
  const map = new OffsetMap(100, 0.9, 5);
  for (const [key, offset] of Object.entries(latest)) {
    const bytes = bytesOf(key);
    map.stage(0, bytes, 0, bytes.length);
    map.put(0, offset);
  }
  map.latestOffset = latestOffset;
  const counts = {
    bytesRead: 0,
    bytesWritten: 0,
    recordsRead: 0,
    recordsKept: 0,
    keylessRecords: 0,
  };
  const filter = new BatchFilter(
    {
      map,
      transactions: new TransactionFilter(aborted),
      producers: { producerIds: [], lastOffsets: [], epochs: [] },
      logStartOffset: 0,
      nowMs,
      deleteRetentionMs: retentionMs,
      decompressedMaxBytes: 1 << 20,
      ...rules,
    },
    counts,
  );
  const run = (input: BatchInput, isLast = false): Uint8Array | null => {
    const batch = encodeBatch(input);
    const padded = new Uint8Array(batch.length + 20);
    padded.set(batch, 7);
    const verdict = filter.filter(padded, 7, batch.length, isLast);
    if (verdict === Verdict.drop) return null;
    return verdict === Verdict.keep ? batch : filter.bytes.slice();
  };
  return { run, counts };
}

/** What a consumer sees: offset, timestamp, key, value. */
function seen(batch: Uint8Array | null): Array<[number, number, string | null, string | null]> {
  assert(batch !== null, 'the batch is there');
  return [...iterateRecords(batch, 0, 1 << 20)].map(({ offsetDelta, timestamp, key, value }) => [
    baseOffsetOf(batch, 0) + offsetDelta,
    Number(timestamp),
    textOf(key),
    textOf(value),
  ]);
}

const at = (key: string | null, value: string | null, ms: number) => ({
  key: key === null ? null : bytesOf(key),
  value: value === null ? null : bytesOf(value),
  timestamp: BigInt(1_700_000_000_000 + ms),
});

for (const codec of [0, 1, 2, 3, 4] as const)
  test(`records with a later one go, offsets and times of the others stay (codec ${codec})`, () => {
    const { run, counts } = makeFilter({ latest: { a: 12, b: 40 } });
    const records = [at('a', '1', 0), at('b', '2', 900), at('a', '3', 50), at('c', '4', 20)];
    const batch = run({ records, baseOffset: 10, codec, producerId: 9, baseSequence: 3 });
    assert.deepEqual(seen(batch), [
      [12, 1_700_000_000_050, 'a', '3'],
      [13, 1_700_000_000_020, 'c', '4'],
    ]);
    assert.equal(codecOf(batch!, 0), codec);
    assert.equal(baseOffsetOf(batch!, 0), 10);
    assert.equal(lastOffsetOf(batch!, 0), 13);
    assert.equal(producerIdOf(batch!, 0), 9);
    assert.equal(baseSequenceOf(batch!, 0), 3);
    assert.equal(maxTimestampOf(batch!, 0), 1_700_000_000_050n);
    assert.deepEqual([counts.recordsRead, counts.recordsKept], [4, 2]);
  });

test('a batch that loses nothing stays as it is, to the byte', () => {
  const { run } = makeFilter({ latest: { a: 1 } });
  const input = { records: [at('a', 'x', 0)], baseOffset: 1, codec: 1 } as const;
  assert.deepEqual(run(input), encodeBatch(input));
});

test('tombstones get a horizon, stay until it is past, and go then (KIP-534)', () => {
  const { run } = makeFilter({ latest: { a: 5, b: 6 } });
  const records = [at('a', null, 7_000), at('b', 'v', -3)];
  const batch = run({ records, baseOffset: 5 });
  assert(hasAttribute(batch!, 0, attributeBits.deleteHorizon));
  assert.equal(baseTimestampOf(batch!, 0), BigInt(nowMs + retentionMs));
  assert.deepEqual(seen(batch), [
    [5, 1_700_000_007_000, 'a', null],
    [6, 1_699_999_999_997, 'b', 'v'],
  ]);
  const input = { records, baseOffset: 5, deleteHorizonMs: BigInt(nowMs + 1) };
  assert.deepEqual(run(input), encodeBatch(input), 'the horizon is not moved');
  const past = run({ ...input, deleteHorizonMs: BigInt(nowMs) });
  assert.deepEqual(seen(past), [[6, 1_699_999_999_997, 'b', 'v']]);
});

test('records with times that are far from everything keep their tombstones', () => {
  const { run } = makeFilter({ latest: { a: 0, b: 1 } });
  const records = [at('a', null, 0), { key: bytesOf('b'), value: null, timestamp: 2n ** 61n }];
  assert.deepEqual(run({ records }), encodeBatch({ records }));
});

test('under LogAppendTime every record keeps the time of its batch', () => {
  const { run } = makeFilter({ latest: { a: 1 } });
  const records = [at('a', null, 0), at('a', null, 5)];
  const batch = run({ records, timestampType: 'LogAppendTime', maxTimestamp: 77n });
  assert.deepEqual(seen(batch), [[1, 77, 'a', null]]);
  assert(hasAttribute(batch!, 0, attributeBits.deleteHorizon));
});

test('records without a key go; those past what the map covers stay', () => {
  const { run, counts } = makeFilter({ latest: { a: 90 }, latestOffset: 10 });
  const records = [at(null, 'x', 0), at('a', 'y', 0), at(null, 'z', 0), at('a', 'w', 0)];
  assert.deepEqual(
    seen(run({ records, baseOffset: 9 })).map(([offset]) => offset),
    [11, 12],
  );
  assert.equal(counts.keylessRecords, 1);
  const beyond = { records, baseOffset: 11 };
  assert.deepEqual(run(beyond), encodeBatch(beyond));
});

test('what lies below the log start goes', () => {
  const { run } = makeFilter({ rules: { logStartOffset: 3 } });
  const records = [at('a', '1', 0), at('b', '2', 0)];
  assert.equal(run({ records, baseOffset: 1 }), null);
  assert.deepEqual(
    seen(run({ records, baseOffset: 2 })).map(([offset]) => offset),
    [3],
  );
});

test("a producer's last batch, and a segment's last one, stay without their records", () => {
  const rules = { producers: { producerIds: [9], lastOffsets: [21], epochs: [0] } };
  const { run } = makeFilter({ latest: { a: 90 }, rules });
  const records = [at('a', '1', 0), at('a', '2', 5)];
  const input = { records, codec: 4, producerId: 9, baseSequence: 30 } as const;
  assert.equal(run({ ...input, baseOffset: 10 }), null);
  for (const [baseOffset, isLast] of [
    [20, false],
    [10, true],
  ] as const) {
    const batch = run({ ...input, baseOffset }, isLast);
    assert(batch !== null);
    assert.equal(batch.length, 61);
    assert.equal(recordCountOf(batch, 0), 0);
    assert.equal(codecOf(batch, 0), 0);
    assert.deepEqual(
      [baseOffsetOf(batch, 0), lastOffsetOf(batch, 0)],
      [baseOffset, baseOffset + 1],
    );
    assert.deepEqual([producerIdOf(batch, 0), baseSequenceOf(batch, 0)], [9, 30]);
    assert.equal(maxTimestampOf(batch, 0), 1_700_000_000_005n);
  }
});

const transaction = { records: [at('a', '1', 0)], producerId: 7, transactional: true } as const;

function marker(type: 0 | 1, baseOffset: number, deleteHorizonMs?: bigint): BatchInput {
  const key = Uint8Array.of(0, 0, 0, type);
  const records = [{ key, value: Uint8Array.of(0, 0, 0, 0, 0, 0), timestamp: 1_700_000_000_000n }];
  const horizon = deleteHorizonMs === undefined ? {} : { deleteHorizonMs };
  return { records, baseOffset, producerId: 7, transactional: true, control: true, ...horizon };
}

test('records of aborted transactions go, those of committed ones stay', () => {
  const aborted = [{ producerId: 7, firstOffset: 0, lastOffset: 1, lastStableOffset: 2 }];
  const { run } = makeFilter({ aborted });
  assert.equal(run({ ...transaction, baseOffset: 0 }), null);
  assert.deepEqual(run(marker(0, 1)), encodeBatch(marker(0, 1)), 'a record of it was there');
  assert.deepEqual(seen(run({ ...transaction, baseOffset: 2 })).length, 1);
  assert.deepEqual(run(marker(1, 3)), encodeBatch(marker(1, 3)));
});

test('a marker of which nothing is left gets a horizon, and goes when that is past', () => {
  for (const type of [0, 1] as const) {
    const { run } = makeFilter({});
    const batch = run(marker(type, 4));
    assert(batch !== null);
    assert(hasAttribute(batch, 0, attributeBits.deleteHorizon));
    assert(hasAttribute(batch, 0, attributeBits.control));
    assert.equal(baseTimestampOf(batch, 0), BigInt(nowMs + retentionMs));
    assert.deepEqual(seen(batch)[0]?.slice(0, 2), [4, 1_700_000_000_000]);
    assert.equal(run(marker(type, 5, BigInt(nowMs))), null);
    const waiting = marker(type, 6, BigInt(nowMs + 1));
    assert.deepEqual(run(waiting), encodeBatch(waiting));
  }
});

test('a marker that is all that says a producer’s epoch stays, empty when its time is past', () => {
  const rules = { producers: { producerIds: [7], lastOffsets: [-1], epochs: [-1] } };
  const { run } = makeFilter({ rules });
  assert.equal(recordCountOf(run(marker(1, 5, BigInt(nowMs)))!, 0), 0);
});

test.run();
