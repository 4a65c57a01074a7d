import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { batchSizes } from '../../../bench/compare/bulk_client.ts';

const test = suite('bench/compare/bulk_client');

test('all messages are in a request, and all requests but the last are full', () => {
  assert.deepEqual(batchSizes(10, 4), [4, 4, 2]);
  assert.deepEqual(batchSizes(8, 4), [4, 4]);
  assert.deepEqual(batchSizes(3, 4), [3]);
});

test.run();
