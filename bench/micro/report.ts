/** The table that people read. */

import type { Comparison } from './baseline.ts';
import type { Benchmark } from './benchmark.ts';

const columns = ['benchmark', 'ops/s', 'time/op', 'per item', 'spread', 'to baseline', 'verdict'];

export function formatTable(
  comparisons: readonly Comparison[],
  benchmarks: readonly Benchmark[],
): string {
  const items = new Map(benchmarks.map((benchmark) => [benchmark.name, benchmark.items]));
  const rows = comparisons.map(({ name, measurement, ratio, verdict }) => {
    if (measurement === null) return [name, '', '', '', '', '', verdict];
    const { nsPerOp, spread } = measurement;
    const item = items.get(name);
    return [
      name,
      formatCount(1e9 / nsPerOp),
      formatTime(nsPerOp),
      item === undefined ? '' : `${formatTime(nsPerOp / item.count)}/${item.of}`,
      `${spread.toFixed(2)}x`,
      ratio === null ? '' : `${ratio.toFixed(2)}x`,
      verdict,
    ];
  });
  const widths = columns.map((column, k) =>
    Math.max(column.length, ...rows.map((row) => (row[k] as string).length)),
  );
  return [columns, ...rows]
    .map((row) =>
      row
        .map((cell, k) => pad(cell, widths[k] as number, k))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Names and verdicts to the left, numbers to the right. */
function pad(cell: string, width: number, column: number): string {
  return column === 0 || column === columns.length - 1 ? cell.padEnd(width) : cell.padStart(width);
}

function formatTime(ns: number): string {
  if (ns < 1e3) return `${ns.toFixed(ns < 100 ? 1 : 0)} ns`;
  if (ns < 1e6) return `${(ns / 1e3).toFixed(ns < 1e5 ? 2 : 0)} µs`;
  return `${(ns / 1e6).toFixed(2)} ms`;
}

function formatCount(perSecond: number): string {
  if (perSecond < 1e3) return perSecond.toFixed(1);
  return perSecond < 1e6
    ? `${(perSecond / 1e3).toFixed(1)} k`
    : `${(perSecond / 1e6).toFixed(2)} M`;
}
