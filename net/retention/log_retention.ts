/**
 * Looks now and then for segments that the settings let go, and sees them off: warns of readers that are behind, has
 * the new log start written down, takes the segments out of use, and removes their files later (file.delete.delay.ms).
 *
 * Thread: the shard's own. Concurrency: one round at a time, a few partitions of it at a time, so that no request waits
 * for it and many partitions share one write of the checkpoint. Durability: see `LogStarts` and `SegmentDeletion`.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { FileRemoval } from '../../engine/log/file_removal.ts';
import { asDiskError, FlushSet } from '../../engine/log/flush_set.ts';
import type { PartitionLog } from '../../engine/log/partition_log.ts';
import type { DeletableSegment, RetentionRules } from '../../engine/log/retention.ts';
import type { Clock, Disk, DiskError } from '../../engine/ports.ts';
import { PartitionLeader } from '../../replication/partition/leader.ts';
import type { PartitionReplica } from '../../replication/partition/replica.ts';
import type { Logger } from '../logger.ts';
import type { LogStarts } from './log_starts.ts';
import type { LossWarnings } from './loss_warnings.ts';
import { RetentionClock } from './retention_clock.ts';

export interface LogRetentionOptions {
  readonly clock: Clock;
  readonly disk: Disk;
  readonly logger: Logger;
  /** log.retention.check.interval.ms */
  readonly intervalMs: number;
  readonly replicas: () => Iterable<PartitionReplica>;
  readonly starts: LogStarts;
  readonly warnings: LossWarnings;
  /** Runs the function after the events of the current turn. */
  readonly defer: (run: () => void) => void;
}

/** As Kafka's: a start has other things to do first. */
const firstCheckMs = 30_000;
/** Partitions that are looked at together. */
const slice = 32;
/** After so long others get their turn, milliseconds. */
const examineMsMax = 2;
/**
 * The segment that is written to goes for its age only when nothing has been appended to it for this long, or for
 * retention.ms if that is less, on a clock that does not leap: a wall clock an hour off takes no fresh records.
 */
const activeIdleMs = 3_600_000;
/** From here on the wall clock's lead is worth a warning. */
const leapMs = 300_000;

/** Since when a log's end has not moved, on the monotonic clock. */
interface Quiet {
  readonly endOffset: number;
  readonly sinceMs: number;
}

interface Removal {
  readonly log: PartitionLog;
  readonly name: string;
  readonly dueMs: number;
}

export class LogRetention {
  readonly #options: LogRetentionOptions;
  readonly #time: RetentionClock;
  readonly #quiet = new WeakMap<PartitionReplica, Quiet>();
  #removals: Removal[] = [];
  readonly #removal: FileRemoval;
  #nextMs: number;
  #isRunning: boolean = false;
  #isStopped: boolean = false;

  constructor(options: LogRetentionOptions) {
    this.#options = options;
    this.#time = new RetentionClock(options.clock);
    this.#removal = new FileRemoval(options.disk);
    this.#nextMs = options.clock.monotonicMs() + Math.min(firstCheckMs, options.intervalMs);
  }

  /** The logs are about to be closed: nothing more is begun. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Once a second. */
  tick(): void {
    const { clock, intervalMs } = this.#options;
    const nowMs = clock.monotonicMs();
    this.#removeDue(nowMs);
    // Kept going, so that a leap of the wall clock is measured from where it happened.
    this.#time.nowMs();
    if (this.#isRunning || nowMs < this.#nextMs) return;
    this.#nextMs = nowMs + intervalMs;
    void this.check();
  }

  /** One round over all partitions. Never rejects but for a fault of the program. */
  async check(): Promise<void> {
    this.#isRunning = true;
    this.#warnOfLeap();
    const replicas = [...this.#options.replicas()];
    for (let from = 0; from < replicas.length; from += slice) {
      await this.#examineAll(replicas.slice(from, from + slice));
      await this.#turn();
    }
    this.#isRunning = false;
  }

  /** Together, so that they share a write of the checkpoint; but the first look at a long log asks every segment's size. */
  async #examineAll(replicas: readonly PartitionReplica[]): Promise<void> {
    const { clock } = this.#options;
    const running: Promise<void>[] = [];
    let sinceMs = clock.monotonicMs();
    for (const replica of replicas) {
      running.push(this.#examine(replica));
      if (clock.monotonicMs() - sinceMs < examineMsMax) continue;
      await this.#turn();
      sinceMs = clock.monotonicMs();
    }
    await Promise.all(running);
  }

  #mayGoOn({ refusal, log }: PartitionReplica): boolean {
    return !this.#isStopped && refusal === ErrorCode.NONE && log.failure === null;
  }

  async #examine(replica: PartitionReplica): Promise<void> {
    const { log } = replica;
    const isIdle = this.#isIdle(replica);
    if (!this.#mayGoOn(replica) || log.isDamaged) return;
    try {
      // A follower's log begins where its leader's does.
      if (replica instanceof PartitionLeader) await this.#decide(replica, isIdle);
      if (this.#mayGoOn(replica) && log.deletion.countBelowStart > 0) await this.#remove(replica);
    } catch (error) {
      this.#failed(replica, asDiskError(error));
    }
  }

  async #decide(leader: PartitionLeader, isIdle: boolean): Promise<void> {
    const rulesNow = (): RetentionRules => {
      return { highWatermark: leader.highWatermark, nowMs: this.#time.nowMs(), isIdle };
    };
    await this.#options.warnings.check(leader, rulesNow());
    if (this.#mayGoOn(leader)) await this.#advance(leader, this.#findDeletable(leader, rulesNow()));
  }

  /** What goes now; with the segment that is written to only once another one has taken its place. */
  #findDeletable({ log }: PartitionLeader, rules: RetentionRules): DeletableSegment[] {
    const found = log.deletion.find(rules);
    if (found[found.length - 1]?.isActive !== true) return found;
    try {
      if (log.deletion.roll(this.#options.clock.wallMs())) return found;
    } catch (error) {
      // No room for a new segment: the others may make some.
      if (!asDiskError(error).isPassing) throw error;
    }
    return found.slice(0, -1);
  }

  async #advance(leader: PartitionLeader, found: readonly DeletableSegment[]): Promise<void> {
    const { log } = leader;
    const last = found[found.length - 1];
    if (last === undefined || last.endOffset <= log.logStartOffset) return;
    const fromOffset = log.logStartOffset;
    const error = await this.#options.starts.advance(leader, last.endOffset);
    if (error === ErrorCode.KAFKA_STORAGE_ERROR && this.#mayGoOn(leader))
      await this.#deleteInPlace(leader, last.endOffset);
    if (log.logStartOffset === fromOffset) return;
    this.#options.logger.info(
      {
        partition: nameOf(leader),
        logStartOffset: log.logStartOffset,
        segments: found.length,
        bytes: found.reduce((sum, { bytes }) => sum + bytes, 0),
        because: [...new Set(found.map(({ reason }) => reasons[reason]))],
      },
      'retention deletes old records',
    );
  }

  async #remove(replica: PartitionReplica): Promise<void> {
    const { log, flushGroup } = replica;
    const set = new FlushSet();
    const snapshotOffset = log.deletion.prepare(set);
    if (snapshotOffset < 0) return;
    if (set.count > 0) {
      const error = await new Promise<DiskError | null>((resolve) =>
        flushGroup.flushFiles(set, resolve),
      );
      if (error !== null) throw error;
      if (!this.#mayGoOn(replica)) return;
    }
    for (;;) {
      const names = log.deletion.remove(snapshotOffset);
      if (names.length === 0) return;
      this.#removeLater(log, names);
      await this.#turn();
      if (!this.#mayGoOn(replica)) return;
    }
  }

  /** Lets others have theirs. */
  #turn(): Promise<void> {
    return new Promise((resolve) => this.#options.defer(resolve));
  }

  #removeLater(log: PartitionLog, names: readonly string[]): void {
    const dueMs = this.#options.clock.monotonicMs() + log.config.fileDeleteDelayMs;
    for (const name of names) this.#removals.push({ log, name, dueMs });
  }

  /** The disk is too full for a checkpoint, or it cannot be written for another reason: make room all the same. */
  async #deleteInPlace(leader: PartitionLeader, offset: number): Promise<void> {
    const { log } = leader;
    while (this.#mayGoOn(leader)) {
      const names = log.deletion.removeInPlace(offset);
      if (names.length === 0) return;
      for (const name of names) this.#removeFile(log, name);
      // Those who wait are to hear of it.
      leader.advanceLogStart(log.logStartOffset);
      await this.#turn();
    }
  }

  #removeDue(nowMs: number): void {
    const due = this.#removals.filter(({ dueMs }) => dueMs <= nowMs);
    if (due.length === 0) return;
    this.#removals = this.#removals.filter(({ dueMs }) => dueMs > nowMs);
    for (const { log, name } of due) this.#removeFile(log, name);
  }

  #removeFile(log: PartitionLog, name: string): void {
    this.#removal.remove(
      () => `${log.dir}/${name}`,
      (error, path) =>
        this.#options.logger.warn({ path, error }, 'a deleted segment could not be removed'),
    );
  }

  /** Whether nothing has been appended for so long that a leap of the wall clock cannot be why its records look old. */
  #isIdle(replica: PartitionReplica): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    const endOffset = replica.log.logEndOffset;
    const quiet = this.#quiet.get(replica);
    if (quiet === undefined || quiet.endOffset !== endOffset) {
      this.#quiet.set(replica, { endOffset, sinceMs: nowMs });
      return false;
    }
    return nowMs - quiet.sinceMs >= Math.min(replica.log.config.retentionMs, activeIdleMs);
  }

  #warnOfLeap(): void {
    this.#time.nowMs();
    const ms = Math.round(this.#time.leapMs);
    if (ms < leapMs) return;
    this.#options.logger.logLimited(
      'wall clock leapt',
      3_600_000,
      'warn',
      { aheadMs: ms },
      'the wall clock has leapt ahead: retention follows it slowly, so that a wrong clock deletes nothing at once',
    );
  }

  #failed(replica: PartitionReplica, error: DiskError): void {
    if (!error.isPassing) {
      replica.flushGroup.takeOffline(error);
      return;
    }
    this.#options.logger.logLimited(
      'retention put off',
      60_000,
      'warn',
      { partition: nameOf(replica), error },
      'old segments could not be deleted; trying again with the next check',
    );
  }
}

const reasons = {
  start: 'log start offset',
  bytes: 'retention.bytes',
  time: 'retention.ms',
} as const;

function nameOf({ topic, partition }: PartitionReplica): string {
  return `${topic}-${partition}`;
}
