import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { subscribedTopicsOf } from '../../../engine/groups/subscription.ts';
import { subscription } from './coordinator_driver.ts';

const test = suite('subscription');

test('reads the topics, whatever follows them', () => {
  assert.deepEqual(subscribedTopicsOf(subscription('t', 'topic')), ['t', 'topic']);
  assert.deepEqual(subscribedTopicsOf(Buffer.concat([subscription('t'), Buffer.alloc(9)])), ['t']);
  assert.deepEqual(subscribedTopicsOf(subscription()), []);
});

test('anything else is none', () => {
  const bytes = subscription('t', 'topic');
  for (let length = 0; length < bytes.length; length += 1)
    assert.equal(subscribedTopicsOf(bytes.subarray(0, length)), null);
  const many = Buffer.from(bytes);
  many.writeInt32BE(2 ** 31 - 1, 2);
  assert.equal(subscribedTopicsOf(many), null);
});

test.run();
