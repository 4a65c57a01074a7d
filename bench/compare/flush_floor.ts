/**
 * What the disk leaves room for in G3: the same records at the same times into as many files, and nothing else. Each is
 * answered when a flush of its file, begun after its write, has ended; flushes of several files run side by side, and what
 * comes meanwhile joins the next ones.
 */
import fs from 'node:fs';
import { join } from 'node:path';
import type { Histogram } from '../../tools/histogram.ts';

export interface FloorPlan {
  /** On the disk under test. Made, and removed at the end. */
  readonly directory: string;
  readonly files: number;
  readonly recordBytes: number;
  readonly perSecond: number;
  readonly seconds: number;
}

interface FloorFile {
  readonly fd: number;
  size: number;
  /** When the records were due that are written and not flushed. */
  dueMs: number[];
}

export async function runFlushFloor(plan: FloorPlan, latency: Histogram): Promise<void> {
  fs.mkdirSync(plan.directory);
  const files = Array.from({ length: plan.files }, (_, index): FloorFile => {
    const fd = fs.openSync(join(plan.directory, `${index}.log`), 'w');
    return { fd, size: 0, dueMs: [] };
  });
  try {
    for (const { fd } of files) fs.fsyncSync(fd);
    await appendSteadily(plan, files, latency);
  } finally {
    for (const { fd } of files) fs.closeSync(fd);
    fs.rmSync(plan.directory, { recursive: true });
  }
}

async function appendSteadily(
  { recordBytes, perSecond, seconds }: FloorPlan,
  files: readonly FloorFile[],
  latency: Histogram,
): Promise<void> {
  const record = Buffer.alloc(recordBytes, 7);
  const total = perSecond * seconds;
  const startedMs = performance.now();
  let isFlushing = false;
  for (let sent = 0; latency.count < total; ) {
    const elapsedMs = performance.now() - startedMs;
    const due = Math.min(total, Math.floor((elapsedMs * perSecond) / 1_000) + 1);
    for (; sent < due; sent += 1) {
      const file = files[sent % files.length] as FloorFile;
      fs.writeSync(file.fd, record, 0, recordBytes, file.size);
      file.size += recordBytes;
      file.dueMs.push(startedMs + (sent * 1_000) / perSecond);
    }
    const flushing = isFlushing ? null : flush(files, latency);
    if (flushing !== null) {
      isFlushing = true;
      void flushing.then(() => (isFlushing = false));
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Null: there is nothing to flush. */
function flush(files: readonly FloorFile[], latency: Histogram): Promise<void> | null {
  const dirty = files.filter(({ dueMs }) => dueMs.length > 0);
  if (dirty.length === 0) return null;
  const waiting = dirty.flatMap((file) => file.dueMs.splice(0));
  const flushes = dirty.map(
    ({ fd }) =>
      new Promise<void>((resolve, reject) =>
        fs.fdatasync(fd, (error) => (error === null ? resolve() : reject(error))),
      ),
  );
  return Promise.all(flushes).then(() => {
    const nowMs = performance.now();
    for (const dueMs of waiting) latency.record(nowMs - dueMs);
  });
}
