/** Kafka's rules for idempotent producers (ProducerAppendInfo, KIP-98, KIP-360), one test for each. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { newProducerFields, type ProducerFields } from '../../../engine/log/producer_fields.ts';
import { ProducerState } from '../../../engine/log/producer_state.ts';

const test = suite('producer_state');
const sequenceMax = 0x7fff_ffff;

class Producing {
  readonly state = new ProducerState();
  offset = 0;

  batch(baseSequence: number, epoch = 0, count = 1): ProducerFields {
    return {
      ...newProducerFields(),
      producerId: 1,
      producerEpoch: epoch,
      baseSequence,
      lastOffsetDelta: count - 1,
    };
  }

  check(baseSequence: number, epoch = 0, count = 1): ErrorCode {
    return this.state.check(this.batch(baseSequence, epoch, count));
  }

  append(baseSequence: number, epoch = 0, count = 1, nowMs = 0): void {
    assert.equal(this.check(baseSequence, epoch, count), ErrorCode.NONE);
    this.state.record(this.batch(baseSequence, epoch, count), this.offset, 77n, nowMs);
    this.offset += count;
  }
}

test('sequences follow one another', () => {
  const one = new Producing();
  one.append(0, 0, 3);
  one.append(3, 0, 2);
  assert.equal(one.check(6), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert.equal(one.check(4), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  one.append(5);
});

test('each of the last five batches is known again, the one before is out of order', () => {
  const one = new Producing();
  for (let number = 0; number < 7; number += 1) one.append(number * 2, 0, 2);
  for (let number = 2; number < 7; number += 1) {
    assert.equal(one.check(number * 2, 0, 2), ErrorCode.DUPLICATE_SEQUENCE_NUMBER);
    assert.equal(one.state.duplicate?.lastOffset, number * 2 + 1);
    assert.equal(one.state.duplicate.timestamp, 77n);
  }
  assert.equal(one.check(2, 0, 2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
});

test('only the very same range is a duplicate', () => {
  const one = new Producing();
  one.append(0, 0, 4);
  assert.equal(one.check(0, 0, 3), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert.equal(one.check(1, 0, 3), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
});

test('sequences wrap from 2^31 - 1 to 0, between batches and inside one', () => {
  const one = new Producing();
  one.append(sequenceMax - 1, 0, 2);
  one.append(0);
  const other = new Producing();
  other.append(sequenceMax - 1, 0, 5);
  assert.equal(other.state.get(1)?.lastSequence, 2);
  assert.equal(other.check(sequenceMax - 1, 0, 5), ErrorCode.DUPLICATE_SEQUENCE_NUMBER);
  other.append(3);
});

test('a producer that is not known may begin anywhere (KIP-360)', () => {
  const one = new Producing();
  one.append(1234);
  one.append(1235);
});

test('a new epoch begins at 0 and forgets the batches of the old one', () => {
  const one = new Producing();
  one.append(0);
  one.append(1);
  assert.equal(one.check(2, 1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  one.append(0, 1);
  assert.equal(one.check(1, 0), ErrorCode.INVALID_PRODUCER_EPOCH);
  assert.equal(one.check(0, 0), ErrorCode.INVALID_PRODUCER_EPOCH);
  assert.equal(one.check(0, 1), ErrorCode.DUPLICATE_SEQUENCE_NUMBER);
  one.append(1, 1);
});

test('expiry goes by the time of the append, whatever the records say', () => {
  const one = new Producing();
  one.append(0, 0, 1, 1000);
  one.state.expire(1999, 1000);
  assert.equal(one.check(7), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  one.state.expire(2000, 1000);
  assert.equal(one.state.size, 0);
  one.append(7, 0, 1, 2000);
});

test('a producer with an open transaction does not expire', () => {
  const one = new Producing();
  const batch = { ...one.batch(0), isTransactional: true };
  one.state.record(batch, 0, 1n, 0);
  one.state.expire(1_000_000, 10);
  assert.equal(one.state.firstOpenTransactionOffset, 0);
  assert.equal(one.check(1), ErrorCode.INVALID_TXN_STATE);
  one.state.recordMarker(1, 0, 3, 1, 2n, 0);
  assert.equal(one.state.firstOpenTransactionOffset, -1);
  assert.equal(one.check(1), ErrorCode.NONE);
  assert.equal(one.state.get(1)?.coordinatorEpoch, 3);
});

test('undoing a round brings back everything, batches that fell off included', () => {
  const one = new Producing();
  for (let number = 0; number < 6; number += 1) one.append(number);
  const before = one.state.snapshot();
  one.state.beginRound();
  for (let number = 6; number < 12; number += 1) one.append(number);
  one.append(0, 1);
  one.state.record({ ...one.batch(0), producerId: 2 }, one.offset, 5n, 9);
  assert.notDeepEqual(one.state.snapshot(), before);
  one.state.undoRound();
  assert.deepEqual(one.state.snapshot(), before);
  assert.equal(one.state.get(2), undefined);
  assert.equal(one.check(1), ErrorCode.DUPLICATE_SEQUENCE_NUMBER);
  one.append(6);
});

test('what was in flight behind a refused first batch waits for it', () => {
  const one = new Producing();
  one.state.beginRound();
  one.append(3, 0, 2);
  one.append(5);
  one.state.undoRound();
  assert.equal(one.check(5), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert.equal(one.check(6), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert.equal(one.state.expectedSequence(one.batch(5)), 3);
  // Refused anew, for another reason, and in another round.
  one.state.refuse(one.batch(6), 0);
  one.state.refuse(one.batch(3, 0, 2), 0);
  one.state.beginRound();
  one.append(3, 0, 2);
  one.state.undoRound();
  assert.equal(one.check(5), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  one.append(3, 0, 2);
  one.append(5);
  assert.equal(one.check(3, 0, 2), ErrorCode.DUPLICATE_SEQUENCE_NUMBER);
});

test('a new epoch need not wait for the batch that was refused in the old one', () => {
  const one = new Producing();
  one.state.refuse(one.batch(0, 4), 0);
  one.append(0, 5);
  one.append(1, 5);
  const other = new Producing();
  other.state.beginRound();
  other.append(9, 4);
  other.append(0, 5);
  other.append(1, 5);
  other.state.undoRound();
  assert.equal(other.check(1, 5), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  other.append(0, 5);
});

test('refused beginnings expire like producers, and are bounded', () => {
  const one = new Producing();
  one.state.refuse(one.batch(0), 1000);
  one.state.expire(1999, 1000);
  assert.equal(one.check(1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  one.state.expire(2000, 1000);
  one.append(1);
  const other = new Producing();
  for (let producerId = 10; producerId < 100_010; producerId += 1)
    other.state.refuse({ ...other.batch(0), producerId }, 0);
  const last = { ...other.batch(1), producerId: 100_009 };
  assert.equal(other.state.check(last), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  assert(other.state.refusedCount <= 1000);
});

test('a snapshot brings back the last five batches of each producer', () => {
  const one = new Producing();
  for (let number = 0; number < 7; number += 1) one.append(number * 3, 0, 3);
  one.state.record({ ...one.batch(4, 9), producerId: 2 }, one.offset, 5n, 9);
  const restored = new ProducerState();
  assert.equal(restored.restore(one.state.snapshot(), 1000), true);
  assert.deepEqual(restored.snapshot(), one.state.snapshot());
  assert.equal(restored.get(1)?.batchCount, 5);
  assert.equal(restored.check(one.batch(6, 0, 3)), ErrorCode.DUPLICATE_SEQUENCE_NUMBER);
  restored.expire(1999, 1000);
  assert.equal(restored.size, 2, 'a restart counts as a sign of life');
});

test('last batches are told a few thousand producers at a time, whatever is appended meanwhile', () => {
  const state = new ProducerState();
  const append = (producerId: number, offset: number): void =>
    state.record({ ...newProducerFields(), producerId }, offset, 0n, 0);
  for (let producerId = 0; producerId < 5_000; producerId += 1) append(producerId, producerId);
  const telling = state.lastBatches(5_000);
  let turns = 0;
  let step = telling.next();
  for (; step.done !== true; step = telling.next()) {
    turns += 1;
    append(10_000 + turns, 6_000 + turns);
  }
  assert(turns > 1);
  assert.equal(step.value.producerIds.length, 5_000);
  assert.deepEqual([step.value.producerIds[7], step.value.lastOffsets[7]], [7, 7]);
});

test.run();
