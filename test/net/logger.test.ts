import assert from 'node:assert/strict';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import { createLogger, LevelLogger, type LoggerOptions, type LogLevel } from '../../net/logger.ts';

const test = suite('logger');

interface Line {
  level: LogLevel;
  message: string;
  fields: object | undefined;
}

function recorder(level: LogLevel, clock = { nowMs: 0 }): { logger: LevelLogger; lines: Line[] } {
  const lines: Line[] = [];
  const sink = (at: LogLevel, message: string, fields: object | undefined): void => {
    lines.push({ level: at, message, fields });
  };
  const logger = new LevelLogger({ format: 'text', level }, sink, () => clock.nowMs);
  return { logger, lines };
}

test('lines below the level are dropped', () => {
  const { logger, lines } = recorder('warn');
  logger.info('no');
  logger.warn('yes');
  logger.error({ code: 3 }, 'yes too');
  assert.deepEqual(lines, [
    { level: 'warn', message: 'yes', fields: undefined },
    { level: 'error', message: 'yes too', fields: { code: 3 } },
  ]);
  assert.deepEqual([logger.isEnabled('info'), logger.isEnabled('fatal')], [false, true]);
});

test('a limited line comes once in its interval, then says how many were left out', () => {
  const clock = { nowMs: 0 };
  const { logger, lines } = recorder('info', clock);
  const log = (key: string): void => logger.logLimited(key, 1_000, 'warn', { key }, 'bad frame');
  for (let time = 0; time < 2_500; time += 100) {
    clock.nowMs = time;
    log('a');
  }
  log('b');
  assert.deepEqual(
    lines.map(({ fields }) => fields),
    [{ key: 'a' }, { key: 'a', leftOut: 9 }, { key: 'a', leftOut: 9 }, { key: 'b' }],
  );
  logger.logLimited('c', 1_000, 'debug', {}, 'below the level');
  assert.equal(lines.length, 4);
});

test('limits of keys that nobody uses are forgotten', () => {
  const { logger, lines } = recorder('info');
  logger.logLimited('first', 1_000, 'info', {}, 'x');
  for (let key = 0; key < 1_000; key += 1) logger.logLimited(String(key), 1_000, 'info', {}, 'x');
  logger.logLimited('first', 1_000, 'info', {}, 'x');
  assert.equal(lines.length, 1_002);
});

function logged(format: LoggerOptions['format'], write: (options: LoggerOptions) => void): string {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-logger-'));
  const file = join(directory, 'out');
  const descriptor = openSync(file, 'a');
  try {
    write({ format, level: 'info', thread: 'shard 0', descriptor });
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(descriptor);
    rmSync(directory, { recursive: true });
  }
}

test('text lines are for people', () => {
  const text = logged('text', (options) => {
    createLogger(options).info({ port: 9092 }, 'listening');
  });
  assert.match(
    text,
    /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z INFO {2}\[shard 0\] listening port=9092\n$/,
  );
});

test('JSON lines hold level, time, thread, message, values and errors with their stack', () => {
  const text = logged('json', (options) => {
    const logger = createLogger(options);
    logger.warn({ port: 9092 }, 'one\ntwo');
    logger.error({ error: new Error('broken') }, 'failed');
    logger.debug('below the level');
  });
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.equal(lines.length, 2);
  const { time, ...first } = lines[0] as Record<string, unknown>;
  assert.match(String(time), /^\d{4}-\d\d-\d\dT/);
  assert.deepEqual(first, { level: 'warn', thread: 'shard 0', port: 9092, msg: 'one\ntwo' });
  const error = lines[1]?.['error'] as Record<string, unknown>;
  assert.equal(error['message'], 'broken');
  assert.match(String(error['stack']), /\n {4}at /);
});

test('lines of several threads come out whole', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-logger-'));
  const file = join(directory, 'out');
  const descriptor = openSync(file, 'a');
  const module = new URL('../../net/logger.ts', import.meta.url).href;
  const source = `
    const { workerData } = require('node:worker_threads');
    import(workerData.module).then(({ createLogger }) => {
      const logger = createLogger(workerData.options);
      for (let line = 0; line < 500; line += 1) logger.info({ line }, 'x'.repeat(line));
    });`;
  try {
    const threads = ['a', 'b'].map((thread) => {
      const options: LoggerOptions = { format: 'text', level: 'info', thread, descriptor };
      const worker = new Worker(source, { eval: true, workerData: { module, options } });
      return new Promise((resolve, reject) => {
        worker.once('exit', resolve);
        worker.once('error', reject);
      });
    });
    await Promise.all(threads);
    const next = new Map([
      ['a', 0],
      ['b', 0],
    ]);
    for (const line of readFileSync(file, 'utf8').trimEnd().split('\n')) {
      const match = /^\S+ \S+ INFO {2}\[([ab])\] (x*) line=(\d+)$/.exec(line);
      assert(match !== null, line);
      const [, thread = '', body = '', number] = match;
      assert.deepEqual([body.length, Number(number)], [next.get(thread), next.get(thread)]);
      next.set(thread, body.length + 1);
    }
    assert.deepEqual([...next.values()], [500, 500]);
  } finally {
    closeSync(descriptor);
    rmSync(directory, { recursive: true });
  }
});

test.run();
