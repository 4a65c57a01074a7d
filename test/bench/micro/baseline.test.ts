import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import {
  compare,
  entriesFor,
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
  const toleranceOf = (name: string): number => (name === 'loose' ? 3 : 1.5);
  return Object.fromEntries(
    compare(measurements, benchmarks, toleranceOf, complete).map((c) => [c.name, c.verdict]),
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
  const [only] = compare([measured('b', 1)], {}, () => 2, true);
  assert.equal(only?.verdict, 'new');
});

test('a baseline reads as written, keeps what was not measured, and has its names in order', () => {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-test-'));
  const path = pathToFileURL(join(dir, 'baseline.json'));
  const entry = (score: number) => ({ score, nsPerOp: score * 1_000 });
  try {
    assert.equal(readBaseline(path), null);
    writeBaseline(path, 'one', { c: entry(7), a: entry(1) }, true);
    writeBaseline(path, 'other', { a: entry(9) }, true);
    writeBaseline(path, 'one', { b: entry(1.23456), a: entry(2) }, false);
    const stored = (name: string) =>
      new Map(Object.entries(readBaseline(path)?.processors ?? {})).get(name);
    assert.deepEqual(Object.entries(stored('one')!), [
      ['a', entry(2)],
      ['b', entry(1.235)],
      ['c', entry(7)],
    ]);
    assert.deepEqual(stored('other'), { a: entry(9) });
    writeBaseline(path, 'one', { b: entry(3) }, true);
    assert.deepEqual(stored('one'), { b: entry(3) });
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test('a processor is compared with itself, and where it was not measured, with the slowest', () => {
  const [fast, slow] = [
    { score: 1, nsPerOp: 1 },
    { score: 2, nsPerOp: 2 },
  ];
  const baseline = { processors: { one: { a: fast, b: slow }, other: { a: slow, b: fast } } };
  assert.deepEqual(entriesFor(baseline, 'one'), { a: fast, b: slow });
  assert.deepEqual(entriesFor(baseline, 'third'), { a: slow, b: slow });
  assert.deepEqual(entriesFor({ processors: { one: { a: fast }, other: { b: slow } } }, 'one'), {
    a: fast,
    b: slow,
  });
  assert.deepEqual(entriesFor(null, 'one'), {});
});

test.run();
