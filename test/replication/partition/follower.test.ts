import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { encodeBatch } from '../../../engine/batch/encode.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { ReplicaPair } from '../../net/replicas/replica_pair.ts';

const test = suite('partition follower');

const { NONE } = ErrorCode;

test('what is fetched is appended as it is, and told to the leader only when it is flushed', () => {
  const pair = new ReplicaPair();
  pair.produce(1, 'a');
  pair.node(1).endTurn();
  const fetched = pair.fetch(2);
  const follower = pair.node(2).follower!;
  assert.deepEqual([fetched.written, fetched.error()], [0, null]);
  pair.node(2).endTurn();
  assert.deepEqual([fetched.written, fetched.error()], [1, null], 'in the page cache');
  assert.equal(follower.fetchState().fetchOffset, 0, 'a power cut may yet take it');
  pair.node(2).disk.endFlushes();
  assert.equal(fetched.error(), NONE);
  const { fetchOffset, lastFetchedEpoch } = follower.fetchState();
  assert.deepEqual([fetchOffset, lastFetchedEpoch], [1, pair.controller.partition.leaderEpoch]);
  assert.deepEqual(pair.valuesOf(2), pair.valuesOf(1));
});

test('acks=all waits for the flush here and there, whichever is later', () => {
  for (const first of [1, 2]) {
    const pair = new ReplicaPair();
    const produced = pair.produce(1, 'a');
    pair.node(1).endTurn();
    pair.fetch(2);
    pair.node(2).endTurn();
    const flush = (id: number): void => {
      pair.node(id).disk.endFlushes();
      if (id === 2) pair.fetch(2);
    };
    flush(first);
    assert.equal(produced.committed, null, `broker ${first} alone has it flushed`);
    flush(3 - first);
    assert.equal(produced.committed, NONE);
  }
});

test('the high watermark follows the leader’s, no further than what is flushed here', () => {
  const pair = new ReplicaPair();
  pair.produce(1, 'a');
  pair.settle(1);
  pair.fetch(2);
  pair.settle(2);
  assert.equal(pair.node(2).follower?.highWatermark, 0, 'nobody has said that it is committed');
  pair.fetch(2);
  assert.equal(pair.node(2).follower?.highWatermark, 1);
  pair.produce(1, 'b');
  pair.settle(1);
  pair.fetch(2, (answer) => ({ ...answer, highWatermark: 2 }));
  assert.equal(pair.node(2).follower?.highWatermark, 1);
  pair.settle(2);
  assert.equal(pair.node(2).follower?.highWatermark, 2);
});

test('copies that are far behind do not stay in the page cache, those that readers may want do', () => {
  const pair = new ReplicaPair();
  const { disk } = pair.node(2);
  const dropped = (highWatermark: number): number => {
    const before = disk.calls.get('dropCache') ?? 0;
    pair.produce(1, 'a'.repeat(300_000));
    pair.settle(1);
    const fetched = pair.fetch(2, (answer) => ({ ...answer, highWatermark }));
    pair.settle(2);
    assert.equal(fetched.error(), NONE);
    return (disk.calls.get('dropCache') ?? 0) - before;
  };
  assert.equal(dropped(0), 0, 'not committed before this copy has it');
  assert.equal(dropped(2), 0, 'all that is committed is here');
  assert.equal(dropped(4), 1, 'committed without this copy');
});

test('what is no copy of the leader’s log is not taken', () => {
  const pair = new ReplicaPair();
  for (const value of ['a', 'b']) pair.produce(1, value);
  pair.settle(1);
  const { leaderEpoch } = pair.controller.partition;
  const change = (alter: (bytes: Buffer) => Buffer): ErrorCode | null => {
    const fetched = pair.fetch(2, (answer) => {
      return { ...answer, records: alter(Buffer.from(answer.records!)) };
    });
    assert.equal(fetched.written, fetched.error() === null ? 0 : 1);
    return fetched.error();
  };
  const corrupt = ErrorCode.CORRUPT_MESSAGE;
  const flip =
    (at: number) =>
    (bytes: Buffer): Buffer => {
      bytes[at]! ^= 1;
      return bytes;
    };
  assert.equal(change(flip(65)), corrupt, 'a checksum that does not fit');
  assert.equal(change(flip(16)), corrupt, 'another magic');
  assert.equal(change(flip(11)), corrupt, 'a length that leads elsewhere');
  const early = (bytes: Buffer): Buffer => {
    bytes.writeBigInt64BE(-1n, 0);
    return bytes;
  };
  assert.equal(change(early), corrupt, 'an offset before the log’s end');
  const late = (bytes: Buffer): Buffer => {
    bytes.writeInt32BE(leaderEpoch + 1, 12);
    return bytes;
  };
  assert.equal(change(late), corrupt, 'an epoch later than the leader’s');
  assert.equal(pair.node(2).follower?.log.logEndOffset, 0);
  const short = (bytes: Buffer): Buffer => bytes.subarray(0, bytes.length - 5);
  assert.equal(change(short), null, 'a piece of a batch at the end is fetched again');
  pair.settle(2);
  assert.equal(pair.node(2).follower?.log.logEndOffset, 1);
});

test('what comes before a fault is kept', () => {
  const pair = new ReplicaPair();
  for (const value of ['a', 'b']) pair.produce(1, value);
  pair.settle(1);
  const fetched = pair.fetch(2, (answer) => {
    const records = Buffer.from(answer.records!);
    records[records.length - 2]! ^= 1;
    return { ...answer, records };
  });
  pair.settle(2);
  assert.equal(fetched.error(), NONE);
  assert.equal(pair.node(2).follower?.log.logEndOffset, 1);
});

test('producers are known where their batches were copied, and forgotten where they were cut', () => {
  const pair = new ReplicaPair();
  const waiter = { endOffset: 0, onWritten: () => {}, onCommitted: () => {} };
  const put = (producerId: number, all: boolean): void => {
    const records = [{ timestamp: 1_700_000_000_000n, value: Buffer.from('v') }];
    const batch = encodeBatch({ records, producerId, producerEpoch: 0, baseSequence: 0 });
    assert.equal(pair.node(1).append(batch, all, waiter), NONE);
  };
  put(7, true);
  pair.rest();
  put(8, false);
  pair.settle(1);
  const known = (id: number): number[] =>
    [...(pair.node(id).replica?.log.producers.values() ?? [])].map(({ producerId }) => producerId);
  assert.deepEqual([known(1), known(2)], [[7, 8], [7]]);
  pair.controller.elect(2);
  pair.update();
  pair.rest();
  assert.deepEqual([known(1), known(2)], [[7], [7]]);
});

test('an answer to a fetch of an earlier epoch is not taken, nor one while another is being received', () => {
  const pair = new ReplicaPair();
  pair.produce(1, 'a');
  pair.settle(1);
  const { leaderEpoch } = pair.controller.partition;
  const old = pair.fetch(2, (answer) => ({ ...answer, leaderEpoch: leaderEpoch - 1 }));
  assert.deepEqual([old.written, old.error()], [1, ErrorCode.FENCED_LEADER_EPOCH]);
  const first = pair.fetch(2);
  const second = pair.fetch(2);
  assert.deepEqual([second.written, second.error()], [1, ErrorCode.FENCED_LEADER_EPOCH]);
  pair.settle(2);
  assert.equal(first.error(), NONE);
});

test('what is being received is given up when this broker leads, and its memory only after the write', () => {
  const pair = new ReplicaPair();
  pair.produce(1, 'a');
  pair.settle(1);
  const fetched = pair.fetch(2);
  pair.controller.elect(2);
  pair.update();
  assert.deepEqual([fetched.written, fetched.error()], [1, ErrorCode.NOT_LEADER_OR_FOLLOWER]);
  assert.equal(pair.node(2).leader?.log.writtenOffset, 1);
});

test('after a kill nothing is asked for before all that is there is flushed again', () => {
  const pair = new ReplicaPair();
  pair.produce(1, 'a');
  pair.settle(1);
  pair.fetch(2);
  pair.node(2).endTurn();
  pair.node(2).stop(false);
  pair.node(2).start();
  const follower = pair.node(2).follower!;
  assert.equal(follower.log.logEndOffset, 1);
  let error: ErrorCode | null = null;
  follower.prepare((code) => {
    error = code;
  });
  assert.equal(error, null);
  pair.settle(2);
  assert.deepEqual([error, follower.fetchState().fetchOffset], [NONE, 1]);
});

test('a full disk: what was received is not kept, and is asked for again', () => {
  const pair = new ReplicaPair();
  pair.produce(1, 'a');
  pair.settle(1);
  pair.node(2).disk.writeError = 'ENOSPC';
  const fetched = pair.fetch(2);
  pair.node(2).endTurn();
  assert.deepEqual([fetched.written, fetched.error()], [1, ErrorCode.KAFKA_STORAGE_ERROR]);
  pair.node(2).disk.writeError = null;
  pair.rest();
  assert.deepEqual(pair.valuesOf(2), pair.valuesOf(1));
});

test.run();
