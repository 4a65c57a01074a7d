/**
 * Worker threads under supervision: started with a name, watched, stopped together; the death of one that was not
 * told to stop is the end of the process (fail-stop), which is the caller's to bring about in `onFailure`.
 *
 * Thread: main. The other end, in each worker, is `supervised_thread.ts`.
 *
 * Legal transitions of a thread:
 *   starting --ready------> running     watched from here on: loading modules may take its time
 *   starting, running --error or exit--> failed      reported once, for the first of all threads
 *   starting, running --stop, retire--> stopping --exit--> stopped      or terminated when the grace has passed
 */
import { MessageChannel, type MessagePort, type Transferable, Worker } from 'node:worker_threads';
import type { FromThread, SupervisedData, ToThread } from './supervised_thread.ts';

/**
 * Memory for objects that are new, of each thread. Node's own limit is 96 MiB, of which 64 are in use once very many objects
 * have been made in a short time, as when partitions are created, and stay so while there is any traffic.
 */
const youngGenerationMiB = 24;

export interface ThreadOptions {
  /** For people: log lines, `top -H`, the inspector. */
  readonly name: string;
  /** The module that the thread runs; it must call `supervised`. */
  readonly entry: URL;
  /** What `supervised` returns there; structured-cloned. */
  readonly data: unknown;
  readonly transfer?: readonly Transferable[];
}

export interface ThreadFailure {
  readonly name: string;
  /** One line. */
  readonly reason: string;
  /** What was thrown, if anything was. */
  readonly error: Error | null;
}

export interface SupervisorOptions {
  /** A thread has died. Called once at most; the process must not go on. */
  onFailure(failure: ThreadFailure): void;
  /** A running thread has not answered for `unresponsiveMs`; once until it answers again. */
  onUnresponsive?(name: string, silentMs: number): void;
  readonly pingMs?: number;
  readonly unresponsiveMs?: number;
}

export interface SupervisedThread {
  readonly name: string;
  readonly worker: Worker;
  /** Resolves when the thread says that it serves; stays pending if it fails before. */
  readonly ready: Promise<void>;
}

interface Entry {
  readonly thread: SupervisedThread;
  readonly port: MessagePort;
  state: 'starting' | 'running' | 'stopping' | 'stopped';
  /** When the ping went out that is not answered yet; null when none is. */
  pingSentMs: number | null;
  reported: boolean;
  readonly exited: Promise<void>;
}

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #pingMs: number;
  readonly #unresponsiveMs: number;
  readonly #entries: Entry[] = [];
  #timer: NodeJS.Timeout | null = null;
  #tickMs = 0;
  #failed: boolean = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#pingMs = options.pingMs ?? 500;
    this.#unresponsiveMs = options.unresponsiveMs ?? 5_000;
  }

  /** Starts a thread. Never throws: what goes wrong in it, its loading included, goes to `onFailure`. */
  spawn(options: ThreadOptions): SupervisedThread {
    const { port1, port2 } = new MessageChannel();
    const workerData: SupervisedData = { supervision: port2, data: options.data };
    const worker = new Worker(options.entry, {
      name: options.name,
      workerData,
      transferList: [port2, ...(options.transfer ?? [])],
      resourceLimits: { maxYoungGenerationSizeMb: youngGenerationMiB },
    });
    const ready = Promise.withResolvers<void>();
    const exited = Promise.withResolvers<void>();
    const thread: SupervisedThread = { name: options.name, worker, ready: ready.promise };
    const entry: Entry = {
      thread,
      port: port1,
      state: 'starting',
      pingSentMs: null,
      reported: false,
      exited: exited.promise,
    };
    this.#entries.push(entry);
    port1.on('message', (message: FromThread) => {
      if (message === 'ready') {
        if (entry.state === 'starting') entry.state = 'running';
        ready.resolve();
      } else {
        entry.pingSentMs = null;
        entry.reported = false;
      }
    });
    worker.on('error', (error) => this.#fail(entry, 'failed', error));
    worker.on('messageerror', (error) => this.#fail(entry, 'got an unreadable message', error));
    worker.on('exit', (code) => {
      const expected = entry.state === 'stopping';
      entry.state = 'stopped';
      this.#entries.splice(this.#entries.indexOf(entry), 1);
      port1.close();
      if (!expected) this.#fail(entry, `exited with code ${code}`, null);
      exited.resolve();
    });
    this.#timer ??= this.#startTimer();
    return thread;
  }

  /**
   * The longest that a running thread has been silent, milliseconds; 0 when all answer. A broker whose shard
   * hangs must count as dead, so that this goes into its heartbeats.
   */
  silentMs(): number {
    const nowMs = performance.now();
    let longest = 0;
    for (const { state, pingSentMs } of this.#entries) {
      if (state === 'running' && pingSentMs !== null)
        longest = Math.max(longest, nowMs - pingSentMs);
    }
    return longest < this.#pingMs ? 0 : longest;
  }

  /**
   * Tells all threads to stop and waits until they have; one that takes longer than `graceMs` is terminated.
   * Returns the names of those.
   */
  async stop(graceMs: number): Promise<string[]> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    const living = this.#entries.filter((entry) => entry.state !== 'stopped');
    for (const entry of living) {
      entry.state = 'stopping';
      entry.port.postMessage('stop' satisfies ToThread);
    }
    const grace = Promise.withResolvers<void>();
    const timer = setTimeout(grace.resolve, graceMs);
    await Promise.race([Promise.all(living.map((entry) => entry.exited)), grace.promise]);
    clearTimeout(timer);
    const late = living.filter((entry) => entry.state === 'stopping');
    await Promise.all(late.map((entry) => entry.thread.worker.terminate()));
    return late.map((entry) => entry.thread.name);
  }

  /** Tells one thread to stop, which nobody waits for; its end is no failure. */
  retire(thread: SupervisedThread): void {
    const entry = this.#entries.find((one) => one.thread === thread);
    if (entry === undefined || entry.state === 'stopping' || entry.state === 'stopped') return;
    entry.state = 'stopping';
    entry.port.postMessage('stop' satisfies ToThread);
  }

  #startTimer(): NodeJS.Timeout {
    this.#tickMs = performance.now();
    const timer = setInterval(() => this.#onTick(), this.#pingMs);
    timer.unref();
    return timer;
  }

  #onTick(): void {
    const nowMs = performance.now();
    // When this thread itself was held up, answers may be waiting in its queue: look at them first.
    const late = nowMs - this.#tickMs > 2 * this.#pingMs;
    this.#tickMs = nowMs;
    for (const entry of this.#entries) {
      if (entry.state !== 'running') continue;
      if (entry.pingSentMs === null) {
        entry.pingSentMs = nowMs;
        entry.port.postMessage('ping' satisfies ToThread);
        continue;
      }
      const silentMs = nowMs - entry.pingSentMs;
      if (late || entry.reported || silentMs < this.#unresponsiveMs) continue;
      entry.reported = true;
      this.#options.onUnresponsive?.(entry.thread.name, silentMs);
    }
  }

  #fail(entry: Entry, what: string, error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    const cause = error instanceof Error ? error : null;
    const text = cause?.message ?? (error === null ? '' : String(error));
    const reason = text === '' ? what : `${what}: ${text}`;
    this.#options.onFailure({ name: entry.thread.name, reason, error: cause });
  }
}
