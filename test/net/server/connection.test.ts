import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { RequestContext } from '../../../net/server/request_context.ts';
import { answer, exclusive, overlapping, request, startHarness } from './harness.ts';

const test = suite('connection');

test('a request is answered', async () => {
  const harness = await startHarness();
  const client = await harness.connect();
  client.socket.write(request(exclusive, 7));
  assert.deepEqual(await client.untilFrames(1), [7]);
  await harness.stop();
  assert.equal(harness.acceptor.openCount, 0);
});

test('answers keep the order of requests although overlapping ones end in another', async () => {
  const running: RequestContext[] = [];
  const harness = await startHarness({ onOverlapping: (ctx) => running.push(ctx) });
  const client = await harness.connect();
  client.socket.write(Buffer.concat([1, 2, 3].map((id) => request(overlapping, id, 100))));
  while (running.length < 3) await new Promise(setImmediate);
  for (const ctx of running.reverse()) ctx.respondRaw(answer(ctx.correlationId));
  assert.deepEqual(await client.untilFrames(3), [1, 2, 3]);
  await harness.stop();
});

test.run();
