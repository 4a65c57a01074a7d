/**
 * A broker as a process of its own, for the suites that need to connect to it, kill it, or look at its files.
 *
 * The process stays in the process group of the test file, so that the test runner ends it if the test cannot.
 * Nothing is written but the data directory, and that is removed by `dispose` unless the caller brought it.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 30_000;
const OUTPUT_CHARACTERS_MAX = 1 << 20;

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** How a kind of broker is started; see `millrace` below and `test/compat/kafka_broker.ts`. */
export interface Launcher {
  /** The command that serves `dataDir` on 127.0.0.1 at `port`; port 0 leaves the choice to the broker. */
  command(dataDir: string, port: number, settings: Settings): Command | Promise<Command>;
  /** Where the broker listens, once its output says that it is ready; null before. */
  ready(output: string): Address | null;
}

/** Entries of server.properties. */
export type Settings = Readonly<Record<string, string | number>>;

export interface BrokerOptions {
  readonly launcher?: Launcher;
  readonly settings?: Settings;
  /** A directory of the caller's, which stays; without it a temporary one is made and removed. */
  readonly dataDir?: string;
  readonly port?: number;
}

/** How a process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const root = dirname(dirname(import.meta.dirname));

/** This project's broker. */
export const millrace: Launcher = {
  command(dataDir, port, settings) {
    const all = {
      listeners: `PLAINTEXT://127.0.0.1:${port}`,
      'log.dirs': dataDir,
      ...testShards(),
      ...settings,
    };
    const sets = Object.entries(all).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
    const args = [join(root, 'tools', 'millrace.ts'), 'start', ...sets];
    return { file: process.execPath, args };
  },
  ready(output) {
    const match = /listening on (?:\w+:\/\/)?([\d.]+):(\d+)/.exec(output);
    return match === null ? null : { host: match[1] as string, port: Number(match[2]) };
  },
};

/** The suites run with one shard, and with as many as MILLRACE_TEST_SHARDS says. */
export function testShards(): Settings {
  const shards = process.env['MILLRACE_TEST_SHARDS'];
  return shards === undefined ? {} : { 'num.shards': shards };
}

/** One broker: at most one process at a time, on one data directory and, once it has one, one port. */
export class BrokerProcess {
  readonly dataDir: string;
  readonly #launcher: Launcher;
  readonly #ownsDataDir: boolean;
  #settings: Settings;
  #address: Address;
  #child: ChildProcess | null = null;
  #exited: Promise<Exit> | null = null;
  #output = '';

  private constructor(options: BrokerOptions) {
    this.#launcher = options.launcher ?? millrace;
    this.#settings = options.settings ?? {};
    this.#address = { host: '127.0.0.1', port: options.port ?? 0 };
    this.#ownsDataDir = options.dataDir === undefined;
    this.dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'millrace-broker-'));
  }

  /** Starts a broker and resolves once it is ready. Throws with its output if it ends or stays silent instead. */
  static async start(options: BrokerOptions = {}): Promise<BrokerProcess> {
    const broker = new BrokerProcess(options);
    try {
      await broker.#launch();
      return broker;
    } catch (error) {
      await broker.dispose();
      throw error;
    }
  }

  /** `host:port`, as clients take it. Stays the same over restarts. */
  get bootstrap(): string {
    return `${this.#address.host}:${this.#address.port}`;
  }

  get host(): string {
    return this.#address.host;
  }

  get port(): number {
    return this.#address.port;
  }

  /** The process id, for reading /proc and for signals such as SIGSTOP. Throws while no process runs. */
  get pid(): number {
    assert(this.#child?.pid !== undefined, 'the broker is not running');
    return this.#child.pid;
  }

  get isRunning(): boolean {
    return this.#child !== null;
  }

  /** What the process of the last start has written to standard output and error; at most the last MiB. */
  get output(): string {
    return this.#output;
  }

  /** How the current process ends, whenever that is. */
  get exited(): Promise<Exit> {
    assert(this.#exited !== null, 'the broker was not started');
    return this.#exited;
  }

  /** kill -9. Resolves once the process is gone. */
  async kill(): Promise<Exit> {
    return this.#end('SIGKILL');
  }

  /** SIGTERM. Resolves once the process has ended; kills it and throws if that takes more than 30 s. */
  async stop(): Promise<Exit> {
    return this.#end('SIGTERM');
  }

  /** Starts the broker again on the same directory and port, with `settings` in place of the earlier ones if given. */
  async restart(settings?: Settings): Promise<void> {
    assert(this.#child === null, 'the broker still runs');
    this.#settings = settings ?? this.#settings;
    await this.#launch();
  }

  /** Kills the broker if it runs, and removes the data directory unless it is the caller's. */
  async dispose(): Promise<void> {
    if (this.#child !== null) await this.kill();
    if (this.#ownsDataDir) rmSync(this.dataDir, { recursive: true, force: true });
  }

  async #launch(): Promise<void> {
    const { port } = this.#address;
    const command = await this.#launcher.command(this.dataDir, port, this.#settings);
    this.#output = '';
    const child = spawn(command.file, command.args, {
      cwd: this.dataDir,
      env: command.env ?? process.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    this.#exited = new Promise((resolve) => {
      const done = (code: number | null, signal: NodeJS.Signals | null): void => {
        if (this.#child === child) this.#child = null;
        resolve({ code, signal });
      };
      child.once('exit', done);
      child.once('error', (error) => {
        this.#output += error.message;
        done(null, null);
      });
    });
    this.#address = await this.#waitUntilReady(child, this.#exited);
  }

  #waitUntilReady(child: ChildProcess, exited: Promise<Exit>): Promise<Address> {
    return new Promise((resolve, reject) => {
      let isReady = false;
      const fail = (what: string): void => {
        clearTimeout(timer);
        if (!isReady) reject(new Error(`the broker ${what}; it said:\n${this.#output}`));
      };
      const timer = setTimeout(() => {
        fail(`was not ready after ${READY_TIMEOUT_MS / 1000} s`);
        child.kill('SIGKILL');
      }, READY_TIMEOUT_MS);
      const read = (chunk: string): void => {
        this.#output = (this.#output + stripVTControlCharacters(chunk)).slice(
          -OUTPUT_CHARACTERS_MAX,
        );
        if (isReady) return;
        const address = this.#launcher.ready(this.#output);
        if (address === null) return;
        isReady = true;
        clearTimeout(timer);
        resolve(address);
      };
      child.stdout?.setEncoding('utf8').on('data', read);
      child.stderr?.setEncoding('utf8').on('data', read);
      void exited.then(({ code, signal }) => fail(`ended with ${signal ?? `exit code ${code}`}`));
    });
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<Exit> {
    const child = this.#child;
    assert(child !== null && this.#exited !== null, 'the broker is not running');
    child.kill(signal);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      child.kill('SIGKILL');
    }, STOP_TIMEOUT_MS);
    const exit = await this.#exited;
    clearTimeout(timer);
    assert(
      !isLate,
      `the broker took more than ${STOP_TIMEOUT_MS / 1000} s to stop:\n${this.#output}`,
    );
    return exit;
  }
}
