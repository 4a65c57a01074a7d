import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { suite } from 'uvu';
import { encodeBatch } from '../../../engine/batch/encode.ts';
import type { CleaningJob } from '../../../engine/log/cleaner/cleaning_job.ts';
import { NodeDisk, nodeClock, nodeRandom } from '../../../engine/node_ports.ts';
import type { JobEvent } from '../../../net/cleaning/cleaner_messages.ts';
import { IoThrottle } from '../../../net/cleaning/io_throttle.ts';
import { JobRunner } from '../../../net/cleaning/job_runner.ts';

const test = suite('job_runner');
const home = fs.mkdtempSync(`${os.tmpdir()}/millrace-cleaning-`);
let count = 0;

test.after(() => fs.rmSync(home, { recursive: true }));

/** A directory with one segment of `batches` batches, each of the same key. */
const topicId = 'AAAAAAAAAAAAAAAAAAAAAQ';

function makeJob(batches: number): CleaningJob {
  count += 1;
  const dir = `${home}/table-${count}`;
  fs.mkdirSync(dir);
  const bytes = Buffer.concat(
    Array.from({ length: batches }, (_, baseOffset) =>
      encodeBatch({ records: [{ key: Buffer.from('k'), value: Buffer.alloc(50) }], baseOffset }),
    ),
  );
  fs.writeFileSync(`${dir}/00000000000000000000.log`, bytes);
  return {
    dir,
    segments: [{ baseOffset: 0, size: bytes.length, endOffset: batches }],
    logStartOffset: 0,
    firstDirtyOffset: 0,
    uncleanableOffset: batches,
    flushedOffset: batches,
    nowMs: 0,
    deleteRetentionMs: 0,
    segmentBytes: 1 << 20,
    segmentIndexBytes: 1 << 20,
    indexIntervalBytes: 4096,
    decompressedMaxBytes: 1 << 20,
    producers: { producerIds: [], lastOffsets: [], epochs: [] },
  };
}

interface Running {
  readonly port: MessagePort;
  readonly runner: JobRunner;
  readonly events: JobEvent[];
}

function start(
  onEvent: (event: JobEvent, port: MessagePort) => void,
  bytesPerSecond = 1e18,
): Running {
  const { port1, port2 } = new MessageChannel();
  const runner = new JobRunner(port1, {
    disk: new NodeDisk(),
    clock: nodeClock,
    random: nodeRandom,
    budget: { mapBytes: 1 << 20, mapLoadFactor: 0.9, ioBytes: 8192 },
    throttle: new IoThrottle(bytesPerSecond),
  });
  const events: JobEvent[] = [];
  port2.on('message', (event: JobEvent) => {
    events.push(event);
    onEvent(event, port2);
  });
  return { port: port2, runner, events };
}

const agree = ({ type }: JobEvent, port: MessagePort): void => {
  if (type === 'install') port.postMessage({ type: 'reply', isTaken: true });
};

async function closed(port: MessagePort): Promise<void> {
  await new Promise((resolve) => port.once('close', resolve));
}

test('cleans, has the segment installed, gives it its names, and closes the port', async () => {
  const job = makeJob(100);
  const { port, runner, events } = start(agree);
  const isClosed = closed(port);
  port.postMessage({ type: 'job', job, topicId });
  await runner.ended;
  await isClosed;
  assert.deepEqual(
    events.map(({ type }) => type),
    ['install', 'installed', 'done'],
  );
  const names = fs.readdirSync(job.dir).sort();
  assert.deepEqual(names, [
    '00000000000000000000.index',
    '00000000000000000000.log',
    '00000000000000000000.log.deleted',
    '00000000000000000000.timeindex',
  ]);
  assert(fs.statSync(`${job.dir}/${names[1]}`).size < 200);
});

test('a topic that has taken the name of the one to be cleaned is left alone', async () => {
  const job = makeJob(100);
  fs.writeFileSync(`${job.dir}/partition.metadata`, 'version: 0\ntopic_id: BBBBBBBBBBBBBBBBBBBBBQ');
  const { port, runner, events } = start(agree);
  const isClosed = closed(port);
  port.postMessage({ type: 'job', job, topicId });
  await runner.ended;
  await isClosed;
  const [event] = events;
  assert(event?.type === 'failed' && event.failure.kind === 'stale');
});

test('a port that is closed without a job ends it', async () => {
  const { port, runner } = start(() => {});
  port.close();
  await runner.ended;
});

test('a segment that is not taken leaves nothing behind', async () => {
  const job = makeJob(100);
  const { port, runner, events } = start(({ type }, to) => {
    if (type === 'install') to.postMessage({ type: 'reply', isTaken: false });
  });
  const isClosed = closed(port);
  port.postMessage({ type: 'job', job, topicId });
  await runner.ended;
  await isClosed;
  const last = events.at(-1);
  assert(last?.type === 'failed' && last.failure.kind === 'stale');
  assert.deepEqual(fs.readdirSync(job.dir), ['00000000000000000000.log']);
});

test('an abort ends a cleaning that waits for its share of the disk, at once', async () => {
  const job = makeJob(20_000);
  const { port, runner, events } = start(agree, 1_000);
  const isClosed = closed(port);
  port.postMessage({ type: 'job', job, topicId });
  port.postMessage({ type: 'abort' });
  await runner.ended;
  await isClosed;
  const last = events.at(-1);
  assert(last?.type === 'failed' && last.failure.kind === 'aborted');
  assert.deepEqual(fs.readdirSync(job.dir), ['00000000000000000000.log']);
});

test('a segment that was taken gets its names though an abort follows', async () => {
  const job = makeJob(100);
  const { port, runner, events } = start((event, to) => {
    agree(event, to);
    if (event.type === 'install') to.postMessage({ type: 'abort' });
  });
  const isClosed = closed(port);
  port.postMessage({ type: 'job', job, topicId });
  await runner.ended;
  await isClosed;
  assert.deepEqual(
    events.slice(0, 2).map(({ type }) => type),
    ['install', 'installed'],
  );
  assert(!fs.readdirSync(job.dir).some((name) => name.endsWith('.swap')));
});

test('a directory that was renamed is the one that is cleaned, not another that took its name', async () => {
  if (!fs.existsSync('/proc/self/fd')) return;
  const job = makeJob(100);
  const other = `${job.dir}.x-delete`;
  const { port, runner } = start((event, to) => {
    if (event.type === 'install') {
      fs.renameSync(job.dir, other);
      fs.mkdirSync(job.dir);
      fs.writeFileSync(`${job.dir}/00000000000000000000.log`, 'mine');
    }
    agree(event, to);
  });
  const isClosed = closed(port);
  port.postMessage({ type: 'job', job, topicId });
  await runner.ended;
  await isClosed;
  assert.deepEqual(fs.readdirSync(job.dir), ['00000000000000000000.log']);
  assert.equal(fs.readFileSync(`${job.dir}/00000000000000000000.log`, 'utf8'), 'mine');
  assert(fs.existsSync(`${other}/00000000000000000000.log.deleted`));
});

test('what cannot be cleaned is said with its reason; a directory that is gone is no fault', async () => {
  for (const [kind, change] of [
    ['uncleanable', (dir: string) => fs.truncateSync(`${dir}/00000000000000000000.log`, 100)],
    ['stale', (dir: string) => fs.rmSync(dir, { recursive: true })],
  ] as const) {
    const job = makeJob(10);
    change(job.dir);
    const { port, runner, events } = start(agree);
    const isClosed = closed(port);
    port.postMessage({ type: 'job', job, topicId });
    await runner.ended;
    await isClosed;
    const last = events.at(-1);
    assert(last?.type === 'failed');
    assert.equal(last.failure.kind, kind, last.failure.reason);
  }
});

test.run();
