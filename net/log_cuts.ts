/**
 * Cuts followers' logs: nobody else touches the files then, a crash at any moment leaves a log that recovery reads right,
 * and the follower goes on when the cut is on stable storage.
 *
 * Thread: the shard's own. Readers that have segments pinned go on with the old files. Durability: before a cut below the
 * recovery point that has been written down, a lower one is; else the next start would believe what stands there instead.
 */
import { ErrorCode } from '../engine/error_code.gen.ts';
import { asDiskError } from '../engine/log/flush_set.ts';
import { partitionDirectoryName } from '../engine/log/partition_directory.ts';
import type { PartitionLog } from '../engine/log/partition_log.ts';
import type { PartitionFollower } from '../replication/partition/follower.ts';
import type { Logger } from './logger.ts';
import type { LogStarts } from './retention/log_starts.ts';

type Done = (error: ErrorCode) => void;

export interface LogCutsOptions {
  readonly starts: LogStarts;
  /** Calls `run` when no other thread touches the log's files. */
  readonly release: (log: PartitionLog, run: () => void) => void;
  readonly logger: Logger;
}

export class LogCuts {
  readonly #options: LogCutsOptions;
  /** Wait for the flush of their cuts. */
  readonly #flushing = new Map<PartitionLog, () => void>();

  constructor(options: LogCutsOptions) {
    this.#options = options;
  }

  /** See `FollowerOptions.cut`. */
  cut(follower: PartitionFollower, offset: number, anew: boolean, done: Done): void {
    const { log, highWatermark } = follower;
    const run = (): void => this.#cutNow(follower, offset, anew, done);
    const release = (): void => {
      // The cleaner keeps below the high watermark.
      if (anew || offset < highWatermark) this.#options.release(log, run);
      else run();
    };
    if (offset >= log.recoveryPoint) {
      release();
      return;
    }
    void this.#options.starts
      .lowerRecoveryPoint(follower, offset)
      .then((error) => (error === ErrorCode.NONE ? release() : done(error)));
  }

  /** A flush of the log has ended. */
  flushed(log: PartitionLog): void {
    if (this.#flushing.size === 0) return;
    const done = this.#flushing.get(log);
    // It may have begun before the cut.
    if (done === undefined || log.flush.isNeeded) return;
    this.#flushing.delete(log);
    done();
  }

  /** The log is none of this shard's any more. */
  forget(log: PartitionLog): void {
    this.#flushing.delete(log);
  }

  #cutNow(follower: PartitionFollower, offset: number, anew: boolean, done: Done): void {
    const { log, flushGroup, refusal } = follower;
    if (refusal !== ErrorCode.NONE) {
      done(refusal);
      return;
    }
    const { logEndOffset } = log;
    let error: ErrorCode;
    try {
      error = anew ? log.restartAt(offset) : log.truncateTo(offset);
    } catch (caught) {
      // The log in memory and the one on the disk may be two: only a start brings them together.
      flushGroup.takeOffline(asDiskError(caught));
      error = ErrorCode.KAFKA_STORAGE_ERROR;
    }
    if (error !== ErrorCode.NONE) {
      done(error);
      return;
    }
    if (!log.flush.isNeeded) {
      this.#settled(follower, offset, anew, done);
      return;
    }
    const partition = partitionDirectoryName(log.topic, log.partition);
    const fields = { partition, fromOffset: log.logEndOffset, toOffset: logEndOffset };
    if (anew) this.#options.logger.warn(fields, 'the leader’s log begins later: begun anew there');
    else this.#options.logger.info(fields, 'cut what the leader’s log does not have');
    this.#flushing.set(log, () => this.#settled(follower, offset, anew, done));
    flushGroup.flushSoon(log);
  }

  #settled(
    { log, flushGroup }: PartitionFollower,
    offset: number,
    anew: boolean,
    done: Done,
  ): void {
    try {
      log.noteCut(anew ? 0 : offset);
      done(ErrorCode.NONE);
    } catch (caught) {
      flushGroup.takeOffline(asDiskError(caught));
      done(ErrorCode.KAFKA_STORAGE_ERROR);
    }
  }
}
