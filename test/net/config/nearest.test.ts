import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { brokerKeys } from '../../../net/config/key_table.ts';
import { editDistance, nearestName } from '../../../net/config/nearest.ts';

const test = suite('nearest');

test('distances count insertions, deletions, replacements and swaps of neighbours', () => {
  const cases: [string, string, number][] = [
    ['', '', 0],
    ['abc', 'abc', 0],
    ['', 'abc', 3],
    ['kitten', 'sitting', 3],
    ['abcd', 'abdc', 1],
    ['num.partition', 'num.partitions', 1],
    ['a', 'b', 1],
  ];
  for (const [a, b, distance] of cases) {
    assert.equal(editDistance(a, b), distance, `${a} ${b}`);
    assert.equal(editDistance(b, a), distance, `${b} ${a}`);
  }
});

test('the key that was meant is found', () => {
  const cases: [string, string | null][] = [
    ['num.partition', 'num.partitions'],
    ['num_partitions', 'num.partitions'],
    ['NUM.PARTITIONS', 'num.partitions'],
    ['listener', 'listeners'],
    ['log.retention.hour', 'log.retention.hours'],
    ['log.dri', 'log.dir'],
    ['log.durabilty', 'log.durability'],
    ['something.else.entirely', null],
    ['x', null],
    ['', null],
  ];
  for (const [typed, meant] of cases) {
    assert.equal(nearestName(typed, brokerKeys().names()), meant, typed);
  }
});

test('a key from outside of any length is answered quickly', () => {
  assert.equal(nearestName('a'.repeat(1_000_000), brokerKeys().names()), null);
});

test.run();
