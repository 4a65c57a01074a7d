import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { crc32c } from '../../../engine/batch/crc.ts';
import { ProducerEntry } from '../../../engine/log/producer_entry.ts';
import {
  decodeProducerSnapshot,
  encodeProducerSnapshot,
} from '../../../engine/log/producer_snapshot.ts';

const test = suite('producer_snapshot');

/** Version, CRC, and two entries as Kafka's own class writes them. */
const entries =
  '0000000000000007' +
  '0003' +
  '0000000b' +
  '000000000000002a' +
  '00000001' +
  '0000018bcfe56800' +
  'ffffffff' +
  'ffffffffffffffff' +
  '0000000000000008' +
  '0000' +
  'ffffffff' +
  'ffffffffffffffff' +
  '00000000' +
  '0000018bcfe56801' +
  '00000005' +
  '0000000000000010';
const counted = Buffer.from(`00000002${entries}`, 'hex');
const file = Buffer.concat([Buffer.from('0001', 'hex'), crcBytes(counted), counted]);

function crcBytes(bytes: Uint8Array): Buffer {
  const crc = Buffer.alloc(4);
  crc.writeUInt32BE(crc32c(bytes));
  return crc;
}

test('Kafka’s files are read, with one batch for each producer', () => {
  const [first, second] = decodeProducerSnapshot(file, 99) ?? [];
  assert.equal(first?.producerId, 7);
  assert.equal(first.epoch, 3);
  assert.equal(first.lastSequence, 11);
  assert.equal(first.batches[0]?.baseSequence, 10);
  assert.equal(first.batches[0]?.lastOffset, 42);
  assert.equal(first.lastTimestamp, 1_700_000_000_000n);
  assert.equal(first.currentTxnFirstOffset, -1);
  assert.equal(first.lastAppendMs, 99);
  assert.equal(second?.batchCount, 0);
  assert.equal(second.coordinatorEpoch, 5);
  assert.equal(second.currentTxnFirstOffset, 16);
});

test('producers with at most one batch are written as Kafka writes them', () => {
  const read = decodeProducerSnapshot(file, 0) ?? [];
  const written = encodeProducerSnapshot(read);
  const expected = Buffer.from(file);
  // A producer without a batch: Kafka writes last offset -1 too, since the offset is its last batch's.
  assert.equal(Buffer.from(written).toString('hex'), expected.toString('hex'));
});

test('of a producer with several batches the last entry says what Kafka would have said', () => {
  const entry = new ProducerEntry();
  entry.producerId = 7;
  entry.setEpoch(3);
  entry.addBatch(8, 9, 40, 1, 5n);
  entry.addBatch(10, 11, 42, 1, 1_700_000_000_000n);
  const written = Buffer.from(encodeProducerSnapshot([entry]));
  assert.equal(written.readInt32BE(6), 2);
  assert.equal(written.subarray(-46).toString('hex'), entries.slice(0, 92));
});

test('damage anywhere is noticed', () => {
  for (let at = 0; at < file.length; at += 1) {
    const damaged = Buffer.from(file);
    damaged[at] = (damaged[at] as number) ^ 0x10;
    assert.equal(decodeProducerSnapshot(damaged, 0), null, `byte ${at}`);
  }
  for (let length = 0; length < file.length; length += 1)
    assert.equal(decodeProducerSnapshot(file.subarray(0, length), 0), null, `${length} bytes`);
});

test('an empty state is ten bytes', () => {
  const written = Buffer.from(encodeProducerSnapshot([]));
  assert.equal(written.length, 10);
  assert.deepEqual(decodeProducerSnapshot(written, 0), []);
});

test.run();
