/**
 * franz-go's own tests of its client, run against the broker. Those that must pass are listed in
 * clients/franz/allow_list.txt, and those that never connect in without_broker.txt; FINDINGS.md says of every other
 * why it is on neither list.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import { startBroker } from './exchange.ts';
import { installFranzSuite } from './peers/install.ts';

const TIMEOUT_MS = 400_000;

const read = (name: string): string => readFileSync(join(import.meta.dirname, name), 'utf8');
const allowed = read('clients/franz/allow_list.txt').trimEnd().split('\n');
const withoutBroker = read('clients/franz/without_broker.txt').trimEnd().split('\n');
const chosen = [...allowed, ...withoutBroker];
const findings = new Set(read('FINDINGS.md').match(/\bTest\w+/g));

/** How a top-level test ended, and what it and its subtests wrote. */
interface Outcome {
  result: 'PASS' | 'FAIL' | 'SKIP' | 'did not run to its end';
  output: string;
}

const outcomes = new Map<string, Outcome>();
let everyTest: string[] = [];
let rest = '';

/** Runs the test program to its end; what it writes to standard error is added at the end. */
function run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  return installFranzSuite().then(
    ({ program, dir }) =>
      new Promise((resolve, reject) => {
        const options = { cwd: dir, env: { ...process.env, ...env } };
        const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
        let output = '';
        let errors = '';
        child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
        child.stderr.setEncoding('utf8').on('data', (chunk: string) => (errors += chunk));
        const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS + 10_000);
        child.once('error', reject);
        child.once('close', () => {
          clearTimeout(timer);
          resolve(`${output}${errors}`);
        });
      }),
  );
}

/** Sorts the lines of `go test -v` by the top-level test that they belong to: several run at once. */
function sortOutput(output: string): void {
  let name = '';
  for (const line of output.split('\n')) {
    const turn = /^=== (?:RUN|CONT|NAME|PAUSE) +([^\s/]+)/.exec(line);
    const end = /^ *--- (PASS|FAIL|SKIP): ([^\s/]+)(\/\S+)? \(/.exec(line);
    name = turn?.[1] ?? end?.[2] ?? name;
    const outcome = outcomes.get(name) ?? { result: 'did not run to its end', output: '' };
    outcomes.set(name, outcome);
    if (end !== null && end[3] === undefined) outcome.result = end[1] as 'PASS' | 'FAIL' | 'SKIP';
    if (turn === null) outcome.output = `${outcome.output}${line}\n`.slice(-5_000);
  }
  rest = output.slice(-2_000);
}

const test = suite('franz-go');

test.before(async () => {
  everyTest = (await run(['-test.list', '^Test'])).trimEnd().split('\n');
  const broker = await startBroker();
  try {
    const select = ['-test.run', `^(${chosen.join('|')})$`];
    // Several at once: most of them wait most of the time.
    const how = ['-test.v', '-test.parallel', '4', '-test.timeout', `${TIMEOUT_MS}ms`];
    const env = { KGO_SEEDS: broker.bootstrap, KGO_TEST_RF: '1', KGO_TEST_RECORDS: '20000' };
    sortOutput(await run([...select, ...how], { ...env, KGO_LOG_LEVEL: 'none' }));
  } finally {
    await broker.dispose();
  }
});

test('every test is on one list or among the findings', () => {
  const listed = new Set(chosen);
  assert.equal(listed.size, chosen.length, 'a test is listed twice');
  const nowhere = everyTest.filter((name) => !listed.has(name) && !findings.has(name));
  assert.deepEqual(nowhere, []);
  const onBoth = chosen.filter((name) => findings.has(name));
  assert.deepEqual(onBoth, []);
});

/** Fails unless the test was run and passed. */
function assertPassed(name: string): void {
  const outcome = outcomes.get(name);
  const text = outcome?.output ?? `not run; the end of the output:\n${rest}`;
  assert.equal(outcome?.result, 'PASS', `${name}: ${text}`);
}

for (const name of allowed) test(name, () => assertPassed(name));

test('the tests that never connect', () => withoutBroker.forEach(assertPassed));

test.run();
