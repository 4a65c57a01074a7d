/** A broker under test as the harness sees it: how to start it, and what the kernel says of its process. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Daemon, freePort, makeDirectory, removeDirectory, sleep } from './children.ts';
import { readRssMiB, readStat } from './proc.ts';
import { withClient } from './requests.ts';

/** What an acknowledgement means: `os` the page cache, `fsync` stable storage. */
export type Durability = 'os' | 'fsync';

/** Where one broker lives; kept over restarts. */
export interface Place {
  directory: string;
  port: number;
  /** A second free port, for brokers that need one (Kafka's controller listener). */
  secondPort: number;
}

/** A kind of broker. Add one to `broker_list.ts` and every work runs on it. */
export interface BrokerSpec {
  name: string;
  /** What it cannot do is left out of its works: reading, flushing before the answer, restarting. */
  can: { fetch: boolean; flush: boolean; restart: boolean };
  /** Payload to produce, and not to count, before the first round of each process (JIT). */
  warmUpMiB: number;
  /** Topic settings that make it flush before the answer, where that is not a setting of the process. */
  flushedTopicConfigs: Record<string, string>;
  /** Downloads and checks, once a run; resolves with the version to print. */
  setUp(): Promise<string>;
  /** Makes a new data directory ready; not part of any start-up figure. */
  prepare(place: Place): Promise<void>;
  command(place: Place, durability: Durability): string[];
  /** How many shard threads it has, where `inside.ts` can be loaded into them; else null. */
  shards: number | null;
}

export interface LaunchOptions {
  /** The CPU that the broker is bound to. */
  cpu: number;
  /** Where data directories are made: a real disk, not a tmpfs. */
  base: string;
}

export class RunningBroker {
  readonly spec: BrokerSpec;
  readonly place: Place;
  readonly #cpu: number;
  #daemon: Daemon | null = null;

  private constructor(spec: BrokerSpec, place: Place, cpu: number) {
    this.spec = spec;
    this.place = place;
    this.#cpu = cpu;
  }

  /** A broker that has a prepared directory but does not run yet. */
  static async place(spec: BrokerSpec, options: LaunchOptions): Promise<RunningBroker> {
    const place = {
      directory: makeDirectory(options.base, spec.name),
      port: await freePort(),
      secondPort: await freePort(),
    };
    mkdirSync(join(place.directory, 'data'));
    await spec.prepare(place);
    return new RunningBroker(spec, place, options.cpu);
  }

  get port(): number {
    return this.place.port;
  }

  get pid(): number {
    if (this.#daemon === null) throw new Error(`${this.spec.name} is not running`);
    return this.#daemon.pid;
  }

  /**
   * Starts the process on its CPU. Returns at once: `waitUntilAnswers` knows when it is up.
   * @param variables added to its environment
   */
  start(durability: Durability, variables: Readonly<Record<string, string>> = {}): void {
    if (this.#daemon !== null) throw new Error(`${this.spec.name} is running already`);
    // The kernel ends the broker should the harness be killed without a chance to do it.
    const launcher = ['setpriv', '--pdeathsig', 'KILL', 'taskset', '-c', String(this.#cpu)];
    const argv = [...launcher, ...this.spec.command(this.place, durability)];
    const { NODE_OPTIONS: _, ...env } = process.env;
    const log = join(this.place.directory, 'broker.log');
    this.#daemon = new Daemon(argv, log, this.place.directory, { ...env, ...variables });
  }

  /** Resolves when the broker accepts connections; throws when it ended or after `timeoutMs`. */
  async waitUntilAnswers(timeoutMs = 120_000): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      this.assertAlive();
      const up = await withClient(this.port, async () => true).catch(() => false);
      if (up) return;
      if (performance.now() > deadline)
        throw new Error(`${this.spec.name} did not come up in ${timeoutMs} ms`);
      await sleep(10);
    }
  }

  assertAlive(): void {
    this.#daemon?.assertAlive();
  }

  /** Asks for what `inside.ts` counts, where that was loaded. */
  mark(): void {
    process.kill(this.pid, 'SIGUSR2');
  }

  /** User and system time of all its threads so far, in milliseconds. */
  cpuMs(): number {
    return readStat(this.pid).cpuMs;
  }

  rssMiB(): number {
    return readRssMiB(this.pid);
  }

  /** Ends the process and resolves with how many milliseconds that took. */
  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<number> {
    const daemon = this.#daemon;
    this.#daemon = null;
    return daemon === null ? 0 : await daemon.end(signal);
  }

  /** Ends the process and removes its data. */
  async discard(): Promise<void> {
    await this.stop('SIGKILL');
    removeDirectory(this.place.directory);
  }
}

/**
 * Waits until none of the brokers uses more than about a tenth of a core (late compilation, collection,
 * deletion of files), so that no round pays for the one before. Gives up waiting after `timeoutMs`.
 */
export async function settle(brokers: readonly RunningBroker[], timeoutMs = 20_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  const windowMs = 300;
  while (performance.now() < deadline) {
    const before = brokers.map((broker) => broker.cpuMs());
    await sleep(windowMs);
    const busy = brokers.some((broker, index) => broker.cpuMs() - before[index]! > windowMs / 10);
    if (!busy) return;
  }
}
