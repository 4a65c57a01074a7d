import assert from 'node:assert/strict';
import { createServer, type Server, type Socket } from 'node:net';
import { suite } from 'uvu';
import type { PeerAddress, PeerFailure } from '../../../net/peer/peer_connection.ts';
import { type PeerAnswer, PeerNode, type PeerNodeOwner } from '../../../net/peer/peer_node.ts';
import { ApiKey } from '../../../net/protocol/api_key.gen.ts';
import { encodeResponseFrame } from '../../../net/protocol/frame.ts';
import { eventually } from '../server/harness.ts';

const test = suite('peer_node');

/** A server that hands out the requests it got, without answering any by itself. */
class FakeServer {
  readonly sockets: Socket[] = [];
  readonly asked: { readonly socket: Socket; readonly correlationId: number }[] = [];
  readonly #server: Server;
  #port = 0;

  constructor() {
    this.#server = createServer((socket) => {
      this.sockets.push(socket);
      socket.on('error', () => {});
      socket.on('data', (chunk: Buffer) =>
        this.asked.push({ socket, correlationId: chunk.readInt32BE(8) }),
      );
    });
  }

  get address(): PeerAddress {
    return { host: '127.0.0.1', port: this.#port };
  }

  async listen(port = 0): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen({ host: '127.0.0.1', port }, resolve));
    const address = this.#server.address();
    if (address !== null && typeof address === 'object') this.#port = address.port;
  }

  /** Answers the request, counted from 0, as UnregisterBroker with the code. */
  answer(index: number, errorCode: number): void {
    const { socket, correlationId } = this.asked[index]!;
    socket.write(
      encodeResponseFrame(ApiKey.UnregisterBroker, 0, correlationId, 'UnregisterBrokerResponse', {
        throttleTimeMs: 0,
        errorCode,
        errorMessage: null,
      }).bytes,
    );
  }

  /** As a killed process does. */
  async die(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

class Owner implements PeerNodeOwner {
  readonly news: string[] = [];

  onReached(): void {
    if (this.news.at(-1) !== 'reached') this.news.push('reached');
  }

  onFailed(_node: PeerNode, failure: PeerFailure): void {
    if (this.news.at(-1) !== failure) this.news.push(failure);
  }
}

interface World {
  readonly server: FakeServer;
  readonly owner: Owner;
  readonly node: PeerNode;
  ask(timeoutMs?: number): Promise<PeerAnswer<'UnregisterBroker'>>;
  end(): Promise<void>;
}

async function open(): Promise<World> {
  const server = new FakeServer();
  await server.listen();
  const owner = new Owner();
  const node = new PeerNode(2, server.address, 'node-1', owner);
  return {
    server,
    owner,
    node,
    ask: (timeoutMs = 60_000) =>
      new Promise((resolve) =>
        node.send('UnregisterBroker', 0, { brokerId: 7 }, timeoutMs, resolve),
      ),
    end: async () => {
      node.close();
      await server.die();
    },
  };
}

test('requests do not wait for each other, and connections are used again', async () => {
  const { server, ask, end } = await open();
  const first = ask();
  const second = ask();
  await eventually(() => server.asked.length === 2);
  server.answer(1, 22);
  assert.equal((await second).value?.errorCode, 22);
  server.answer(0, 11);
  assert.equal((await first).value?.errorCode, 11);
  const third = ask();
  await eventually(() => server.asked.length === 3);
  server.answer(2, 33);
  assert.equal((await third).value?.errorCode, 33);
  assert.equal(server.sockets.length, 2);
  await end();
});

test('silence ends when the time is over, and the late answer finds nobody', async () => {
  const { server, ask, end } = await open();
  assert.equal((await ask(30)).failure, 'timeout');
  const again = ask();
  await eventually(() => server.asked.length === 2);
  server.answer(0, 1);
  server.answer(1, 2);
  assert.equal((await again).value?.errorCode, 2);
  await end();
});

test('a dead process is told from a broken connection, at once and without being asked', async () => {
  const { server, owner, ask, end } = await open();
  const idle = ask();
  await eventually(() => server.asked.length === 1);
  server.answer(0, 0);
  await idle;
  assert.deepEqual(owner.news, ['reached']);
  const running = ask();
  await eventually(() => server.asked.length === 2);
  await server.die();
  assert.equal((await running).failure, 'closed');
  await eventually(() => owner.news.at(-1) === 'refused');
  assert.equal((await ask()).failure, 'refused');
  await end();
});

test('who comes back is found, and at once when it calls', async () => {
  const { server, node, owner, ask, end } = await open();
  const { port } = server.address;
  await server.die();
  for (let k = 0; k < 6; k += 1) assert.equal((await ask()).failure, 'refused');
  const back = new FakeServer();
  await back.listen(port);
  const found = ask();
  node.heard();
  await eventually(() => back.asked.length === 1);
  back.answer(0, 5);
  assert.equal((await found).value?.errorCode, 5);
  assert.deepEqual(owner.news, ['refused', 'reached']);
  await end();
  await back.die();
});

test('a request whose time is over before there is a connection is told so', async () => {
  const { server, ask, end } = await open();
  await server.die();
  // The back-off after these is longer than what the last one waits.
  for (let k = 0; k < 6; k += 1) await ask();
  assert.equal((await ask(1)).failure, 'timeout');
  await end();
});

test('answers to nothing, and such as cannot be read, end the connection', async () => {
  const { server, ask, end } = await open();
  const bad = [
    Buffer.from([0, 0, 0, 1, 0]),
    Buffer.from([0x7f, 0xff, 0xff, 0xff]),
    Buffer.from([0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xfe]),
  ];
  for (const [index, bytes] of bad.entries()) {
    const asked = ask();
    await eventually(() => server.asked.length === index + 1);
    server.asked[index]!.socket.write(bytes);
    assert.equal((await asked).failure, 'closed');
  }
  const cut = ask();
  await eventually(() => server.asked.length === bad.length + 1);
  const { socket, correlationId } = server.asked.at(-1)!;
  const frame = Buffer.alloc(9);
  frame.writeInt32BE(5);
  frame.writeInt32BE(correlationId, 4);
  socket.write(frame);
  assert.equal((await cut).failure, 'closed');
  await end();
});

test('an answer may come in pieces', async () => {
  const { server, ask, end } = await open();
  const asked = ask();
  await eventually(() => server.asked.length === 1);
  const { socket, correlationId } = server.asked[0]!;
  const { bytes } = encodeResponseFrame(
    ApiKey.UnregisterBroker,
    0,
    correlationId,
    'UnregisterBrokerResponse',
    { throttleTimeMs: 0, errorCode: 3, errorMessage: 'x'.repeat(50) },
  );
  socket.setNoDelay(true);
  for (const byte of bytes) {
    socket.write(Uint8Array.of(byte));
    await new Promise(setImmediate);
  }
  assert.equal((await asked).value?.errorMessage?.length, 50);
  await end();
});

test('closing tells everybody', async () => {
  const { server, node, ask, end } = await open();
  const running = ask();
  await eventually(() => server.asked.length === 1);
  node.close();
  assert.equal((await running).failure, 'closed');
  assert.equal((await ask()).failure, 'closed');
  await end();
});

test.run();
