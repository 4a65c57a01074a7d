/**
 * The cleaner's threads: starts them when a shard has something to clean, gives each the log that needs it most, and ends
 * them when there has been nothing to do for a while.
 *
 * Thread: main. A worker costs some 24 MB before any code, which a broker without compacted topics need not pay.
 */
import { MessageChannel, type Worker } from 'node:worker_threads';
import type { SupervisedThread, Supervisor } from '../../engine/thread/supervisor.ts';
import type { CleanerConfig } from '../config/cleaner_config.ts';
import type { ToShard } from '../shard_messages.ts';
import type { CleanerThreadData, FromCleaner, ToCleaner } from './cleaner_messages.ts';

interface Cleaner {
  readonly thread: SupervisedThread;
  isBusy: boolean;
  idleTimer: NodeJS.Timeout | null;
}

const idleMs = 30_000;

export class CleanerPool {
  readonly #supervisor: Supervisor;
  readonly #config: () => CleanerConfig;
  /** By shard: how much the log needs it that needs it most. */
  readonly #offers = new Map<Worker, number>();
  readonly #cleaners = new Set<Cleaner>();
  #isStopped: boolean = false;
  #started = 0;

  constructor(supervisor: Supervisor, config: () => CleanerConfig) {
    this.#supervisor = supervisor;
    this.#config = config;
  }

  /** A shard has something to clean: it gets a port to a thread when one is free. Replaces its earlier offer. */
  offer(shard: Worker, need: number): void {
    if (this.#isStopped) return;
    this.#offers.set(shard, need);
    this.#match();
  }

  /** No more threads, no more grants; the supervisor stops those that run. */
  stop(): void {
    this.#isStopped = true;
    this.#offers.clear();
    for (const { idleTimer } of this.#cleaners) if (idleTimer !== null) clearTimeout(idleTimer);
  }

  #match(): void {
    while (this.#offers.size > 0) {
      const cleaner = this.#free();
      if (cleaner === null) return;
      let best: Worker | null = null;
      for (const [shard, need] of this.#offers)
        if (best === null || need > (this.#offers.get(best) ?? 0)) best = shard;
      this.#grant(cleaner, best!);
    }
  }

  #grant(cleaner: Cleaner, shard: Worker): void {
    this.#offers.delete(shard);
    cleaner.isBusy = true;
    if (cleaner.idleTimer !== null) clearTimeout(cleaner.idleTimer);
    cleaner.idleTimer = null;
    const { port1, port2 } = new MessageChannel();
    const serve: ToCleaner = { type: 'cleaner.serve', port: port1 };
    const granted: ToShard = { type: 'shard.cleaner', port: port2 };
    cleaner.thread.worker.postMessage(serve, [port1]);
    shard.postMessage(granted, [port2]);
  }

  #free(): Cleaner | null {
    for (const cleaner of this.#cleaners) if (!cleaner.isBusy) return cleaner;
    return this.#cleaners.size < this.#config().threads ? this.#start() : null;
  }

  #start(): Cleaner {
    const { threads, dedupeBufferSize, ioBufferLoadFactor, ioBufferSize, ioMaxBytesPerSecond } =
      this.#config();
    const data: CleanerThreadData = {
      budget: {
        mapBytes: Math.floor(dedupeBufferSize / threads),
        mapLoadFactor: ioBufferLoadFactor,
        ioBytes: Math.floor(ioBufferSize / threads),
      },
      ioBytesPerSecond: ioMaxBytesPerSecond / threads,
    };
    this.#started += 1;
    const entry = new URL('./cleaner_main.ts', import.meta.url);
    const thread = this.#supervisor.spawn({ name: `cleaner ${this.#started}`, entry, data });
    const cleaner: Cleaner = { thread, isBusy: false, idleTimer: null };
    this.#cleaners.add(cleaner);
    thread.worker.on('message', (_message: FromCleaner) => this.#onIdle(cleaner));
    return cleaner;
  }

  #onIdle(cleaner: Cleaner): void {
    cleaner.isBusy = false;
    this.#match();
    if (cleaner.isBusy || this.#isStopped) return;
    cleaner.idleTimer = setTimeout(() => {
      this.#cleaners.delete(cleaner);
      this.#supervisor.retire(cleaner.thread);
    }, idleMs);
    cleaner.idleTimer.unref();
  }
}
