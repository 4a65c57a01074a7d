import assert from 'node:assert/strict';
import { MessageChannel } from 'node:worker_threads';
import { suite } from 'uvu';
import { ThreadCalls } from '../../../engine/thread/calls.ts';

interface Types {
  double: { request: number; reply: number };
  who: { request: null; reply: number };
}

const test = suite('calls between threads');

/** Two ends of a channel; they keep the process alive by themselves no longer than the test awaits them. */
function pair(): { a: ThreadCalls<Types>; b: ThreadCalls<Types>; close: () => void } {
  const { port1, port2 } = new MessageChannel();
  const a = new ThreadCalls<Types>(0, [undefined, port1]);
  const b = new ThreadCalls<Types>(1, [port2]);
  port1.ref();
  return { a, b, close: () => port1.close() };
}

test('asks another thread and its own', async () => {
  const { a, b, close } = pair();
  a.serve('double', (n) => n * 2);
  b.serve('double', async (n) => n * 2 + 1);
  assert.equal(await a.call(0, 'double', 4), 8);
  assert.equal(await a.call(1, 'double', 4), 9);
  assert.equal(await b.call(0, 'double', 5), 10);
  close();
});

test('asks all, and orders the replies by thread', async () => {
  const { a, b, close } = pair();
  a.serve('who', async () => {
    await new Promise(setImmediate);
    return 0;
  });
  b.serve('who', () => 1);
  assert.deepEqual(await a.callAll('who', null), [0, 1]);
  assert.deepEqual(await b.callAll('who', null), [0, 1]);
  close();
});

test('a slow call does not hold up the next one', async () => {
  const { a, b, close } = pair();
  const { promise, resolve } = Promise.withResolvers<void>();
  b.serve('double', async (n) => {
    if (n === 1) await promise;
    return n * 2;
  });
  const slow = a.call(1, 'double', 1);
  assert.equal(await a.call(1, 'double', 2), 4);
  resolve();
  assert.equal(await slow, 2);
  close();
});

test('a call that comes before its server waits for it', async () => {
  const { a, b, close } = pair();
  b.serve('who', () => 1);
  const early = a.call(1, 'double', 3);
  assert.equal(await a.call(1, 'who', null), 1);
  b.serve('double', (n) => n * 2);
  assert.equal(await early, 6);
  close();
});

test.run();
