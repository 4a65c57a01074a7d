/** Raw output read back: several runs, each a few minutes of a quiet machine, make one report. */
import { readFileSync } from 'node:fs';
import type { RoundResult } from './runner.ts';

interface RawLine {
  kind: string;
}

/** The rounds of all files. */
export function readRounds(files: readonly string[]): RoundResult[] {
  return parseRounds(files.map((file) => readFileSync(file, 'utf8')).join(''));
}

/** Processes are numbered anew: those of different runs (a run begins with its machine) are different ones. */
export function parseRounds(text: string): RoundResult[] {
  const results: RoundResult[] = [];
  let before = 0;
  let last = 0;
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const { kind, ...rest } = JSON.parse(line) as RawLine;
    if (kind === 'machine') before = last;
    if (kind !== 'round') continue;
    const result = rest as RoundResult;
    const process = before + result.process;
    last = Math.max(last, process);
    results.push({ ...result, process });
  }
  return results;
}
