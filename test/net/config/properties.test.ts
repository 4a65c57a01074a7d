import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { PropertiesError, parseProperties } from '../../../net/config/properties.ts';

const test = suite('properties');

function pairs(text: string): string[][] {
  return parseProperties(text).map(({ key, value }) => [key, value]);
}

// The examples of java.util.Properties.load(Reader), Java SE 21 API specification.
test('the separator is =, : or white space, with white space around it', () => {
  const expected = [['Truth', 'Beauty']];
  assert.deepEqual(pairs('Truth = Beauty'), expected);
  assert.deepEqual(pairs(' Truth:Beauty'), expected);
  assert.deepEqual(pairs('Truth                    :Beauty'), expected);
  assert.deepEqual(pairs('Truth Beauty'), expected);
  assert.deepEqual(pairs('Truth\tBeauty'), expected);
});

test('a backslash at the end continues the line, white space at the start of the next is dropped', () => {
  const text = `fruits                           apple, banana, pear, \\
                                  cantaloupe, watermelon, \\
                                  kiwi, mango`;
  const value = 'apple, banana, pear, cantaloupe, watermelon, kiwi, mango';
  assert.deepEqual(pairs(text), [['fruits', value]]);
});

test('a key alone has the empty string as its value', () => {
  assert.deepEqual(pairs('cheeses'), [['cheeses', '']]);
  assert.deepEqual(pairs('cheeses='), [['cheeses', '']]);
});

test('comments begin with # or ! after white space, and do not continue', () => {
  assert.deepEqual(pairs('  # a=b\\\nc=d\n\t! e=f\n\n   \ng=#h!'), [
    ['c', 'd'],
    ['g', '#h!'],
  ]);
});

test('a comment sign within a continuation belongs to the value', () => {
  assert.deepEqual(pairs('a=1,\\\n  #2'), [['a', '1,#2']]);
});

test('an even number of backslashes at the end does not continue the line', () => {
  assert.deepEqual(pairs('path=c:\\\\\nb=1'), [
    ['path', 'c:\\'],
    ['b', '1'],
  ]);
  assert.deepEqual(pairs('path=c:\\\\\\\n  b=1'), [['path', 'c:\\b=1']]);
});

test('escaped separators belong to the key', () => {
  assert.deepEqual(pairs('\\:\\=\\ \\#a\\\\=b'), [[':= #a\\', 'b']]);
});

test('only the first separator separates, and white space at the end of a value stays', () => {
  assert.deepEqual(pairs('a = b = c '), [['a', 'b = c ']]);
  assert.deepEqual(pairs('a ==b'), [['a', '=b']]);
  assert.deepEqual(pairs('listeners=PLAINTEXT://:9092'), [['listeners', 'PLAINTEXT://:9092']]);
});

test('escapes: t, n, r, f, \\uXXXX; a backslash before another letter vanishes', () => {
  assert.deepEqual(pairs('a=\\t\\n\\r\\f\\u00e9\\uD83E\\uDD80\\z\\b'), [['a', '\t\n\r\fé🦀zb']]);
});

test('lines end with \\n, \\r or \\r\\n; a byte order mark is skipped', () => {
  assert.deepEqual(pairs('\uFEFFa=1\rb=2\r\nc=3\n\rd=\\\r\n4'), [
    ['a', '1'],
    ['b', '2'],
    ['c', '3'],
    ['d', '4'],
  ]);
});

test('a backslash at the very end of the file continues into nothing', () => {
  assert.deepEqual(pairs('a=1\\'), [['a', '1']]);
  assert.deepEqual(pairs('\\'), []);
});

test('line numbers are those where keys stand', () => {
  const lines = parseProperties('# c\na=1\\\n2\n\nb=3').map(({ key, line }) => `${key}:${line}`);
  assert.deepEqual(lines, ['a:2', 'b:5']);
});

test('repeated keys are all returned', () => {
  assert.deepEqual(pairs('a=1\na=2'), [
    ['a', '1'],
    ['a', '2'],
  ]);
});

test('a broken \\u escape and a line without a key are errors that name the line', () => {
  assert.throws(
    () => parseProperties('a=1\nb=\\u12x4'),
    new PropertiesError(2, '\\u12 is no character: \\u takes four hexadecimal digits'),
  );
  assert.throws(
    () => parseProperties('\n= x'),
    new PropertiesError(2, 'no key before the separator'),
  );
});

test.run();
