/** The last batch boundaries are found, and none that was never there. */
import assert from 'node:assert/strict';
import { test } from 'uvu';
import { LogMarks } from '../../../engine/log/log_marks.ts';
import type { Segment } from '../../../engine/log/segment.ts';

const segments = [{}, {}] as Segment[];
const kept = 32;

test('the latest boundaries are known, one by one from the first on', () => {
  const marks = new LogMarks();
  assert.equal(marks.find(0, segments[0]!), -1);
  for (let count = 1; count <= 3 * kept; count += 1) {
    const latest = count - 1;
    marks.add(latest * 10, segments[latest % 2]!, latest * 100);
    for (let back = 0; back < Math.min(count, kept); back += 1) {
      const k = latest - back;
      assert.equal(marks.find(k * 10, segments[k % 2]!), k * 100, `${back} of ${count}`);
      assert.equal(marks.find(k * 10, segments[(k + 1) % 2]!), -1);
    }
    if (count > kept) assert.equal(marks.find((latest - kept) * 10, segments[latest % 2]!), -1);
    assert.equal(marks.find(-1, segments[0]!), -1);
  }
});

test('a boundary that is noted again takes no other one’s place', () => {
  const marks = new LogMarks();
  for (let k = 0; k < kept; k += 1) marks.add(k, segments[0]!, k);
  for (let k = 0; k < kept; k += 1) marks.add(kept - 1, segments[0]!, kept - 1);
  assert.equal(marks.find(0, segments[0]!), 0);
});

test('nothing is known after a clear', () => {
  const marks = new LogMarks();
  for (let k = 0; k < 40; k += 1) marks.add(k, segments[0]!, k);
  marks.clear();
  for (let k = 0; k < 40; k += 1) assert.equal(marks.find(k, segments[0]!), -1);
  marks.add(7, segments[1]!, 70);
  assert.equal(marks.find(7, segments[1]!), 70);
});

test.run();
