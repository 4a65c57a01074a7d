/**
 * Measures in processes of their own: what the compiler makes of the same code differs between processes by up to half,
 * and stays for as long as one lives, so that more rounds in the same one say nothing new.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Entries, readBaseline } from './baseline.ts';

/**
 * @param script that of `npm run bench`
 * @param filters names of the benchmarks, or words in them; none: all
 * @throws Error when the process fails; what it said is on standard error
 */
export function measureAfresh(script: string, filters: readonly string[], rounds: number): Entries {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  try {
    const file = join(dir, 'measured.json');
    const options = ['--once', '--update', '--baseline', file, '--rounds', String(rounds)];
    const { status } = spawnSync(process.execPath, [script, ...options, '--', ...filters], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const [measured] = Object.values(readBaseline(pathToFileURL(file))?.processors ?? {});
    if (status !== 0 || measured === undefined)
      throw new Error(`the process that measures ended with exit code ${status}`);
    return measured;
  } finally {
    rmSync(dir, { recursive: true });
  }
}
