/**
 * The log engine on a real disk: appends with and without a flush, fetches, look-ups, and the scan after a crash.
 * Files lie in the system's folder for temporary ones, where the disk's calibration runs, too.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeBatch } from '../../engine/batch/encode.ts';
import { type BatchInfo, newBatchInfo } from '../../engine/batch/rules.ts';
import { newAppendResult } from '../../engine/log/append_result.ts';
import { FlushGroup, flushEachMaxDefault } from '../../engine/log/flush_group.ts';
import { defaultLogConfig } from '../../engine/log/log_config.ts';
import type { LogSlice } from '../../engine/log/log_slice.ts';
import { OffsetIndex } from '../../engine/log/offset_index.ts';
import { PartitionLog } from '../../engine/log/partition_log.ts';
import { SegmentCache } from '../../engine/log/segment_cache.ts';
import { NodeDisk, nodeClock, nodeRandom } from '../../engine/node_ports.ts';
import { type Benchmark, consume, type Suite } from '../micro/benchmark.ts';
import { textBytes } from '../micro/payload.ts';

const nowMs = 1_700_000_000_000;
/** A log that grows under a benchmark is started anew at this size, so that a run needs little disk. */
const logBytesMax = 64 * 1024 * 1024;
const recoveryBytes = 16 * 1024 * 1024;

const disk = new NodeDisk();
const cache = new SegmentCache(100);
const result = newAppendResult();

interface Sample {
  readonly bytes: Uint8Array;
  readonly info: BatchInfo;
}

export function openLogSuite(): Suite {
  const root = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  const small = sampleOf(80, 100);
  const large = sampleOf(1_000, 1_000);
  const readable = new BenchLog(root, 'read');
  while (readable.log.size < recoveryBytes) {
    readable.append(small);
    readable.write();
  }
  const benchmarks = [
    writing(new BenchLog(root, 'write-small'), '8 KB', small),
    writing(new BenchLog(root, 'write-large'), '1 MB', large),
    idempotent(new BenchLog(root, 'idempotent'), sampleOf(80, 100)),
    flushing(new BenchLog(root, 'flush-small'), '8 KB', small),
    flushing(new BenchLog(root, 'flush-large'), '1 MB', large),
    tailing(readable.log),
    seeking(readable.log),
    lookingUp(),
    recovering(root, small),
  ];
  return { benchmarks, close: () => rmSync(root, { recursive: true }) };
}

function sampleOf(count: number, valueBytes: number): Sample {
  const text = textBytes(count * valueBytes);
  const records = Array.from({ length: count }, (_, k) => ({
    timestamp: BigInt(nowMs),
    value: text.subarray(k * valueBytes, (k + 1) * valueBytes),
  }));
  const bytes = encodeBatch({ records });
  const info = newBatchInfo();
  info.recordCount = count;
  info.lastOffsetDelta = count - 1;
  info.baseTimestamp = BigInt(nowMs);
  info.maxTimestamp = BigInt(nowMs);
  info.offsetOfMaxTimestamp = 0;
  return { bytes, info };
}

/** A log that starts anew when it has grown. */
class BenchLog {
  readonly root: string;
  readonly #name: string;
  #generation = 0;
  log: PartitionLog;

  constructor(dir: string, name: string) {
    this.root = dir;
    this.#name = name;
    this.log = this.open(true);
  }

  open(cleanShutdown: boolean): PartitionLog {
    return PartitionLog.open({
      disk,
      clock: nodeClock,
      random: nodeRandom,
      cache,
      dir: this.path,
      topic: this.#name,
      partition: this.#generation,
      topicId: 'vPeOCWypqUOSepEvx0cbog',
      config: { ...defaultLogConfig, maxMessageBytes: 2 * 1024 * 1024 },
      recoveryPoint: 0,
      logStartOffset: 0,
      cleanShutdown,
      afterPowerLoss: false,
      dropCache: false,
      setAsideDamage: false,
    });
  }

  get path(): string {
    return join(this.root, `${this.#name}-${this.#generation}`);
  }

  /** Starts anew if the log has grown too large; true if it did. */
  renew(): boolean {
    if (this.log.size <= logBytesMax) return false;
    this.log.closeFiles();
    rmSync(this.path, { recursive: true });
    this.#generation += 1;
    this.log = this.open(true);
    return true;
  }

  append({ bytes, info }: Sample): void {
    const code = this.log.appender.append(bytes, 0, bytes.length, info, 1, nowMs, result);
    if (code !== 0) throw new Error(`append: ${code} ${result.errorMessage}`);
  }

  write(): void {
    if (this.log.appender.writePending() !== 0) throw new Error('write failed');
  }
}

function writing(log: BenchLog, size: string, sample: Sample): Benchmark {
  return {
    name: `log: append ${size}, written`,
    calibration: 'native',
    run: () => {
      log.renew();
      log.append(sample);
      log.write();
    },
  };
}

function idempotent(log: BenchLog, sample: Sample): Benchmark {
  const { info } = sample;
  info.producerId = 4_711;
  info.producerEpoch = 0;
  info.baseSequence = 0;
  return {
    name: 'log: append 8 KB, idempotent, written',
    calibration: 'native',
    run: () => {
      if (log.renew()) info.baseSequence = 0;
      log.append(sample);
      log.write();
      info.baseSequence += info.recordCount;
    },
  };
}

/** From the append to the event that acknowledges it, one batch at a time. */
function flushing(log: BenchLog, size: string, sample: Sample): Benchmark {
  let done: () => void = () => undefined;
  const group = new FlushGroup({
    disk,
    clock: nodeClock,
    dir: log.root,
    defer: setImmediate,
    flushEachMax: flushEachMaxDefault,
    events: {
      onWritten: () => undefined,
      onFlushed: () => done(),
      onDirectoryFailed: (error) => {
        throw error;
      },
    },
  });
  group.adopt(log.log);
  return {
    name: `log: append ${size}, flushed`,
    calibration: sample.bytes.length > 100_000 ? 'large flushes' : 'disk',
    run: () => {
      const before = log.log;
      if (log.renew()) {
        group.forget(before);
        group.adopt(log.log);
      }
      log.append(sample);
      return new Promise((resolve) => {
        done = resolve;
        group.markDirty(log.log, false);
      });
    },
  };
}

/** A consumer that reads on where it stopped. */
function tailing(log: PartitionLog): Benchmark {
  let offset = 0;
  return {
    name: 'log: find the next 1 MB',
    calibration: 'script',
    run: () => {
      const slice = sliceAt(log, offset);
      offset = offset + 9_000 > log.logEndOffset ? 0 : offset + 8_000;
      consume(slice.position);
    },
  };
}

/** A consumer that starts somewhere. */
function seeking(log: PartitionLog): Benchmark {
  let offset = 0;
  return {
    name: 'log: find 1 MB at any offset',
    calibration: 'script',
    run: () => {
      offset = (offset + 7_919 * 83) % log.logEndOffset;
      consume(sliceAt(log, offset).position);
    },
  };
}

function sliceAt(log: PartitionLog, offset: number): LogSlice {
  const slice = log.read(offset, 1024 * 1024, log.logEndOffset, true);
  if (typeof slice === 'number') throw new Error(`read at ${offset}: ${slice}`);
  return slice;
}

/** An index of a segment of a gigabyte. */
function lookingUp(): Benchmark {
  const index = new OffsetIndex(disk, 0);
  const entries = 131_072;
  index.file.create();
  for (let entry = 0; entry < entries; entry += 1)
    index.append(entry * 80 + 79, (entry + 1) * 8_192);
  let offset = 0;
  return {
    name: 'log: look up an offset in the index',
    calibration: 'script',
    run: () => {
      offset = (offset + 7_919 * 83) % (entries * 80);
      consume(index.floorByOffset(offset));
    },
  };
}

/** Opening after a crash, with all of the log past the recovery point. */
function recovering(dir: string, sample: Sample): Benchmark {
  const log = new BenchLog(dir, 'recover');
  while (log.log.size < recoveryBytes) {
    log.append(sample);
    log.write();
  }
  log.log.closeFiles();
  return {
    name: 'log: recovery scan of 16 MB',
    calibration: 'native',
    items: { count: recoveryBytes / (1024 * 1024), of: 'MB' },
    run: () => {
      const opened = log.open(false);
      if (opened.logEndOffset === 0) throw new Error('recovery lost the log');
      consume(opened.logEndOffset);
      opened.closeFiles();
    },
  };
}
