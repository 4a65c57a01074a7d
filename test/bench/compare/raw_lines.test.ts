import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { parseRounds } from '../../../bench/compare/raw_lines.ts';

const test = suite('bench/compare/raw_lines');

function round(process: number): string {
  const values = { serverCpuMsPerMiB: 1 };
  return `${JSON.stringify({ kind: 'round', work: 'W1', broker: 'millrace', process, round: 1, values })}\n`;
}

test('processes of different runs are different ones, and only rounds count', () => {
  const machine = '{"kind":"machine"}\n';
  const text = [
    ...[machine, round(1), round(2), '{"kind":"summary"}\n'],
    ...[machine, round(1), machine, '{"kind":"broker"}\n', machine, round(1), round(1)],
  ];
  assert.deepEqual(
    parseRounds(text.join('')).map(({ process }) => process),
    [1, 2, 3, 4, 4],
  );
  assert.equal('kind' in parseRounds(round(1))[0]!, false);
});

test.run();
