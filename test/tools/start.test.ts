import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { suite } from 'uvu';

const test = suite('start');

const root = join(import.meta.dirname, '..', '..');

/** The body of a `startBroker` that stands in for the real one: what is tested here is the life around it. */
const brokers = {
  good: `return { address: { host: '127.0.0.1', port: 4711 }, stop: async () => {}, failed: new Promise(() => {}) };`,
  slowToStop: `return { address: { host: '127.0.0.1', port: 4711 }, stop: () => new Promise(() => {}), failed: new Promise(() => {}) };`,
  badToStop: `return { address: { host: '127.0.0.1', port: 4711 }, stop: async () => { throw new Error('disk gone'); }, failed: new Promise(() => {}) };`,
  failing: `return { address: { host: '127.0.0.1', port: 4711 }, stop: async () => {}, failed: Promise.resolve(new Error('flush failed')) };`,
  broken: `setTimeout(() => { throw new Error('assertion broken'); }, 20); return { address: { host: '127.0.0.1', port: 4711 }, stop: async () => {}, failed: new Promise(() => {}) };`,
  portInUse: `throw Object.assign(new Error('listen EADDRINUSE'), { code: 'EADDRINUSE', syscall: 'listen', port: 9092 });`,
  unexpected: `throw new TypeError('x is not a function');`,
} as const;

interface Run {
  readonly code: number | null;
  readonly lines: readonly string[];
}

/**
 * Runs `millrace start` with a stand-in broker. `signals` are sent one by one, each after the line that it waits for
 * has come. Timers keep the process alive as sockets would.
 */
function run(
  broker: keyof typeof brokers,
  options: readonly string[] = [],
  signals: readonly (readonly [after: RegExp, signal: NodeJS.Signals])[] = [],
): Promise<Run> {
  const stand = `export async function startBroker() { setInterval(() => {}, 1000); ${brokers[broker]} }`;
  const hooks = `import { registerHooks } from 'node:module';
    registerHooks({ resolve: (specifier, context, next) => specifier.endsWith('/net/broker.ts')
      ? { url: ${JSON.stringify(`data:text/javascript,${encodeURIComponent(stand)}`)}, shortCircuit: true }
      : next(specifier, context) });`;
  const preload = `data:text/javascript,${encodeURIComponent(hooks)}`;
  const entry = join(root, 'tools', 'millrace.ts');
  const listener = broker === 'portInUse' ? 9092 : 0;
  const listeners = `listeners=PLAINTEXT://127.0.0.1:${listener}`;
  const args = ['--import', preload, entry, 'start', '--set', listeners, ...options];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const open = [...signals];
  let out = '';
  child.stdout.setEncoding('utf8');
  child.stdout.on('data', (text: string) => {
    out += text;
    while (open[0]?.[0].test(out)) child.kill(open.shift()?.[1]);
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, lines: out.trimEnd().split('\n') }));
  });
}

/** Messages without the time. */
function messages(lines: readonly string[]): string[] {
  return lines.map((line) => line.slice(25));
}

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  test(`${signal} stops cleanly with exit code 0`, async () => {
    const { code, lines } = await run('good', ['--set', 'log.dirs=/d'], [[/ready in/, signal]]);
    assert.equal(code, 0);
    const [first, listening, ready, stopping, stopped] = messages(lines);
    assert.match(
      first as string,
      /^INFO {2}Millrace \d+\.\d+\.\d+ nodeId=1 dataDirectory=\/d durability=fsync shards=1 pid=\d+ node=v24/,
    );
    assert.equal(
      listening,
      'INFO  listening on PLAINTEXT://127.0.0.1:4711 advertised=127.0.0.1:4711',
    );
    assert.match(ready as string, /^INFO {2}ready in \d+ ms$/);
    assert.equal(stopping, `INFO  ${signal}: stopping`);
    assert.match(stopped as string, /^INFO {2}stopped cleanly in \d+ ms$/);
  });
}

test('a second signal ends the process at once, as a shell expects', async () => {
  const { code, lines } = await run(
    'slowToStop',
    [],
    [
      [/ready in/, 'SIGTERM'],
      [/SIGTERM: stopping/, 'SIGINT'],
    ],
  );
  assert.equal(code, 130);
  assert.match(
    lines.at(-1) as string,
    /WARN {2}SIGINT again: ending at once, the next start will recover$/,
  );
});

test('one signal that comes twice, as Ctrl-C does under npm, is one wish to stop', async () => {
  const { code, lines } = await run(
    'slowToStop',
    [],
    [
      [/ready in/, 'SIGINT'],
      [/ready in/, 'SIGINT'],
      [/SIGINT: stopping/, 'SIGTERM'],
    ],
  );
  assert.equal(code, 143);
  assert.deepEqual(
    messages(lines).filter((line) => line.includes('again')),
    ['WARN  SIGTERM again: ending at once, the next start will recover'],
  );
});

test('a stop that fails, a failed broker and a broken assertion end with exit code 1 and the reason', async () => {
  const runs = await Promise.all([
    run('badToStop', [], [[/ready in/, 'SIGTERM']]),
    run('failing'),
    run('broken'),
  ]);
  const reasons = ['disk gone', 'flush failed', 'assertion broken'];
  for (const [index, { code, lines }] of runs.entries()) {
    assert.equal(code, 1);
    const fatal = lines.find((line) => line.includes(' FATAL ')) as string;
    assert(fatal.endsWith(`error="${reasons[index]}"`), fatal);
  }
});

test('what people can cause is explained without a stack, exit code 3', async () => {
  const { code, lines } = await run('portInUse');
  assert.equal(code, 3);
  assert.equal(lines.length, 2);
  assert.match(
    lines[1] as string,
    / FATAL cannot start: listeners: PLAINTEXT:\/\/127\.0\.0\.1:9092 is in use by another process\. /,
  );
});

test('what nobody expects keeps its stack', async () => {
  const { code, lines } = await run('unexpected');
  assert.equal(code, 3);
  assert.match(lines[1] as string, / FATAL cannot start error="x is not a function"$/);
  assert.match(lines[2] as string, /^ {4}at /);
});

test('warnings of the configuration are on the log, and everything can be JSON', async () => {
  const options = ['--log-format', 'json', '--set', 'num.partition=1'];
  const { code, lines } = await run('good', options, [[/ready in/, 'SIGTERM']]);
  assert.equal(code, 0);
  const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.equal(parsed[0]?.['nodeId'], 1);
  assert.equal(parsed[1]?.['level'], 'warn');
  assert.equal(
    parsed[1]?.['msg'],
    'Unknown key num.partition (--set) is ignored. Did you mean num.partitions?',
  );
});

test('--log-level leaves lines out', async () => {
  const options = ['--log-level', 'warn', '--set', 'num.partition=1'];
  const { lines } = await run('good', options, [[/Unknown key/, 'SIGTERM']]);
  assert.equal(lines.length, 1);
});

test.run();
