import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { BufferPool } from '../../../net/client/buffer_pool.ts';
import { PartitionQueue, type ProducerIdentity } from '../../../net/client/partition_queue.ts';
import { noHeaderBytes, RecordBatch } from '../../../net/client/record_batch.ts';
import { splitBatch } from '../../../net/client/split_batch.ts';

const test = suite('partition queue');
const pool = new BufferPool(0);

/** Gives a producer id, and has a batch without records delivered, so that the broker knows it. */
function makeKnown(queue: PartitionQueue, identity: ProducerIdentity): void {
  queue.setIdentity(identity);
  queue.settle(new RecordBatch(pool, 1, 1, 0));
}

/** A queue with a producer id and batches of so many records, all closed. */
function queueOf(...counts: readonly number[]): { queue: PartitionQueue; batches: RecordBatch[] } {
  const queue = new PartitionQueue('t', 0);
  makeKnown(queue, { producerId: 7, epoch: 0 });
  const batches = counts.map((count) => {
    const batch = new RecordBatch(pool, 1 << 20, 512, 0);
    for (let at = 0; at < count; at += 1) {
      batch.append(at, null, -1, `value ${at}`, 7 + `${at}`.length - 1, noHeaderBytes);
      batch.settles.push(() => undefined);
    }
    batch.isClosed = true;
    queue.batches.push(batch);
    return batch;
  });
  return { queue, batches };
}

const never = (): boolean => false;

/** Sends all that may be sent and returns what. */
function sendAll(queue: PartitionQueue): RecordBatch[] {
  const sent: RecordBatch[] = [];
  for (let batch = queue.next(never); batch !== null; batch = queue.next(never)) {
    queue.begin(batch, true);
    sent.push(batch);
  }
  return sent;
}

const sequences = (batches: readonly RecordBatch[]): number[] =>
  batches.map(({ baseSequence }) => baseSequence);

test('sequences follow the records, and a batch that is sent again keeps its own', () => {
  const { queue, batches } = queueOf(3, 2, 4);
  assert.deepEqual(sendAll(queue), batches);
  assert.deepEqual(sequences(batches), [0, 3, 5]);
  for (const batch of batches) queue.end(batch);
  assert.deepEqual(sendAll(queue), batches, 'in the old order');
  assert.deepEqual(sequences(batches), [0, 3, 5]);
  assert.equal(queue.identity.epoch, 0);
});

test('what is still filled goes out only when that is asked for', () => {
  const { queue, batches } = queueOf(1, 1);
  (batches[1] as RecordBatch).isClosed = false;
  assert.deepEqual(sendAll(queue), [batches[0]]);
  assert.equal(
    queue.next(() => true),
    batches[1],
  );
});

test('a batch that fails for good holds back what has no sequence yet', () => {
  const { queue, batches } = queueOf(3, 2, 4);
  const [first, second, third] = batches as [RecordBatch, RecordBatch, RecordBatch];
  queue.begin(first, true);
  queue.begin(second, true);
  queue.end(first);
  queue.abandon(first);
  assert.equal(queue.next(never), null, 'the second may be stored or refused');
  queue.end(second);
  queue.settle(second);
  assert.deepEqual(sendAll(queue), [third], 'all numbered ones are settled');
  assert.equal(queue.identity.epoch, 1);
  assert.equal(third.baseSequence, 0);
});

test('behind a gap, what was refused is numbered anew in the next epoch, in order', () => {
  const { queue, batches } = queueOf(3, 2, 4, 1);
  const [first, second, third, fourth] = sendAll(queue).slice(0, 4) as RecordBatch[];
  queue.end(first as RecordBatch);
  queue.abandon(first as RecordBatch);
  queue.end(second as RecordBatch);
  queue.refuse(second as RecordBatch);
  assert.equal(queue.next(never), null, 'two are still on their way');
  for (const batch of [third, fourth] as RecordBatch[]) {
    queue.end(batch);
    queue.refuse(batch);
  }
  assert.deepEqual(sendAll(queue), batches.slice(1, 2), 'the first of an epoch goes alone');
  queue.end(second as RecordBatch);
  queue.settle(second as RecordBatch);
  assert.deepEqual(sendAll(queue), batches.slice(2));
  assert.deepEqual(sequences(batches.slice(2)), [2, 6]);
  assert.deepEqual(queue.identity, { producerId: 7, epoch: 1 });
});

test('a refusal behind a batch that is to be sent again means nothing', () => {
  const { queue, batches } = queueOf(3, 2);
  sendAll(queue);
  for (const batch of batches) queue.end(batch);
  queue.refuse(batches[1] as RecordBatch);
  assert.deepEqual(sendAll(queue), batches);
  assert.deepEqual(sequences(batches), [0, 3]);
});

test('when the epochs are used up a new producer id is needed', () => {
  const { queue, batches } = queueOf(1, 1);
  makeKnown(queue, { producerId: 7, epoch: 0x7fff });
  sendAll(queue);
  for (const batch of batches) queue.end(batch);
  queue.refuse(batches[0] as RecordBatch);
  queue.next(never);
  assert.equal(queue.needsIdentity, true);
  assert.equal(queue.used?.producerId, 7);
  makeKnown(queue, { producerId: 8, epoch: 0 });
  assert.deepEqual(sendAll(queue), batches);
  assert.deepEqual(sequences(batches), [0, 1]);
});

test('until the broker knows an epoch, one batch at a time is on its way', () => {
  const { queue, batches } = queueOf(1, 1, 1);
  const [first, second, third] = batches as [RecordBatch, RecordBatch, RecordBatch];
  queue.setIdentity({ producerId: 9, epoch: 0 });
  assert.deepEqual(sendAll(queue), [first]);
  queue.end(first);
  assert.deepEqual(sendAll(queue), [first], 'again, and alone');
  queue.end(first);
  queue.settle(first);
  assert.deepEqual(sendAll(queue), [second, third]);
});

test('the parts of a batch that is too large take its place and its sequences', () => {
  const { queue, batches } = queueOf(10, 5);
  sendAll(queue);
  const [large, after] = batches as [RecordBatch, RecordBatch];
  queue.end(large);
  const parts = splitBatch(large);
  assert.ok(parts.length >= 2);
  assert.equal(
    parts.reduce((sum, part) => sum + part.count, 0),
    10,
  );
  queue.replace(large, parts);
  assert.deepEqual(queue.batches, [...parts, after]);
  assert.deepEqual(sequences(parts), [0, parts[0]?.count, ...sequences(parts.slice(2))]);
  assert.deepEqual(sendAll(queue), parts);
  assert.equal(after.baseSequence, 10);
});

test('nothing is sent five behind a batch without an answer: the broker could not tell that one from a new one', () => {
  const { queue, batches } = queueOf(2, 2, 2, 2, 2, 2, 2);
  assert.deepEqual(sendAll(queue), batches.slice(0, 5));
  for (const batch of batches.slice(1, 5)) {
    queue.end(batch);
    queue.settle(batch);
  }
  assert.deepEqual(
    sendAll(queue),
    [],
    'the next leader has taken four, the first is still at the old one',
  );
  queue.end(batches[0] as RecordBatch);
  assert.deepEqual(sendAll(queue), batches.slice(0, 1));
  queue.end(batches[0] as RecordBatch);
  queue.settle(batches[0] as RecordBatch);
  assert.deepEqual(sendAll(queue), batches.slice(5));
});

test('the parts of a batch count as batches', () => {
  const { queue, batches } = queueOf(10, 1, 1, 1, 1, 1);
  sendAll(queue);
  for (const batch of batches.slice(0, 5)) queue.end(batch);
  const parts = splitBatch(batches[0] as RecordBatch);
  queue.replace(batches[0] as RecordBatch, parts);
  assert.deepEqual(sendAll(queue), [...parts, ...batches.slice(1, 6 - parts.length)]);
});

test.run();
