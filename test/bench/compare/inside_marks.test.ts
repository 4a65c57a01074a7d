import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { markValues, parseMarks, type ThreadMark } from '../../../bench/compare/inside_marks.ts';

const test = suite('bench/compare/inside_marks');

function mark(thread: string, values: Partial<ThreadMark>): ThreadMark {
  return {
    ...{ thread, appended: 0, remote: 0, wakeUps: 0 },
    ...{ delayP50Ms: 1, delayP99Ms: 1, delayP999Ms: 1, delayMaxMs: 1 },
    ...values,
  };
}

test('a line that is being written is left for the next look', () => {
  const lines = [mark('main', {}), mark('worker 1', { appended: 3 })];
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  assert.deepEqual(parseMarks(text), lines);
  assert.deepEqual(parseMarks(text.slice(0, -10)), lines.slice(0, 1));
  assert.deepEqual(parseMarks(''), []);
});

test('hops count both ways, delays are those of the latest shard, main is no shard', () => {
  const values = markValues([
    mark('main', { delayP999Ms: 90, delayMaxMs: 100 }),
    mark('worker 1', { appended: 60, remote: 30, wakeUps: 10, delayP999Ms: 2 }),
    mark('worker 2', { appended: 40, remote: 20, wakeUps: 15, delayP999Ms: 3, delayMaxMs: 4 }),
  ]);
  assert.equal(values['batches'], 100);
  assert.equal(values['hopsPerBatch'], 1);
  assert.equal(values['wakeUpsPerBatch'], 0.25);
  assert.equal(values['loopP999Ms'], 3);
  assert.equal(values['loopMaxMs'], 4);
});

test.run();
