/**
 * Runs one job on the cleaner's thread: drives the cleaning step by step, lets the event loop have its turn between
 * them, and talks to the shard.
 */
import fs from 'node:fs';
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import {
  type CleaningBudget,
  type CleaningJob,
  UncleanableError,
} from '../../engine/log/cleaner/cleaning_job.ts';
import {
  type CleaningStep,
  LogCleaning,
  StaleJobError,
} from '../../engine/log/cleaner/log_cleaning.ts';
import { UnreadableBatchError } from '../../engine/log/cleaner/record_cursor.ts';
import { partitionMetadataFile } from '../../engine/log/file_names.ts';
import { parseTopicId } from '../../engine/log/log_parts.ts';
import { type Clock, type Disk, DiskError, type Random } from '../../engine/ports.ts';
import type { JobEvent, JobFailure, JobRequest } from './cleaner_messages.ts';
import type { IoThrottle } from './io_throttle.ts';

export interface JobRunnerOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly budget: CleaningBudget;
  readonly throttle: IoThrottle;
}

/** While the disk is full and a swap has begun. */
const retryMs = 1_000;

class AbortedError extends Error {
  override readonly name = 'AbortedError';
}

export class JobRunner {
  readonly #options: JobRunnerOptions;
  readonly #port: MessagePort;
  readonly #abort = new AbortController();
  readonly #ended = Promise.withResolvers<void>();
  #onReply: (isTaken: boolean) => void = () => {};
  /** A segment is in place at the shard whose names are not. */
  #isHalfSwapped: boolean = false;

  constructor(port: MessagePort, options: JobRunnerOptions) {
    this.#port = port;
    this.#options = options;
    port.on('message', (message: JobRequest) => {
      if (message.type === 'job') void this.#run(message.job, message.topicId);
      else if (message.type === 'reply') this.#onReply(message.isTaken);
      else this.abort();
    });
    port.on('close', () => {
      // Closed without a job, or the shard's thread is gone and the process with it.
      this.#onReply(false);
      this.abort();
      if (!this.#isRunning) this.#ended.resolve();
    });
  }

  #isRunning: boolean = false;

  /** Fulfilled when the job is over and the port closed. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Ends the job as soon as may be; closes the port if none has begun. */
  abort(): void {
    this.#abort.abort();
    if (!this.#isRunning) this.#port.close();
  }

  async #run(job: CleaningJob, topicId: string): Promise<void> {
    this.#isRunning = true;
    const { clock } = this.#options;
    const startedMs = clock.monotonicMs();
    const directory = openDirectory(job.dir);
    try {
      this.#checkTopic(directory.path, topicId);
      const result = await this.#drive({ ...job, dir: directory.path });
      this.#post({ type: 'done', result, elapsedMs: clock.monotonicMs() - startedMs });
    } catch (error) {
      this.#post({ type: 'failed', failure: this.#judge(error) });
    } finally {
      directory.close();
      this.#port.close();
      this.#ended.resolve();
    }
  }

  /** @throws StaleJobError when the directory is that of a later topic of the same name */
  #checkTopic(path: string, topicId: string): void {
    const bytes = this.#options.disk.readFile(`${path}/${partitionMetadataFile}`);
    const found = bytes === null ? null : parseTopicId(bytes);
    if (found !== null && found !== topicId)
      throw new StaleJobError('the topic was deleted and another one has its name');
  }

  async #drive(job: CleaningJob): Promise<Extract<JobEvent, { type: 'done' }>['result']> {
    const { disk, budget, random } = this.#options;
    const seed = Math.floor(random.next() * 0x1_0000_0000);
    const steps = new LogCleaning(disk, job, budget, seed).run();
    try {
      let step = steps.next(true);
      while (step.done !== true) {
        const isTaken = await this.#act(step.value);
        // A segment that the shard has taken needs its names first.
        if (this.#abort.signal.aborted && !(step.value.type === 'install' && isTaken))
          throw new AbortedError('the cleaning was ended');
        this.#isHalfSwapped ||= step.value.type === 'install' && isTaken;
        step = steps.next(isTaken);
        if (step.done === true || step.value.type === 'installed') this.#isHalfSwapped = false;
      }
      return step.value;
    } catch (error) {
      if (error instanceof AbortedError) steps.return({} as never);
      throw error;
    }
  }

  async #act(step: CleaningStep): Promise<boolean> {
    switch (step.type) {
      case 'slice': {
        const { throttle, clock } = this.#options;
        const waitMs = throttle.spend(step.bytes, clock.monotonicMs());
        if (waitMs < 1) await setImmediate();
        else await this.#wait(waitMs);
        return true;
      }
      case 'install': {
        const reply = Promise.withResolvers<boolean>();
        this.#onReply = reply.resolve;
        const { segment } = step;
        const { offsetIndex, timeIndex } = segment;
        this.#post({ type: 'install', segment }, [offsetIndex.buffer, timeIndex.buffer]);
        return reply.promise;
      }
      case 'retry':
        await this.#wait(retryMs);
        return true;
      case 'installed':
        this.#post({ type: 'installed' });
        return true;
    }
  }

  async #wait(ms: number): Promise<void> {
    try {
      await setTimeout(ms, undefined, { signal: this.#abort.signal });
    } catch {
      // Aborted: the caller looks.
    }
  }

  #post(event: JobEvent, transfer: ArrayBufferLike[] = []): void {
    this.#port.postMessage(event, transfer as ArrayBuffer[]);
  }

  /**
   * What is not one of these is a fault of the program. It does not end the process, which would meet the same log again
   * after its start: that log is left alone.
   */
  #judge(error: unknown): JobFailure {
    if (!(error instanceof Error)) throw error;
    const reason = error.message;
    if (this.#isHalfSwapped && !(error instanceof AbortedError)) return { kind: 'broken', reason };
    if (error instanceof AbortedError) return { kind: 'aborted', reason };
    if (error instanceof StaleJobError) return { kind: 'stale', reason };
    if (error instanceof UncleanableError || error instanceof UnreadableBatchError)
      return { kind: 'uncleanable', reason };
    if (!(error instanceof DiskError))
      return { kind: 'uncleanable', reason: `internal error: ${error.stack ?? reason}` };
    if (error.isFlushFailure) return { kind: 'broken', reason };
    if (error.code === 'ENOENT') return { kind: 'stale', reason };
    return { kind: error.isPassing ? 'full' : 'uncleanable', reason };
  }
}

/**
 * A path to the directory that goes on meaning it when it is renamed, because its topic is deleted, and another takes its
 * name. Where there is no /proc, the name itself: the shard aborts the job at once then, and answers no more.
 */
function openDirectory(dir: string): { path: string; close: () => void } {
  let fd = -1;
  try {
    fd = fs.openSync(dir, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
    const path = `/proc/self/fd/${fd}`;
    if (fs.realpathSync(path) === fs.realpathSync(dir))
      return { path, close: () => fs.closeSync(fd) };
  } catch {
    // The directory is gone, which the job will see, or there is no /proc.
  }
  if (fd >= 0) fs.closeSync(fd);
  return { path: dir, close: () => {} };
}
