/** Runs `millrace` as a process of its own. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

/** The command line as a program. */
export const entry: string = join(import.meta.dirname, '..', '..', 'tools', 'millrace.ts');

/** How a command ended. */
export interface CommandRun {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** @param bootstrap in MILLRACE_BOOTSTRAP, null for nothing there */
export function runCommand(
  args: readonly string[],
  bootstrap: string | null = null,
  input = '',
): Promise<CommandRun> {
  return new Promise((resolve, reject) => {
    const { MILLRACE_BOOTSTRAP: _, ...rest } = process.env;
    const env = bootstrap === null ? rest : { ...rest, MILLRACE_BOOTSTRAP: bootstrap };
    const child = spawn(process.execPath, [entry, ...args], { env, stdio: 'pipe' });
    const texts = { out: '', err: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      texts.out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      texts.err += text;
    });
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, ...texts }));
    child.stdin.end(input);
  });
}
