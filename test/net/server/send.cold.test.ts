/** Responses whose file ranges are not in the page cache, over real files and a page cache that is the test's. */
import assert from 'node:assert/strict';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { ReadAhead } from '../../../engine/read_ahead.ts';
import { SimPageCache } from '../../sim/page_cache.ts';
import {
  eventually,
  exclusive,
  fillPattern,
  type Harness,
  request,
  startHarness,
} from './harness.ts';

const fileBytes = 3_000_000;
const pieceBytes = 64 * 1024;

interface Context {
  directory: string;
  fd: number;
  content: Buffer;
}

const test = suite<Context>('sending from the disk');

test.before((context) => {
  context.directory = mkdtempSync(join(tmpdir(), 'millrace-cold-'));
  context.content = Buffer.alloc(fileBytes);
  fillPattern(context.content, 11);
  const path = join(context.directory, 'segment');
  writeFileSync(path, context.content);
  context.fd = openSync(path, 'r');
});

test.after((context) => {
  closeSync(context.fd);
  rmSync(context.directory, { recursive: true });
});

/** Answers a request with the range that its correlation id stands for in `ranges`, or with no range. */
class World {
  readonly cache: SimPageCache = new SimPageCache(undefined, pieceBytes);
  harness!: Harness;
  pinned = 0;
  readonly #context: Context;
  readonly #ranges: readonly (readonly [position: number, length: number])[];

  constructor(context: Context, ranges: World['ranges']) {
    this.#context = context;
    this.#ranges = ranges;
  }

  get ranges(): readonly (readonly [position: number, length: number])[] {
    return this.#ranges;
  }

  static async start(context: Context, ranges: World['ranges']): Promise<World> {
    const world = new World(context, ranges);
    world.cache.drop();
    world.harness = await startHarness({
      readAhead: new ReadAhead({ pageCache: world.cache, piecesMax: 4, devicePiecesMax: 2 }),
      onExclusive: (ctx) => {
        const range = ranges[ctx.correlationId];
        const head = Buffer.alloc(8);
        head.writeInt32BE(4 + (range?.[1] ?? 0));
        head.writeInt32BE(ctx.correlationId, 4);
        if (range === undefined) {
          ctx.respondRaw(head);
          return;
        }
        world.pinned += 1;
        const [position, byteLength] = range;
        const pin = {
          unpin: () => {
            world.pinned -= 1;
            assert(world.pinned >= 0, 'unpinned twice');
          },
        };
        ctx.respondRaw(head, [{ at: 8, value: { fd: context.fd, position, byteLength, pin } }]);
      },
    });
    return world;
  }

  /** Whether the frame is the answer to request `id`. */
  isAnswer(frame: Buffer | undefined, id: number): boolean {
    const range = this.#ranges[id];
    const [position, length] = range ?? [0, 0];
    const body = this.#context.content.subarray(position, position + length);
    return frame?.readInt32BE(0) === id && frame.subarray(4).equals(body);
  }
}

for (const length of [100, 16 * 1024, pieceBytes, 1_500_000])
  test(`others are served while ${length} bytes are awaited, which then arrive as they are`, async (context) => {
    const world = await World.start(context, [[123_457, length]]);
    const { cache, harness } = world;
    const cold = await harness.connect();
    const other = await harness.connect();
    cold.socket.write(request(exclusive, 0));
    await eventually(() => cache.fills.length === 1);
    for (let id = 1; id <= 20; id += 1) {
      other.socket.write(request(exclusive, id));
      await other.untilFrames(id);
    }
    assert.equal(cold.frames.length, 0);
    assert.equal(cache.fillsTotal, 1, 'one piece at a time');
    assert.equal(world.pinned, 1);
    cache.isFast = true;
    cache.endFills();
    await cold.untilFrames(1);
    assert(world.isAnswer(cold.frames[0], 0));
    assert.equal(world.pinned, 0);
    await harness.stop();
  });

test('answers behind one that is awaited wait for it, and come in order', async (context) => {
  const world = await World.start(context, [
    [0, 200_000],
    [1_000_000, 500],
    [2_000_000, 70_000],
  ]);
  const { cache, harness } = world;
  const client = await harness.connect();
  client.socket.write(Buffer.concat([0, 9, 1, 2, 9].map((id) => request(exclusive, id))));
  await eventually(() => cache.fills.length === 1);
  assert.equal(client.frames.length, 0);
  cache.isFast = true;
  cache.endFills();
  await client.untilFrames(5);
  for (const [index, id] of [0, 9, 1, 2, 9].entries())
    assert(world.isAnswer(client.frames[index], id), `answer ${index}`);
  assert.equal(world.pinned, 0);
  await harness.stop();
});

test('what is in the page cache is sent at once', async (context) => {
  const world = await World.start(context, [
    [0, 60_000],
    [10_000, 100],
    [0, 20_000],
  ]);
  const { cache, harness } = world;
  cache.isFast = true;
  const client = await harness.connect();
  for (let id = 0; id < 3; id += 1) {
    client.socket.write(request(exclusive, id));
    await client.untilFrames(id + 1);
    assert(world.isAnswer(client.frames[id], id));
  }
  assert.equal(cache.fillsTotal, 1, 'the first one has brought it in');
  await harness.stop();
});

test('two who catch up get pieces in turn', async (context) => {
  const world = await World.start(context, [
    [0, 10 * pieceBytes],
    [20 * pieceBytes, 2 * pieceBytes],
  ]);
  const { cache, harness } = world;
  const long = await harness.connect();
  const short = await harness.connect();
  long.socket.write(request(exclusive, 0));
  await eventually(() => cache.fills.length === 1);
  short.socket.write(request(exclusive, 1));
  await eventually(() => cache.fills.length === 2);
  for (let round = 0; round < 2; round += 1) {
    const before = cache.fillsTotal;
    cache.endFills();
    if (round === 0) await eventually(() => cache.fillsTotal === before + 2);
  }
  await short.untilFrames(1);
  assert.equal(long.frames.length, 0);
  cache.isFast = true;
  await eventually(() => {
    cache.endFills();
    return long.frames.length === 1;
  });
  assert(world.isAnswer(long.frames[0], 0));
  assert(world.isAnswer(short.frames[0], 1));
  await harness.stop();
});

test('a connection that closes lets go: at once of what waits, and of what is being read when that ends', async (context) => {
  const world = await World.start(context, [
    [0, 200_000],
    [300_000, 200_000],
    [600_000, 200_000],
  ]);
  const { cache, harness } = world;
  const clients = [];
  for (let id = 0; id < 3; id += 1) {
    const client = await harness.connect();
    clients.push(client);
    client.socket.write(request(exclusive, id));
    await eventually(() => world.pinned === id + 1);
  }
  await eventually(() => cache.fills.length === 2);
  for (const client of clients) client.socket.resetAndDestroy();
  await eventually(() => harness.host.connectionsCount === 0);
  assert.equal(world.pinned, 2, 'two of them are being read from');
  cache.endFills();
  assert.equal(world.pinned, 0);
  assert.equal(cache.fills.length, 0);
  await harness.stop();
});

test('a stop closes what still waits for the disk when its time is over', async (context) => {
  const world = await World.start(context, [[0, 200_000]]);
  const { cache, harness } = world;
  const client = await harness.connect();
  client.socket.write(request(exclusive, 0));
  await eventually(() => cache.fills.length === 1);
  await harness.host.stop(20);
  assert.equal(harness.host.connectionsCount, 0);
  cache.endFills();
  assert.equal(world.pinned, 0);
  await harness.stop();
});

test('a device that fails is found out by sending, once for each piece', async (context) => {
  const world = await World.start(context, [[0, 3 * pieceBytes]]);
  const { cache, harness } = world;
  cache.isBroken = true;
  cache.isFast = true;
  const client = await harness.connect();
  client.socket.write(request(exclusive, 0));
  await client.untilFrames(1);
  assert.equal(cache.fillsTotal, 3, 'it was not asked again and again');
  assert(world.isAnswer(client.frames[0], 0));
  await harness.stop();
});

test.run();
