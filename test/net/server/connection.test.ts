import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { connectionLimits } from '../../../net/server/connection.ts';
import type { RequestContext } from '../../../net/server/request_context.ts';
import {
  answer,
  eventually,
  exclusive,
  type Harness,
  hasPattern,
  overlapping,
  request,
  sleep,
  startHarness,
} from './harness.ts';

const test = suite('connection');

function checkNoMemory(harness: Harness): void {
  assert.equal(harness.host.memory.budget.usedBytes, 0);
  assert.equal(harness.host.memory.slabs.usedBytes, 0);
}

for (const bySocket of [false, true]) {
  const how = bySocket ? 'a socket of the thread itself' : 'a descriptor';
  test(`requests are answered, however they are split, over ${how}`, async () => {
    const harness = await startHarness({ bySocket });
    const client = await harness.connect();
    const stream = Buffer.concat([
      request(exclusive, 1, 3),
      request(overlapping, 2, 60),
      request(exclusive, 3),
    ]);
    for (let cut = 1; cut < stream.length; cut += 1) {
      client.socket.write(stream.subarray(0, cut));
      // Let the pieces come in two reads, most of the time.
      await new Promise(setImmediate);
      client.socket.write(stream.subarray(cut));
      const wanted = Array.from({ length: 3 * cut }, (_, at) => (at % 3) + 1);
      assert.deepEqual(await client.untilFrames(3 * cut), wanted);
    }
    checkNoMemory(harness);
    await harness.stop();
    await eventually(() => harness.acceptor.openCount === 0);
  });
}

test('large and small frames in one stream come out as they went in', async () => {
  const seen: number[] = [];
  const harness = await startHarness({
    onOverlapping: (ctx) => {
      const body = ctx.frame.bytes.subarray(ctx.frame.offset + 10, ctx.frame.end);
      if (hasPattern(body, ctx.correlationId)) seen.push(body.length);
      ctx.respondRaw(answer(ctx.correlationId));
    },
  });
  const client = await harness.connect();
  const sizes = [10, 1_000_000, 0, 70_000, 5_000_000, 40_000, 8_000, 8_000, 8_000, 3];
  client.socket.write(Buffer.concat(sizes.map((size, id) => request(overlapping, id, size))));
  await client.untilFrames(sizes.length);
  assert.deepEqual(seen, sizes);
  checkNoMemory(harness);
  await harness.stop();
});

test('answers keep the order of requests although overlapping ones end in another', async () => {
  const running: RequestContext[] = [];
  const harness = await startHarness({ onOverlapping: (ctx) => running.push(ctx) });
  const client = await harness.connect();
  client.socket.write(Buffer.concat([1, 2, 3, 4].map((id) => request(overlapping, id, 100))));
  await eventually(() => running.length === 4);
  for (const at of [3, 1, 2]) running[at]?.respondRaw(answer(at + 1));
  await sleep(20);
  assert.deepEqual(client.correlationIds(), []);
  running[0]?.respondRaw(answer(1));
  assert.deepEqual(await client.untilFrames(4), [1, 2, 3, 4]);
  await harness.stop();
});

test('any other request waits for those before it, and those behind wait for it', async () => {
  const running: RequestContext[] = [];
  const note = (ctx: RequestContext): number => running.push(ctx);
  const harness = await startHarness({ onOverlapping: note, onExclusive: note });
  const client = await harness.connect();
  const apis = [overlapping, overlapping, exclusive, overlapping, exclusive, exclusive];
  client.socket.write(Buffer.concat(apis.map((api, id) => request(api, id, 10))));
  const started = (): number[] => running.map((ctx) => ctx.correlationId);
  await eventually(() => running.length === 2);
  await sleep(10);
  assert.deepEqual(started(), [0, 1]);
  running[1]?.respondRaw(answer(1));
  await sleep(10);
  assert.deepEqual(started(), [0, 1], 'it started beside a request before it');
  running[0]?.respondRaw(answer(0));
  for (const id of [2, 3, 4, 5]) {
    await eventually(() => running.length === id + 1);
    await sleep(5);
    assert.equal(running.length, id + 1);
    running[id]?.respondRaw(answer(id));
  }
  assert.deepEqual(await client.untilFrames(6), [0, 1, 2, 3, 4, 5]);
  checkNoMemory(harness);
  await harness.stop();
});

test('a request that runs alone hears of the one that comes behind it, and may end its wait', async () => {
  const waiting: RequestContext[] = [];
  const harness = await startHarness({
    onExclusive: (ctx) => {
      waiting.push(ctx);
      ctx.onOvertaken = () => {
        ctx.onOvertaken = null;
        queueMicrotask(() => ctx.respondRaw(answer(ctx.correlationId)));
      };
    },
  });
  const client = await harness.connect();
  client.socket.write(request(exclusive, 1, 10));
  await eventually(() => waiting.length === 1);
  await sleep(10);
  assert.deepEqual(client.correlationIds(), []);
  client.socket.write(request(exclusive, 2, 10));
  assert.deepEqual(await client.untilFrames(1), [1]);
  await eventually(() => waiting.length === 2);
  client.socket.write(request(exclusive, 3, 100_000));
  assert.deepEqual(await client.untilFrames(2), [1, 2]);
  await eventually(() => waiting.length === 3);
  waiting[2]?.respondRaw(answer(3));
  assert.deepEqual(await client.untilFrames(3), [1, 2, 3]);
  checkNoMemory(harness);
  await harness.stop();
});

test('a request without an answer takes no place among the answers', async () => {
  const harness = await startHarness({ onOverlapping: (ctx) => ctx.respondNothing() });
  const client = await harness.connect();
  const apis = [overlapping, exclusive, overlapping, overlapping, exclusive];
  client.socket.write(Buffer.concat(apis.map((api, id) => request(api, id, 10))));
  assert.deepEqual(await client.untilFrames(2), [1, 4]);
  await harness.stop();
});

test('a failed request closes the connection, with the reason in the log', async () => {
  const harness = await startHarness({
    onOverlapping: (ctx) => {
      ctx.respondNothing();
      ctx.fail('NOT_LEADER_OR_FOLLOWER for t-0 with acks=0');
    },
  });
  const client = await harness.connect();
  client.socket.write(Buffer.concat([request(exclusive, 1), request(overlapping, 2, 10)]));
  await client.untilClosed();
  assert.deepEqual(client.correlationIds(), [1], 'what was answered before still goes out');
  assert.match(harness.log.texts('warn').join(), /NOT_LEADER_OR_FOLLOWER for t-0 with acks=0/);
  checkNoMemory(harness);
  await harness.stop();
});

test('a client that ends its side gets all its answers before the connection ends', async () => {
  const running: RequestContext[] = [];
  const harness = await startHarness({ onOverlapping: (ctx) => running.push(ctx) });
  const client = await harness.connect();
  client.socket.end(
    Buffer.concat([request(overlapping, 1), request(exclusive, 2), request(exclusive, 3)]),
  );
  await eventually(() => running.length === 1);
  await sleep(20);
  assert(!client.ended);
  running[0]?.respondRaw(answer(1));
  await client.untilClosed();
  assert.deepEqual(client.correlationIds(), [1, 2, 3]);
  await eventually(() => harness.host.connectionsCount === 0);
  await harness.stop();
});

test('a client that does not read its answers is not served on, and memory stays bounded', async () => {
  const answerBytes = 100_000;
  let served = 0;
  const harness = await startHarness({
    onExclusive: (ctx) => {
      served += 1;
      ctx.respondRaw(answer(ctx.correlationId, answerBytes));
    },
  });
  const client = await harness.connect();
  client.socket.pause();
  const count = 400;
  const ids = Array.from({ length: count }, (_, id) => id);
  client.socket.write(Buffer.concat(ids.map((id) => request(exclusive, id))));
  let before = -1;
  while (before !== served) {
    before = served;
    await sleep(50);
  }
  assert(served < count, 'everything was served although nothing was read');
  const other = await harness.connect();
  other.socket.write(request(exclusive, 7));
  assert.deepEqual(await other.untilFrames(1), [7], 'another client is not held up');
  client.socket.resume();
  assert.deepEqual(await client.untilFrames(count), ids);
  checkNoMemory(harness);
  await harness.stop();
});

test('one connection has a bounded number of requests in flight', async () => {
  const running: RequestContext[] = [];
  const harness = await startHarness({ onOverlapping: (ctx) => running.push(ctx) });
  const client = await harness.connect();
  const count = connectionLimits.inFlightMax + 100;
  const ids = Array.from({ length: count }, (_, id) => id);
  client.socket.write(Buffer.concat(ids.map((id) => request(overlapping, id))));
  await eventually(() => running.length === connectionLimits.inFlightMax);
  await sleep(20);
  assert.equal(running.length, connectionLimits.inFlightMax);
  for (let at = 0; at < count; at += 1) {
    await eventually(() => running.length > at);
    running[at]?.respondRaw(answer(at));
  }
  assert.deepEqual(await client.untilFrames(count), ids);
  await harness.stop();
});

test('endless requests of one connection leave room for others', async () => {
  let busy = 0;
  const harness = await startHarness({
    onOverlapping: (ctx) => {
      busy += 1;
      ctx.respondNothing();
    },
  });
  const flood = await harness.connect();
  const chunk = Buffer.concat(Array.from({ length: 5_000 }, (_, id) => request(overlapping, id)));
  const pour = (): void => {
    while (flood.socket.write(chunk));
  };
  flood.socket.on('drain', pour);
  pour();
  const other = await harness.connect();
  let turns = 0;
  for (let id = 0; id < 50; id += 1) {
    const before = busy;
    other.socket.write(request(exclusive, id));
    await other.untilFrames(id + 1);
    turns = Math.max(turns, busy - before);
  }
  flood.socket.removeListener('drain', pour);
  assert(busy > 0);
  assert(turns < 200_000, `${turns} requests of the flood ran while another client waited for one`);
  await harness.stop();
});

test('frames that are retained live until released, whatever comes behind them', async () => {
  const running: RequestContext[] = [];
  const harness = await startHarness({
    onOverlapping: (ctx) => {
      ctx.frame.retain();
      running.push(ctx);
    },
  });
  const client = await harness.connect();
  const count = 40;
  const ids = Array.from({ length: count }, (_, id) => id);
  client.socket.write(Buffer.concat(ids.map((id) => request(overlapping, id, id * 1_000))));
  await eventually(() => running.length === count);
  for (const ctx of running) {
    const body = ctx.frame.bytes.subarray(ctx.frame.offset + 10, ctx.frame.end);
    assert.equal(body.length, ctx.correlationId * 1_000);
    assert(hasPattern(body, ctx.correlationId));
    ctx.frame.release();
    ctx.respondRaw(answer(ctx.correlationId));
  }
  assert.throws(() => running[0]?.frame.release(), /more often/);
  assert.deepEqual(await client.untilFrames(count), ids);
  checkNoMemory(harness);
  await harness.stop();
});

test('requests that run when the connection dies are told, and their late answers go nowhere', async () => {
  const running: RequestContext[] = [];
  let aborted = 0;
  const harness = await startHarness({
    onOverlapping: (ctx) => {
      ctx.onAbort = () => {
        aborted += 1;
      };
      running.push(ctx);
    },
  });
  const client = await harness.connect();
  client.socket.write(Buffer.concat([1, 2].map((id) => request(overlapping, id, 100))));
  await eventually(() => running.length === 2);
  let unpinned = 0;
  const unpin = (): void => {
    unpinned += 1;
  };
  const range = { fd: 0, position: 0, byteLength: 1, pin: { unpin } };
  // The second one is answered, but the first one stands before it.
  running[1]?.respondRaw(answer(2), [{ at: 8, value: range }]);
  client.socket.resetAndDestroy();
  await eventually(() => harness.host.connectionsCount === 0);
  assert.equal(aborted, 1);
  assert.equal(unpinned, 1);
  assert(running[0]?.aborted);
  running[0]?.respondRaw(answer(1), [{ at: 8, value: range }]);
  assert.equal(unpinned, 2);
  assert.throws(() => running[0]?.respondRaw(answer(1)), /two answers/);
  assert.deepEqual(harness.log.texts('warn'), [], 'a reset is nothing to warn of');
  checkNoMemory(harness);
  await harness.stop();
});

test.run();
