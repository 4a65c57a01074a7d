/**
 * Loaded into the threads of a Millrace under test (`node --import`), main and shards alike: measures how late their
 * event loops are, and counts batches appended, requests to other shards, and wake-ups by them. The broker's own code
 * stays as it is; with no such import nothing of this exists.
 *
 * SIGUSR2 marks: each thread appends one line of JSON to the file that the environment names, and starts anew.
 */
import { appendFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { BroadcastChannel, isMainThread, threadId } from 'node:worker_threads';
import { Doorbell } from '../../engine/thread/doorbell.ts';
import { RemotePartitions } from '../../net/fabric/remote_partitions.ts';
import { PartitionLeader } from '../../replication/partition/leader.ts';
import { INSIDE_FILE, type ThreadMark } from './inside_marks.ts';

const NS_PER_MS = 1e6;
const CHANNEL = 'millrace-bench-inside';

function start(file: string): void {
  /** The finest there is: a timer each millisecond. A loop that is never late shows as 1 ms. */
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const counts = { appended: 0, remote: 0 };
  const doorbells: Doorbell[] = [];
  let wakeUpsBefore = 0;

  const { append } = PartitionLeader.prototype;
  PartitionLeader.prototype.append = function (
    this: PartitionLeader,
    ...args
  ): ReturnType<typeof append> {
    counts.appended += 1;
    return append.apply(this, args);
  };
  const { append: appendRemote } = RemotePartitions.prototype;
  RemotePartitions.prototype.append = function (this: RemotePartitions, ...args): void {
    counts.remote += 1;
    appendRemote.apply(this, args);
  };
  const { listen } = Doorbell.prototype;
  Doorbell.prototype.listen = function (this: Doorbell, port): void {
    if (!doorbells.includes(this)) doorbells.push(this);
    listen.call(this, port);
  };

  const mark = (): void => {
    const wakeUps = doorbells.reduce((sum, doorbell) => sum + doorbell.wakeUps, 0);
    const line: ThreadMark = {
      thread: isMainThread ? 'main' : `worker ${threadId}`,
      ...counts,
      wakeUps: wakeUps - wakeUpsBefore,
      delayP50Ms: delay.percentile(50) / NS_PER_MS,
      delayP99Ms: delay.percentile(99) / NS_PER_MS,
      delayP999Ms: delay.percentile(99.9) / NS_PER_MS,
      delayMaxMs: delay.max / NS_PER_MS,
    };
    appendFileSync(file, `${JSON.stringify(line)}\n`);
    counts.appended = 0;
    counts.remote = 0;
    wakeUpsBefore = wakeUps;
    delay.reset();
  };

  const channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = mark;
  channel.unref();
  if (!isMainThread) return;
  process.on('SIGUSR2', () => {
    channel.postMessage('mark');
    mark();
  });
}

const file = process.env[INSIDE_FILE];
if (file === undefined) throw new Error(`${INSIDE_FILE} is not set`);
start(file);
