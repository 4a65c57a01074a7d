import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import {
  compare,
  readBaseline,
  type Verdict,
  writeBaseline,
} from '../../../bench/micro/baseline.ts';
import type { Measurement } from '../../../bench/micro/measure.ts';

const test = suite('bench/micro/baseline');

function measured(name: string, score: number): Measurement {
  return { name, score, nsPerOp: score * 1_000, spread: 1 };
}

function verdicts(
  measurements: readonly Measurement[],
  scores: Record<string, number>,
  complete = true,
): Record<string, Verdict> {
  const benchmarks = Object.fromEntries(
    Object.entries(scores).map(([name, score]) => [name, { score, nsPerOp: 1 }]),
  );
  const baseline = { machine: 'm', benchmarks };
  const toleranceOf = (name: string): number => (name === 'loose' ? 3 : 1.5);
  return Object.fromEntries(
    compare(measurements, baseline, toleranceOf, complete).map((c) => [c.name, c.verdict]),
  );
}

test('what is beyond the tolerance is slower or faster, each benchmark by its own', () => {
  const scores = { a: 2, b: 2, c: 2, d: 2, loose: 2 };
  const now = [
    measured('a', 3),
    measured('b', 3.1),
    measured('c', 1.4),
    measured('d', 1.3),
    measured('loose', 5.9),
  ];
  assert.deepEqual(verdicts(now, scores), {
    a: 'same',
    b: 'slower',
    c: 'same',
    d: 'faster',
    loose: 'same',
  });
});

test('a benchmark without a baseline is new; one that is missing is gone, but not when few were chosen', () => {
  assert.deepEqual(verdicts([measured('b', 1)], { a: 1 }), { b: 'new', a: 'gone' });
  assert.deepEqual(verdicts([measured('b', 1)], { a: 1 }, false), { b: 'new' });
  const [only] = compare([measured('b', 1)], null, () => 2, true);
  assert.equal(only?.verdict, 'new');
});

test('a baseline reads as written, keeps what was not measured, and has its names in order', () => {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-test-'));
  const path = pathToFileURL(join(dir, 'baseline.json'));
  try {
    assert.equal(readBaseline(path), null);
    writeBaseline(path, 'machine', [measured('b', 1.23456), measured('a', 2)], {
      c: { score: 7, nsPerOp: 8 },
      a: { score: 1, nsPerOp: 1 },
    });
    const baseline = readBaseline(path);
    assert.deepEqual(Object.entries(baseline?.benchmarks ?? {}), [
      ['a', { score: 2, nsPerOp: 2_000 }],
      ['b', { score: 1.235, nsPerOp: 1_235 }],
      ['c', { score: 7, nsPerOp: 8 }],
    ]);
    assert.equal(baseline?.machine, 'machine');
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test.run();
