import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { RequestContext } from '../../../net/server/request_context.ts';
import {
  answer,
  eventually,
  exclusive,
  overlapping,
  request,
  sleep,
  startHarness,
} from './harness.ts';

const test = suite('request memory of live connections');

test('without memory sockets pause, and go on in the order of their coming', async () => {
  const running: RequestContext[] = [];
  const harness = await startHarness({
    limits: { requestMemoryBytesMax: 1_000_000 },
    onOverlapping: (ctx) => {
      ctx.frame.retain();
      running.push(ctx);
    },
  });
  const clients = [];
  for (let id = 0; id < 6; id += 1) {
    const client = await harness.connect();
    clients.push(client);
    client.socket.write(request(overlapping, id, 600_000));
    await eventually(() => running.length + harness.host.memory.budget.waitingCount === id + 1);
  }
  const small = await harness.connect();
  small.socket.write(request(exclusive, 99));
  assert.deepEqual(await small.untilFrames(1), [99], 'requests that keep no memory go on');
  await sleep(20);
  assert.equal(running.length, 1);
  assert(harness.host.memory.slabs.usedBytes < 3_000_000);
  for (let id = 0; id < 6; id += 1) {
    await eventually(() => running.length === id + 1);
    const ctx = running[id] as RequestContext;
    assert.equal(ctx.correlationId, id);
    ctx.frame.release();
    ctx.respondRaw(answer(id));
    assert.deepEqual(await clients[id]?.untilFrames(1), [id]);
  }
  assert.equal(harness.host.memory.budget.usedBytes, 0);
  assert.equal(harness.host.memory.slabs.usedBytes, 0);
  await harness.stop();
});

test('many connections through a budget far too small all get through', async () => {
  const harness = await startHarness({
    limits: { requestMemoryBytesMax: 200_000 },
    onOverlapping: (ctx) => {
      ctx.frame.retain();
      setTimeout(() => {
        ctx.frame.release();
        ctx.respondRaw(answer(ctx.correlationId));
      }, ctx.correlationId % 3);
    },
  });
  const clients = await Promise.all(Array.from({ length: 30 }, () => harness.connect()));
  const sizes = [10, 90_000, 150_000, 300_000, 5_000, 199_990, 64_000, 1];
  const ids = [...sizes.keys()];
  await Promise.all(
    clients.map(async (client, at) => {
      const own = ids.map((id) => request(overlapping, id, sizes[(id + at) % sizes.length]));
      client.socket.write(Buffer.concat(own));
      assert.deepEqual(await client.untilFrames(sizes.length), ids);
    }),
  );
  assert(harness.host.memory.budget.waitsTotal > 0, 'nobody had to wait, so nothing was tested');
  assert.equal(harness.host.memory.budget.usedBytes, 0);
  assert.equal(harness.host.memory.slabs.usedBytes, 0);
  await harness.stop();
});

test('a slow request that keeps others from memory is closed, and they go on', async () => {
  const harness = await startHarness({
    limits: { requestMemoryBytesMax: 1_000_000, idleMsMax: 400, stallMsMax: 150 },
  });
  const slow = await harness.connect();
  slow.socket.write(request(overlapping, 1, 900_000).subarray(0, 1_000));
  await eventually(() => harness.host.memory.budget.usedBytes > 0);
  const trickle = setInterval(() => slow.socket.write('x'), 20);
  const waiting = await harness.connect();
  waiting.socket.write(request(overlapping, 2, 500_000));
  assert.deepEqual(await waiting.untilFrames(1), [2]);
  clearInterval(trickle);
  await slow.untilClosed();
  assert.match(harness.log.texts('warn').join(), /too slowly/);
  await harness.stop();
});

test.run();
