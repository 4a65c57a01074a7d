import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { bottleneckOf, throughputValues } from '../../../bench/compare/measure.ts';
import { parseOptions, rowWanted } from '../../../bench/compare/options.ts';
import { renderReport, summarise } from '../../../bench/compare/report.ts';
import type { RoundResult } from '../../../bench/compare/runner.ts';

const test = suite('bench/compare/report');

function result(broker: string, round: number, cpu: number, work = 'W1'): RoundResult {
  return {
    ...{ work, broker, process: 1, round, bottleneck: 'server' },
    values: { serverCpuMsPerMiB: cpu },
  };
}

test('the first round is dropped; medians, noise and ratios are of the others', () => {
  const summaries = summarise([
    ...[result('millrace', 0, 50), result('kafka', 0, 10)],
    ...[result('millrace', 1, 1), result('kafka', 1, 2)],
    ...[result('millrace', 2, 2), result('kafka', 2, 5)],
    ...[result('millrace', 3, 1.5), result('kafka', 3, 3)],
  ]);
  const [ours, theirs] = summaries;
  assert.equal(ours?.broker, 'millrace');
  assert.equal(ours?.rounds, 3);
  assert.deepEqual(ours?.median, { serverCpuMsPerMiB: 1.5 });
  assert.deepEqual(ours?.ratioTo, { kafka: { serverCpuMsPerMiB: 0.5 } });
  assert.deepEqual(ours?.bottlenecks, { server: 3 });
  assert.deepEqual(theirs?.ratioTo, {});
});

test('rows are grouped by work, whatever the order in which they came', () => {
  const summaries = summarise([
    ...[result('a', 1, 1, 'W1'), result('a', 1, 1, 'W3'), result('b', 1, 1, 'W1')],
  ]);
  assert.deepEqual(
    summaries.map(({ work, broker }) => `${work} ${broker}`),
    ['W1 a', 'W1 b', 'W3 a'],
  );
  const text = renderReport(summaries);
  assert.match(text, /W1: a {2,}1 {2,}1\.00 {2,}server/);
});

test('a cost says who held whom up', () => {
  const cost = {
    ...{ wallMs: 1_000, serverCpuMs: 950, clientCpuMs: 900, othersCpuMs: 0, stolenMs: 20 },
  };
  assert.equal(bottleneckOf(cost), 'server');
  assert.equal(bottleneckOf({ ...cost, serverCpuMs: 300 }), 'client');
  assert.equal(bottleneckOf({ ...cost, wallMs: 2_000 }), 'neither');
  assert.deepEqual(throughputValues(cost, 500_000, 475), {
    messagesPerSecond: 500_000,
    serverCpuMsPerMiB: 2,
    clientCpuMsPerMiB: 900 / 475,
    serverPercent: 95,
    clientPercent: 90,
    othersPercent: 0,
    stolenPercent: 2,
  });
});

test('options: defaults, a peer, and texts for people on bad ones', () => {
  assert.deepEqual(parseOptions([]).brokers, ['millrace', 'sink']);
  assert.deepEqual(parseOptions(['--peer', 'kafka']).brokers, ['millrace', 'kafka', 'sink']);
  assert.deepEqual(parseOptions(['--works', 'W1,W4', '--rounds', '5']).works, ['W1', 'W4']);
  assert.deepEqual(parseOptions(['--self']).brokers, ['millrace', 'sink']);
  assert.throws(() => parseOptions(['--peer', 'nats']), /only kafka is known/);
  assert.throws(() => parseOptions(['--self', '--peer', 'kafka']), /one of them/);
  assert.throws(() => parseOptions(['--works', 'W7']), /allowed are W1/);
  assert.throws(() => parseOptions(['--rounds', '0']), /whole number from 1/);
  assert.ok(rowWanted('W3 of W1', ['W3']));
  assert.ok(!rowWanted('W3 of W1', ['W1']));
  assert.deepEqual(parseOptions(['--works', 'raw W5,W9']).works, ['raw W5', 'W9']);
  const rows = ['W4 10,000/s', 'W4 10,000/s, flushed'];
  assert.deepEqual(parseOptions(['--works', rows.join(',')]).works, rows);
  assert.ok(rowWanted('raw W5', ['raw W5']));
  assert.ok(!rowWanted('raw W1', ['raw W5']));
});

test.run();
