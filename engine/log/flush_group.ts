/**
 * Group commit for the logs of one log directory on one shard: gathers what a turn of the event loop has appended into
 * one write for each log, and everything written while a flush was under way into the next flush.
 *
 * Thread: the shard. Concurrency: at most one flush under way, and beside it at most one checkpoint.
 * Durability: `onFlushed(log, offset)` means that everything below `offset` is on stable storage, file names included.
 * After a failed flush the group is offline for good: nothing is tried again, nothing acknowledged.
 */
import { ErrorCode } from '../error_code.gen.ts';
import type { Clock, Disk, DiskError } from '../ports.ts';
import { asDiskError, FlushSet } from './flush_set.ts';
import type { PartitionLog } from './partition_log.ts';

export interface FlushEvents {
  /**
   * Offsets `from` up to, not including, `to` are in the file (NONE), or were not appended after all
   * (KAFKA_STORAGE_ERROR, retriable): then later appends get these offsets again. With durability 'os' NONE is
   * what acknowledges.
   */
  onWritten(log: PartitionLog, from: number, to: number, error: ErrorCode): void;
  /** Everything below `offset` is on stable storage. */
  onFlushed(log: PartitionLog, offset: number): void;
  /** Once, when a write or flush has failed for another reason than a full disk. No other event comes after it. */
  onDirectoryFailed(error: DiskError): void;
}

export interface FlushGroupOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  /** The log directory. */
  readonly dir: string;
  readonly events: FlushEvents;
  /** Runs the function after the current turn's events: setImmediate. */
  readonly defer: (run: () => void) => void;
  /** With more dirty files and directories than this, one syncfs(2) takes the place of a flush for each. */
  readonly flushEachMax: number;
}

export const flushEachMaxDefault = 8;
/** What a log may keep back while a flush is under way: no more than is cheaper to copy later than to write twice. */
const heldBytesMax = 16 * 1024;
/** Logs whose state is stored in one turn of a checkpoint, so that it holds up no request. */
const checkpointSlice = 32;

export class FlushGroup {
  readonly #options: FlushGroupOptions;
  readonly #logs = new Set<PartitionLog>();
  #dirty: PartitionLog[] = [];
  #writing: PartitionLog[] = [];
  #isTurnScheduled: boolean = false;
  #unflushed: PartitionLog[] = [];
  #flushing: PartitionLog[] = [];
  #isFlushing: boolean = false;
  #isCheckpointing: boolean = false;
  readonly #set = new FlushSet();
  readonly #onTurn: () => void;
  readonly #onFlushEnd: (error: DiskError | null) => void;
  readonly #onLogFailure: (error: DiskError) => void;
  #failure: DiskError | null = null;
  #whenIdle: (() => void) | null = null;
  #flushCount = 0;

  /** Before the first of the logs is opened. @throws DiskError */
  constructor(options: FlushGroupOptions) {
    this.#options = options;
    options.disk.watchFileSystem(options.dir);
    this.#onTurn = () => this.#endTurn();
    this.#onFlushEnd = (error) => this.#endFlush(error);
    this.#onLogFailure = (error) => this.#fail(error);
  }

  /** Why the directory is offline, or null. */
  get failure(): DiskError | null {
    return this.#failure;
  }

  /** Flushes that have ended well, for metrics and tests. */
  get flushCount(): number {
    return this.#flushCount;
  }

  /** Takes on an opened log, and flushes what its recovery kept. */
  adopt(log: PartitionLog): void {
    this.#logs.add(log);
    log.watchFailure(this.#onLogFailure);
    if (this.#failure !== null) log.fail(this.#failure);
    else if (log.flush.isNeeded && log.flushedOffset < log.writtenOffset) {
      this.#queueFlush(log);
      this.#scheduleTurn();
    }
  }

  /** Lets go of a log that is about to be closed or deleted; a flush of it that is under way ends unreported. */
  forget(log: PartitionLog): void {
    this.#logs.delete(log);
  }

  /** The owner, or another thread, has found the directory broken in another way: from now on as after a failed flush. */
  takeOffline(error: DiskError): void {
    this.#fail(error);
  }

  /**
   * After an append: the log is written at the end of the turn and flushed as soon as may be.
   * @param isUrgent the write alone is waited for. Else a few bytes may wait for the end of the flush that is under way:
   *   only the next one acknowledges them, and a write beside a flush may have to wait for it on the thread
   */
  markDirty(log: PartitionLog, isUrgent: boolean): void {
    if (this.#failure !== null) return;
    if (isUrgent) log.isUrgent = true;
    if (!log.isQueued) {
      log.isQueued = true;
      this.#dirty.push(log);
    }
    this.#scheduleTurn();
  }

  /**
   * The same, urgently, for a follower's copy.
   * @param isPassing it ends below what is committed, so it is out of sync, and nobody reads it: its bytes go to the device
   *   at once, and the page cache lets go of them when they are flushed
   */
  markCopied(log: PartitionLog, isPassing: boolean): void {
    // With durability 'os' no flush comes soon.
    log.isPassing = isPassing && log.config.durability === 'fsync';
    this.markDirty(log, true);
  }

  /** Writes now what is pending of the log, and not at the end of the turn: others are about to take it over. */
  writeNow(log: PartitionLog): void {
    this.#write(log);
    this.#scheduleTurn();
  }

  /** Has the log flushed although nothing was appended: its end was cut. */
  flushSoon(log: PartitionLog): void {
    if (this.#failure !== null) return;
    this.#queueFlush(log);
    this.#scheduleTurn();
  }

  /** Call about once a second: flush.ms under durability 'os', and flushes that could not be tried. */
  tick(): void {
    if (!this.#isFlushing) this.#startFlush();
    const nowMs = this.#options.clock.monotonicMs();
    for (const log of this.#logs) {
      const since = log.flush.firstWriteMs;
      if (since >= 0 && nowMs - since >= log.config.flushMs) this.#queueFlush(log);
    }
    if (this.#unflushed.length > 0 && !this.#isFlushing) this.#scheduleTurn();
  }

  #scheduleTurn(): void {
    if (this.#isTurnScheduled) return;
    this.#isTurnScheduled = true;
    this.#options.defer(this.#onTurn);
  }

  #endTurn(): void {
    this.#isTurnScheduled = false;
    this.#writeDirty(this.#isFlushing);
    if (!this.#isFlushing) this.#startFlush();
  }

  #writeDirty(mayHold: boolean): void {
    const logs = this.#dirty;
    this.#dirty = this.#writing;
    this.#writing = logs;
    for (const log of logs) {
      if (mayHold && isHeld(log)) {
        this.#dirty.push(log);
        continue;
      }
      log.isQueued = false;
      log.isUrgent = false;
      this.#write(log);
    }
    logs.length = 0;
  }

  #write(log: PartitionLog): void {
    if (this.#failure !== null || !this.#logs.has(log)) return;
    const { events } = this.#options;
    const code = log.isPassing
      ? log.flush.passing(() => log.appender.writePending())
      : log.appender.writePending();
    log.isPassing = false;
    if (log.failure !== null) return;
    const from = log.reportedOffset;
    const to = log.writtenOffset;
    log.reportedOffset = to;
    if (to > from) events.onWritten(log, from, to, ErrorCode.NONE);
    if (code !== ErrorCode.NONE) events.onWritten(log, to, log.appender.failedOffset, code);
    if (to === from) return;
    if (log.config.durability === 'fsync' || this.#isFlushDue(log)) this.#queueFlush(log);
  }

  /** Durability 'os': Kafka's flush.messages; write-back begins early, so that no append waits for it later. */
  #isFlushDue(log: PartitionLog): boolean {
    log.flush.startWriteBack();
    if (log.flush.firstWriteMs < 0) log.flush.firstWriteMs = this.#options.clock.monotonicMs();
    return log.writtenOffset - log.flushedOffset >= log.config.flushMessages;
  }

  #queueFlush(log: PartitionLog): void {
    if (log.flush.isQueued) return;
    log.flush.isQueued = true;
    this.#unflushed.push(log);
  }

  #startFlush(): void {
    if (this.#failure !== null) return;
    if (this.#unflushed.length === 0) {
      this.#becomeIdle();
      return;
    }
    const logs = this.#unflushed;
    this.#unflushed = this.#flushing;
    this.#flushing = logs;
    this.#isFlushing = true;
    this.#set.clear();
    for (const log of logs) {
      log.flush.isQueued = false;
      if (this.#logs.has(log)) log.flush.begin(this.#set);
    }
    const { disk, dir, flushEachMax } = this.#options;
    this.#set.flush(disk, dir, flushEachMax, this.#onFlushEnd);
  }

  #endFlush(error: DiskError | null): void {
    const logs = this.#flushing;
    this.#isFlushing = false;
    if (error?.isPassing) {
      this.#retryFlush(logs);
      return;
    }
    if (error !== null) {
      for (const log of logs) log.flush.abandon();
      this.#fail(error);
      return;
    }
    this.#flushCount += 1;
    for (const log of logs) {
      const offset = log.flush.end();
      if (this.#failure === null && this.#logs.has(log))
        this.#options.events.onFlushed(log, offset);
    }
    logs.length = 0;
    this.#writeDirty(false);
    this.#startFlush();
  }

  /** With the next turn that writes something, or the next tick. */
  #retryFlush(logs: PartitionLog[]): void {
    for (const log of logs) {
      log.flush.retry();
      if (log.flush.isQueued) continue;
      log.flush.isQueued = true;
      this.#unflushed.push(log);
    }
    logs.length = 0;
    if (this.#dirty.length > 0) this.#scheduleTurn();
    this.#becomeIdle();
  }

  #becomeIdle(): void {
    const run = this.#whenIdle;
    this.#whenIdle = null;
    run?.();
  }

  #fail(error: DiskError): void {
    if (this.#failure !== null) return;
    this.#failure = error;
    for (const log of this.#logs) log.fail(error);
    this.#options.events.onDirectoryFailed(error);
    this.#becomeIdle();
  }

  /**
   * Stores what the logs would otherwise have to read from their batches after a crash, flushes it, and then moves
   * their recovery points up: after `done(null)` each log's `recoveryPoint` may be written into the directory's
   * checkpoint. A full disk is no failure: `done` gets the error, and the recovery points stay where they were. Does
   * nothing while a checkpoint is under way.
   */
  checkpoint(done: (error: DiskError | null) => void): void {
    if (this.#isCheckpointing || this.#failure !== null) {
      done(this.#failure);
      return;
    }
    this.#isCheckpointing = true;
    const logs = [...this.#logs].filter((log) => log.recoveryPoint < log.flushedOffset);
    const end = (error: DiskError | null): void => {
      this.#isCheckpointing = false;
      if (error === null) {
        for (const log of logs) if (this.#logs.has(log)) log.endCheckpoint();
      } else if (!error.isPassing) this.#fail(error);
      done(error);
    };
    this.#storeSlice(logs, 0, new FlushSet(), end);
  }

  #storeSlice(
    logs: readonly PartitionLog[],
    from: number,
    set: FlushSet,
    done: (error: DiskError | null) => void,
  ): void {
    const to = Math.min(logs.length, from + checkpointSlice);
    try {
      for (const log of logs.slice(from, to)) if (this.#logs.has(log)) log.beginCheckpoint(set);
    } catch (error) {
      done(asDiskError(error));
      return;
    }
    if (to < logs.length) this.#options.defer(() => this.#storeSlice(logs, to, set, done));
    else this.#flushStored(logs, set, done);
  }

  /**
   * Flushes files that the owner has written beside the batches. A failure that is no passing one takes the directory
   * offline.
   */
  flushFiles(set: FlushSet, done: (error: DiskError | null) => void): void {
    const { disk, dir, flushEachMax } = this.#options;
    set.flush(disk, dir, flushEachMax, (error) => {
      if (error !== null && !error.isPassing) this.#fail(error);
      done(error);
    });
  }

  /** Files first, then the names that replace older files, then the names' directories. */
  #flushStored(
    logs: readonly PartitionLog[],
    set: FlushSet,
    done: (error: DiskError | null) => void,
  ): void {
    const { disk, dir, flushEachMax } = this.#options;
    set.flush(disk, dir, flushEachMax, (error) => {
      if (error !== null) {
        done(error);
        return;
      }
      const names = new FlushSet();
      try {
        for (const log of logs) if (this.#logs.has(log)) log.commitCheckpoint(names);
      } catch (caught) {
        done(asDiskError(caught));
        return;
      }
      names.flush(disk, dir, flushEachMax, done);
    });
  }

  /**
   * Closes all logs: writes and flushes everything, stores what a clean start needs, closes the files. `done(null)`
   * means that the clean-shutdown marker may be written (with the logs' recovery points in the checkpoint).
   */
  close(done: (error: DiskError | null) => void): void {
    this.#writeDirty(false);
    if (!this.#isFlushing) this.#startFlush();
    const logs = [...this.#logs];
    const finish = (error: DiskError | null): void => {
      if (error === null) for (const log of logs) log.finishClose();
      for (const log of logs) log.closeFiles();
      this.#logs.clear();
      done(error);
    };
    const start = (): void => {
      if (this.#failure !== null) {
        finish(this.#failure);
        return;
      }
      const set = new FlushSet();
      try {
        for (const log of logs) log.prepareClose(set);
      } catch (error) {
        finish(asDiskError(error));
        return;
      }
      this.#flushStored(logs, set, finish);
    };
    if (this.#isFlushing) this.#whenIdle = start;
    else start();
  }
}

/** Whether nobody waits for the log's write but those who wait for its flush. */
function isHeld(log: PartitionLog): boolean {
  return !log.isUrgent && log.config.durability === 'fsync' && log.appender.mayWait(heldBytesMax);
}
