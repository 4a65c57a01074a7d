/** The examples of docs/client.md: each is a program, and runs as it stands, one after the other, at one broker. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import { BrokerProcess, millrace } from '../../harness/broker_process.ts';

const test = suite('docs/client.md');
const page = readFileSync(new URL('../../../docs/client.md', import.meta.url), 'utf8');
const client = new URL('../../../net/client/client.ts', import.meta.url).href;
const timeoutMs = 60_000;

/** What each of them prints. */
const expected: readonly RegExp[] = [
  /^\[ '([012]):0', '\1:1', '\1:2' \]\n$/,
  /^12 EUR\n$/,
  /^(orders\/[012]@[01]: (paid|packed)\n){2}orders\/[012]@2: sent\n$/,
  /^(store [123] messages of partition [012]\n)+$/,
  /^assigned 3\n/,
  /^(?:[012] \d{4}-\d\d-\d\dT[\d:.]+Z\n){3}$/,
  /^nothing new for half a second\n$/,
  / records: 1000,/,
  /billing \w+\n.*1 broker\n$/s,
  /^true [123] 0\n$/,
  /^UNKNOWN_TOPIC_OR_PARTITION /,
];

/** Its heading and its text. */
const examples = [...page.matchAll(/^## ([^\n]+)\n(?:(?!^## ).)*?^```ts\n(.*?)^```$/gms)];

const dir = mkdtempSync(join(tmpdir(), 'millrace-docs-'));
let broker: BrokerProcess;

test.before(async () => {
  const settings = { 'group.initial.rebalance.delay.ms': 0, 'auto.create.topics.enable': 'false' };
  broker = await BrokerProcess.start({ launcher: millrace, settings });
});

test.after(async () => {
  await broker.dispose();
  rmSync(dir, { recursive: true });
});

test('there is something to expect of every example', () => {
  assert.equal(examples.length, expected.length);
  assert.equal(page.split('\n').filter((line) => line === '```ts').length, expected.length);
});

for (const [index, [, heading, text = '']] of examples.entries())
  test(heading ?? '', async () => {
    const path = join(dir, `${index}.ts`);
    const program = text
      .replaceAll("'millrace/client'", JSON.stringify(client))
      .replaceAll('127.0.0.1:9092', broker.bootstrap);
    writeFileSync(path, program);
    const args = ['--disable-warning=ExperimentalWarning', path];
    const run = promisify(execFile)(process.execPath, args, { timeout: timeoutMs });
    const { stdout, stderr } = await run;
    assert.equal(stderr, '');
    assert.match(stdout, expected[index] as RegExp);
  });

test.run();
