import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import type { RangeHole } from '../../../net/server/file_range.ts';
import { sendLimits } from '../../../net/server/send.ts';
import {
  eventually,
  exclusive,
  fillPattern,
  type HarnessOptions,
  libc,
  request,
  sleep,
  startHarness,
} from './harness.ts';

const fileBytes = 40_000_000;

interface Context {
  directory: string;
  fd: number;
  content: Buffer;
}

const test = suite<Context>('send');

test.before((context) => {
  context.directory = mkdtempSync(join(tmpdir(), 'millrace-send-'));
  context.content = Buffer.alloc(fileBytes);
  fillPattern(context.content, 5);
  const path = join(context.directory, 'segment');
  writeFileSync(path, context.content);
  context.fd = openSync(path, 'r');
});

test.after((context) => {
  closeSync(context.fd);
  rmSync(context.directory, { recursive: true });
});

/** A response whose body is pieces of bytes and file ranges in turn. */
class Response {
  readonly bytes: Buffer;
  readonly holes: RangeHole[] = [];
  readonly whole: Buffer;
  pinned = 0;

  constructor(context: Context, id: number, ranges: readonly [position: number, length: number][]) {
    const parts: Buffer[] = [];
    const wholeParts: Buffer[] = [];
    let at = 8;
    for (const [position, byteLength] of ranges) {
      this.holes.push({ at, value: { fd: context.fd, position, byteLength, pin: this } });
      this.pinned += 1;
      const between = Buffer.alloc(position % 50, 0x2d);
      parts.push(between);
      wholeParts.push(context.content.subarray(position, position + byteLength), between);
      at += between.length;
    }
    const head = Buffer.alloc(8);
    this.bytes = Buffer.concat([head, ...parts]);
    this.whole = Buffer.concat([head, ...wholeParts]);
    for (const frame of [this.bytes, this.whole]) {
      frame.writeInt32BE(this.whole.length - 4);
      frame.writeInt32BE(id, 4);
    }
  }

  unpin(): void {
    this.pinned -= 1;
    assert(this.pinned >= 0, 'unpinned twice');
  }
}

function responses(context: Context): Response[] {
  return [
    new Response(context, 0, []),
    new Response(context, 1, [[7, 100]]),
    new Response(context, 2, [[100, sendLimits.rangeInlineBytesMax]]),
    new Response(context, 3, [
      [0, 10],
      [1_049, 500_000],
      [77, 0],
      [20_000_033, 3_000_000],
      [33, 15],
    ]),
    new Response(context, 4, [[11, 30_000_000]]),
    new Response(context, 5, []),
  ];
}

const ways: [string, HarnessOptions][] = [
  ['by sendfile', {}],
  ['through memory, without sendfile', { sendFile: null }],
  ['through the socket of the thread itself', { bySocket: true }],
  ['where sendfile is not supported for the file', { sendFile: () => -22 }],
  ['where the socket is always full for sendfile', { sendFile: () => -11 }],
];

for (const [how, options] of ways) {
  for (const slow of [false, true]) {
    test(`bytes and file ranges arrive as they are ${how}${slow ? ', with a slow reader' : ''}`, async (context) => {
      const all = responses(context);
      const harness = await startHarness({
        ...options,
        onExclusive: (ctx) => {
          const response = all[ctx.correlationId] as Response;
          ctx.respondRaw(response.bytes, response.holes);
        },
      });
      const client = await harness.connect();
      if (slow) client.socket.pause();
      client.socket.write(Buffer.concat(all.map((_, id) => request(exclusive, id))));
      if (slow) {
        await sleep(30);
        for (let at = 0; at < 20; at += 1) {
          client.socket.resume();
          await sleep(1);
          client.socket.pause();
          await sleep(2);
        }
        client.socket.resume();
      }
      await client.untilFrames(all.length);
      for (const [id, response] of all.entries()) {
        const got = client.frames[id] as Buffer;
        assert.equal(digest(got), digest(response.whole.subarray(4)), `response ${id}`);
        assert.equal(response.pinned, 0, `response ${id} holds pins`);
      }
      await harness.stop();
    });
  }
}

test('most bytes go by sendfile, for a reader that reads', async (context) => {
  let sent = 0;
  const harness = await startHarness({
    sendFile: (out, input, position, length) => {
      const count = libc.sendfile(out, input, position, length);
      sent += Math.max(0, count);
      return count;
    },
    onExclusive: (ctx) => {
      const response = new Response(context, 1, [[0, fileBytes]]);
      ctx.respondRaw(response.bytes, response.holes);
    },
  });
  const client = await harness.connect();
  client.socket.write(request(exclusive, 1));
  await client.untilFrames(1);
  assert(sent > fileBytes / 2, `${sent} of ${fileBytes} bytes`);
  await harness.stop();
});

test('when the client dies in the middle, all pins are released and no file is touched any more', async (context) => {
  for (const sendFile of [libc.sendfile, null]) {
    const all = [1, 2, 3].map((id) => new Response(context, id, [[id, 30_000_000]]));
    let started = 0;
    const harness = await startHarness({
      sendFile,
      onExclusive: (ctx) => {
        const response = all[started] as Response;
        started += 1;
        ctx.respondRaw(response.bytes, response.holes);
      },
    });
    const client = await harness.connect();
    client.socket.pause();
    client.socket.write(Buffer.concat([1, 2, 3].map((id) => request(exclusive, id))));
    await eventually(() => started > 0);
    await sleep(20);
    assert.equal(started, 1, 'the next answer was begun before the first one was taken');
    assert.equal(all[0]?.pinned, 1);
    client.socket.resetAndDestroy();
    await eventually(() => harness.host.connectionsCount === 0);
    assert.equal(all[0]?.pinned, 0);
    await harness.stop();
  }
});

test('a file that is shorter than the range says ends the connection, never the process', async (context) => {
  for (const sendFile of [libc.sendfile, null]) {
    for (const length of [100, 1_000_000]) {
      const response = new Response(context, 1, []);
      const harness = await startHarness({
        sendFile,
        onExclusive: (ctx) => {
          const pin = { unpin: () => response.unpin() };
          response.pinned = 2;
          const first = { fd: context.fd, position: fileBytes - 10, byteLength: length, pin };
          const second = { fd: context.fd, position: 0, byteLength: 20_000, pin };
          ctx.respondRaw(response.bytes, [
            { at: 8, value: first },
            { at: 8, value: second },
          ]);
        },
      });
      const client = await harness.connect();
      client.socket.write(request(exclusive, 1));
      await client.untilClosed();
      assert.match(harness.log.texts('error').join(), /could not be read from its file/);
      assert.equal(response.pinned, 0);
      await harness.stop();
    }
  }
});

function digest(bytes: Buffer): string {
  return `${bytes.length} ${createHash('sha1').update(bytes).digest('hex')}`;
}

test.run();
