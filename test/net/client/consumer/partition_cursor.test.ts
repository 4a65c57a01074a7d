/**
 * A log that was cut (KIP-320): the broker compares the epoch of the last record that a consumer has with its own history,
 * and says where they part (the diverging epoch of the Fetch response, KIP-595), or that the offset is not there any more.
 * With a reset policy the consumer goes back to where they part; without one its reader is told, as with Kafka's Java client
 * (LogTruncationException), and nothing is read until somebody seeks.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { encodeBatch } from '../../../../engine/batch/encode.ts';
import { ErrorCode } from '../../../../engine/error_code.gen.ts';
import {
  earliestTimestamp,
  latestTimestamp,
  PartitionCursor,
  type ResetPolicy,
} from '../../../../net/client/consumer/partition_cursor.ts';
import { bytesDeserializer } from '../../../../net/client/serializers.ts';
import type { FetchResponsePartitionData } from '../../../../net/protocol/messages.gen.ts';

const test = suite('partition cursor');
type Cursor = PartitionCursor<Uint8Array, Uint8Array>;

function cursorAt(offset: number, epoch: number, policy: ResetPolicy = 'earliest'): Cursor {
  const cursor = new PartitionCursor<Uint8Array, Uint8Array>({ topic: 't', partition: 0 }, policy, {
    ...{ keys: bytesDeserializer, values: bytesDeserializer, checksCrc: true },
    ...{ isCommitted: false, decompressedBytesMax: 1 << 20 },
  });
  cursor.seek(offset, epoch);
  return cursor;
}

function answer(rest: Partial<FetchResponsePartitionData>): FetchResponsePartitionData {
  return {
    ...{ partitionIndex: 0, errorCode: 0, highWatermark: 100n, lastStableOffset: 100n },
    ...{ logStartOffset: 0n, abortedTransactions: null, preferredReadReplica: -1, records: null },
    divergingEpoch: { epoch: -1, endOffset: -1n },
    currentLeader: { leaderId: -1, leaderEpoch: -1 },
    snapshotId: { endOffset: -1n, epoch: -1 },
    ...rest,
  };
}

function batch(baseOffset: number, count: number, leaderEpoch: number): Uint8Array {
  const records = Array.from({ length: count }, () => ({ value: Buffer.from('v') }));
  return encodeBatch({ records, baseOffset, leaderEpoch });
}

function parts(epoch: number, endOffset: number): FetchResponsePartitionData {
  return answer({ divergingEpoch: { epoch, endOffset: BigInt(endOffset) } });
}

const outOfRange = answer({ errorCode: ErrorCode.OFFSET_OUT_OF_RANGE });

function fetched(cursor: Cursor, data: FetchResponsePartitionData): string | null {
  return cursor.onFetched(data, cursor.version)?.kind ?? null;
}

/** Reads so many messages. */
function take(cursor: Cursor, count: number): void {
  for (let left = count; left > 0; ) if (cursor.next() !== null) left -= 1;
}

test('what is asked for says of which epoch the record before it is', () => {
  const cursor = cursorAt(10, 2);
  assert.deepEqual([cursor.fetchOffset, cursor.fetchEpoch], [10, 2]);
  fetched(cursor, answer({ records: Buffer.concat([batch(10, 2, 3), batch(12, 2, 4)]) }));
  assert.deepEqual([cursor.fetchOffset, cursor.fetchEpoch], [14, 4]);
  // The position's own epoch, which a commit carries, is of what has been handed out.
  assert.deepEqual(cursor.whereNext, { offset: 10, leaderEpoch: 2 });
  take(cursor, 2);
  assert.deepEqual(cursor.whereNext, { offset: 12, leaderEpoch: 3 });
  take(cursor, 2);
  assert.deepEqual(cursor.whereNext, { offset: 14, leaderEpoch: 4 });
});

test('a log cut in front of the position: with a policy reading goes on where the histories part', () => {
  for (const policy of ['earliest', 'latest', { timeMs: 5 }] as const) {
    const cursor = cursorAt(50, 4, policy);
    assert.equal(fetched(cursor, parts(3, 40)), 'truncated');
    assert.equal(cursor.state, 'reading');
    assert.deepEqual([cursor.position, cursor.fetchOffset, cursor.fetchEpoch], [40, 40, 3]);
    assert.equal(cursor.isReady, false);
    fetched(cursor, answer({ records: batch(40, 1, 5) }));
    assert.equal(cursor.next()?.offset, 40);
  }
});

test('without one the reader is told, and stays where it is until somebody seeks', () => {
  const cursor = cursorAt(50, 4, 'fail');
  assert.equal(fetched(cursor, parts(3, 40)), 'truncated');
  assert.equal(cursor.position, 50);
  assert.equal(cursor.isReady, true);
  assert.throws(() => cursor.next(), {
    ...{ code: 'LOG_TRUNCATED', message: /t-0 .*offset 40.*50/, remedy: /[Ss]eek/ },
    isRetriable: false,
  });
  assert.equal(cursor.position, 50);
  fetched(cursor, parts(3, 40));
  assert.throws(() => cursor.next(), { code: 'LOG_TRUNCATED' });
  cursor.seek(40, 3);
  fetched(cursor, answer({ records: batch(40, 1, 5) }));
  assert.equal(cursor.next()?.offset, 40);
});

test('a log cut behind the position: nothing that was read is gone, what is buffered is fetched anew', () => {
  for (const policy of ['earliest', 'fail'] as const) {
    const cursor = cursorAt(10, 2, policy);
    fetched(cursor, answer({ records: Buffer.concat([batch(10, 2, 3), batch(12, 2, 4)]) }));
    take(cursor, 2);
    assert.equal(fetched(cursor, parts(3, 12)), 'truncated');
    assert.deepEqual([cursor.position, cursor.fetchOffset, cursor.fetchEpoch], [12, 12, 3]);
    assert.equal(cursor.isReady, false);
    fetched(cursor, answer({ records: batch(12, 1, 6) }));
    assert.deepEqual([cursor.next()?.offset, cursor.whereNext?.leaderEpoch], [12, 6]);
  }
});

test('an epoch that the leader never had, and yet all offsets: asked with that one again it would never end', () => {
  const cursor = cursorAt(50, 4);
  assert.equal(fetched(cursor, parts(3, 60)), 'truncated');
  assert.deepEqual([cursor.position, cursor.fetchOffset], [50, 50]);
  assert.equal(cursor.fetchEpoch, 3);
});

test('a position whose epoch is not known takes none that a later record had', () => {
  const cursor = cursorAt(10, -1);
  fetched(cursor, answer({ records: batch(10, 2, 4) }));
  fetched(cursor, parts(3, 11));
  assert.deepEqual([cursor.position, cursor.fetchOffset, cursor.fetchEpoch], [10, 10, -1]);
});

test('an offset that is not there: with a policy it is looked up, without one the reader is told', () => {
  for (const [policy, timestamp] of [
    ['earliest', earliestTimestamp],
    ['latest', latestTimestamp],
    [{ timeMs: 5 }, 5],
  ] as const) {
    const cursor = cursorAt(50, 4, policy);
    assert.equal(fetched(cursor, outOfRange), 'range');
    assert.deepEqual([cursor.state, cursor.timestamp], ['listing', timestamp]);
  }
  const strict = cursorAt(50, 4, 'fail');
  assert.equal(fetched(strict, outOfRange), 'range');
  assert.throws(() => strict.next(), {
    code: 'OFFSET_OUT_OF_RANGE',
    message: /t-0 from offset 50/,
  });
  assert.equal(strict.position, 50);
});

test('what was fetched before the offset went is handed out first', () => {
  for (const policy of ['latest', 'fail'] as const) {
    const cursor = cursorAt(10, 2, policy);
    fetched(cursor, answer({ records: batch(10, 2, 3) }));
    assert.equal(fetched(cursor, outOfRange), 'range');
    assert.deepEqual([cursor.next()?.offset, cursor.next()?.offset], [10, 11]);
    assert.equal(cursor.next(), null);
    fetched(cursor, outOfRange);
    if (policy === 'latest') assert.equal(cursor.state, 'listing');
    else assert.throws(() => cursor.next(), { code: 'OFFSET_OUT_OF_RANGE' });
  }
});

test('an answer to a question that is not asked any more changes nothing', () => {
  const cursor = cursorAt(10, 2);
  const { version } = cursor;
  cursor.seek(70, 5);
  for (const late of [answer({ records: batch(10, 1, 2) }), parts(1, 3), outOfRange])
    assert.equal(cursor.onFetched(late, version), null);
  assert.deepEqual([cursor.state, cursor.position, cursor.fetchOffset], ['reading', 70, 70]);
  assert.equal(cursor.isReady, false);
});

test.run();
