import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { suite } from 'uvu';
import type { BrokerConfig } from '../../net/config/broker_config.ts';
import { loadBrokerConfig } from '../../net/config/load.ts';
import { explainStartError } from '../../tools/start_errors.ts';

const test = suite('start_errors');

function config(...sets: string[]): BrokerConfig {
  const surroundings = { cwd: '/srv', hostname: 'h', memoryBytes: 2 ** 33 };
  return loadBrokerConfig({ sets, surroundings }).config as BrokerConfig;
}

function systemError(fields: object): Error {
  return Object.assign(new Error('what the system says'), fields);
}

test('a port in use names the key and a way out', async () => {
  const first = createServer();
  await new Promise<void>((resolve) => first.listen(0, '127.0.0.1', resolve));
  const { port } = first.address() as { port: number };
  const second = createServer();
  const error = await new Promise<Error>((resolve) => {
    second.once('error', resolve).listen(port, '127.0.0.1');
  });
  first.close();
  assert.equal(
    explainStartError(error, config(`listeners=PLAINTEXT://127.0.0.1:${port}`)),
    `listeners: PLAINTEXT://127.0.0.1:${port} is in use by another process. Stop that one, or choose another port: --set listeners=PLAINTEXT://127.0.0.1:${port + 1}`,
  );
});

test('other reasons why a listener cannot be opened are explained', () => {
  const listen = { syscall: 'listen', address: '10.9.8.7', port: 80 };
  const broker = config('listeners=PLAINTEXT://10.9.8.7:80');
  const explain = (code: string): string | null =>
    explainStartError(systemError({ ...listen, code }), broker);
  assert.match(
    explain('EACCES') as string,
    /^listeners: PLAINTEXT:\/\/10\.9\.8\.7:80 is not allowed, ports below/,
  );
  assert.match(explain('EADDRNOTAVAIL') as string, / is no address of this machine\. Use one of /);
  assert.match(
    explain('EINVAL') as string,
    /^listeners: PLAINTEXT:\/\/10\.9\.8\.7:80: what the system says$/,
  );
  const resolving = systemError({ syscall: 'getaddrinfo', code: 'ENOTFOUND' });
  assert.match(explainStartError(resolving, broker) as string, / cannot be resolved$/);
});

test('what is wrong with a data directory is explained', () => {
  const broker = config('log.dirs=/a,/b');
  const explain = (fields: object): string | null => explainStartError(systemError(fields), broker);
  assert.equal(
    explain({ code: 'EACCES', path: '/a/x' }),
    'log.dirs: /a/x: this user is not allowed to write there (what the system says)',
  );
  assert.equal(
    explain({ code: 'ENOSPC' }),
    'log.dirs: /a, /b: no space left on the disk (what the system says)',
  );
});

test('errors of the data directory are told in their own words', () => {
  class LogDirectoryError extends Error {}
  const error = new LogDirectoryError('/a is in use by process 7.');
  assert.equal(explainStartError(error, config()), 'log.dirs: /a is in use by process 7.');
});

test('what nobody expects is left to its stack', () => {
  assert.equal(explainStartError(new TypeError('x is not a function'), config()), null);
  assert.equal(explainStartError('a string', config()), null);
});

test.run();
