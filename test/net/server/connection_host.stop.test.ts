import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { RequestContext } from '../../../net/server/request_context.ts';
import {
  answer,
  connectClient,
  eventually,
  exclusive,
  overlapping,
  request,
  startHarness,
} from './harness.ts';

const test = suite('orderly stop');

test('requests in flight are answered, nothing new is taken, and everything is closed', async () => {
  const running: RequestContext[] = [];
  const harness = await startHarness({ onOverlapping: (ctx) => running.push(ctx) });
  const [busy, idle, partial] = await Promise.all([1, 2, 3].map(() => harness.connect()));
  assert(busy !== undefined && idle !== undefined && partial !== undefined);
  busy.socket.write(Buffer.concat([request(overlapping, 1), request(exclusive, 2)]));
  partial.socket.write(request(overlapping, 3, 200_000).subarray(0, 100_000));
  await eventually(() => running.length === 1 && harness.host.memory.budget.usedBytes > 0);
  harness.host.drain();
  busy.socket.write(request(overlapping, 4));
  await idle.untilClosed();
  await partial.untilClosed();
  assert.equal(harness.host.memory.budget.usedBytes, 0);
  const stopped = harness.host.stop(60_000);
  running[0]?.respondRaw(answer(1, 3_000_000));
  await stopped;
  await busy.untilClosed();
  assert.deepEqual(busy.correlationIds(), [1]);
  assert.equal(running.length, 1);
  assert.equal(harness.host.memory.slabs.usedBytes, 0);
  await eventually(() => harness.acceptor.openCount === 0);
  await harness.stop();
});

test('what does not end in time is closed all the same', async () => {
  const running: RequestContext[] = [];
  const harness = await startHarness({ onOverlapping: (ctx) => running.push(ctx) });
  const client = await harness.connect();
  client.socket.write(request(overlapping, 1));
  await eventually(() => running.length === 1);
  await harness.host.stop(20);
  await client.untilClosed();
  assert(running[0]?.aborted);
  running[0]?.respondRaw(answer(1));
  await harness.stop();
});

test('a peer that never ends its side does not hold up the stop', async () => {
  const harness = await startHarness();
  const client = await connectClient(harness.acceptor.port, true);
  client.socket.write(request(exclusive, 1));
  await client.untilFrames(1);
  await harness.host.stop(60_000);
  client.socket.destroy();
  await harness.stop();
});

test('a connection that arrives during the stop is closed', async () => {
  const harness = await startHarness();
  harness.host.drain();
  const client = await harness.connect();
  await client.untilClosed();
  await harness.stop();
});

test.run();
