import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { newBatchInfo } from '../../../engine/batch/rules.ts';
import { validateProduceBatch } from '../../../engine/batch/validate.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { type AppendResult, newAppendResult } from '../../../engine/log/append_result.ts';
import type { AppendWaiter, PartitionLeader } from '../../../replication/partition/leader.ts';
import { batchOf, batchOfBytes } from '../../net/data_path/requests.ts';
import { ShardWorld, type WorldOptions } from '../../net/data_path/shard_world.ts';
import { loneState } from './states.ts';

const test = suite('partition leader');

/** Writes down what it is told, and fails on a second call of the same. */
class Waiter implements AppendWaiter {
  endOffset = 0;
  written: ErrorCode | null = null;
  committed: ErrorCode | null = null;

  onWritten(error: ErrorCode): void {
    assert.equal(this.written, null, 'told twice of the write');
    this.written = error;
  }
  onCommitted(error: ErrorCode): void {
    assert.equal(this.committed, null, 'told twice of the commit');
    this.committed = error;
  }
}

interface Appended {
  readonly code: ErrorCode;
  readonly waiter: Waiter;
  readonly result: AppendResult;
}

function append(
  world: ShardWorld,
  leader: PartitionLeader,
  allReplicas: boolean,
  batch: Uint8Array = batchOf(['v']),
): Appended {
  const info = newBatchInfo();
  leader.batchRules.nowMs = world.clock.wallMs();
  const invalid = validateProduceBatch(batch, 0, batch.length, leader.batchRules, info);
  assert.equal(invalid, ErrorCode.NONE, info.errorMessage ?? '');
  const waiter = new Waiter();
  // Callers use one object again and again.
  const result = { ...newAppendResult(), errorMessage: 'of the batch before' };
  const code = leader.append(
    batch,
    0,
    batch.length,
    info,
    allReplicas,
    world.clock.wallMs(),
    waiter,
    result,
  );
  return { code, waiter, result };
}

async function withLeader(
  options: WorldOptions = {},
): Promise<{ world: ShardWorld; leader: PartitionLeader }> {
  const world = await ShardWorld.start({ topics: [['t', 1]], ...options });
  world.settle();
  return { world, leader: world.leader('t') };
}

const idempotent = { producerId: 7, producerEpoch: 0 };

test('fsync: told of the write at the end of the turn, of the commit only after the flush', async () => {
  const { world, leader } = await withLeader();
  const { waiter, result } = append(world, leader, true);
  assert.deepEqual([result.baseOffset, waiter.endOffset], [0, 1]);
  assert.deepEqual([waiter.written, waiter.committed, leader.highWatermark], [null, null, 0]);
  world.endTurn();
  assert.deepEqual([waiter.written, waiter.committed], [ErrorCode.NONE, null]);
  assert.equal(leader.highWatermark, 0, 'a consumer must not see what a power cut may take');
  world.endFlushes();
  assert.deepEqual([waiter.committed, leader.highWatermark], [ErrorCode.NONE, 1]);
});

test('fsync: without acks=all the high watermark still waits for the flush', async () => {
  const { world, leader } = await withLeader();
  const { waiter } = append(world, leader, false);
  world.endTurn();
  assert.deepEqual([waiter.written, leader.highWatermark], [ErrorCode.NONE, 0]);
  world.endFlushes();
  assert.deepEqual([waiter.committed, leader.highWatermark], [null, 1]);
});

test('os: the write commits', async () => {
  const { world, leader } = await withLeader({ settings: ['log.durability=os'] });
  const { waiter } = append(world, leader, true);
  assert.equal(leader.highWatermark, 0);
  world.endTurn();
  assert.deepEqual(
    [waiter.written, waiter.committed, leader.highWatermark],
    [ErrorCode.NONE, ErrorCode.NONE, 1],
  );
});

test('what is appended while a flush is under way is not covered by it', async () => {
  const { world, leader } = await withLeader();
  const first = append(world, leader, true);
  world.endTurn();
  const second = append(world, leader, true);
  world.endTurn();
  world.endFlushes();
  assert.deepEqual(
    [first.waiter.committed, second.waiter.committed, leader.highWatermark],
    [ErrorCode.NONE, null, 1],
  );
  world.settle();
  assert.deepEqual([second.waiter.committed, leader.highWatermark], [ErrorCode.NONE, 2]);
});

test('the high watermark after a kill covers only what is flushed, and the flush of the rest raises it', async () => {
  const { world, leader } = await withLeader();
  append(world, leader, true);
  world.settle();
  append(world, leader, true);
  world.endTurn();
  world.kill();
  await world.open();
  const again = world.leader('t');
  assert.equal(again.log.logEndOffset, 2, 'the unflushed batch is in the page cache still');
  assert(again.highWatermark <= again.log.flushedOffset, `${again.highWatermark} is not flushed`);
  assert(!again.isCaughtUp);
  world.settle();
  assert.deepEqual([again.highWatermark, again.isCaughtUp], [2, true]);
});

test('a duplicate of what a kill left unflushed is not acknowledged before the flush', async () => {
  const { world, leader } = await withLeader();
  append(world, leader, true, batchOf(['a'], { ...idempotent, baseSequence: 0 }));
  world.endTurn();
  world.kill();
  await world.open();
  const again = world.leader('t');
  const retry = append(world, again, true, batchOf(['a'], { ...idempotent, baseSequence: 0 }));
  assert.deepEqual([retry.code, retry.result.duplicate], [ErrorCode.NONE, true]);
  assert.equal(retry.waiter.committed, null);
  world.settle();
  assert.equal(retry.waiter.committed, ErrorCode.NONE);
});

test('os: after a kill all that was written counts, as it did before', async () => {
  const { world, leader } = await withLeader({ settings: ['log.durability=os'] });
  append(world, leader, true);
  world.endTurn();
  world.kill();
  await world.open();
  assert.equal(world.leader('t').highWatermark, 1);
});

for (const acks of ['all', '1'] as const)
  test(`acks=${acks}: a duplicate of a batch in the same turn waits as the first one does`, async () => {
    const { world, leader } = await withLeader();
    const all = acks === 'all';
    const first = append(world, leader, all, batchOf(['a'], { ...idempotent, baseSequence: 0 }));
    append(world, leader, all, batchOf(['b'], { ...idempotent, baseSequence: 1 }));
    const again = append(world, leader, all, batchOf(['a'], { ...idempotent, baseSequence: 0 }));
    assert.equal(again.result.duplicate, true);
    assert.deepEqual([again.result.baseOffset, again.waiter.endOffset], [0, 1]);
    assert.deepEqual([again.waiter.written, again.waiter.committed], [null, null]);
    world.endTurn();
    assert.deepEqual([first.waiter.written, again.waiter.written], [0, 0]);
    assert.deepEqual([first.waiter.committed, again.waiter.committed], [null, null]);
    world.endFlushes();
    const committed = all ? ErrorCode.NONE : null;
    assert.deepEqual([first.waiter.committed, again.waiter.committed], [committed, committed]);
    assert.equal(leader.log.logEndOffset, 2, 'stored once');
  });

test('a duplicate of a committed batch is acknowledged at once', async () => {
  const { world, leader } = await withLeader();
  append(world, leader, true, batchOf(['a'], { ...idempotent, baseSequence: 0 }));
  world.settle();
  const again = append(world, leader, true, batchOf(['a'], { ...idempotent, baseSequence: 0 }));
  assert.deepEqual([again.waiter.written, again.waiter.committed], [0, 0]);
});

test('a full disk: writers and their duplicates get the error once, earlier batches are not touched', async () => {
  const { world, leader } = await withLeader();
  const before = append(world, leader, true, batchOf(['0'], { ...idempotent, baseSequence: 0 }));
  world.endTurn();
  world.disk.writeError = 'ENOSPC';
  const lost = append(world, leader, true, batchOf(['1'], { ...idempotent, baseSequence: 1 }));
  const retry = append(world, leader, true, batchOf(['1'], { ...idempotent, baseSequence: 1 }));
  const retryOne = append(world, leader, false, batchOf(['1'], { ...idempotent, baseSequence: 1 }));
  const old = append(world, leader, true, batchOf(['0'], { ...idempotent, baseSequence: 0 }));
  assert(retry.result.duplicate && retryOne.result.duplicate && old.result.duplicate);
  world.endTurn();
  const storage = ErrorCode.KAFKA_STORAGE_ERROR;
  assert.deepEqual([lost.waiter.written, lost.waiter.committed], [storage, storage]);
  assert.equal(retry.waiter.committed, storage);
  assert.equal(retryOne.waiter.written, storage, 'acks=1 must not be told of a write that was not');
  assert.deepEqual([before.waiter.committed, old.waiter.committed], [null, null]);
  world.endFlushes();
  assert.deepEqual([before.waiter.committed, old.waiter.committed], [0, 0]);
  assert.equal(leader.highWatermark, 1);
  world.disk.writeError = null;
  const after = append(world, leader, true, batchOf(['1'], { ...idempotent, baseSequence: 1 }));
  assert.deepEqual([after.code, after.result.duplicate, after.result.baseOffset], [0, false, 1]);
  world.settle();
  assert.deepEqual([after.waiter.committed, leader.highWatermark], [0, 2]);
});

test('a turn whose first segment was written and whose second one found the disk full', async () => {
  const { world, leader } = await withLeader({
    topics: [['t', 1, { 'segment.bytes': '1048576' }]],
  });
  const first = append(world, leader, false, batchOfBytes(700_000));
  const second = append(world, leader, false, batchOfBytes(700_000));
  assert.equal(leader.log.segmentCount, 2);
  world.disk.writeError = 'ENOSPC';
  world.endTurn();
  assert.deepEqual(
    [first.waiter.written, second.waiter.written],
    [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR],
  );
  world.settle();
  assert.equal(leader.highWatermark, 1);
});

test('refuse ends every wait once, and nothing is taken after it', async () => {
  const { world, leader } = await withLeader();
  const written = append(world, leader, true);
  world.endTurn();
  const pending = append(world, leader, true);
  const gone = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
  leader.refuse(gone);
  assert.deepEqual([written.waiter.written, written.waiter.committed], [0, gone]);
  assert.deepEqual([pending.waiter.written, pending.waiter.committed], [gone, gone]);
  const late = append(world, leader, true);
  assert.deepEqual([late.code, late.result.errorMessage], [gone, null]);
  assert.equal(leader.checkEpoch(-1), gone);
});

test('a failed flush: no acknowledgement, the directory is offline, nothing is tried again', async () => {
  const { world, leader } = await withLeader();
  const { waiter } = append(world, leader, true);
  world.endTurn();
  world.disk.failingFlushes = 1;
  world.endFlushes();
  assert.equal(waiter.committed, ErrorCode.KAFKA_STORAGE_ERROR);
  assert.equal(leader.highWatermark, 0);
  assert.deepEqual(world.failedDirs, ['/data/a']);
  assert.equal(append(world, leader, true).code, ErrorCode.KAFKA_STORAGE_ERROR);
  const flushes = world.disk.calls.get('flush');
  world.settle();
  assert.equal(world.disk.calls.get('flush'), flushes);
});

test('a write that fails for good inside of an append ends that very append with an error', async () => {
  const { world, leader } = await withLeader({
    topics: [['t', 1, { 'segment.bytes': '1048576' }]],
  });
  const first = append(world, leader, true, batchOfBytes(700_000));
  world.disk.writeError = 'EIO';
  const second = append(world, leader, true, batchOfBytes(700_000));
  const storage = ErrorCode.KAFKA_STORAGE_ERROR;
  assert.equal(second.code, storage);
  assert.deepEqual([second.waiter.written, second.waiter.committed], [null, null]);
  world.settle();
  assert.deepEqual([first.waiter.written, first.waiter.committed], [storage, storage]);
});

test('epochs: older is fenced, newer is unknown, none is taken (KIP-320)', async () => {
  const { leader } = await withLeader();
  leader.lead(loneState(4), 0);
  assert.equal(leader.checkEpoch(-1), ErrorCode.NONE);
  assert.equal(leader.checkEpoch(4), ErrorCode.NONE);
  assert.equal(leader.checkEpoch(3), ErrorCode.FENCED_LEADER_EPOCH);
  assert.equal(leader.checkEpoch(5), ErrorCode.UNKNOWN_LEADER_EPOCH);
});

test('an epoch begins where the leader begins to lead, with or without records', async () => {
  const { world, leader } = await withLeader();
  assert.deepEqual(leader.log.endOffsetForEpoch(0), { epoch: 0, endOffset: 0 });
  append(world, leader, true);
  world.settle();
  leader.lead(loneState(1), 0);
  assert.deepEqual(leader.log.endOffsetForEpoch(1), { epoch: 1, endOffset: 1 });
  assert.deepEqual(leader.log.endOffsetForEpoch(0), { epoch: 0, endOffset: 1 });
  append(world, leader, true);
  assert.deepEqual(leader.log.endOffsetForEpoch(1), { epoch: 1, endOffset: 2 });
});

test('min.insync.replicas counts no more replicas than there are, as in Kafka', async () => {
  const { world, leader } = await withLeader({
    topics: [['t', 1, { 'min.insync.replicas': '2' }]],
  });
  assert.equal(append(world, leader, true).code, ErrorCode.NONE);
});

test('too few replicas in sync: acks=all is refused and nothing appended, acks=1 is taken', async () => {
  const { world, leader } = await withLeader();
  leader.minInsyncReplicas = 2;
  const all = append(world, leader, true);
  assert.equal(all.code, ErrorCode.NOT_ENOUGH_REPLICAS);
  assert.equal(leader.log.logEndOffset, 0);
  assert.equal(append(world, leader, false).code, ErrorCode.NONE);
});

test('config: new rules hold for the next batch', async () => {
  const { leader } = await withLeader();
  leader.updateConfig({ ...leader.log.config, maxMessageBytes: 77 }, 1);
  assert.equal(leader.batchRules.maxMessageBytes, 77);
});

test.run();
