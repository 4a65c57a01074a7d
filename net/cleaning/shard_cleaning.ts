/**
 * Compaction as a shard sees it: finds the log that needs it most, offers it to main, and, when a cleaner's thread is
 * free, hands the job over and puts what comes back in place.
 *
 * Thread: the shard's own. It decides and opens files; all reading, writing and flushing is the cleaner's. Concurrency:
 * one job for a log at a time. Durability: a log's cleaned offset is reported only after everything below it is on
 * stable storage.
 */
import type { MessagePort } from 'node:worker_threads';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { CleanableRange, InstalledSegment } from '../../engine/log/cleaner/cleanable_log.ts';
import type {
  CleanedSegment,
  CleaningJob,
  CleaningResult,
} from '../../engine/log/cleaner/cleaning_job.ts';
import type { LogConfig } from '../../engine/log/log_config.ts';
import { partitionDirectoryName } from '../../engine/log/partition_directory.ts';
import type { PartitionLog } from '../../engine/log/partition_log.ts';
import { type Clock, DiskError } from '../../engine/ports.ts';
import type { PartitionReplica } from '../../replication/partition/replica.ts';
import type { CleanerConfig } from '../config/cleaner_config.ts';
import type { Logger } from '../logger.ts';
import type { JobEvent, JobFailure, JobRequest } from './cleaner_messages.ts';

export interface ShardCleaningOptions {
  /** As it is now. */
  readonly config: () => CleanerConfig;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly replicas: () => Iterable<PartitionReplica>;
  /** To main: how much the log needs it that needs it most. */
  readonly offer: (need: number) => void;
  /** The log's cleaned offset has moved. */
  readonly onCleaned: (replica: PartitionReplica) => void;
  /** The disk of the log's directory is broken. */
  readonly onBroken: (log: PartitionLog, error: DiskError) => void;
  /** Runs the function after the events of the current turn. */
  readonly defer: (run: () => void) => void;
}

interface Job {
  readonly replica: PartitionReplica;
  readonly port: MessagePort;
  /** In place, and waiting for its names. */
  installed: InstalledSegment | null;
  /** The log is gone, or is to be left alone from now on. */
  isAborted: boolean;
  whenEnded: (() => void)[];
}

interface Candidate {
  readonly replica: PartitionReplica;
  readonly range: CleanableRange;
}

/** How long a look at logs may hold up the thread, milliseconds. */
const lookMsMax = 2;
/** An overdue log goes before any that is merely dirty. */
const overdueNeed = 1;
const megabyte = 1_000_000;

export class ShardCleaning {
  readonly #options: ShardCleaningOptions;
  readonly #jobs = new Map<PartitionLog, Job>();
  /** Logs that cannot be cleaned, with the settings that they had then: others may help. */
  readonly #uncleanable = new WeakMap<PartitionLog, LogConfig>();
  /** The log that needs it most, by the last look. */
  #offered: PartitionReplica | null = null;
  #isLooking: boolean = false;
  #nextLookMs = 0;
  #isStopped: boolean = false;

  constructor(options: ShardCleaningOptions) {
    this.#options = options;
  }

  /** Once a second. */
  tick(): void {
    const { config, clock } = this.#options;
    if (!config().enable || this.#isStopped) return;
    for (const job of this.#jobs.values()) if (!isWanted(job)) this.#abort(job);
    if (clock.monotonicMs() >= this.#nextLookMs) this.#look();
  }

  /** A thread of the cleaner's is free, for one job. */
  serve(port: MessagePort): void {
    const offered = this.#isStopped ? null : this.#offered;
    const best = offered === null ? null : this.#judge(offered);
    this.#offered = null;
    if (best === null) {
      this.#nextLookMs = 0;
      port.close();
      return;
    }
    const { replica, range } = best;
    const job: Job = { replica, port, installed: null, isAborted: false, whenEnded: [] };
    this.#jobs.set(replica.log, job);
    port.on('message', (event: JobEvent) => this.#onEvent(job, event));
    port.on('close', () => this.#end(job));
    this.#begin(job, replica.log.cleaning.job(range, this.#options.clock.wallMs()));
  }

  /** Puts the job together in as many turns as it takes, and hands it over. */
  #begin(job: Job, making: Generator<void, CleaningJob | null, void>): void {
    if (job.isAborted) return;
    const { done, value } = making.next();
    if (done !== true) this.#options.defer(() => this.#begin(job, making));
    else if (value === null) job.port.close();
    else this.#send(job, { type: 'job', job: value, topicId: job.replica.topicId });
  }

  /**
   * Calls `run` when no thread touches the log's files any more, at once perhaps; a job under way is ended for that. For
   * a log that is about to go.
   */
  release(log: PartitionLog, run: () => void): void {
    const job = this.#jobs.get(log);
    if (job === undefined) {
      run();
      return;
    }
    job.whenEnded.push(run);
    this.#abort(job);
  }

  /** Ends what is under way; fulfilled when no thread touches a file of this shard's logs. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    const ended = [...this.#jobs.keys()].map(
      (log) => new Promise<void>((resolve) => this.release(log, resolve)),
    );
    await Promise.all(ended);
  }

  #abort(job: Job): void {
    if (job.isAborted) return;
    job.isAborted = true;
    this.#send(job, { type: 'abort' });
  }

  #send(job: Job, request: JobRequest): void {
    job.port.postMessage(request);
  }

  /** Looks at all logs, a few milliseconds at a time, and offers the one that needs it most. */
  #look(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#nextLookMs = this.#options.clock.monotonicMs() + this.#options.config().backoffMs;
    const replicas = [...this.#options.replicas()];
    let need = 0;
    let best: PartitionReplica | null = null;
    const lookOn = (from: number): void => {
      const untilMs = this.#options.clock.monotonicMs() + lookMsMax;
      let at = from;
      while (at < replicas.length && this.#options.clock.monotonicMs() < untilMs) {
        if (!this.#learn(replicas[at] as PartitionReplica)) continue;
        const candidate = this.#judge(replicas[at] as PartitionReplica);
        if (candidate !== null && needOf(candidate.range) > need) {
          need = needOf(candidate.range);
          best = candidate.replica;
        }
        at += 1;
      }
      if (at < replicas.length) {
        this.#options.defer(() => lookOn(at));
        return;
      }
      this.#isLooking = false;
      this.#offered = best;
      if (need > 0 && !this.#isStopped) this.#options.offer(need);
    };
    lookOn(0);
  }

  #mayBeCleaned({ log, refusal }: PartitionReplica): boolean {
    if (!log.config.cleanupPolicy.compact || log.isDamaged || log.failure !== null) return false;
    if (refusal !== ErrorCode.NONE || log.cleaning.isSwapping) return false;
    return !this.#jobs.has(log) && this.#uncleanable.get(log) !== log.config;
  }

  /** Asks the next few segments of the log what there is to know; false when there are more of them. */
  #learn(replica: PartitionReplica): boolean {
    try {
      return !this.#mayBeCleaned(replica) || replica.log.cleaning.learn();
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      this.#giveUp(replica.log, error.message);
      return true;
    }
  }

  /** What of the log can be cleaned, or null when it is not worth it or not possible. */
  #judge(replica: PartitionReplica): Candidate | null {
    const { log } = replica;
    if (!this.#mayBeCleaned(replica)) return null;
    try {
      const stable = stableOffsetOf(replica);
      const range = log.cleaning.range(stable, this.#options.clock.wallMs());
      return log.cleaning.isWorthIt(range) ? { replica, range } : null;
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      this.#giveUp(log, error.message);
      return null;
    }
  }

  #onEvent(job: Job, event: JobEvent): void {
    switch (event.type) {
      case 'install':
        this.#send(job, { type: 'reply', isTaken: this.#install(job, event.segment) });
        break;
      case 'installed':
        this.#finish(job);
        break;
      case 'done':
        this.#done(job, event.result, event.elapsedMs);
        break;
      case 'failed':
        this.#failed(job, event.failure);
        break;
    }
  }

  #install(job: Job, segment: CleanedSegment): boolean {
    if (job.isAborted || job.replica.log.failure !== null) return false;
    try {
      job.installed = job.replica.log.cleaning.install(segment);
      return job.installed !== null;
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      this.#options.logger.warn(
        { partition: nameOf(job.replica.log), error },
        'a cleaned segment cannot be opened',
      );
      return false;
    }
  }

  #finish(job: Job): void {
    if (job.installed !== null) job.replica.log.cleaning.finish(job.installed);
    job.installed = null;
  }

  #done({ replica, isAborted }: Job, result: CleaningResult, elapsedMs: number): void {
    const { log } = replica;
    // There may be more: its next look need not wait.
    this.#nextLookMs = 0;
    if (isAborted) return;
    log.cleaning.cleanedOffset = result.cleanedOffset;
    this.#options.onCleaned(replica);
    const { recordsRead, recordsKept, bytesRead, bytesWritten, keylessRecords } = result;
    const fields = {
      partition: nameOf(log),
      cleanedOffset: result.cleanedOffset,
      recordsRead,
      recordsKept,
      bytesRead,
      bytesWritten,
      ms: Math.round(elapsedMs),
      megabytesPerSecond: Math.round(bytesRead / megabyte / (elapsedMs / 1000)),
    };
    this.#options.logger.info(fields, 'cleaned a log');
    if (keylessRecords > 0)
      this.#options.logger.warn(
        { partition: fields.partition, keylessRecords },
        'records without a key cannot be compacted and were removed',
      );
  }

  #failed(job: Job, { kind, reason }: JobFailure): void {
    const { log } = job.replica;
    const partition = nameOf(log);
    const { logger } = this.#options;
    if (kind === 'broken')
      this.#options.onBroken(log, new DiskError('EIO', reason, undefined, true));
    else if (kind === 'uncleanable') this.#giveUp(log, reason);
    else if (kind === 'full')
      logger.logLimited(
        `cleaning ${partition}`,
        60_000,
        'warn',
        { partition, reason },
        'a log cannot be cleaned while the disk is full; trying again until there is room',
      );
    else logger.debug({ partition, kind, reason }, 'the cleaning of a log was ended');
  }

  #giveUp(log: PartitionLog, reason: string): void {
    this.#uncleanable.set(log, log.config);
    this.#options.logger.error(
      { partition: nameOf(log), reason },
      'a log cannot be cleaned and grows; it is tried again after a restart or a change of its settings',
    );
  }

  #end(job: Job): void {
    this.#jobs.delete(job.replica.log);
    for (const run of job.whenEnded.splice(0)) run();
    if (!this.#isStopped) this.tick();
  }
}

function needOf({ dirtyRatio, isOverdue }: CleanableRange): number {
  return dirtyRatio + (isOverdue ? overdueNeed : 0);
}

/** A segment that is in place needs its names first: until then the next start finds it by its `.swap` file alone. */
function isWanted({ replica: { log }, installed }: Job): boolean {
  return installed !== null || (log.config.cleanupPolicy.compact && log.failure === null);
}

/** An open transaction's records may yet be aborted. */
function stableOffsetOf({ log, lastStableOffset }: PartitionReplica): number {
  const open = log.producers.firstOpenTransactionOffset;
  return open < 0 ? lastStableOffset : Math.min(open, lastStableOffset);
}

function nameOf(log: PartitionLog): string {
  return partitionDirectoryName(log.topic, log.partition);
}
