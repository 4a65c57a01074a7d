/**
 * Child processes, temporary directories and waiting, all bounded in time. Whatever is still there when
 * the harness ends, also by a signal or an exception, is ended by its process id and removed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

const running = new Set<ChildProcess>();
const directories = new Set<string>();

process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  for (const directory of directories) removeDirectory(directory);
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => process.exit(130));

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Makes a directory below `base` that is removed at the latest when the harness ends. */
export function makeDirectory(base: string, name: string): string {
  const directory = mkdtempSync(join(base, `millrace-bench-${name}-`));
  directories.add(directory);
  return directory;
}

export function removeDirectory(directory: string): void {
  // A process that is just being killed may still add a file or two.
  rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  directories.delete(directory);
}

/** A port of 127.0.0.1 that was free a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      if (address === null || typeof address === 'string') throw new Error('no port was given');
      server.close(() => resolve(address.port));
    });
  });
}

export interface RunOptions {
  timeoutMs: number;
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** Told of each chunk of standard output; without it the output is thrown away. */
  onStdout?: (chunk: Buffer) => unknown;
}

/** The whole standard output of a command; see `run`. */
export async function outputOf(argv: readonly string[], options: RunOptions): Promise<string> {
  const chunks: Buffer[] = [];
  await run(argv, { ...options, onStdout: (chunk) => chunks.push(chunk) });
  return Buffer.concat(chunks).toString();
}

/**
 * Runs a command to its end and resolves with the wall time in milliseconds. Rejects, with the end of its
 * standard error, when it fails, cannot be started, or runs longer than `timeoutMs` (it is ended then).
 */
export function run(argv: readonly string[], options: RunOptions): Promise<number> {
  const [command, ...args] = argv;
  if (command === undefined) throw new Error('run: no command');
  return new Promise((resolve, reject) => {
    const started = performance.now();
    const child = spawn(command, args, {
      stdio: ['ignore', options.onStdout === undefined ? 'ignore' : 'pipe', 'pipe'],
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      ...(options.env === undefined ? {} : { env: options.env }),
    });
    running.add(child);
    let errors = '';
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      child.kill('SIGKILL');
    }, options.timeoutMs);
    child.stdout?.on('data', (chunk: Buffer) => options.onStdout?.(chunk));
    child.stderr?.on('data', (chunk: Buffer) => {
      errors = (errors + chunk.toString()).slice(-4_000);
    });
    child.once('error', (error) => {
      clearTimeout(timer);
      running.delete(child);
      reject(new Error(`${command} could not be started: ${error.message}`));
    });
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      running.delete(child);
      if (code === 0) return resolve(performance.now() - started);
      const how = late
        ? `took longer than ${options.timeoutMs} ms`
        : `ended with ${code ?? signal}`;
      return reject(new Error(`${argv.join(' ')} ${how}\n${errors}`));
    });
  });
}

/** A long-running child with its output in a file. */
export class Daemon {
  readonly #child: ChildProcess;
  readonly #logFile: string;
  readonly #ended: Promise<void>;
  #exit: string | null = null;

  /** Starts the command; standard output and error go to `logFile`. */
  constructor(argv: readonly string[], logFile: string, cwd: string, env: NodeJS.ProcessEnv) {
    const [command, ...args] = argv;
    if (command === undefined) throw new Error('Daemon: no command');
    const log = openSync(logFile, 'a');
    this.#child = spawn(command, args, { stdio: ['ignore', log, log], cwd, env });
    closeSync(log);
    running.add(this.#child);
    this.#logFile = logFile;
    this.#ended = new Promise((resolve) => {
      const end = (how: string): void => {
        this.#exit = how;
        running.delete(this.#child);
        resolve();
      };
      this.#child.once('error', (error) => end(error.message));
      this.#child.once('exit', (code, signal) => end(`ended with ${code ?? signal}`));
    });
  }

  get pid(): number {
    this.assertAlive();
    return this.#child.pid ?? -1;
  }

  /** Throws, with the end of the log, when the child has ended by itself. */
  assertAlive(): void {
    if (this.#exit === null) return;
    const log = readFileSync(this.#logFile, 'utf8').slice(-4_000);
    throw new Error(`${this.#child.spawnargs.join(' ').slice(-300)} ${this.#exit}:\n${log}`);
  }

  /** Sends the signal and resolves with the milliseconds until the end; SIGKILL after `timeoutMs`. */
  async end(signal: 'SIGTERM' | 'SIGKILL', timeoutMs = 60_000): Promise<number> {
    const started = performance.now();
    if (this.#exit === null) this.#child.kill(signal);
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), timeoutMs);
    await this.#ended;
    clearTimeout(timer);
    return performance.now() - started;
  }
}
