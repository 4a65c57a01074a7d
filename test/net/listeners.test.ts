import assert from 'node:assert/strict';
import { closeSync } from 'node:fs';
import { createConnection, type ListenOptions, Server, type Socket } from 'node:net';
import type { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import { Listeners } from '../../net/listeners.ts';
import { LevelLogger } from '../../net/logger.ts';
import type { ToShard } from '../../net/shard_messages.ts';
import { configOf } from './data_path/shard_world.ts';
import { eventually } from './server/harness.ts';

const test = suite('listeners');

type Handed = ToShard & { type: 'shard.connection' };

/** Listeners with a shard that only takes down what it is given. */
async function open(
  ...settings: string[]
): Promise<{ listeners: Listeners; handed: Handed[]; close: () => Promise<void> }> {
  const handed: Handed[] = [];
  const shard = { postMessage: (message: Handed) => handed.push(message) } as unknown as Worker;
  const logger = new LevelLogger(
    { format: 'text', level: 'info' },
    () => {},
    () => 0,
  );
  const listeners = new Listeners(configOf(settings), logger);
  await listeners.listen([shard]);
  return {
    listeners,
    handed,
    close: async () => {
      for (const { fd } of handed) closeSync(fd);
      await listeners.close();
    },
  };
}

async function connect(port: number): Promise<Socket> {
  const socket = createConnection({ port, host: '127.0.0.1' });
  socket.on('error', () => {});
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  return socket;
}

const two = 'listeners=A://127.0.0.1:0,B://127.0.0.1:0';
const map = 'listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT';

test('socket.listen.backlog.size is the backlog that the system gets', async () => {
  const { listen } = Server.prototype;
  const backlogs: (number | undefined)[] = [];
  Server.prototype.listen = function (this: Server, ...args: unknown[]): Server {
    backlogs.push((args[0] as ListenOptions).backlog);
    return Reflect.apply(listen, this, args);
  };
  try {
    const { close } = await open('listeners=A://127.0.0.1:0', map, 'socket.listen.backlog.size=7');
    await close();
  } finally {
    Server.prototype.listen = listen;
  }
  assert.deepEqual(backlogs, [7]);
});

test('what is advertised has the ports that were bound; other advertised ports stay', async () => {
  const { listeners, close } = await open(
    two,
    map,
    'advertised.listeners=B://broker.example:0,A://10.0.0.1:99',
  );
  const advertised = listeners.advertised();
  assert.deepEqual(
    advertised.map(({ name, host }) => [name, host]),
    [
      ['A', '10.0.0.1'],
      ['B', 'broker.example'],
    ],
  );
  assert.equal(advertised[0]?.port, 99);
  assert((advertised[1]?.port ?? 0) > 0);
  assert.notEqual(advertised[1]?.port, listeners.address.port, 'it is the port of B');
  await close();
});

test('a connection goes to the shard with the name of its listener', async () => {
  const { listeners, handed, close } = await open(two, map);
  const ports = listeners.advertised().map(({ port }) => port);
  const sockets = [await connect(ports[1] as number), await connect(ports[0] as number)];
  await eventually(() => handed.length === 2);
  assert.deepEqual(new Set(handed.map(({ origin }) => origin.listener)), new Set(['A', 'B']));
  assert.notEqual(handed[0]?.origin.id, handed[1]?.origin.id);
  for (const socket of sockets) socket.destroy();
  await close();
});

test('the limits hold for the broker, not for each listener', async () => {
  for (const limit of [
    'max.connections=2',
    'max.connections.per.ip=2',
    'max.connections.per.ip.overrides=127.0.0.1:2',
  ]) {
    const { listeners, handed, close } = await open(two, map, limit);
    const [a, b] = listeners.advertised().map(({ port }) => port);
    const sockets = [await connect(a as number), await connect(b as number)];
    await eventually(() => handed.length === 2);
    const refused = await connect(b as number);
    await new Promise<void>((resolve) => refused.once('close', resolve));
    assert.equal(handed.length, 2, limit);
    listeners.closed(handed[0]?.origin.id ?? -1);
    listeners.closed(handed[0]?.origin.id ?? -1);
    sockets.push(await connect(a as number));
    await eventually(() => handed.length === 3);
    for (const socket of sockets) socket.destroy();
    await close();
  }
});

test('connections go to the shard that has the fewest, in turn among equals', async () => {
  const taken: number[] = [];
  const handed: Handed[] = [];
  const shards = [0, 1, 2].map((shard) => {
    const postMessage = (message: Handed): void => {
      taken.push(shard);
      handed.push(message);
    };
    return { postMessage } as unknown as Worker;
  });
  const logger = new LevelLogger(
    { format: 'text', level: 'info' },
    () => {},
    () => 0,
  );
  const listeners = new Listeners(configOf(['listeners=PLAINTEXT://127.0.0.1:0']), logger);
  await listeners.listen(shards);
  const sockets: Socket[] = [];
  const more = async (): Promise<void> => {
    sockets.push(await connect(listeners.address.port));
    await eventually(() => handed.length === sockets.length);
  };
  for (let k = 0; k < 6; k += 1) await more();
  assert.deepEqual(taken, [0, 1, 2, 0, 1, 2]);
  for (const at of [1, 4]) listeners.closed(handed[at]!.origin.id);
  for (let k = 0; k < 3; k += 1) await more();
  assert.deepEqual(taken.slice(6, 8), [1, 1]);
  for (const socket of sockets) socket.destroy();
  for (const { fd } of handed) closeSync(fd);
  await listeners.close();
});

test('a port that is taken: the error says so, and close still works', async () => {
  const first = await open('listeners=PLAINTEXT://127.0.0.1:0');
  const { port } = first.listeners.address;
  await assert.rejects(open(`listeners=PLAINTEXT://127.0.0.1:${port}`), { code: 'EADDRINUSE' });
  await first.close();
});

test.run();
