import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { batchOf } from '../../net/data_path/requests.ts';
import { ReplicaPair } from '../../net/replicas/replica_pair.ts';

const test = suite('cuts of followers’ logs');

const { NONE } = ErrorCode;

test('a log is cut where it leaves its leader’s, not at the high watermark (KIP-101)', () => {
  const pair = new ReplicaPair();
  for (const value of ['a', 'b']) pair.produce(1, value);
  pair.round();
  pair.round();
  // Broker 2 has what is committed by now, and has not heard that it is.
  assert.deepEqual([pair.node(1).leader?.highWatermark, pair.valuesOf(2).length], [2, 2]);
  pair.produce(1, 'x', false);
  pair.settle(1);
  pair.controller.elect(2);
  pair.update();
  pair.produce(2, 'c', false);
  pair.settle(2);
  const { diverging } = pair.fetch(1).answer;
  assert.deepEqual(diverging, { epoch: 0, endOffset: 2 });
  pair.settle(1);
  assert.deepEqual(pair.valuesOf(1), ['0a', '0b']);
  pair.rest();
  assert.deepEqual(pair.valuesOf(1), ['0a', '0b', '1c']);
});

test('epoch after epoch, until both histories are one (KIP-279)', () => {
  const pair = new ReplicaPair();
  pair.produce(1, 'a');
  pair.rest();
  // Three leaders write what nobody fetches.
  const elections: [number, string][] = [
    [1, 'b'],
    [2, 'c'],
    [1, 'd'],
    [2, 'e'],
  ];
  for (const [id, value] of elections) {
    pair.controller.elect(id);
    pair.update();
    pair.produce(id, value, false);
    pair.settle(1, 2);
  }
  pair.rest();
  assert.deepEqual(pair.valuesOf(1), pair.valuesOf(2));
  assert.deepEqual(pair.valuesOf(1), ['0a', '1c', '3e']);
});

test('an epoch that was led without a record is forgotten by who follows', () => {
  const pair = new ReplicaPair();
  pair.produce(1, 'a');
  pair.rest();
  pair.controller.elect(2);
  pair.update();
  pair.controller.elect(1);
  pair.update();
  assert.equal(pair.node(2).follower?.log.epochs.latestEpoch, 0);
  const fetched = pair.fetch(2);
  assert.deepEqual([fetched.answer.diverging, fetched.error()], [null, NONE]);
});

test('nothing is cut that readers still read: they keep the old bytes', () => {
  const pair = new ReplicaPair({ 'segment.bytes': '200' });
  for (const value of ['a', 'b', 'c', 'd']) pair.produce(1, value, false);
  pair.settle(1);
  const { log } = pair.node(1).leader!;
  const slice = log.read(3, 10_000, 4, true);
  assert(typeof slice === 'object');
  slice.segment.pin();
  pair.controller.elect(2);
  pair.update();
  pair.fetch(1);
  pair.settle(1);
  assert.equal(log.logEndOffset, 0);
  assert.equal(log.copy(slice).length, slice.length);
  slice.segment.unpin();
});

test('a cut below the recovery point is written down first, so that no crash makes recovery believe other bytes', async () => {
  const pair = new ReplicaPair();
  pair.produce(1, 'x', false);
  pair.produce(1, 'y', false);
  pair.settle(1);
  pair.node(1).checkpoint();
  pair.settle(1);
  const { log } = pair.node(1).leader!;
  assert.equal(log.recoveryPoint, 2);
  pair.controller.elect(2);
  pair.update();
  pair.produce(2, 'c', false);
  pair.settle(2);
  const fetched = pair.fetch(1);
  await pair.turn();
  assert.deepEqual([log.logEndOffset, log.recoveryPoint], [2, 0]);
  assert.equal(fetched.error(), null);
  pair.settle(1);
  await pair.turn();
  pair.settle(1);
  assert.deepEqual([log.logEndOffset, fetched.error()], [0, NONE]);
  const checkpoint = pair.node(1).disk.bytesOf('/data/a/recovery-point-offset-checkpoint');
  assert.match(Buffer.from(checkpoint).toString(), /^t 0 0$/m);
});

test('the follower goes on only when its cut is on stable storage', () => {
  const pair = new ReplicaPair();
  pair.produce(1, 'x', false);
  pair.settle(1);
  pair.controller.elect(2);
  pair.update();
  const fetched = pair.fetch(1);
  pair.node(1).endTurn();
  assert.deepEqual([pair.node(1).follower?.log.logEndOffset, fetched.error()], [0, null]);
  pair.node(1).disk.endFlushes();
  assert.equal(fetched.error(), NONE);
});

test('where the leader has deleted what comes next, the log begins anew where the leader’s does', () => {
  const pair = new ReplicaPair();
  pair.produce(1, 'a');
  pair.rest();
  for (const value of ['b', 'c', 'd']) pair.produce(1, value, false);
  pair.settle(1);
  const leader = pair.node(1).leader!;
  // As if broker 2 had been away: it leaves the ISR, and the records are committed without it.
  pair.node(2).stop(false);
  pair.controller.fence(2);
  pair.update();
  assert.equal(leader.highWatermark, 4);
  leader.advanceLogStart(3);
  pair.node(2).start();
  pair.settle(2);
  const fetched = pair.fetch(2);
  assert.equal(fetched.answer.errorCode, ErrorCode.OFFSET_OUT_OF_RANGE);
  pair.settle(2);
  const { log, highWatermark } = pair.node(2).follower!;
  assert.deepEqual([fetched.error(), log.logStartOffset, log.logEndOffset], [NONE, 3, 3]);
  assert.equal(highWatermark, 3);
  pair.controller.unfence(2);
  pair.update();
  pair.rest();
  assert.deepEqual(pair.valuesOf(2), ['0d']);
  assert.deepEqual(pair.controller.partition.isr, [1, 2]);
});

test('where the leader has deleted all that is here, nothing says that it was the leader’s: the log begins anew', () => {
  const pair = new ReplicaPair();
  pair.produce(1, 'a');
  pair.rest();
  for (const value of ['x', 'y']) pair.produce(1, value, false);
  pair.settle(1);
  pair.controller.fence(1);
  pair.update();
  for (const value of ['c', 'd']) pair.produce(2, value);
  pair.settle(2);
  pair.node(2).leader?.advanceLogStart(3);
  const { answer } = pair.fetch(1);
  assert.equal(answer.diverging, null, 'the leader does not know any more where epoch 0 ended');
  pair.settle(1);
  const { log } = pair.node(1).follower!;
  assert.deepEqual([log.logStartOffset, log.logEndOffset], [3, 3]);
});

test('the log starts where the leader’s does, once that is written down', async () => {
  const pair = new ReplicaPair();
  for (const value of ['a', 'b', 'c']) pair.produce(1, value);
  pair.rest();
  pair.node(1).leader?.advanceLogStart(2);
  pair.rest();
  const { log } = pair.node(2).follower!;
  await pair.turn();
  pair.rest();
  assert.equal(log.logStartOffset, 2);
  const checkpoint = pair.node(2).disk.bytesOf('/data/a/log-start-offset-checkpoint');
  assert.match(Buffer.from(checkpoint).toString(), /^t 0 2$/m);
});

test('a log that starts in the middle of a batch is copied from that batch on', async () => {
  const pair = new ReplicaPair();
  const waiter = { endOffset: 0, onWritten: () => {}, onCommitted: () => {} };
  pair.node(2).stop(false);
  pair.controller.fence(2);
  pair.update();
  pair.produce(1, 'a');
  pair.node(1).append(batchOf(['b', 'c', 'd']), true, waiter);
  pair.settle(1);
  pair.node(1).leader?.advanceLogStart(2);
  pair.node(2).start();
  pair.settle(2);
  for (let count = 0; count < 3; count += 1) {
    pair.fetch(2);
    for (let turns = 0; turns < 3; turns += 1) {
      await pair.turn();
      pair.settle(2);
    }
  }
  pair.controller.unfence(2);
  pair.update();
  pair.rest();
  const { log } = pair.node(2).follower!;
  assert.deepEqual([log.logStartOffset, log.logEndOffset], [2, 4]);
  assert.deepEqual(pair.valuesOf(2), pair.valuesOf(1));
  assert.deepEqual(pair.controller.partition.isr, [1, 2]);
});

const path = '/data/a/t-0/00000000000000000000.log';

/** Two replicas of a, b and c; the second one has moved a damaged b aside as it started. */
function pairWithHole(): ReplicaPair {
  const pair = new ReplicaPair();
  for (const value of ['a', 'b', 'c']) pair.produce(1, value);
  pair.rest();
  const node = pair.node(2);
  node.stop(false);
  const size = node.disk.bytesOf(path).length / 3;
  node.disk.corrupt(path, size + 65, new Uint8Array([0xee]));
  node.start();
  pair.settle(2);
  return pair;
}

/** Broker 2 has led, and moved aside the first of two records that nobody fetched; 1 leads now, and has none. */
function pairWithFirstHole(): ReplicaPair {
  const pair = new ReplicaPair();
  pair.controller.elect(2);
  pair.update();
  for (const value of ['a', 'b']) pair.produce(2, value, false);
  pair.settle(2);
  const node = pair.node(2);
  node.stop(false);
  node.disk.corrupt(path, 65, new Uint8Array([0xee]));
  node.start();
  pair.settle(2);
  return pair;
}

test('a log with a hole is not told to be whole: the leader takes nobody in who has not fetched it anew', () => {
  const pair = pairWithHole();
  const node = pair.node(2);
  pair.controller.unfence(2);
  pair.update();
  pair.settle(2);
  assert.equal(node.follower?.fetchState().fetchOffset, 1);
  const fetched = pair.fetch(2);
  assert.deepEqual(pair.node(1).wishes, []);
  pair.settle(2);
  assert.deepEqual([fetched.error(), pair.valuesOf(2).length], [NONE, 3]);
});

test('damaged records are moved aside, and fetched again from the leader with all that follows', () => {
  const pair = pairWithHole();
  const node = pair.node(2);
  assert.deepEqual(pair.valuesOf(2), ['0a', '0c']);
  assert(node.lines.some((line) => line.includes('set aside')));
  pair.update();
  pair.settle(2);
  pair.controller.unfence(2);
  pair.update();
  pair.rest();
  assert.deepEqual(pair.valuesOf(2), ['0a', '0b', '0c']);
  assert.deepEqual([...node.disk.bytesOf(path)], [...pair.node(1).disk.bytesOf(path)]);
  assert.deepEqual(pair.controller.partition.isr, [1, 2]);
});

test('what lies behind a hole goes where the leader’s log ends before it', () => {
  const pair = pairWithFirstHole();
  const node = pair.node(2);
  assert.deepEqual(pair.valuesOf(2), ['1b']);
  pair.controller.elect(1);
  pair.update();
  pair.settle(2);
  // The leader takes it for whole from here on, as there is nothing that it lacks.
  const fetched = pair.fetch(2);
  pair.settle(2);
  assert.equal(fetched.error(), NONE);
  assert.deepEqual(pair.valuesOf(2), []);
  assert.equal(node.follower?.log.logEndOffset, 0);
});

/** Broker 1 has taken 2 for in sync, whose log has a hole at the beginning and a record behind it, and dies. */
function pairElectingHole(): ReplicaPair {
  const pair = pairWithFirstHole();
  const node = pair.node(2);
  pair.controller.unfence(2);
  pair.update();
  pair.settle(2);
  const asked = node.follower!.fetchState();
  assert.equal(asked.fetchOffset, 0);
  // Its answer never arrives.
  pair.node(1).serve(2, node.brokerEpoch, asked, 100_000);
  const [wish] = pair.node(1).wishes.splice(0);
  assert.equal(pair.controller.alterPartition(1, wish!.proposal).errorCode, NONE);
  assert.deepEqual(pair.controller.partition.isr, [1, 2]);
  pair.controller.fence(1);
  assert.equal(pair.controller.partition.leader, 2);
  return pair;
}

test('who is elected with a hole cuts its log there, and leads when that is on stable storage', () => {
  const pair = pairElectingHole();
  const node = pair.node(2);
  pair.update();
  assert.equal(pair.node(2).leader, undefined);
  pair.settle(2);
  assert.deepEqual([node.leader?.leaderEpoch, node.leader?.log.logEndOffset], [3, 0]);
  pair.produce(2, 'c');
  pair.settle(2);
  pair.controller.unfence(1);
  pair.update();
  pair.rest();
  assert.deepEqual([pair.valuesOf(1), pair.valuesOf(2)], [['3c'], ['3c']]);
  node.stop(false);
  node.start();
  pair.settle(2);
  assert(!node.isDamaged, 'it has come back');
});

test('elections that come while the hole is being cut: the last one counts', () => {
  for (const leaders of [[1], [1, 2], [2]]) {
    const pair = pairElectingHole();
    const node = pair.node(2);
    pair.update();
    node.endTurn();
    pair.controller.unfence(1);
    for (const leader of leaders) {
      pair.controller.change({ leader });
      pair.update();
    }
    pair.settle(1, 2);
    const last = leaders.at(-1);
    assert.equal(node.leader?.leaderEpoch, last === 2 ? 3 + leaders.length : undefined);
    pair.produce(last!, 'c');
    pair.rest();
    const epoch = 3 + leaders.length;
    assert.deepEqual([pair.valuesOf(1), pair.valuesOf(2)], [[`${epoch}c`], [`${epoch}c`]]);
  }
});

test('who is elected uncleanly with a hole keeps what it has, then and later', () => {
  const pair = pairWithHole();
  const node = pair.node(2);
  pair.controller.unfence(2);
  pair.controller.change({ isr: [2], leader: 2, leaderRecoveryState: 1 });
  pair.update();
  pair.settle(2);
  assert.deepEqual([node.leader?.leaderEpoch, pair.valuesOf(2)], [1, ['0a', '0c']]);
  pair.controller.change({ leaderRecoveryState: 0 });
  pair.produce(2, 'd');
  pair.controller.change({ leader: 1 });
  pair.update();
  assert.equal(node.leader, undefined);
  pair.controller.change({ leader: 2 });
  pair.update();
  pair.settle(2);
  assert.deepEqual(pair.valuesOf(2), ['0a', '0c', '1d']);
  node.stop(false);
  node.start();
  pair.settle(2);
  assert(!node.isDamaged, 'it has come back');
  assert.deepEqual(pair.valuesOf(2), ['0a', '0c', '1d']);
});

test('what was moved aside is missing after further starts too, until it has been fetched again', () => {
  const pair = pairWithHole();
  const node = pair.node(2);
  node.stop(false);
  node.start();
  pair.settle(2);
  assert.deepEqual(pair.valuesOf(2), ['0a', '0c']);
  assert(node.isDamaged, 'the second start has not done away with it');
  pair.update();
  pair.settle(2);
  pair.controller.unfence(2);
  pair.update();
  pair.rest();
  assert.deepEqual(pair.valuesOf(2), ['0a', '0b', '0c']);
  node.stop(false);
  node.start();
  pair.settle(2);
  assert(!node.isDamaged, 'it has come back');
});

test.run();
