import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { murmur2, StickyPartition } from '../../../net/client/partitioner.ts';

const test = suite('partitioner');

test('murmur2 gives what the Java client gives', () => {
  // From UtilsTest.testMurmur2 of Apache Kafka.
  const vectors: readonly (readonly [string, number])[] = [
    ['21', -973932308],
    ['foobar', -790332482],
    ['a-little-bit-long-string', -985981536],
    ['a-little-bit-longer-string', -1486304829],
    ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
    ['abc', 479470107],
  ];
  for (const [text, hash] of vectors) assert.equal(murmur2(Buffer.from(text)), hash, text);
});

test('murmur2 takes as many bytes as it is told to', () => {
  assert.equal(murmur2(Buffer.from('foobar and more'), 6), -790332482);
});

test('messages without a key stay with a partition for a batch of bytes, then go to another one', () => {
  const sticky = new StickyPartition(100);
  const all = [0, 1, 2];
  const chosen = Array.from({ length: 40 }, () => sticky.next(50, 3, all));
  for (let at = 0; at < chosen.length; at += 2) {
    assert.equal(chosen[at], chosen[at + 1], `pair ${at / 2}`);
    if (at > 0) assert.notEqual(chosen[at], chosen[at - 1], `pair ${at / 2} moved on`);
  }
  assert.deepEqual(new Set(chosen), new Set(all));
});

test('partitions without a leader are left out, unless none has one', () => {
  const sticky = new StickyPartition(1);
  for (let at = 0; at < 20; at += 1) assert.equal(sticky.next(1, 3, [1]), 1);
  const any = new StickyPartition(1);
  for (let at = 0; at < 20; at += 1) assert.ok([0, 1, 2].includes(any.next(1, 3, [])));
});

test.run();
