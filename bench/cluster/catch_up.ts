/**
 * A broker that was down while others took records: how fast it catches up, and what those who write notice of it. After
 * it, in the same run, what the disk alone does: the same bytes written and flushed by a plain loop, and the same tail
 * beside one that keeps to the rate that is asked for.
 */
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { Histogram } from '../../tools/histogram.ts';
import type { Bench } from '../cluster.ts';
import type { WriterPlan } from './plain_writer.ts';
import {
  backMs,
  latencySeconds,
  loadMiB,
  openLoop,
  payload,
  percentiles,
  produce,
} from './replicated_load.ts';

const down = 3;
const floorMiB = 1_024;
const askedMiBPerSecond = 200;
/** The p99 of ten seconds varies threefold on a virtual disk: what nothing else disturbs is taken on both sides, and longer. */
const quietSeconds = 30;

export async function catchUp(bench: Bench): Promise<void> {
  const { cluster, view, missedMiB, dir } = bench;
  const file = payload(bench, loadMiB);
  await cluster.stop(down);
  await view.refresh();
  for (let mib = 0; mib < missedMiB; mib += loadMiB) await produce(bench, file);
  const before = await openLoop(bench, quietSeconds);
  console.log(`catching up, tail before: ${percentiles(before)}`);
  const at = performance.now();
  await cluster.restart(down);
  const readyMs = performance.now() - at;
  const [ms, beside] = await tailWhile(
    bench,
    view.whole(backMs).then(() => performance.now() - at),
  );
  console.log(
    `catching up on ${missedMiB} MiB: in sync ${Math.round(ms)} ms after its start, of which ${Math.round(readyMs)} ms until it was ready: ${Math.round(missedMiB / (ms / 1_000))} MiB/s; tail meanwhile: ${percentiles(beside)}`,
  );
  const directory = join(dir, 'plain');
  const free = await write({ directory, mib: floorMiB, mibPerSecond: Number.POSITIVE_INFINITY });
  console.log(
    `the disk, 4 MiB written and flushed at a time: ${Math.round(floorMiB / (free / 1_000))} MiB/s`,
  );
  const after = await openLoop(bench, quietSeconds);
  const quiet = new Histogram();
  quiet.merge(before);
  quiet.merge(after);
  console.log(`tail after: ${percentiles(after)}; before and after: ${percentiles(quiet)}`);
  const quietMs = quiet.percentile(99);
  const allowed = Math.max(2 * quietMs, quietMs + 10).toFixed(1);
  console.log(`p99 meanwhile ${beside.percentile(99).toFixed(1)} ms, allowed ${allowed} ms`);
  const mib = askedMiBPerSecond * latencySeconds;
  const paced = write({ directory, mib, mibPerSecond: askedMiBPerSecond });
  const [pacedMs, tail] = await tailWhile(bench, paced);
  console.log(
    `tail beside a plain writer of ${Math.round(mib / (pacedMs / 1_000))} MiB/s: ${percentiles(tail)}`,
  );
}

/** The result of the work, and how long records took meanwhile. */
async function tailWhile<T>(bench: Bench, work: Promise<T>): Promise<[T, Histogram]> {
  let isOver: boolean = false;
  const over = work.finally(() => {
    isOver = true;
  });
  // Awaited below, when the tail's second is over.
  over.catch(() => {});
  const times = new Histogram();
  while (!isOver) times.merge(await openLoop(bench, 1));
  return [await over, times];
}

/** Answers with the milliseconds. */
function write(workerData: WriterPlan): Promise<number> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(join(import.meta.dirname, 'plain_writer.ts'), { workerData });
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}
