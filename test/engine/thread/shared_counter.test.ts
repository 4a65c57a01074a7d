import assert from 'node:assert/strict';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import { createCounter, SharedCounter } from '../../../engine/thread/shared_counter.ts';

const test = suite('shared counter');
const counts = 20_000;

test('what several threads add at the same time is the sum for each of them, also beyond 32 bits', async () => {
  const memory = createCounter();
  const entry = new URL('../../../engine/thread/shared_counter.ts', import.meta.url);
  const adding = `
    const { workerData } = require('node:worker_threads');
    import(${JSON.stringify(entry.href)}).then(({ SharedCounter }) => {
      const counter = new SharedCounter(workerData);
      for (let k = 0; k < ${counts}; k += 1) counter.add(1_000_003);
    });
  `;
  const ends = [0, 1].map(
    () =>
      new Promise((resolve, reject) => {
        const worker = new Worker(adding, { eval: true, workerData: memory });
        worker.once('error', reject);
        worker.once('exit', resolve);
      }),
  );
  assert.deepEqual(await Promise.all(ends), [0, 0]);
  assert.equal(new SharedCounter(memory).total, 2 * counts * 1_000_003);
});

test.run();
