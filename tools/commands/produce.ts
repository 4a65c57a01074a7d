/** `millrace produce`: sends messages from standard input, a file, or the command line. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { type ConnectOptions, connecting } from '../cli/connect.ts';
import { wholeNumber } from '../cli/options.ts';

export const inputFormats = ['text', 'json', 'hex', 'base64'] as const;
export type InputFormat = (typeof inputFormats)[number];

export interface ProduceOptions extends ConnectOptions {
  readonly file?: string;
  readonly key?: string;
  readonly keySeparator?: string;
  readonly header?: readonly (readonly [string, string])[];
  readonly format: InputFormat;
  readonly jsonl?: boolean;
  readonly partition?: number;
  readonly nullEmpty?: boolean;
  readonly compression: 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd';
  readonly acks: 'all' | 1 | 0;
  readonly quiet?: boolean;
}

const help = `
A line of the input is a message. Without a file and without values the input is
standard input.

Examples:
  echo hello | millrace produce greetings
  millrace produce orders --key 42 '{"amount": 7}'
  millrace produce orders --key-separator : --compression zstd < orders.txt
      each line is key:value
  millrace produce orders --header source=import --format json --file a.ndjson
      each line is checked to be JSON
  millrace consume orders --jsonl | millrace produce copy --jsonl
      keys, headers, partitions and times as they were: a JSON object a line

Exit codes: 0 delivered, 1 refused, 2 wrong usage or input, 3 no broker answered
`;

export function produceCommand(): Command {
  const command = new Command('produce')
    .description('send messages')
    .argument('<topic>')
    .argument('[value...]', 'messages, instead of standard input')
    .option('-F, --file <path>', 'read lines from a file')
    .option('-k, --key <key>', 'of every message')
    .option('-K, --key-separator <text>', 'what stands between key and value in a line')
    .addOption(
      new Option('-H, --header <name=value>', 'of every message; may be repeated').argParser(
        collectHeader,
      ),
    )
    .addOption(
      new Option('-f, --format <format>', 'what keys and values are written in')
        .choices(inputFormats)
        .default('text'),
    )
    .option('--jsonl', 'lines are objects with key, value, headers, partition, timestampMs')
    .option('--null-empty', 'an empty value deletes its key from a compacted topic')
    .addOption(
      new Option('-p, --partition <number>', 'default: by the key').argParser(
        wholeNumber(0, 2 ** 31 - 1),
      ),
    )
    .addOption(
      new Option('-z, --compression <codec>', 'of batches')
        .choices(['none', 'gzip', 'snappy', 'lz4', 'zstd'])
        .default('none'),
    )
    .addOption(new Option('--acks <acks>', 'all, 1 or 0').argParser(acksOf).default('all'))
    .option('-q, --quiet', 'no summary')
    .addHelpText('after', help);
  return connecting(command).action(
    async (topic: string, values: string[], options: ProduceOptions) => {
      const { produce } = await import('../cli/produce_run.ts');
      await produce(topic, values, options);
    },
  );
}

function collectHeader(
  text: string,
  earlier: readonly (readonly [string, string])[] | undefined,
): readonly (readonly [string, string])[] {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Allowed: name=value.');
  return [...(earlier ?? []), [text.slice(0, at), text.slice(at + 1)]];
}

function acksOf(text: string): 'all' | 1 | 0 {
  if (text === 'all' || text === '-1') return 'all';
  if (text === '1' || text === '0') return text === '1' ? 1 : 0;
  throw new InvalidArgumentError('Allowed: all, 1 or 0.');
}
