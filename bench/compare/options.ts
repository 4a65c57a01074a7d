/** The command line of the comparison. */
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

export interface Options {
  brokers: string[];
  works: string[];
  /** Counted rounds of each work and process; one more is run first and dropped. */
  rounds: number;
  /** How often all brokers are started anew for the whole set of works. */
  processes: number;
  serverCpu: number;
  clientCpu: number;
  /** Where data directories and payload files go: a real disk. */
  directory: string;
  /** File to append raw JSON lines to, or null. */
  json: string | null;
  /** Raw output of earlier runs to report on, instead of measuring. */
  report: string[];
  /** No round starts after this many minutes; what is there by then is reported. */
  minutesMax: number;
  /** A round in which the host stole more than this, in per cent of a CPU, is repeated, for all brokers. */
  stolenMax: number;
}

export const USAGE = `node bench/compare/main.ts [options]
  --self                 Millrace and the bare sink alone (the default)
  --peer kafka           Apache Kafka between them
  --brokers A,B,…        instead of --peer: millrace, millrace@SHARDS, millrace-fsync, NAME=CHECKOUT,
                         kafka, sink
                         (default millrace, the peer, sink)
  --works W1,W4,…        W1 W2a W2b W3 W4 W5 raw delay W8 W9 idle W10 S cold G1 G2 G3 G4, or single rows such as
                         "raw W5" (default: all but S, cold and G)
  --rounds N             counted rounds of each work in each process (default 3)
  --processes N          processes of each broker; 3 for figures that count (default 1)
  --server-cpu N         default 0
  --client-cpu N         default 1
  --dir DIRECTORY        on the disk under test (default: the system's temporary directory)
  --json FILE            append raw figures as JSON lines
  --report FILE,…        measure nothing: report on the raw figures of earlier runs as if they were one
  --minutes-max N        start no round after that (default 90)
  --stolen-max PERCENT   repeat rounds (W8 apart) in which the host of a virtual machine took more of its
                         CPUs, up to twice as many in all (default: count all)`;

const WORKS_DEFAULT = [
  ...['W1', 'W2a', 'W2b', 'W3', 'W4', 'W5', 'raw', 'delay'],
  ...['W8', 'W9', 'idle', 'W10'],
];
const WORKS = [...WORKS_DEFAULT, 'S', 'cold', 'G1', 'G2', 'G3', 'G4'];

/** Parses the arguments behind the script's name. Throws with a text for people on a bad one. */
export function parseOptions(args: readonly string[]): Options {
  const string = { type: 'string' } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      self: { type: 'boolean' },
      peer: string,
      brokers: string,
      works: string,
      rounds: string,
      processes: string,
      'server-cpu': string,
      'client-cpu': string,
      dir: string,
      json: string,
      report: string,
      'minutes-max': string,
      'stolen-max': string,
    },
  });
  const { peer } = values;
  if (peer !== undefined && peer !== 'kafka')
    throw new Error(`--peer ${peer}: only kafka is known`);
  if (peer !== undefined && values.self === true) throw new Error('--self and --peer: one of them');
  const others = peer === undefined ? ['sink'] : [peer, 'sink'];
  return {
    brokers: values.brokers?.split(',') ?? ['millrace', ...others],
    works: worksOf(values.works),
    rounds: count('rounds', values.rounds ?? '3', 1),
    processes: count('processes', values.processes ?? '1', 1),
    serverCpu: count('server-cpu', values['server-cpu'] ?? '0', 0),
    clientCpu: count('client-cpu', values['client-cpu'] ?? '1', 0),
    directory: resolve(values.dir ?? tmpdir()),
    json: values.json === undefined ? null : resolve(values.json),
    report: values.report?.split(',').map((file) => resolve(file)) ?? [],
    minutesMax: count('minutes-max', values['minutes-max'] ?? '90', 1),
    stolenMax: count('stolen-max', values['stolen-max'] ?? '1000', 0),
  };
}

function worksOf(text: string | undefined): string[] {
  // Names of rows have commas of their own: in numbers, and before a space.
  const works = text?.split(/,(?![\d ])/) ?? WORKS_DEFAULT;
  for (const work of works)
    if (!WORKS.includes(workOf(work)))
      throw new Error(`--works ${work}: allowed are ${WORKS.join(', ')}`);
  return works;
}

function count(name: string, text: string, least: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least) return value;
  throw new Error(`--${name} ${text}: a whole number from ${least} on is needed`);
}

/** Whether a row such as `W3 of W1` or `W4 one in flight` was asked for, itself or with its whole work. */
export function rowWanted(row: string, works: readonly string[]): boolean {
  return works.includes(workOf(row)) || works.includes(row);
}

function workOf(row: string): string {
  return row.split(' ')[0] ?? '';
}
