import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { throttledReplicas } from '../../../replication/partition/throttled_replicas.ts';

const test = suite('throttled replicas');

const of = (text: string | undefined, brokerId = 2): number[] =>
  [0, 1, 2, 12].filter((partition) => throttledReplicas(text, brokerId).has(partition));

test('a list names partitions and brokers, and each broker takes its own', () => {
  const list = '0:1,1:2, 12:2,2:12';
  assert.deepEqual([of(list), of(list, 1), of(list, 12), of(list, 3)], [[1, 12], [0], [2], []]);
});

test('a star names all, nothing names none', () => {
  assert.deepEqual([of('*'), of(''), of(undefined)], [[0, 1, 2, 12], [], []]);
});

test.run();
