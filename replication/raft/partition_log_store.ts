/**
 * The metadata log in the log engine's `PartitionLog`: Kafka's files, recovery and group commit, as for any partition.
 *
 * Thread: the quorum's, with a FlushGroup of its own. Durability: `flush` is fulfilled after a flush that began when
 * everything appended before had been written.
 */
import assert from 'node:assert/strict';
import {
  baseTimestampOf,
  lastOffsetDeltaOf,
  lastOffsetOf,
  leaderEpochOf,
  maxTimestampOf,
  recordCountOf,
} from '../../engine/batch/header.ts';
import { newBatchInfo } from '../../engine/batch/rules.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { type AppendResult, newAppendResult } from '../../engine/log/append_result.ts';
import type { EpochEndOffset } from '../../engine/log/epoch_cache.ts';
import { offsetInFileName, segmentFileName, segmentSuffixes } from '../../engine/log/file_names.ts';
import { type FlushEvents, FlushGroup, flushEachMaxDefault } from '../../engine/log/flush_group.ts';
import { defaultLogConfig, type LogConfig } from '../../engine/log/log_config.ts';
import { PartitionLog } from '../../engine/log/partition_log.ts';
import { SegmentCache } from '../../engine/log/segment_cache.ts';
import { type Clock, type Disk, DiskError, type Random } from '../../engine/ports.ts';
import { metadataTopicName, uuidMetadataTopic } from '../metadata/records.ts';
import { LogFullError, type MetadataLogStore } from './metadata_log_store.ts';

const noBytes = new Uint8Array(0);

/** Nothing is ever deleted by age or size; a batch may be as large as the quorum lets it become. */
const metadataLogConfig: LogConfig = {
  ...defaultLogConfig,
  maxMessageBytes: 8 * 1024 * 1024,
  retentionMs: -1,
  retentionBytes: -1,
  durability: 'fsync',
};

export interface PartitionLogStoreOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  /** The log directory, which exists; the log is `__cluster_metadata-0` in it. */
  readonly logDir: string;
  /** From `recovery-point-offset-checkpoint`, 0 without an entry. */
  readonly recoveryPoint: number;
  /** See the engine's `LogOptions`. */
  readonly cleanShutdown: boolean;
  readonly afterPowerLoss: boolean;
  readonly dropCache: boolean;
  /** Where the newest good snapshot ends, 0 without one: what lies below is not needed. */
  readonly snapshotEndOffset: number;
  /** Runs the function after the current turn's events: setImmediate. */
  readonly defer: (run: () => void) => void;
}

interface Waiter {
  /** Everything below it must be on stable storage. */
  target: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class PartitionLogStore implements MetadataLogStore, FlushEvents {
  readonly log: PartitionLog;
  readonly #options: PartitionLogStoreOptions;
  readonly #group: FlushGroup;
  readonly #info = newBatchInfo();
  readonly #result: AppendResult = newAppendResult();
  /** Invariant: in the order of `target`. */
  #waiters: Waiter[] = [];
  /** Offset behind appends that the log refused since the last `flush`; null when it took them all. */
  #refusedEndOffset: number | null = null;
  /** A segment is to begin. */
  #mustRoll: boolean = false;
  #failure: Error | null = null;

  /**
   * Opens or makes the log, and flushes what recovery kept of its tail. Rejects with a text for people when the log
   * lacks something that had been committed: a metadata log is not repaired by leaving parts out. What a crash has left of
   * it while a snapshot took its place is cleared away.
   */
  static async open(options: PartitionLogStoreOptions): Promise<PartitionLogStore> {
    const dir = metadataLogPath(options.logDir);
    const { snapshotEndOffset } = options;
    clearReplaced(options.disk, dir, snapshotEndOffset);
    let log = openLog(options, dir, 0);
    if (
      log.logEndOffset < snapshotEndOffset &&
      (log.recovery.lost?.toOffset ?? 0) <= snapshotEndOffset
    ) {
      log.closeFiles();
      removeSegments(options.disk, dir, Number.POSITIVE_INFINITY);
      log = openLog(options, dir, snapshotEndOffset);
    }
    const problem = problemOf(log, snapshotEndOffset);
    if (problem !== null) throw new Error(`The metadata log in ${dir} cannot be used: ${problem}`);
    const store = new PartitionLogStore(options, log);
    store.#group.adopt(log);
    await store.#flushed(log.writtenOffset);
    return store;
  }

  private constructor(options: PartitionLogStoreOptions, log: PartitionLog) {
    this.#options = options;
    this.log = log;
    this.#group = new FlushGroup({
      disk: options.disk,
      clock: options.clock,
      dir: options.logDir,
      events: this,
      defer: options.defer,
      flushEachMax: flushEachMaxDefault,
    });
  }

  get startOffset(): number {
    return this.log.logStartOffset;
  }

  get endOffset(): number {
    return this.#refusedEndOffset ?? this.log.logEndOffset;
  }

  get lastEpoch(): number {
    return Math.max(0, this.log.epochs.latestEpoch);
  }

  endOffsetForEpoch(epoch: number): EpochEndOffset {
    return this.log.endOffsetForEpoch(epoch);
  }

  read(fromOffset: number, upToOffset: number, maxBytes: number): Uint8Array {
    const { log } = this;
    const found = log.read(fromOffset, maxBytes, upToOffset, true);
    if (found === ErrorCode.NONE) return noBytes;
    if (typeof found !== 'object')
      throw new Error(`The metadata log in ${log.dir} cannot be read at offset ${fromOffset}.`);
    return log.copy(found);
  }

  append(batch: Uint8Array): void {
    const info = this.#info;
    info.recordCount = recordCountOf(batch, 0);
    info.lastOffsetDelta = lastOffsetDeltaOf(batch, 0);
    info.baseTimestamp = baseTimestampOf(batch, 0);
    info.maxTimestamp = maxTimestampOf(batch, 0);
    info.offsetOfMaxTimestamp = 0;
    const epoch = leaderEpochOf(batch, 0);
    const nowMs = this.#options.clock.wallMs();
    this.#roll();
    this.#group.markDirty(this.log, false);
    if (this.#refusedEndOffset === null) {
      const { length } = batch;
      const code = this.log.appender.append(batch, 0, length, info, epoch, nowMs, this.#result);
      if (code === ErrorCode.NONE) return;
      assert(code === ErrorCode.KAFKA_STORAGE_ERROR, `append to the metadata log: error ${code}`);
    }
    this.#refusedEndOffset = lastOffsetOf(batch, 0) + 1;
  }

  truncate(endOffset: number): void {
    const { log } = this;
    this.#refusedEndOffset = null;
    const code = log.truncateTo(endOffset);
    if (code !== ErrorCode.NONE) throw log.failure ?? noRoom();
    for (const waiter of this.#waiters) waiter.target = Math.min(waiter.target, log.logEndOffset);
    this.#settle((waiter) => waiter.target <= log.flushedOffset, null);
  }

  restartAt(offset: number): void {
    const { log } = this;
    this.#refusedEndOffset = null;
    const code = log.restartAt(offset);
    if (code !== ErrorCode.NONE) throw log.failure ?? noRoom();
    this.#settle(() => true, null);
  }

  /** The segments that lie below go at once, and the next one begins, so that the one of now can go another time. */
  dropBelow(offset: number): void {
    const { disk } = this.#options;
    const { deletion, dir } = this.log;
    for (;;) {
      const names = deletion.removeInPlace(offset);
      for (const name of names) disk.removeTree(`${dir}/${name}`, () => {});
      if (names.length === 0) break;
    }
    deletion.advanceLogStart(offset);
    this.#mustRoll = true;
    this.#roll();
  }

  /** Not while anything waits to be written: then before the next append. What is wrong with the disk shows there. */
  #roll(): void {
    if (!this.#mustRoll) return;
    try {
      this.#mustRoll = !this.log.deletion.roll(this.#options.clock.wallMs());
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
    }
  }

  flush(): Promise<void> {
    if (this.#failure === null && this.#refusedEndOffset !== null) {
      this.#refusedEndOffset = null;
      const failed = this.log.failure;
      return Promise.reject(failed ?? noRoom());
    }
    return this.#flushed(this.log.logEndOffset);
  }

  /**
   * Makes the next start short: moves the recovery point up to what is flushed. Fulfilled when `log.recoveryPoint` may
   * be written into the directory's checkpoint.
   */
  checkpoint(): Promise<void> {
    return settled((done) => this.#group.checkpoint(done));
  }

  close(): Promise<void> {
    return settled((done) => this.#group.close(done));
  }

  onWritten(_log: PartitionLog, from: number, _to: number, error: ErrorCode): void {
    if (error === ErrorCode.NONE) return;
    this.#refusedEndOffset = null;
    this.#settle((waiter) => waiter.target > from, noRoom());
  }

  onFlushed(_log: PartitionLog, offset: number): void {
    this.#settle((waiter) => waiter.target <= offset, null);
  }

  onDirectoryFailed(error: DiskError): void {
    this.#failure = error;
    this.#settle(() => true, error);
  }

  #flushed(target: number): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (this.log.flushedOffset >= target) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#waiters.push({ target, resolve, reject });
    });
  }

  #settle(concerns: (waiter: Waiter) => boolean, error: Error | null): void {
    const waiters = this.#waiters.filter(concerns);
    this.#waiters = this.#waiters.filter((waiter) => !concerns(waiter));
    for (const { resolve, reject } of waiters)
      if (error === null) resolve();
      else reject(error);
  }
}

/** Where the metadata log lies in its log directory; the vote file lies in it too. */
export function metadataLogPath(logDir: string): string {
  return `${logDir}/${metadataTopicName}-0`;
}

function openLog(
  options: PartitionLogStoreOptions,
  dir: string,
  startOffset: number,
): PartitionLog {
  const { disk, clock, random, cleanShutdown, afterPowerLoss, dropCache } = options;
  return PartitionLog.open({
    disk,
    clock,
    random,
    cache: new SegmentCache(4),
    dir,
    topic: metadataTopicName,
    partition: 0,
    topicId: uuidMetadataTopic,
    config: metadataLogConfig,
    recoveryPoint: Math.max(startOffset, options.recoveryPoint),
    logStartOffset: startOffset,
    cleanShutdown,
    afterPowerLoss,
    dropCache,
    setAsideDamage: false,
  });
}

/** A log that begins where the snapshot ends has been put in the place of what lies below, of which a crash may leave some. */
function clearReplaced(disk: Disk, dir: string, snapshotEndOffset: number): void {
  if (snapshotEndOffset === 0) return;
  if (disk.status(`${dir}/${segmentFileName(snapshotEndOffset, '.log')}`) !== null)
    removeSegments(disk, dir, snapshotEndOffset);
}

function removeSegments(disk: Disk, dir: string, belowOffset: number): void {
  let isChanged = false;
  for (const name of disk.list(dir) ?? [])
    for (const suffix of [...segmentSuffixes, '.snapshot']) {
      const offset = offsetInFileName(name, suffix);
      if (offset < 0 || offset >= belowOffset) continue;
      disk.unlink(`${dir}/${name}`);
      isChanged = true;
    }
  if (isChanged) disk.flushDirectorySync(dir);
}

function problemOf(log: PartitionLog, snapshotEndOffset: number): string | null {
  const { damage, lost } = log.recovery;
  const [first] = damage;
  if (first !== undefined)
    return `it is damaged from offset ${first.fromOffset} on (${first.problem}). Restore it from a copy.`;
  if (lost !== null)
    return `it ends at offset ${lost.fromOffset}, and was on disk up to ${lost.toOffset}. Restore it from a copy.`;
  if (log.logStartOffset > snapshotEndOffset)
    return `it begins at offset ${log.logStartOffset}, and no good snapshot has what was before. Restore one, or start with an empty data directory: the node then joins its cluster anew.`;
  return null;
}

function noRoom(): LogFullError {
  return new LogFullError('The disk of the metadata log is full; changes of metadata are refused.');
}

function settled(start: (done: (error: DiskError | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    start((error) => {
      if (error === null) resolve();
      else reject(error);
    });
  });
}
