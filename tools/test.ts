/**
 * `npm test`: runs the suite of tests, or those whose path contains one of the arguments.
 *
 *   npm test                     everything but the suites below
 *   npm test -- ring slab        the files whose path contains "ring" or "slab"
 *   npm run test:compat          other people's clients against a running broker
 *   npm run test:scenario        real processes: kill -9, full disks, …
 *   npm run sim -- --seeds 500   long runs of the simulator and the fuzzers
 */
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import {
  closingLine,
  type FileResult,
  findTests,
  killAll,
  runFile,
  runFiles,
  type Suite,
  suites,
} from './test_runner.ts';

const usage = `usage: npm test -- [filter]… [options]
  --suite NAME       ${Object.keys(suites).join(', ')} (unit)
  --jobs N           files at once
  --timeout SECONDS  for each file
  --seeds N          how many seeds the simulations and fuzzers run (MILLRACE_SEEDS)
  --messages N       how many messages the stress tests between threads send (MILLRACE_MESSAGES)
  --broker NAME      millrace or kafka: what the compat suite runs against (MILLRACE_COMPAT_BROKER)
  --verbose          show the output of files that pass, too
`;

interface Options {
  readonly suite: Suite;
  readonly suiteName: string;
  readonly filters: string[];
  readonly jobs: number;
  readonly timeoutMs: number;
  readonly verbose: boolean;
  readonly env: NodeJS.ProcessEnv;
}

/** Reads the command line; a string is what to tell the user instead. */
function readOptions(args: string[]): Options | string {
  const text = { type: 'string' } as const;
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      suite: { ...text, default: 'unit' },
      jobs: text,
      timeout: text,
      seeds: text,
      messages: text,
      broker: text,
      verbose: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return usage;
  const suite = suites[values.suite];
  if (suite === undefined) {
    return `there is no suite '${values.suite}', only ${Object.keys(suites).join(', ')}\n`;
  }
  for (const name of ['jobs', 'timeout', 'seeds', 'messages'] as const) {
    const value = values[name];
    if (value !== undefined && !/^[1-9]\d*$/.test(value)) {
      return `--${name} takes a whole number above 0, not '${value}'\n`;
    }
  }
  const env = { ...process.env };
  if (values.seeds !== undefined) env['MILLRACE_SEEDS'] = values.seeds;
  if (values.messages !== undefined) env['MILLRACE_MESSAGES'] = values.messages;
  if (values.broker !== undefined) env['MILLRACE_COMPAT_BROKER'] = values.broker;
  return {
    suite,
    suiteName: values.suite,
    filters: positionals,
    jobs: values.jobs === undefined ? suite.jobs : Number(values.jobs),
    timeoutMs: values.timeout === undefined ? suite.timeoutMs : Number(values.timeout) * 1000,
    verbose: values.verbose,
    env,
  };
}

const isTerminal = process.stdout.isTTY === true;

/** Tells of one file: a line of its own, or on a terminal one line for all, and what a failing file printed. */
function reporter(count: number, verbose: boolean): (result: FileResult) => void {
  let done = 0;
  let failed = 0;
  return (result) => {
    done += 1;
    if (result.problem !== null) failed += 1;
    if (isTerminal) process.stdout.write('\r\u001b[2K');
    if (result.problem !== null) {
      process.stdout.write(
        `\nFAILED ${result.path}: ${result.problem}\n${indent(result.output)}\n`,
      );
    } else if (verbose || !isTerminal) {
      const ms = Math.round(result.durationMs);
      process.stdout.write(`ok ${result.path}: ${result.passed} tests, ${ms} ms\n`);
      if (verbose) process.stdout.write(`${indent(result.output)}\n`);
    }
    if (isTerminal && done < count) {
      const failures = failed === 0 ? '' : `, ${failed} failed`;
      process.stdout.write(`${done} of ${count} files${failures}; last: ${result.path}`);
    }
  };
}

function indent(text: string): string {
  return text.trimEnd().replace(/^/gm, '    ');
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (typeof options === 'string') {
    process.stderr.write(options);
    return options === usage ? 0 : 2;
  }
  const root = dirname(import.meta.dirname);
  const paths = findTests(root, options.suite, options.filters);
  if (paths.length === 0) {
    const which = options.filters.length === 0 ? '' : ` matches ${options.filters.join(', ')}`;
    process.stderr.write(`no test file of the suite '${options.suiteName}'${which}\n`);
  }
  const run = (path: string): Promise<FileResult> =>
    runFile(root, path, options.timeoutMs, options.env);
  const results = await runFiles(paths, options.jobs, run, reporter(paths.length, options.verbose));
  const bad = results.filter((result) => result.problem !== null);
  if (bad.length > 0) process.stdout.write('\n');
  for (const result of bad) process.stdout.write(`FAILED ${result.path}: ${result.problem}\n`);
  process.stdout.write(`${closingLine(results)}\n`);
  // An interrupted run has not come to all files.
  return bad.length > 0 || results.length < paths.length || paths.length === 0 ? 1 : 0;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  // What ran is reported with what it had printed.
  process.once(signal, killAll);
}
process.exitCode = await main();
