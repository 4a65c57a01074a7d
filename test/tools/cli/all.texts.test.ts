/** What the command line makes of numbers, times, bytes and lines of input. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { encodedBytes, quotedBytes } from '../../../tools/cli/bytes_text.ts';
import { flowText, paragraph } from '../../../tools/cli/flow.ts';
import { messageOf } from '../../../tools/cli/input_message.ts';
import { progressText } from '../../../tools/cli/progress.ts';
import { byteText, countText, spanText } from '../../../tools/cli/quantity.ts';
import { tableText } from '../../../tools/cli/table.ts';
import { parseTime, timeText } from '../../../tools/cli/time.ts';

const test = suite('texts');

test('quantities have one unit and at most four digits', () => {
  const bytes = [0, 1023, 1024, 1_500_000, 1_073_741_824, 5e15];
  assert.deepEqual(bytes.map(byteText), [
    ...['0 B', '1023 B', '1.0 KiB', '1.4 MiB', '1.0 GiB', '4547 TiB'],
  ]);
  const spans = [0, 999, 1_500, 95_000, 600_000, 7_200_000, 86_400_000 * 3];
  assert.deepEqual(spans.map(spanText), [
    ...['0 ms', '999 ms', '1.5 s', '95 s', '10 min', '2 h', '3 d'],
  ]);
  assert.deepEqual([countText(1, 'record'), countText(0, 'record')], ['1 record', '0 records']);
});

test('times are dates or ages', () => {
  const nowMs = Date.parse('2026-11-29T12:00:00Z');
  assert.equal(parseTime('2h', nowMs), nowMs - 7_200_000);
  assert.equal(parseTime('-30s', nowMs), nowMs - 30_000);
  assert.equal(parseTime('2026-11-29T12:00:00Z', 0), nowMs);
  for (const text of ['', 'x', '2 h', '2026-13-45', '12:00', 'yesterday'])
    assert.equal(parseTime(text, nowMs), null, text);
  assert.equal(timeText(nowMs), '2026-11-29T12:00:00.000Z');
  assert.equal(timeText(-1n), '-');
  assert.equal(timeText(2n ** 62n), String(2n ** 62n));
});

test('numbers stand to the right, and long texts are shortened to the room there is', () => {
  const rows = [
    ['orders', 3, null],
    ['a-topic-with-a-rather-long-name', 12, 'x'],
  ];
  assert.equal(
    tableText(['topic', 'partitions', 'note'], rows),
    'TOPIC                            PARTITIONS  NOTE\n' +
      'orders                                    3  -\n' +
      'a-topic-with-a-rather-long-name          12  x\n',
  );
  const narrow = tableText(['topic', 'partitions', 'note'], rows, 40).split('\n');
  assert(narrow.every((line) => line.length <= 40));
  assert.equal(narrow[2], 'a-topic-wit…-long-name          12  x');
  const two = [['payments.invoices.dead-letter', '10.12.0.1', 'checkout-service-x2x9q']];
  const shared = tableText(['topic', 'host', 'member'], two, 40).split('\n');
  assert.deepEqual(shared.slice(0, 2), [
    'TOPIC          HOST       MEMBER',
    'paymen…letter  10.12.0.1  checkou…-x2x9q',
  ]);
});

test('lines are broken between their parts', () => {
  const parts = ['orders-0 @ 24', 'key "a"', 'trace="abc"'];
  assert.equal(flowText(parts), 'orders-0 @ 24  key "a"  trace="abc"');
  const bold = ['\u001b[1morders-0 @ 24\u001b[0m', ...parts.slice(1)];
  assert.equal(flowText(bold, { room: 22 }), `${bold[0]}  key "a"\n  trace="abc"`);
  assert.equal(flowText(['a'.repeat(9), 'b'], { room: 5 }), `${'a'.repeat(9)}\n  b`);
  assert.equal(paragraph('not a word is broken', '  '), '  not a word is broken');
});

test('bytes are text where they are, and cannot command the terminal', () => {
  const bytes = (text: string): Uint8Array => Buffer.from(text, 'latin1');
  assert.equal(quotedBytes(Buffer.from('grüß\n\u001b[2J'), 'text'), '"grüß\\n\\u001b[2J"');
  assert.equal(quotedBytes(Buffer.from('\u009b2J'), 'text'), '"\\u009b2J"');
  assert.equal(quotedBytes(bytes('\xff\xfe'), 'text'), '0xfffe');
  assert.equal(quotedBytes(null, 'hex'), 'null');
  assert.equal(encodedBytes(bytes('\xff\xfe'), 'hex'), 'fffe');
  assert.equal(encodedBytes(bytes('ab'), 'base64'), 'YWI=');
});

test('a bar of progress fits a terminal of 80 columns', () => {
  const state = { title: 'verifying', done: 50, total: 200, seconds: 2, what: 'orders-0' };
  const text = progressText(state, byteText);
  assert.equal(text, `verifying ${'█'.repeat(6)}${'░'.repeat(18)} 25%  25 B/s  orders-0`);
  assert(text.length < 80);
});

test('lines become messages', () => {
  const text = { format: 'text' } as const;
  const plain = messageOf('t', 'hello', 1, text);
  assert.deepEqual([plain.key, plain.value, plain.partition], [null, 'hello', undefined]);
  const keyed = messageOf('t', 'a:b:c', 1, { ...text, keySeparator: ':', partition: 2 });
  assert.deepEqual([keyed.key, keyed.value, keyed.partition], ['a', 'b:c', 2]);
  assert.equal(messageOf('t', '', 1, { ...text, nullEmpty: true }).value, null);
  const hex = messageOf('t', '00ff', 1, { format: 'hex' });
  assert.deepEqual(hex.value, Buffer.from([0, 255]));
  const object = messageOf(
    't',
    '{"key":"k","value":{"a":1},"headers":{"h":"v"},"partition":3,"timestampMs":5}',
    1,
    { ...text, jsonl: true, header: [['x', 'y']] },
  );
  assert.deepEqual(
    { ...object, headers: [...(object.headers as [])] },
    {
      topic: 't',
      key: 'k',
      value: '{"a":1}',
      headers: [
        ['x', 'y'],
        ['h', 'v'],
      ],
      partition: 3,
      timestampMs: 5,
    },
  );
});

/** Input, options, and what is said about it. */
const refused: [string, object, RegExp][] = [
  ['{"a":', { format: 'json' }, /^line 7 is not JSON: /],
  ['abc', { format: 'hex' }, /^line 7: "abc" is no sequence of hex digits\.$/],
  ['a b', { format: 'base64' }, /^line 7: "a b" is not base64\.$/],
  ['abc', { format: 'text', keySeparator: '|' }, /^line 7: there is no "\|" in "abc"\.$/],
  ['[1]', { format: 'text', jsonl: true }, /^line 7: "\[1\]" is no object with a "value"\.$/],
  ['{"value":1,"partition":"x"}', { format: 'text', jsonl: true }, /partition is "x"/],
  ['{"value":1,"headers":[1]}', { format: 'text', jsonl: true }, /headers are an object/],
];

test('what is no message is told with its line', () => {
  for (const [text, options, message] of refused)
    assert.throws(() => messageOf('t', text, 7, options as { format: 'text' }), { message });
});

test.run();
