import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';

const test = suite('cli');

const root = join(import.meta.dirname, '..', '..');

interface Run {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function millrace(...args: string[]): Run {
  const entry = join(root, 'tools', 'millrace.ts');
  const result = spawnSync(process.execPath, [entry, ...args], { encoding: 'utf8' });
  return { code: result.status, out: result.stdout, err: result.stderr };
}

test('--version prints that of package.json', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    version: string;
  };
  assert.deepEqual(millrace('--version'), { code: 0, out: `${version}\n`, err: '' });
});

test('--help explains options, examples and exit codes', () => {
  const { code, out, err } = millrace('start', '--help');
  assert.deepEqual([code, err], [0, '']);
  for (const part of ['--config <file>', '--set <key=value>', '--log-format', '--log-level']) {
    assert(out.includes(part), part);
  }
  assert.match(out, /\nExamples:\n {2}millrace start\n/);
  assert.match(out, /\nExit codes:\n {2}0 {2}stopped cleanly\n/);
});

test('a reader that has seen enough is no error', () => {
  const entry = join(root, 'tools', 'millrace.ts');
  const script = `"$0" "$1" start --help | true; exit "\${PIPESTATUS[0]}"`;
  const { status, stderr } = spawnSync('bash', ['-c', script, process.execPath, entry], {
    encoding: 'utf8',
  });
  assert.deepEqual([status, stderr], [0, '']);
});

/** Command lines that are refused, and the whole text that says so. */
const refusals: [string[], string][] = [
  [['strat'], "error: unknown command 'strat'\n(Did you mean start?)\n"],
  [['start', '--sett', 'a=b'], "error: unknown option '--sett'\n(Did you mean --set?)\n"],
  [
    ['start', 'now'],
    "error: too many arguments for 'start'. Expected 0 arguments but got 1: now.\n",
  ],
  [
    ['start', '--set', 'abc'],
    "error: option '-s, --set <key=value>' argument 'abc' is invalid. Allowed: key=value.\n",
  ],
  [
    ['start', '--log-format', 'xml'],
    "error: option '--log-format <format>' argument 'xml' is invalid. Allowed choices are text, json.\n",
  ],
  [
    ['start', '--log-level', 'loud'],
    "error: option '--log-level <level>' argument 'loud' is invalid. Allowed choices are trace, debug, info, warn, error, fatal.\n",
  ],
  [
    ['start', '--config', '/no/such/file'],
    'millrace: one setting is wrong, nothing was started\n  --config /no/such/file: there is no such file.\n',
  ],
  [
    [
      'start',
      '--set',
      'num.partition=2',
      '--set',
      'num.partitions=x',
      '--set',
      'log.durability=no',
    ],
    `millrace: 2 settings are wrong, nothing was started
  num.partitions=x (--set): allowed: a whole number from 1 to 2147483647.
  log.durability=no (--set): allowed: one of fsync, os.
warnings:
  Unknown key num.partition (--set) is ignored. Did you mean num.partitions?
`,
  ],
];

test('wrong options and settings are explained, with exit code 2', () => {
  for (const [args, err] of refusals) {
    assert.deepEqual(millrace(...args), { code: 2, out: '', err }, args.join(' '));
  }
});

test('no command is a usage error that shows the help', () => {
  const { code, err } = millrace();
  assert.equal(code, 2);
  assert.match(err, /^Usage: millrace /);
});

test('settings in a file are named by line', () => {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-cli-'));
  try {
    const file = join(directory, 'server.properties');
    writeFileSync(file, '# a comment\nlisteners=SSL://:9092\n');
    const { code, err } = millrace('start', '--config', file);
    assert.equal(code, 2);
    assert.match(
      err,
      /^ {2}listeners=SSL:\/\/:9092 \(server\.properties:2\): SSL:\/\/:9092 would be SSL/m,
    );
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test.run();
