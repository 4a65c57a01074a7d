import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { ReplicaPair } from '../../net/replicas/replica_pair.ts';

const test = suite('partition leader with replicas');

const { NONE } = ErrorCode;

test('too few in sync: acks=all is refused, acks=1 is taken and not shown before they are back (KIP-966)', () => {
  const pair = new ReplicaPair({ 'min.insync.replicas': '2' });
  pair.produce(1, 'a');
  pair.rest();
  assert.equal(pair.node(1).leader?.highWatermark, 1);
  pair.node(2).stop(false);
  pair.controller.fence(2);
  pair.update();
  assert.equal(pair.produce(1, 'b').code, ErrorCode.NOT_ENOUGH_REPLICAS);
  const one = pair.produce(1, 'c', false);
  pair.settle(1);
  assert.deepEqual([one.code, one.written], [NONE, NONE]);
  assert.equal(pair.node(1).leader?.highWatermark, 1);
  pair.node(2).start();
  pair.settle(2);
  pair.controller.unfence(2);
  pair.update();
  pair.rest();
  assert.deepEqual([pair.node(1).leader?.highWatermark, pair.produce(1, 'd').code], [2, NONE]);
  assert.deepEqual(pair.valuesOf(2).slice(0, 2), pair.valuesOf(1).slice(0, 2));
});

test('what waits when too many leave is answered, once, and is in the log still', () => {
  const pair = new ReplicaPair({ 'min.insync.replicas': '2' });
  const waiting = pair.produce(1, 'a');
  pair.settle(1);
  assert.equal(waiting.committed, null);
  pair.controller.fence(2);
  pair.update();
  assert.equal(waiting.committed, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND);
  assert.equal(pair.node(1).leader?.log.logEndOffset, 1);
  pair.controller.unfence(2);
  pair.update();
  pair.rest();
  assert.equal(pair.node(1).leader?.highWatermark, 1);
});

test('whoever wants to know what became of it may wait on', () => {
  const pair = new ReplicaPair({ 'min.insync.replicas': '2' });
  const told: ErrorCode[] = [];
  const waiter = {
    endOffset: 1,
    onWritten: () => {},
    onCommitted: (error: ErrorCode) => {
      told.push(error);
    },
  };
  pair.produce(1, 'a');
  pair.settle(1);
  pair.node(1).leader?.wait(waiter);
  pair.controller.fence(2);
  pair.update();
  assert.deepEqual(told, [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]);
  pair.node(1).leader?.wait(waiter);
  pair.controller.unfence(2);
  pair.update();
  pair.rest();
  assert.deepEqual(told.slice(1), [NONE]);
  pair.node(1).leader?.wait(waiter);
  assert.deepEqual(told.slice(2), [NONE], 'it is committed already');
});

test('a follower that lags is left out by the controller’s leave, and comes back when it has caught up', () => {
  const pair = new ReplicaPair();
  const waiting = pair.produce(1, 'a');
  pair.settle(1);
  pair.clock.advance(2_500);
  pair.node(1).partitions?.tick();
  assert.equal(waiting.committed, null, 'until the controller has agreed the follower counts');
  const [wish] = pair.node(1).wishes.splice(0);
  assert.deepEqual(
    wish?.proposal.newIsr.map(({ brokerId }) => brokerId),
    [1],
  );
  const answer = pair.controller.alterPartition(1, wish!.proposal);
  assert.equal(waiting.committed, null);
  wish!.leader.proposalAnswered(wish!.proposal, answer);
  assert.equal(waiting.committed, NONE);
  pair.rest();
  assert.deepEqual(pair.controller.partition.isr, [1, 2]);
});

test('the metadata can be here before the answer', () => {
  const pair = new ReplicaPair();
  const waiting = pair.produce(1, 'a');
  pair.settle(1);
  pair.clock.advance(2_500);
  pair.node(1).partitions?.tick();
  const [wish] = pair.node(1).wishes.splice(0);
  const answer = pair.controller.alterPartition(1, wish!.proposal);
  pair.update();
  assert.equal(waiting.committed, NONE);
  wish!.leader.proposalAnswered(wish!.proposal, answer);
  assert.equal(pair.node(1).leader?.isrSize, 1);
});

test('a new leader shows what it knew to be committed, and tells no end before it has caught up (KIP-207)', () => {
  const pair = new ReplicaPair({}, [1, 2, 3]);
  pair.produce(1, 'a');
  pair.rest();
  pair.produce(1, 'b');
  pair.settle(1);
  for (const id of [2, 3]) {
    pair.fetch(id);
    pair.settle(id);
  }
  // Broker 1 hears of both and commits; nobody else hears that it has.
  pair.fetch(2, (answer) => ({ ...answer, highWatermark: 1 }));
  pair.fetch(3, (answer) => ({ ...answer, highWatermark: 1 }));
  assert.equal(pair.node(1).leader?.highWatermark, 2);
  pair.node(1).stop(false);
  pair.controller.fence(1);
  pair.update();
  const leader = pair.node(2).leader!;
  assert.deepEqual([leader.highWatermark, leader.isCaughtUp], [1, false]);
  pair.fetch(3);
  assert.deepEqual([leader.highWatermark, leader.isCaughtUp], [2, true]);
});

test('after a start the high watermark is that of the checkpoint, until the others have been heard of', () => {
  const pair = new ReplicaPair();
  for (const value of ['a', 'b']) pair.produce(1, value);
  pair.rest();
  pair.node(1).checkpoint();
  pair.settle(1);
  pair.node(2).checkpoint();
  pair.settle(2);
  for (const node of pair.nodes) node.stop(true);
  for (const node of pair.nodes) node.start();
  assert.deepEqual(
    pair.nodes.map(({ replica }) => replica?.highWatermark),
    [2, 2],
  );
});

test('an epoch of the same leader begins at its log’s end, and its followers are heard anew', () => {
  const pair = new ReplicaPair();
  pair.produce(1, 'a');
  pair.rest();
  const leader = pair.node(1).leader!;
  pair.controller.change({ leader: 1 });
  pair.update();
  assert.equal(pair.node(1).leader, leader, 'who waits goes on waiting');
  assert.deepEqual(leader.log.endOffsetForEpoch(1), { epoch: 1, endOffset: 1 });
  const waiting = pair.produce(1, 'b');
  pair.settle(1);
  assert.equal(waiting.committed, null);
  pair.rest();
  assert.equal(waiting.committed, NONE);
});

test('whoever waits at a leader that leads no more is told so, its memory written before', () => {
  const pair = new ReplicaPair();
  const flushed = pair.produce(1, 'a');
  pair.settle(1);
  const pending = pair.produce(1, 'b');
  pair.controller.elect(2);
  pair.update();
  const gone = ErrorCode.NOT_LEADER_OR_FOLLOWER;
  assert.deepEqual([flushed.written, flushed.committed], [NONE, gone]);
  assert.deepEqual([pending.written, pending.committed], [NONE, gone]);
  assert.equal(pair.node(1).follower?.log.writtenOffset, 2);
});

test('small writes are not held back for a flush where followers wait for them', () => {
  const pair = new ReplicaPair();
  pair.produce(1, 'a');
  pair.node(1).endTurn();
  pair.produce(1, 'b');
  pair.node(1).endTurn();
  assert.equal(pair.node(1).leader?.log.writtenOffset, 2, 'beside the flush under way');
});

test('a replica that is moved to another broker is dropped here when all is over', () => {
  const pair = new ReplicaPair({}, [1, 2, 3]);
  pair.produce(1, 'a');
  pair.rest();
  pair.controller.change({ replicas: [1, 2], isr: [1, 2] });
  pair.update();
  assert.equal(pair.node(3).replica, undefined);
  const waiting = pair.produce(1, 'b');
  pair.rest();
  assert.equal(waiting.committed, NONE);
  pair.controller.change({ replicas: [1, 2, 3] });
  pair.update();
  assert.equal(pair.node(3).follower?.log.logEndOffset, 0, 'it begins anew');
  pair.rest();
  assert.deepEqual(pair.valuesOf(3), ['0a', '0b']);
  assert.deepEqual(pair.controller.partition.isr, [1, 2, 3]);
});

test('a broker that has started does not lead before the controller knows of it: it may have lost what it wrote', () => {
  const pair = new ReplicaPair();
  pair.produce(1, 'a');
  pair.rest();
  pair.node(1).stop(true);
  pair.node(1).start();
  assert.equal(pair.node(1).image.partition('t', 0)?.leader, 1, 'of the life before');
  assert.deepEqual([pair.node(1).leader, pair.node(1).follower?.leaderId], [undefined, -1]);
  pair.update();
  assert.equal(pair.node(1).follower?.leaderId, 2);
  pair.settle(1);
  pair.controller.unfence(1);
  pair.update();
  pair.rest();
  pair.controller.elect(1);
  pair.update();
  assert.equal(pair.node(1).leader?.leaderEpoch, 2);
});

test.run();
