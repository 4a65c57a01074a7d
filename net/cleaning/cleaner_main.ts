/**
 * Entry of a cleaner's thread: one job after another, each from a shard by a port that main has made.
 *
 * Thread: a worker of its own under the supervisor, started when there is something to clean and ended when there has been
 * nothing for a while. Not piscina: its pool knows neither the supervisor's fail-stop nor a job that talks to a shard
 * while it runs, and the little that is left, starting one thread and ending it, is `cleaner_pool.ts`.
 */
import { parentPort } from 'node:worker_threads';
import { NodeDisk, nodeClock, nodeRandom } from '../../engine/node_ports.ts';
import { supervised } from '../../engine/thread/supervised_thread.ts';
import type { CleanerThreadData, FromCleaner, ToCleaner } from './cleaner_messages.ts';
import { IoThrottle } from './io_throttle.ts';
import { JobRunner } from './job_runner.ts';

const main = parentPort;
if (main === null) throw new Error('a cleaner runs on a worker thread');
let runner: JobRunner | null = null;

const supervision = supervised(async () => {
  runner?.abort();
  await runner?.ended;
});
const { budget, ioBytesPerSecond } = supervision.data as CleanerThreadData;
const throttle = new IoThrottle(ioBytesPerSecond);
const disk = new NodeDisk();

main.on('message', ({ port }: ToCleaner) => {
  const started = new JobRunner(port, {
    disk,
    clock: nodeClock,
    random: nodeRandom,
    budget,
    throttle,
  });
  runner = started;
  void started.ended.then(() => {
    const idle: FromCleaner = { type: 'cleaner.idle' };
    main.postMessage(idle);
  });
});
supervision.ready();
