import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { LineWriter, lineBytesMax, textLine } from '../../net/log_lines.ts';

const test = suite('log_lines');

const timeMs = Date.UTC(2026, 10, 29, 17, 52, 3, 7);

function text(message: string, fields?: object): string {
  return textLine(timeMs, 'info', undefined, message, fields);
}

test('a line has time, level, thread, message and values', () => {
  assert.equal(
    textLine(timeMs, 'warn', 'shard 0', 'slow flush', { ms: 31, topic: 'orders', fatal: false }),
    '2026-11-29 17:52:03.007Z WARN  [shard 0] slow flush ms=31 topic=orders fatal=false\n',
  );
  assert.equal(text('ready'), '2026-11-29 17:52:03.007Z INFO  ready\n');
});

test('values that would be hard to tell apart are quoted', () => {
  const line = text('m', {
    a: 'x y',
    b: '',
    c: 'k=v',
    d: 'say "hi"',
    e: null,
    f: 5n,
    g: undefined,
  });
  assert.equal(line.slice(31), 'm a="x y" b="" c="k=v" d="say \\"hi\\"" e=null f=5\n');
});

test('objects are written as JSON, whatever is in them', () => {
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  const line = text('m', { a: { big: 5n, list: [1, 2] }, circular });
  assert.equal(
    line.slice(31),
    'm a="{\\"big\\":\\"5\\",\\"list\\":[1,2]}" circular="[object Object]"\n',
  );
});

test('nothing from outside begins a line or commands a terminal', () => {
  const line = text('client\nFATAL\u001b[31m', { id: 'a\r\nb\u0000' });
  assert.equal(line.slice(31), 'client\\nFATAL\\x1b[31m id="a\\x0d\\nb\\x00"\n');
});

test('an error is its message, with the stack below', () => {
  const lines = text('failed', { error: new RangeError('bad\nnumber') }).split('\n');
  assert.equal(lines[0]?.slice(31), 'failed error="bad\\nnumber"');
  assert.match(lines[1] as string, /^ {4}at /);
});

test('a line that a pipe would not take whole is cut at a character', () => {
  const line = text('é'.repeat(lineBytesMax));
  assert(Buffer.byteLength(line) <= lineBytesMax);
  assert.match(line, /é …\n$/);
  assert(!line.includes('\uFFFD'));
});

test('lines are written whole, in as many writes as the descriptor needs', () => {
  const written: number[] = [];
  const writer = new LineWriter((bytes, offset) => {
    const taken = Math.min(3, bytes.length - offset);
    written.push(...bytes.subarray(offset, offset + taken));
    return taken;
  });
  writer.write('hello\n');
  writer.write('world\n');
  assert.equal(Buffer.from(written).toString(), 'hello\nworld\n');
});

test('a blocked output costs one wait, loses lines, and then says how many', () => {
  let isBlocked: boolean = true;
  let calls = 0;
  let written = '';
  const writer = new LineWriter((bytes, offset) => {
    calls += 1;
    if (isBlocked) throw Object.assign(new Error('busy'), { code: 'EAGAIN' });
    written += Buffer.from(bytes.subarray(offset)).toString();
    return bytes.length - offset;
  });
  writer.write('one\n');
  const callsOfFirst = calls;
  assert(callsOfFirst > 10);
  writer.write('two\n');
  writer.write('three\n');
  assert.equal(calls, callsOfFirst + 2);
  isBlocked = false;
  writer.write('four\n');
  assert.equal(written, '(3 log lines lost: the output was blocked)\nfour\n');
});

test('an output that is gone never throws', () => {
  const writer = new LineWriter(() => {
    throw Object.assign(new Error('gone'), { code: 'EPIPE' });
  });
  writer.write('one\n');
  writer.write('two\n');
});

test.run();
