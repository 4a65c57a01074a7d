/**
 * Compaction of plain records on a real disk: both passes over a log, up to the cleaned segment that is flushed and
 * could be put in place. Every second record has a later one with its key.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeBatch } from '../../engine/batch/encode.ts';
import type { CleaningJob } from '../../engine/log/cleaner/cleaning_job.ts';
import { LogCleaning } from '../../engine/log/cleaner/log_cleaning.ts';
import { segmentFileName } from '../../engine/log/file_names.ts';
import { NodeDisk } from '../../engine/node_ports.ts';
import { type Benchmark, consume, type Suite } from '../micro/benchmark.ts';
import { textBytes } from '../micro/payload.ts';

const nowMs = 1_700_000_000_000;
const recordsPerBatch = 100;
const logBytes = 32 * 1024 * 1024;
const budget = { mapBytes: 128 * 1024 * 1024, mapLoadFactor: 0.9, ioBytes: 512 * 1024 };
const disk = new NodeDisk();

export function openCleanerSuite(): Suite {
  const root = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  return {
    benchmarks: [cleaning(root, '100 B', 80), cleaning(root, '1 KB', 1_000)],
    close: () => rmSync(root, { recursive: true }),
  };
}

function cleaning(root: string, size: string, valueBytes: number): Benchmark {
  const job = makeLog(mkdtempSync(join(root, 'log-')), valueBytes);
  const { size: bytes = 0 } = job.segments[0] ?? {};
  return {
    name: `cleaner: a log of ${size} records`,
    calibration: 'script',
    items: { count: Math.floor(bytes / 1e6), of: 'MB' },
    run: () => {
      const steps = new LogCleaning(disk, job, budget, 77).run();
      for (;;) {
        const step = steps.next(true);
        if (step.done === true) break;
        if (step.value.type !== 'install') continue;
        consume(step.value.segment.size);
        // The log stays as it is, for the next run.
        steps.return({ ...counts, cleanedOffset: 0 });
        break;
      }
    },
  };
}

const counts = { bytesRead: 0, bytesWritten: 0, recordsRead: 0, recordsKept: 0, keylessRecords: 0 };

function makeLog(dir: string, valueBytes: number): CleaningJob {
  const value = textBytes(valueBytes);
  const batches: Uint8Array[] = [];
  const records = Math.floor(logBytes / (valueBytes + 32));
  let size = 0;
  let offset = 0;
  for (; offset < records; offset += recordsPerBatch) {
    const batch = encodeBatch({
      baseOffset: offset,
      leaderEpoch: 0,
      records: Array.from({ length: recordsPerBatch }, (_, k) => ({
        key: keyOf(offset + k, records),
        value,
        timestamp: BigInt(nowMs + k),
      })),
    });
    batches.push(batch);
    size += batch.length;
  }
  writeFileSync(join(dir, segmentFileName(0, '.log')), Buffer.concat(batches));
  return {
    dir,
    segments: [{ baseOffset: 0, size, endOffset: offset }],
    logStartOffset: 0,
    firstDirtyOffset: 0,
    uncleanableOffset: offset,
    flushedOffset: offset,
    nowMs,
    deleteRetentionMs: 86_400_000,
    segmentBytes: 1024 * 1024 * 1024,
    segmentIndexBytes: 10 * 1024 * 1024,
    indexIntervalBytes: 4_096,
    decompressedMaxBytes: 16 * 1024 * 1024,
    producers: { producerIds: [], lastOffsets: [], epochs: [] },
  };
}

/** Half as many keys as records, drawn at random. */
function keyOf(offset: number, records: number): Uint8Array {
  const drawn = Math.imul(offset + 1, 0x9e3779b1) >>> 0;
  return Buffer.from(`key-${String(drawn % Math.ceil(records / 2)).padStart(12, '0')}`);
}
