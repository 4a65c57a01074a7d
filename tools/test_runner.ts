/**
 * Runs test files, each in a process of its own, and counts their tests.
 *
 * uvu alone exits with 0 when a file forgets `.run()` or when a `before` hook throws, and knows no
 * timeouts. Here a file passes only if it exits with 0 in time, says how many tests it ran, ran at least
 * one, and all of them passed; and if it leaves no process behind.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

/** A suite: which files under test/ belong to it and how they are run. */
export interface Suite {
  readonly belongs: (path: string) => boolean;
  readonly timeoutMs: number;
  readonly jobs: number;
}

const inFolder = (path: string, ...names: string[]): boolean =>
  names.some((name) => path.startsWith(`test/${name}/`));
const isLong = (path: string): boolean => path.endsWith('.long.test.ts');

/**
 * `unit` is what `npm test` runs. `sim` holds the seeded simulations and fuzz runs, again but with a bigger budget (see
 * `--seeds`), and every `*.long.test.ts`. Suites that start brokers run one file at a time.
 */
export const suites: Readonly<Record<string, Suite>> = {
  unit: {
    belongs: (path) => !inFolder(path, 'compat', 'scenario') && !isLong(path),
    timeoutMs: 120_000,
    // One more than the least machine has processors: many tests wait for brokers and time-outs half of their time.
    jobs: 3,
  },
  compat: {
    belongs: (path) => inFolder(path, 'compat'),
    timeoutMs: 8 * 60_000,
    jobs: 1,
  },
  scenario: {
    belongs: (path) => inFolder(path, 'scenario'),
    timeoutMs: 6 * 60_000,
    jobs: 1,
  },
  sim: {
    belongs: (path) =>
      inFolder(path, 'sim', 'fuzz') ||
      path.endsWith('.fuzz.test.ts') ||
      (isLong(path) && !inFolder(path, 'compat', 'scenario')),
    timeoutMs: 30 * 60_000,
    jobs: 2,
  },
};

/** What one file's run came to. `problem` is null only if the file passed. */
export interface FileResult {
  readonly path: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly problem: string | null;
  readonly output: string;
  readonly durationMs: number;
}

/** The files of a suite under `root`, sorted, kept only if their path contains one of `filters` (when there are any). */
export function findTests(root: string, suite: Suite, filters: readonly string[]): string[] {
  const paths = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .map((name) => `test/${name.split(sep).join('/')}`)
    .filter((path) => path.endsWith('.test.ts') && suite.belongs(path));
  const wanted = filters.map((filter) => filter.replace(/^\.\//, ''));
  return paths
    .filter((path) => wanted.length === 0 || wanted.some((filter) => path.includes(filter)))
    .sort();
}

/** The counts in the last summary that uvu printed, or null if there is none. */
export function parseCounts(
  output: string,
): { total: number; passed: number; skipped: number } | null {
  const summary = /^ {2}Total: {5}(\d+)\n {2}Passed: {4}(\d+)\n {2}Skipped: {3}(\d+)$/gm;
  const last = [...stripVTControlCharacters(output).matchAll(summary)].at(-1);
  if (last === undefined) return null;
  return { total: Number(last[1]), passed: Number(last[2]), skipped: Number(last[3]) };
}

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly timedOut: boolean;
  readonly interrupted: boolean;
  readonly leftBehind: boolean;
}

/** Turns a finished process into a result; a fault outside of any test counts as one failed test. */
function judge(path: string, exit: Exit, output: string, durationMs: number): FileResult {
  const counts = parseCounts(output);
  const passed = counts?.passed ?? 0;
  const failedTests = counts === null ? 0 : counts.total - counts.passed;
  const problem = problemOf(exit, counts, failedTests, durationMs);
  const failed = problem === null ? 0 : Math.max(1, failedTests);
  return { path, passed, failed, skipped: counts?.skipped ?? 0, problem, output, durationMs };
}

function problemOf(
  exit: Exit,
  counts: { total: number } | null,
  failedTests: number,
  durationMs: number,
): string | null {
  const after = `killed after ${Math.round(durationMs / 1000)} s`;
  if (exit.interrupted) return `${after}, with the whole run`;
  if (exit.timedOut) {
    return counts === null ? after : `${after}: its tests had ended, but something kept it open`;
  }
  if (failedTests > 0) return `${failedTests} of ${counts?.total} tests failed`;
  if (exit.signal !== null) return `ended by ${exit.signal}`;
  if (exit.code !== 0) return `exit code ${exit.code}`;
  if (counts === null || counts.total === 0) return 'ran no test (is .run() missing?)';
  if (exit.leftBehind) return 'left processes behind';
  return null;
}

/** Process groups of the files that run now, so that an interrupted run can end them. */
const running = new Set<ChildProcess>();
let isInterrupted = false;

/** Kills a child's whole process group; says whether any of it was still there. */
function killGroup(child: ChildProcess): boolean {
  if (child.pid === undefined) return false;
  try {
    return process.kill(-child.pid, 'SIGKILL');
  } catch {
    return false;
  }
}

/** Ends the run: every test file that runs now, with all that it started, and starts no other. They count as failed. */
export function killAll(): void {
  isInterrupted = true;
  for (const child of running) killGroup(child);
}

/**
 * Runs one file with this process's own Node. The file leads a process group of its own, which is ended with it, so
 * that a broker started by a test cannot outlive it; and it has a folder for temporary files of its own, which goes with it
 * unless it fails and left something there.
 */
export async function runFile(
  root: string,
  path: string,
  timeoutMs: number,
  env: NodeJS.ProcessEnv = process.env,
): Promise<FileResult> {
  const startedMs = performance.now();
  const temporary = mkdtempSync(join(tmpdir(), 'millrace-test-'));
  const cache = join(root, '.cache', 'compile');
  const child = spawn(process.execPath, [path], {
    cwd: root,
    detached: true,
    env: { ...env, NODE_COMPILE_CACHE: cache, TMPDIR: temporary },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    killGroup(child);
  }, timeoutMs);
  const closed = new Promise((resolve) => child.once('close', resolve));
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
    child.once('exit', (...args) => resolve(args));
    child.once('error', (error) => {
      chunks.push(Buffer.from(`${error.message}\n`));
      resolve([1, null]);
    });
  });
  clearTimeout(timer);
  const interrupted = isInterrupted;
  const leftBehind = killGroup(child);
  if (child.pid !== undefined) await closed;
  running.delete(child);
  const output = Buffer.concat(chunks).toString('utf8');
  const durationMs = performance.now() - startedMs;
  const result = judge(
    path,
    { code, signal, timedOut, interrupted, leftBehind },
    output,
    durationMs,
  );
  return clean(result, temporary);
}

/** Removes a file's temporary folder, or says where it is. */
function clean(result: FileResult, temporary: string): FileResult {
  if (result.problem === null || readdirSync(temporary).length === 0) {
    rmSync(temporary, { recursive: true, force: true });
    return result;
  }
  return { ...result, output: `${result.output.trimEnd()}\nits temporary files: ${temporary}\n` };
}

/**
 * Runs files, at most `jobs` at once, and reports each as it ends. Results come back in the order of `paths`; a
 * run that was interrupted has none of the files that it did not come to.
 */
export async function runFiles(
  paths: readonly string[],
  jobs: number,
  run: (path: string) => Promise<FileResult>,
  report: (result: FileResult) => void,
): Promise<FileResult[]> {
  const results: FileResult[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < paths.length && !isInterrupted; index = next++) {
      const result = await run(paths[index] as string);
      results[index] = result;
      report(result);
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  return results;
}

/** The line that ends every run: `N passed, N failed`, and how many were skipped if any were. */
export function closingLine(results: readonly FileResult[]): string {
  const sum = (pick: (result: FileResult) => number): number =>
    results.reduce((total, result) => total + pick(result), 0);
  const skipped = sum((result) => result.skipped);
  const tail = skipped === 0 ? '' : `, ${skipped} skipped`;
  return `${sum((result) => result.passed)} passed, ${sum((result) => result.failed)} failed${tail}`;
}
