import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { type PrintableMessage, printerOf } from '../../../tools/cli/message_text.ts';

const test = suite('message_text');

const message: PrintableMessage = {
  ...{ topic: 't', partition: 3, offset: 7, timestampMs: 0 },
  key: Buffer.from('k'),
  value: Buffer.from('grüß'),
  headers: [
    ['a', Buffer.from('1')],
    ['a', null],
  ],
};
const empty: PrintableMessage = { ...message, key: null, value: null, headers: [] };
const text = { format: 'text' } as const;

test('templates have the notation of kcat', () => {
  const print = printerOf({ ...text, output: '%t %p %o %T %K:%k %S:%s [%h] 100%% %x\\t\\n' });
  assert.equal(print(message), 't 3 7 0 1:k 6:grüß [a=1,a=] 100% %x\t\n');
  assert.equal(print(empty), 't 3 7 0 -1: -1: [] 100% %x\t\n');
  assert.equal(printerOf({ ...text, output: 'end%' })(message), 'end%');
});

test('JSON keeps null apart from empty, and headers in their order', () => {
  const parsed = JSON.parse(printerOf({ ...text, jsonl: true })(message)) as object;
  assert.deepEqual(parsed, {
    ...{ topic: 't', partition: 3, offset: 7, timestampMs: 0, key: 'k', value: 'grüß' },
    headers: [
      ['a', '1'],
      ['a', null],
    ],
  });
  assert.match(printerOf({ format: 'hex', json: true })(empty), /"key":null,"value":null/);
});

test('values go out as they are, and for people so that they cannot command the terminal', () => {
  const evil = { ...message, value: Buffer.from('\u001b[2Jx') };
  assert.equal(printerOf(text)(evil), '\u001b[2Jx\n');
  assert.equal(printerOf({ ...text, keys: true })(message), 'k\tgrüß\n');
  const shown = { ...text, isShown: true };
  assert.equal(printerOf(shown)(evil), '"\\u001b[2Jx"\n');
  assert.equal(printerOf(shown)({ ...message, value: Buffer.from('a\nb') }), 'a\nb\n');
  assert.equal(printerOf({ ...shown, keys: true })(empty), 'null\tnull\n');
  const verbose = printerOf({ ...text, verbose: true });
  assert.equal(
    verbose(evil),
    't-3 @ 7  1970-01-01T00:00:00.000Z  key "k"  a="1"  a=null\n  "\\u001b[2Jx"\n',
  );
  assert.equal(verbose({ ...message, value: Buffer.from('a\nb') }).split('\n')[2], '  b');
});

test.run();
