/** What `inside.ts` writes, and how the harness gets it. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { RunningBroker } from './broker.ts';
import { sleep } from './children.ts';
import type { Values } from './measure.ts';

/** The environment variable that names the file of marks. */
export const INSIDE_FILE = 'MILLRACE_BENCH_INSIDE';

const POLL_MS = 5;
const TIMEOUT_MS = 10_000;

/** One thread, from one mark to the next. */
export interface ThreadMark {
  /** `main`, or a worker. */
  thread: string;
  /** Batches that partitions of this thread were given. */
  appended: number;
  /** Batches that this thread passed on to another one. */
  remote: number;
  /** How often others woke it. */
  wakeUps: number;
  /** From one firing of a timer of 1 ms to the next: 1 ms and how late the event loop was. */
  delayP50Ms: number;
  delayP99Ms: number;
  delayP999Ms: number;
  delayMaxMs: number;
}

/** The environment that makes a broker's threads load `inside.ts`. */
export function insideVariables(broker: RunningBroker): Record<string, string> {
  const module = pathToFileURL(join(import.meta.dirname, 'inside.ts')).href;
  return { NODE_OPTIONS: `--import=${module}`, [INSIDE_FILE]: markFile(broker) };
}

/** Marks, and resolves with what each thread said of the time since the last mark. Throws if one does not answer. */
export async function takeMarks(broker: RunningBroker): Promise<ThreadMark[]> {
  const { name, shards } = broker.spec;
  if (shards === null) throw new Error(`${name} cannot be looked into`);
  const before = readMarks(broker).length;
  const threads = shards + 1;
  broker.mark();
  for (const deadline = performance.now() + TIMEOUT_MS; performance.now() < deadline; ) {
    const marks = readMarks(broker).slice(before);
    if (marks.length >= threads) return marks;
    await sleep(POLL_MS);
  }
  throw new Error(`${name}: not all of its ${threads} threads answered in ${TIMEOUT_MS} ms`);
}

function markFile(broker: RunningBroker): string {
  return join(broker.place.directory, 'marks.jsonl');
}

function readMarks(broker: RunningBroker): ThreadMark[] {
  const file = markFile(broker);
  if (!existsSync(file)) return [];
  return parseMarks(readFileSync(file, 'utf8'));
}

/** A line that is not complete yet is left out. */
export function parseMarks(text: string): ThreadMark[] {
  const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as ThreadMark);
}

/**
 * Totals over all threads; the delays are those of the shard that was latest. A hop is one crossing from a thread to
 * another one: a batch for another shard goes there and its answer comes back.
 */
export function markValues(marks: readonly ThreadMark[]): Values {
  const total = (key: 'appended' | 'remote' | 'wakeUps'): number =>
    marks.reduce((sum, mark) => sum + mark[key], 0);
  const latest = (key: 'delayP50Ms' | 'delayP99Ms' | 'delayP999Ms' | 'delayMaxMs'): number =>
    Math.max(...marks.filter(({ thread }) => thread !== 'main').map((mark) => mark[key]));
  const batches = total('appended');
  return {
    batches,
    hopsPerBatch: (2 * total('remote')) / batches,
    wakeUpsPerBatch: total('wakeUps') / batches,
    loopP50Ms: latest('delayP50Ms'),
    loopP99Ms: latest('delayP99Ms'),
    loopP999Ms: latest('delayP999Ms'),
    loopMaxMs: latest('delayMaxMs'),
  };
}
