import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { suite } from 'uvu';
import { tryConnect, warnOfUnreachable } from '../../net/advertised_check.ts';
import type { BrokerConfig } from '../../net/config/broker_config.ts';
import { loadBrokerConfig } from '../../net/config/load.ts';
import { LevelLogger } from '../../net/logger.ts';

const test = suite('advertised_check');

async function withServer(use: (port: number) => Promise<void>): Promise<void> {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await use((server.address() as { port: number }).port);
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

async function warningsFor(firstPort: number, ...sets: string[]): Promise<string[]> {
  const surroundings = { cwd: '/', hostname: '127.0.0.1', memoryBytes: 2 ** 33 };
  const { config } = loadBrokerConfig({ sets, surroundings });
  const lines: string[] = [];
  const sink = (_: string, message: string): void => void lines.push(message);
  const logger = new LevelLogger({ format: 'text', level: 'info' }, sink, () => 0);
  await warnOfUnreachable(config as BrokerConfig, firstPort, logger);
  return lines;
}

test('somebody answers, or a reason why not', async () => {
  let closedPort = 0;
  await withServer(async (port) => {
    closedPort = port;
    assert.equal(await tryConnect('127.0.0.1', port), null);
  });
  assert.equal(await tryConnect('127.0.0.1', closedPort), 'ECONNREFUSED');
});

test('an advertised address that answers is no warning', async () => {
  await withServer(async (port) => {
    assert.deepEqual(await warningsFor(port, 'listeners=PLAINTEXT://0.0.0.0:0'), []);
  });
});

test('an address that is listened on itself is not tried', async () => {
  assert.deepEqual(await warningsFor(9092), []);
});

test('an advertised address where nobody answers says what to set', async () => {
  let closedPort = 0;
  await withServer((port) => {
    closedPort = port;
    return Promise.resolve();
  });
  const advertised = `advertised.listeners=PLAINTEXT://127.0.0.1:${closedPort}`;
  assert.deepEqual(await warningsFor(1, 'listeners=PLAINTEXT://127.0.0.1:1', advertised), [
    `Clients of listener PLAINTEXT are sent to 127.0.0.1:${closedPort}, where this machine itself reaches nobody (ECONNREFUSED): check advertised.listeners if they cannot connect either.`,
  ]);
  assert.match(
    (await warningsFor(closedPort, 'listeners=PLAINTEXT://0.0.0.0:0'))[0] as string,
    /: set advertised\.listeners if they cannot connect either\.$/,
  );
});

test.run();
