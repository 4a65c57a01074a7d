import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { RequestContext } from '../../../net/server/request_context.ts';
import {
  answer,
  eventually,
  exclusive,
  type Harness,
  overlapping,
  request,
  sleep,
  startHarness,
} from './harness.ts';

const test = suite('connection limits');

function checkGone(harness: Harness): void {
  assert.equal(harness.host.connectionsCount, 0);
  assert.equal(harness.host.memory.budget.usedBytes, 0);
  assert.equal(harness.host.memory.slabs.usedBytes, 0);
}

async function expectRefused(bytes: Buffer, wanted: RegExp, level = 'warn'): Promise<void> {
  const harness = await startHarness({ limits: { frameBytesMax: 1_000_000 } });
  const client = await harness.connect();
  client.socket.write(bytes);
  await client.untilClosed();
  const lines = harness.log.texts(level);
  assert.equal(lines.length, 1, lines.join('\n'));
  assert.match(lines[0] ?? '', wanted);
  assert.match(lines[0] ?? '', /127\.0\.0\.1:\d+/, 'the line does not name the client');
  checkGone(harness);
  await harness.stop();
}

function sized(size: number): Buffer {
  const bytes = Buffer.alloc(100);
  bytes.writeInt32BE(size);
  return bytes;
}

test('a negative size closes the connection', () => expectRefused(sized(-5), /negative size -5/));

test('a size beyond the limit closes it, and the line names both and the setting', () =>
  expectRefused(
    sized(1_000_001),
    /1000001 bytes.*limit is 1000000.*socket\.request\.max\.bytes.*"size":1000001/,
  ));

test('a size too small for a request closes it', () => expectRefused(sized(3), /too short/));

test('a TLS handshake is recognised', () =>
  expectRefused(Buffer.from('16030102000100', 'hex'), /TLS.*security\.protocol=PLAINTEXT/));

test('an HTTP request is recognised', () =>
  expectRefused(Buffer.from('GET / HTTP/1.1\r\n\r\n'), /HTTP request \("GET"\)/));

test('an API that is not served closes it', () =>
  expectRefused(request(77, 1, 10), /API 77, which is not served/));

test('a version that is not served closes it', () => {
  const bytes = request(exclusive, 1);
  bytes.writeInt16BE(12, 6);
  return expectRefused(bytes, /API 3 in version 12; 0-8 are served/);
});

test('a header that ends early closes it', () => {
  const bytes = request(exclusive, 1);
  bytes.writeInt16BE(2_000, 12);
  return expectRefused(bytes, /malformed request: RequestHeader: clientId/);
});

test('a flood of bad frames is not a flood of lines', async () => {
  const harness = await startHarness();
  for (let at = 0; at < 20; at += 1) {
    const client = await harness.connect();
    client.socket.write(Buffer.alloc(4, 0xff));
    await client.untilClosed();
  }
  assert.equal(harness.host.counters.framesRefused, 20);
  assert.equal(harness.log.texts('warn').length, 1);
  await harness.stop();
});

test('a connection that idles is closed, one with a parked request or with traffic is not', async () => {
  const parked: RequestContext[] = [];
  const harness = await startHarness({
    limits: { idleMsMax: 200 },
    onOverlapping: (ctx) => parked.push(ctx),
  });
  const [idle, waiting, busy] = await Promise.all([1, 2, 3].map(() => harness.connect()));
  assert(idle !== undefined && waiting !== undefined && busy !== undefined);
  waiting.socket.write(request(overlapping, 1));
  const traffic = setInterval(() => busy.socket.write(request(exclusive, 1)), 20);
  await idle.untilClosed();
  await sleep(200);
  clearInterval(traffic);
  assert(!busy.closed && !waiting.closed);
  assert.equal(parked.length, 1);
  parked[0]?.respondRaw(answer(1));
  await waiting.untilFrames(1);
  await waiting.untilClosed();
  await busy.untilClosed();
  await eventually(() => harness.acceptor.openCount === 0);
  assert.equal(harness.host.counters.connectionsIdleClosed, 3);
  checkGone(harness);
  await harness.stop();
});

test('a frame that makes no progress is closed and its memory freed', async () => {
  const harness = await startHarness({ limits: { idleMsMax: 100 } });
  const client = await harness.connect();
  client.socket.write(request(overlapping, 1, 500_000).subarray(0, 200_000));
  await eventually(() => harness.host.memory.budget.usedBytes > 0);
  await client.untilClosed();
  checkGone(harness);
  await harness.stop();
});

test('a client that reads no answers for the idle time is closed', async () => {
  const harness = await startHarness({
    limits: { idleMsMax: 100 },
    onExclusive: (ctx) => ctx.respondRaw(answer(ctx.correlationId, 20_000_000)),
  });
  const client = await harness.connect();
  client.socket.pause();
  client.socket.write(request(exclusive, 1));
  await eventually(() => harness.host.counters.connectionsIdleClosed === 1);
  checkGone(harness);
  await harness.stop();
});

test('connections beyond max.connections are closed at once, and room comes back', async () => {
  const harness = await startHarness({ connectionsMax: 2 });
  const first = await harness.connect();
  const second = await harness.connect();
  const third = await harness.connect();
  await third.untilClosed();
  assert.match(harness.log.texts('warn').join(), /max\.connections is 2/);
  assert.equal(harness.acceptor.refusedTotal, 1);
  first.socket.destroy();
  await eventually(() => harness.acceptor.openCount === 1);
  const fourth = await harness.connect();
  for (const client of [second, fourth]) {
    client.socket.write(request(exclusive, 1));
    await client.untilFrames(1);
  }
  await harness.stop();
});

test('so are those beyond max.connections.per.ip', async () => {
  const harness = await startHarness({ connectionsPerIpMax: 1 });
  await harness.connect();
  const second = await harness.connect();
  await second.untilClosed();
  assert.match(harness.log.texts('warn').join(), /max\.connections\.per\.ip is 1/);
  await harness.stop();
});

test.run();
