/**
 * One log directory with one partition on a simulated disk, driven by hand: turns end and flushes end when the test says
 * so. Opens and recovers through the same code as a broker.
 */
import assert from 'node:assert/strict';
import { encodeBatch, type RecordInput } from '../../engine/batch/encode.ts';
import { type BatchInfo, newBatchInfo } from '../../engine/batch/rules.ts';
import { validateProduceBatch } from '../../engine/batch/validate.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { type AppendResult, newAppendResult } from '../../engine/log/append_result.ts';
import type { PartitionCheckpoint } from '../../engine/log/checkpoint_table.ts';
import { FlushGroup } from '../../engine/log/flush_group.ts';
import { defaultLogConfig, type LogConfig } from '../../engine/log/log_config.ts';
import { LogDirectory } from '../../engine/log/log_directory.ts';
import { PartitionLog } from '../../engine/log/partition_log.ts';
import { SegmentCache } from '../../engine/log/segment_cache.ts';
import type { Clock, DiskError } from '../../engine/ports.ts';
import { SimDisk, type SimDiskOptions } from './disk.ts';
import { SeededRandom } from './seeded_random.ts';

export const logDir = '/data/logs';
export const partitionDir: string = `${logDir}/orders-0`;
export const topicId = 'AAAAAAAAAAAAAAAAAAAAAQ';
export const startMs = 1_700_000_000_000;

export interface BatchShape {
  /** Records with these timestamps, in milliseconds after `startMs`. Default: one record at 0. */
  readonly atMs?: readonly number[];
  readonly valueBytes?: number;
  readonly records?: readonly RecordInput[];
  readonly codec?: 0 | 1 | 2 | 3 | 4;
  readonly producerId?: number;
  readonly producerEpoch?: number;
  readonly baseSequence?: number;
}

export interface Appended {
  readonly code: ErrorCode;
  readonly result: AppendResult;
  /** As it was stamped. */
  readonly bytes: Uint8Array;
}

export class LogWorld {
  readonly disk: SimDisk;
  readonly random: SeededRandom;
  config: LogConfig;
  wallMs: number = startMs;
  monotonicMs = 0;
  readonly clock: Clock = { wallMs: () => this.wallMs, monotonicMs: () => this.monotonicMs };
  #bootNumber = 1;
  #deferred: Array<() => void> = [];
  leaderEpoch = 0;
  flushEachMax = 8;
  /** Whether somebody waits for the write of what is appended, and not for its flush alone. */
  isUrgent: () => boolean = () => true;
  setAsideDamage = true;
  log!: PartitionLog;
  group!: FlushGroup;
  directory!: LogDirectory;
  readonly written: Array<{ from: number; to: number; error: ErrorCode }> = [];
  readonly flushed: number[] = [];
  readonly failures: DiskError[] = [];

  constructor(config: Partial<LogConfig> = {}, disk: Partial<SimDiskOptions> = {}) {
    const seed = disk.seed ?? 1;
    this.disk = new SimDisk({ ...disk, seed });
    this.disk.nowMs = () => this.wallMs;
    this.random = new SeededRandom(seed ^ 0x5eed);
    this.config = { ...defaultLogConfig, ...config };
  }

  open(): this {
    const { disk, clock, random } = this;
    this.directory = LogDirectory.open({
      disk,
      random,
      bootId: `boot-${this.#bootNumber}`,
      path: logDir,
      nodeId: 1,
      clusterId: null,
    });
    this.group = new FlushGroup({
      disk,
      clock,
      dir: logDir,
      defer: (run) => this.#deferred.push(run),
      flushEachMax: this.flushEachMax,
      events: {
        onWritten: (_log, from, to, error) => this.written.push({ from, to, error }),
        onFlushed: (_log, offset) => this.flushed.push(offset),
        onDirectoryFailed: (error) => {
          this.failures.push(error);
          this.directory.noteFlushFailure();
        },
      },
    });
    const marks = this.directory.marksOf('orders', 0);
    this.log = PartitionLog.open({
      disk,
      clock,
      random,
      cache: new SegmentCache(4),
      dir: partitionDir,
      topic: 'orders',
      partition: 0,
      topicId,
      config: this.config,
      recoveryPoint: marks.recoveryPoint,
      logStartOffset: marks.logStartOffset,
      cleanedOffset: this.directory.partitions.get('orders-0')?.cleanedOffset ?? 0,
      cleanShutdown: this.directory.cleanShutdown,
      afterPowerLoss: this.directory.afterPowerLoss,
      dropCache: this.directory.flushFailed,
      setAsideDamage: this.setAsideDamage,
    });
    this.group.adopt(this.log);
    return this;
  }

  append(shape: BatchShape = {}): Appended {
    const bytes = makeBatch(shape);
    const info = this.validate(bytes);
    return this.appendBytes(bytes, info);
  }

  appendBytes(bytes: Uint8Array, info: BatchInfo): Appended {
    const result = newAppendResult();
    const { leaderEpoch, wallMs } = this;
    const code = this.log.appender.append(
      bytes,
      0,
      bytes.length,
      info,
      leaderEpoch,
      wallMs,
      result,
    );
    this.group.markDirty(this.log, this.isUrgent());
    return { code, result, bytes };
  }

  validate(bytes: Uint8Array): BatchInfo {
    const info = newBatchInfo();
    const code = validateProduceBatch(
      bytes,
      0,
      bytes.length,
      {
        maxMessageBytes: 100_000_000,
        timestampType: this.config.messageTimestampType,
        timestampBeforeMaxMs: Number.MAX_SAFE_INTEGER,
        timestampAfterMaxMs: Number.MAX_SAFE_INTEGER,
        compacted: false,
        nowMs: this.wallMs,
        decompressedMaxBytes: this.config.decompressedMaxBytes,
        trustProducers: false,
        isInternal: false,
      },
      info,
    );
    assert.equal(code, ErrorCode.NONE, info.errorMessage ?? '');
    return info;
  }

  /** Appends that must succeed. Returns the batch as stored. */
  put(shape: BatchShape = {}): Appended {
    const appended = this.append(shape);
    assert.equal(appended.code, ErrorCode.NONE, appended.result.errorMessage ?? '');
    return appended;
  }

  /** The turn's end: what was deferred runs. */
  endTurn(): void {
    const runs = this.#deferred;
    this.#deferred = [];
    for (const run of runs) run();
  }

  /** Runs turns and flushes until nothing is left to do. */
  settle(): void {
    for (let round = 0; round < 1000; round += 1) {
      this.endTurn();
      this.disk.endFlushes();
      if (this.#deferred.length === 0 && this.disk.waitingFlushes === 0) return;
    }
    assert.fail('does not come to rest');
  }

  /** Checkpoints log and directory, whole. */
  checkpoint(): void {
    let isDone = false;
    this.beginCheckpoint(() => {
      isDone = true;
    });
    this.settle();
    assert(isDone);
  }

  /** The same with the caller ending flushes. */
  beginCheckpoint(done: () => void = () => {}): void {
    this.group.checkpoint((error) => {
      if (error === null) this.#writeMarks(done);
      else done();
    });
  }

  #writeMarks(done: () => void): void {
    this.directory.writeCheckpoints([this.marks()], done);
  }

  /** What a checkpoint says of the log now. */
  marks(): PartitionCheckpoint {
    const { recoveryPoint, logStartOffset } = this.log;
    return {
      topic: 'orders',
      topicId,
      partition: 0,
      recoveryPoint,
      logStartOffset,
      highWatermark: 0,
      cleanedOffset: this.log.cleaning.cleanedOffset,
    };
  }

  /** An orderly stop. */
  close(): void {
    let isClosed = false;
    this.group.close((error) => {
      assert.equal(error, null);
      this.#writeMarks(() => {
        this.directory.markClean(1);
        isClosed = true;
      });
    });
    this.settle();
    assert(isClosed);
    this.disk.kill();
  }

  /** The process dies. */
  kill(): void {
    this.disk.kill();
    this.#deferred = [];
  }

  /** The power goes. */
  crash(): void {
    this.disk.crash();
    this.#bootNumber += 1;
    this.#deferred = [];
  }

  /** Opens again and flushes what was kept. */
  reopen(): this {
    this.open();
    this.settle();
    return this;
  }

  /** Every batch from `offset` on, as a fetch with `maxBytes` would get them, one read after another. */
  readAll(
    offset: number = this.log.logStartOffset,
    maxBytes = 10_000,
    end: number = this.log.writtenOffset,
  ): Uint8Array {
    const pieces: Uint8Array[] = [];
    let next = offset;
    while (next < end) {
      const slice = this.log.read(next, maxBytes, end, true);
      assert(typeof slice !== 'number', `read at ${next} of ${end}: ${slice as number}`);
      const bytes = this.log.copy(slice);
      assert.equal(bytes.length, slice.length);
      pieces.push(bytes);
      const batches = splitBatches(bytes);
      const last = batches[batches.length - 1] as BatchView;
      assert(last.lastOffset >= next, 'a read goes forward');
      next = last.lastOffset + 1;
    }
    return new Uint8Array(Buffer.concat(pieces));
  }
}

export interface BatchView {
  readonly baseOffset: number;
  readonly lastOffset: number;
  readonly bytes: Uint8Array;
}

/** Cuts whole batches apart, by their own lengths. */
export function splitBatches(bytes: Uint8Array): BatchView[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const batches: BatchView[] = [];
  let at = 0;
  while (at < bytes.length) {
    const size = view.getInt32(at + 8) + 12;
    assert(size > 60 && at + size <= bytes.length, `a whole batch at ${at} of ${bytes.length}`);
    const baseOffset = Number(view.getBigInt64(at));
    const lastOffset = baseOffset + view.getInt32(at + 23);
    batches.push({ baseOffset, lastOffset, bytes: bytes.subarray(at, at + size) });
    at += size;
  }
  return batches;
}

export function makeBatch(shape: BatchShape): Uint8Array {
  const { valueBytes = 10, atMs = [0] } = shape;
  const records =
    shape.records ??
    atMs.map((ms, index) => ({
      timestamp: BigInt(startMs + ms),
      value: new Uint8Array(valueBytes).fill(index + 1),
    }));
  const { producerId, producerEpoch = 0, baseSequence = 0, codec = 0 } = shape;
  const producer = producerId === undefined ? {} : { producerId, producerEpoch, baseSequence };
  return encodeBatch({ records, codec, ...producer });
}

/** A world with `count` batches of one record each, flushed. */
export function filledWorld(count: number, config = {}): LogWorld {
  const world = new LogWorld(config).open();
  for (let number = 0; number < count; number += 1) world.put({ atMs: [number] });
  world.settle();
  assert.equal(world.log.flushedOffset, count);
  return world;
}
