/**
 * What a shard and the cleaner's thread say to each other, on a port that main makes for each job. One job a port. The
 * shard sends `job`, or closes the port when it has none after all; the port is closed by the thread when the job is
 * over.
 */
import type { MessagePort } from 'node:worker_threads';
import type {
  CleanedSegment,
  CleaningBudget,
  CleaningJob,
  CleaningResult,
} from '../../engine/log/cleaner/cleaning_job.ts';

/** What the thread is made with. */
export interface CleanerThreadData {
  readonly budget: CleaningBudget;
  /** Bytes read and written a second, Infinity for no limit. */
  readonly ioBytesPerSecond: number;
}

/** From main. */
export interface ToCleaner {
  readonly type: 'cleaner.serve';
  readonly port: MessagePort;
}

/** To main: the port of the last `serve` is closed. */
export interface FromCleaner {
  readonly type: 'cleaner.idle';
}

export type JobRequest =
  /** With the topic's id: the directory of its name may be another topic's by the time the job begins. */
  | { readonly type: 'job'; readonly job: CleaningJob; readonly topicId: string }
  /** Answers `install`. */
  | { readonly type: 'reply'; readonly isTaken: boolean }
  /** End as soon as may be. */
  | { readonly type: 'abort' };

export type JobEvent =
  | { readonly type: 'install'; readonly segment: CleanedSegment }
  | { readonly type: 'installed' }
  | { readonly type: 'done'; readonly result: CleaningResult; readonly elapsedMs: number }
  | { readonly type: 'failed'; readonly failure: JobFailure };

/**
 * Why a job ended early. `aborted` and `stale` (the log has changed): nothing is wrong. `full`: no room, try later.
 * `uncleanable`: this log cannot be cleaned. `broken`: a flush failed, or files did not get their names.
 */
export interface JobFailure {
  readonly kind: 'aborted' | 'stale' | 'full' | 'uncleanable' | 'broken';
  readonly reason: string;
}
