/**
 * Measures Millrace beside Apache Kafka and beside a bare sink on this machine, in one run and in turn.
 * `--help` lists the options; README.md beside this file says what the works are and how to read them.
 */
import { appendFileSync, writeSync } from 'node:fs';
import { brokerList } from './broker_list.ts';
import { describeMachine, pinSelf } from './machine.ts';
import { parseOptions, USAGE } from './options.ts';
import { readRounds } from './raw_lines.ts';
import { renderReport, summarise } from './report.ts';
import { type RoundResult, Runner } from './runner.ts';
import { formatNumber } from './table.ts';

async function main(args: readonly string[]): Promise<void> {
  if (args.includes('--help')) return print(USAGE);
  const options = parseOptions(args);
  if (options.report.length > 0) return print(renderReport(summarise(readRounds(options.report))));
  const specs = brokerList(options.brokers);
  const raw = (line: object): void => {
    if (options.json !== null) appendFileSync(options.json, `${JSON.stringify(line)}\n`);
  };
  const machine = describeMachine(options.directory);
  if (machine.cpus < 2) throw new Error('two CPUs are needed: one for the broker, one for clients');
  if (machine.fileSystem === 'tmpfs') throw new Error(`${options.directory} is a tmpfs: use --dir`);
  const command = `node bench/compare/main.ts ${args.join(' ')}`.trim();
  raw({ kind: 'machine', at: new Date().toISOString(), command, ...machine });
  print(
    `${machine.cpuModel}, ${machine.cpus} CPUs, ${machine.memoryGiB} GiB, Linux ${machine.kernel}, ` +
      `${machine.fileSystem}, load ${machine.loadBefore}\n${command}`,
  );
  for (const spec of specs) {
    const version = await spec.setUp();
    print(`${spec.name}: ${version}`);
    raw({ kind: 'broker', broker: spec.name, version });
  }
  await pinSelf(options.clientCpu);
  const results: RoundResult[] = [];
  const runner = new Runner(options, specs, {
    log: (text) => print(`# ${text}`),
    result: (result) => {
      results.push(result);
      raw({ kind: 'round', ...result });
      print(`# ${lineOf(result)}`);
    },
  });
  try {
    await runner.run();
  } finally {
    const summaries = summarise(results);
    for (const summary of summaries) raw({ kind: 'summary', ...summary });
    print(`\n${renderReport(summaries)}\n\n${FOOTNOTE}`);
  }
}

const FOOTNOTE = `Medians over the counted rounds; noise is (max − min) / median; ÷ is the median of the ratios round by
round. CPU is user and system time of the whole process; MiB are MiB of payload. The bottleneck is the
side that used its CPU for more than 85 % of the time; others is what the rest of the machine used, in per
cent of one CPU, stolen what the host of a virtual machine took from it: where they are large, trust CPU
per MiB and not the speeds.`;

function lineOf(result: RoundResult): string {
  const values = Object.entries(result.values).map(
    ([name, value]) => `${name} ${formatNumber(value)}`,
  );
  const round = result.round === 0 ? 'dropped' : `round ${result.round}`;
  return `${result.work}, ${result.broker}, process ${result.process}, ${round}: ${values.join(', ')}`;
}

/** Synchronous, so that nothing is lost when standard output is a pipe and the process exits. */
function print(text: string): void {
  writeSync(1, `${text}\n`);
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error: unknown) => {
    // Plain errors are texts for people; anything else is a mistake in here and needs its stack.
    const stack = error instanceof Error && error.name !== 'Error' ? error.stack : undefined;
    writeSync(2, `${stack ?? (error instanceof Error ? error.message : String(error))}\n`);
    process.exit(1);
  },
);
