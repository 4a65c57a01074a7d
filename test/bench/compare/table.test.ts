import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { median, medianRatio, spreadPercent } from '../../../bench/compare/stats.ts';
import { formatNumber, renderTable } from '../../../bench/compare/table.ts';

const test = suite('bench/compare/table');

test('columns line up: the first left, the others right, nothing behind the last', () => {
  const text = renderTable(
    ['work', 'ms'],
    [
      ['W1', '10.5'],
      ['a longer one', '3'],
      ['short', ''],
    ],
  );
  assert.deepEqual(text.split('\n'), [
    'work            ms',
    '------------  ----',
    'W1            10.5',
    'a longer one     3',
    'short',
  ]);
});

test('numbers have three digits that count', () => {
  const cases: [number, string][] = [
    [0, '0'],
    [0.1234, '0.123'],
    [1.005, '1.00'],
    [12.34, '12.3'],
    [123.4, '123'],
    [9_999, '9999'],
    [406_123, '406 k'],
    [1_553_000, '1.55 M'],
    [Number.NaN, '–'],
    [Number.POSITIVE_INFINITY, '–'],
  ];
  for (const [value, text] of cases) assert.equal(formatNumber(value), text);
});

test('median and spread', () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  assert.ok(Number.isNaN(median([])));
  assert.equal(spreadPercent([90, 100, 120]), 30);
  assert.ok(Number.isNaN(spreadPercent([5])));
});

test('a ratio compares rounds, not medians, and skips rounds that one side lacks', () => {
  const ours = [
    { key: '1-1', value: 10 },
    { key: '1-2', value: 40 },
    { key: '1-3', value: 5 },
  ];
  const theirs = [
    { key: '1-1', value: 20 },
    { key: '1-2', value: 80 },
    { key: '1-4', value: 1 },
  ];
  assert.equal(medianRatio(ours, theirs), 0.5);
  assert.ok(Number.isNaN(medianRatio(ours, [])));
});

test.run();
