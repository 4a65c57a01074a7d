/** A thread that writes six files in turn, a piece at a time, each flushed before the next. Tells how long it took, in ms. */
import fs from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';

export interface WriterPlan {
  /** On the disk under test. Made, and removed at the end. */
  readonly directory: string;
  readonly mib: number;
  /** Infinity: as fast as it goes. */
  readonly mibPerSecond: number;
}

const files = 6;
const pieceMiB = 4;

function run({ directory, mib, mibPerSecond }: WriterPlan): number {
  const piece = Buffer.alloc(pieceMiB * 1_048_576, 7);
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  fs.mkdirSync(directory);
  const descriptors = Array.from({ length: files }, (_, k) =>
    fs.openSync(join(directory, `${k}.log`), 'w'),
  );
  try {
    const begun = performance.now();
    for (let written = 0; written < mib; written += pieceMiB) {
      const early = begun + (written * 1_000) / mibPerSecond - performance.now();
      if (early > 0) Atomics.wait(sleeper, 0, 0, early);
      const fd = descriptors[(written / pieceMiB) % files] as number;
      fs.writeSync(fd, piece);
      fs.fdatasyncSync(fd);
    }
    return performance.now() - begun;
  } finally {
    for (const fd of descriptors) fs.closeSync(fd);
    fs.rmSync(directory, { recursive: true });
  }
}

parentPort?.postMessage(run(workerData as WriterPlan));
