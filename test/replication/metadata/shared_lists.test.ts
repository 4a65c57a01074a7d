/** Lists that are alike are one, whoever brings them; nothing is ever mixed up. */
import assert from 'node:assert/strict';
import { test } from 'uvu';
import { SharedLists } from '../../../replication/metadata/shared_lists.ts';

test('lists of the same items are one, in this order and no other', () => {
  const lists = new SharedLists<number>();
  const first = lists.of([1, 2, 3]);
  assert.equal(lists.of([1, 2, 3]), first);
  assert.deepEqual(lists.of([3, 2, 1]), [3, 2, 1]);
  assert.deepEqual(lists.of([12, 3]), [12, 3]);
  assert.deepEqual(lists.of([1, 23]), [1, 23]);
  assert.deepEqual(first, [1, 2, 3]);
});

test('empty lists are one', () => {
  const lists = new SharedLists<string>();
  assert.deepEqual(lists.of([]), []);
  assert.equal(lists.of([]), lists.of([]));
});

test('what was handed out stays as it is when more lists come than are kept', () => {
  const lists = new SharedLists<number>();
  const kept = Array.from({ length: 10_000 }, (_, k) => lists.of([k, k + 1]));
  for (const [k, list] of kept.entries()) assert.deepEqual(list, [k, k + 1]);
  assert.deepEqual(lists.of([0, 1]), [0, 1]);
});

test.run();
