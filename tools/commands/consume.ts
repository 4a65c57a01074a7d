/** `millrace consume`: prints messages. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { type ByteFormat, byteFormats } from '../cli/bytes_text.ts';
import { type ConnectOptions, connecting } from '../cli/connect.ts';
import { wholeNumber } from '../cli/options.ts';
import { parseTime } from '../cli/time.ts';

/** Where to begin. */
export type StartPlace =
  | { readonly kind: 'earliest' | 'latest' }
  | { readonly kind: 'offset'; readonly offset: number }
  | { readonly kind: 'tail'; readonly count: number }
  | { readonly kind: 'time'; readonly ms: number };

export interface ConsumeOptions extends ConnectOptions {
  readonly from?: StartPlace;
  readonly tail?: number;
  readonly partition?: readonly number[];
  readonly group?: string;
  readonly follow?: boolean;
  readonly max?: number;
  readonly format: ByteFormat;
  readonly output?: string;
  readonly jsonl?: boolean;
  readonly verbose?: boolean;
  readonly keys?: boolean;
}

const help = `
Prints what there is, from the beginning, and ends; --follow goes on. With
--group the group shares the topics and remembers how far it is: it begins with
what the group has not read.

Examples:
  millrace consume greetings
  millrace consume orders --follow --from latest
  millrace consume orders --tail 10 --verbose
      the last ten of each partition, with offset, time, key and headers
  millrace consume orders --from 2026-11-29T12:00:00Z --max 100 --jsonl
  millrace consume orders --from 15m
      what came in the last 15 minutes
  millrace consume orders payments --group billing --follow
  millrace consume orders --output '%p %o %T %k=%s %h\\n'
      %t topic, %p partition, %o offset, %T milliseconds since 1970, %h headers,
      %k key, %s value, %K and %S their lengths (-1: null), %% a percent sign,
      \\n \\t \\0 as usual

Exit codes: 0 done, 1 refused, 2 wrong usage, 3 no broker answered
`;

export function consumeCommand(): Command {
  const command = new Command('consume')
    .description('print messages')
    .argument('<topic...>')
    .addOption(
      new Option(
        '--from <where>',
        'earliest, latest, an offset, a date, or 30s, 15m, 2h, 7d ago',
      ).argParser(startOf),
    )
    .addOption(
      new Option('--tail <number>', 'the last ones of each partition').argParser(
        wholeNumber(1, 2 ** 31 - 1),
      ),
    )
    .addOption(new Option('-p, --partition <number,…>', 'only these').argParser(partitionsOf))
    .option('-g, --group <group>', 'as a member of this group')
    .option('-f, --follow', 'go on with what comes')
    .addOption(
      new Option('-n, --max <number>', 'end after so many').argParser(
        wholeNumber(1, Number.MAX_SAFE_INTEGER),
      ),
    )
    .addOption(
      new Option('--format <format>', 'how keys and values are shown')
        .choices(byteFormats)
        .default('text'),
    )
    .option('-o, --output <template>', 'as kcat does it, see below')
    .option('--jsonl', 'a JSON object a line')
    .option('-K, --keys', 'the key in front of the value')
    .option('-v, --verbose', 'all there is about each message')
    .addHelpText('after', help);
  return connecting(command).action(async (topics: string[], options: ConsumeOptions) => {
    const { consume } = await import('../cli/consume_run.ts');
    await consume(topics, options);
  });
}

function startOf(text: string): StartPlace {
  if (text === 'earliest' || text === 'latest') return { kind: text };
  if (/^\d{1,15}$/.test(text)) return { kind: 'offset', offset: Number(text) };
  if (/^-\d{1,9}$/.test(text)) return { kind: 'tail', count: -Number(text) };
  const ms = parseTime(text, Date.now());
  if (ms !== null) return { kind: 'time', ms };
  throw new InvalidArgumentError(
    'Allowed: earliest, latest, an offset, a date such as 2026-11-29T12:00:00Z, or 30s, 15m, 2h, 7d ago.',
  );
}

function partitionsOf(text: string): readonly number[] {
  if (!/^\d{1,9}(?:,\d{1,9})*$/.test(text))
    throw new InvalidArgumentError('Allowed: numbers with commas between them, as 0,2.');
  return text.split(',').map(Number);
}
