import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { type ConfigKey, KeyTable } from '../../../net/config/key_table.ts';
import { canonicalText, checkValue, numberOf } from '../../../net/config/value_check.ts';

const test = suite('value_check');

function key(type: string, constraint: string): ConfigKey {
  return new KeyTable(`k | ${type} low ro | ~ | ${constraint} |  | - |\n`).get('k') as ConfigKey;
}

/** Values that are taken, values that are not, and what is said of those. */
const cases: [string, string, string[], string[], string][] = [
  [
    'int',
    '1..',
    ['1', ' 7 ', '+3', '2147483647'],
    ['0', '', '1.5', 'x', '2147483648', '0x10'],
    'a whole number from 1 to 2147483647',
  ],
  [
    'int',
    '',
    ['-2147483648', '0'],
    ['-2147483649'],
    'a whole number from -2147483648 to 2147483647',
  ],
  ['int', '-1; 1..9', ['-1', '1', '9'], ['0', '10', '-2'], 'a whole number: -1, or from 1 to 9'],
  ['int', '-131072..22', ['-131072', '22'], ['23'], 'a whole number from -131072 to 22'],
  ['short', '1..', ['32767'], ['32768'], 'a whole number from 1 to 32767'],
  [
    'long',
    '0..',
    ['9223372036854775807'],
    ['9223372036854775808', '-1', '1e3'],
    'a whole number from 0 to 9223372036854775807',
  ],
  [
    'double',
    '0..1',
    ['0', '1', '.5', '0.25', '1e-3'],
    ['1.1', '-0.1', 'NaN', '', 'Infinity'],
    'a number from 0 to 1',
  ],
  ['double', '0..0.5', ['0.5'], ['0.6'], 'a number from 0 to 0.5'],
  ['boolean', '', ['true', 'FALSE', ' True '], ['yes', '1', ''], 'true or false'],
  ['string', 'one of fsync, os', ['fsync', ' os'], ['OS', ''], 'one of fsync, os'],
  ['string', 'any case of A, B', ['a', 'B'], ['c'], 'one of A, B'],
  ['string', 'not empty', ['x'], ['', '  '], 'any text'],
  [
    'list',
    'each of a, b; unique',
    ['', 'a', 'b , a'],
    ['c', 'a,a', 'a,', ','],
    'a comma-separated list of a, b, each once',
  ],
  [
    'list',
    'unique; not empty',
    ['x,y'],
    ['', 'x,x'],
    'a comma-separated list, each once, at least one',
  ],
];

test('values are taken or refused, with words about what is allowed', () => {
  for (const [type, constraint, good, bad, words] of cases) {
    const one = key(type, constraint);
    for (const text of good)
      assert.equal(checkValue(one, text), null, `${type} ${constraint}: ${text}`);
    for (const text of bad)
      assert.equal(checkValue(one, text), words, `${type} ${constraint}: ${text}`);
  }
});

test('values are normalised as Kafka prints them', () => {
  assert.equal(canonicalText(key('int', ''), ' +007 '), '7');
  assert.equal(canonicalText(key('long', ''), '-0'), '0');
  assert.equal(canonicalText(key('long', ''), '9223372036854775807'), '9223372036854775807');
  assert.equal(canonicalText(key('boolean', ''), ' TRUE'), 'true');
  assert.equal(canonicalText(key('list', ''), ' a ,b,  c'), 'a,b,c');
  assert.equal(canonicalText(key('string', ''), ' a b '), 'a b');
});

test('numbers beyond 2^53 are for ever', () => {
  assert.equal(numberOf('9223372036854775807'), Number.MAX_SAFE_INTEGER);
  assert.equal(numberOf('-1'), -1);
  assert.equal(numberOf('0.5'), 0.5);
});

test.run();
