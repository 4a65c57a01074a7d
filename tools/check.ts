/**
 * `npm run check`: types, lint and format, freshness of generated code, and the house rules, all at once.
 * Prints a line for each part and, below a failed one, what it said.
 */
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { formatProblem, readTree, tidy } from './tidy.ts';

/** What a part of the check came to: no output is shown for one that passed. */
export interface PartResult {
  readonly passed: boolean;
  readonly output: string;
}

export type Part = () => Promise<PartResult>;

/** A part that is a program: it passes if that exits with 0. */
export function program(root: string, command: string, args: readonly string[]): Part {
  return () =>
    new Promise((resolve) => {
      const stdio = ['ignore', 'pipe', 'pipe'] as const;
      const child = spawn(command, args, { cwd: root, stdio: [...stdio] });
      const chunks: Buffer[] = [];
      child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
      child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
      child.once('error', (error) => resolve({ passed: false, output: error.message }));
      child.once('close', (code) => {
        resolve({ passed: code === 0, output: Buffer.concat(chunks).toString('utf8') });
      });
    });
}

/** Runs all parts at once, reports each as it ends, and returns the exit code. */
export async function runParts(
  parts: Readonly<Record<string, Part>>,
  write: (text: string) => void,
): Promise<number> {
  let failed = 0;
  const run = async ([name, part]: [string, Part]): Promise<void> => {
    const startedMs = performance.now();
    const { passed, output } = await part();
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
    write(`${passed ? 'ok' : 'FAILED'} ${name}, ${seconds} s\n`);
    if (passed) return;
    failed += 1;
    write(`${output.trimEnd().replace(/^/gm, '    ')}\n`);
  };
  const entries = Object.entries(parts);
  await Promise.all(entries.map(run));
  write(`check: ${entries.length - failed} passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
}

async function houseRules(root: string): Promise<PartResult> {
  const problems = tidy(readTree(root));
  return { passed: problems.length === 0, output: problems.map(formatProblem).join('\n') };
}

if (import.meta.main) {
  const root = dirname(import.meta.dirname);
  const bin = join(root, 'node_modules', '.bin');
  const parts: Record<string, Part> = {
    types: program(root, join(bin, 'tsc'), ['--project', root]),
    lint: program(root, join(bin, 'biome'), [
      'check',
      '--error-on-warnings',
      '--max-diagnostics=50',
      '.',
    ]),
    generated: program(root, process.execPath, ['tools/generate.ts', '--check']),
    tidy: () => houseRules(root),
  };
  process.exitCode = await runParts(parts, (text) => process.stdout.write(text));
}
