import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { program, runParts } from '../../tools/check.ts';

const test = suite('check');

const node = (script: string): ReturnType<typeof program> =>
  program(import.meta.dirname, process.execPath, ['-e', script]);

test('all parts run, and only a failed one shows what it said', async () => {
  let text = '';
  const parts = {
    good: node(`console.log('chatter')`),
    bad: node(`console.error('why'); process.exit(3)`),
    missing: program(import.meta.dirname, '/no/such/program', []),
  };
  assert.equal(await runParts(parts, (chunk) => (text += chunk)), 1);
  assert.match(text, /^ok good, /m);
  assert.match(text, /^FAILED bad, .*\n {4}why$/m);
  assert.match(text, /^FAILED missing, .*\n {4}.*ENOENT/m);
  assert.doesNotMatch(text, /chatter/);
  assert.match(text, /^check: 1 passed, 2 failed\n$/m);
});

test('the exit code is 0 when every part passed', async () => {
  assert.equal(await runParts({ good: node('') }, () => {}), 0);
});

test.run();
