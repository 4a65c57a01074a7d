/** `millrace log`: looks at data directories without a broker. */
import { Command, Option } from 'commander';
import { byteFormats } from '../cli/bytes_text.ts';
import { collect, wholeNumber } from '../cli/options.ts';
import type { DumpOptions } from '../log/dump.ts';
import type { VerifyOptions } from '../log/verify.ts';

const defaultPath = './data';

const dumpHelp = `
Examples:
  millrace log dump
      every batch in ./data
  millrace log dump /var/lib/kafka/orders-0 --records --from 1000 --to 1010
      ten records of one partition
  millrace log dump data --topic __consumer_offsets --records
      committed offsets and groups, decoded
  millrace log dump data --records --json | jq .value
      a JSON object a batch, for programs

Exit codes: 0 all was printed, 2 wrong usage, 4 there is damage among it
`;

const verifyHelp = `
Reads every batch (checksum, records, offsets, leader epochs) and compares
indexes, checkpoints and the leader epoch cache with them. Nothing is written,
and no broker is needed. Works on directories of Kafka as well.

Examples:
  millrace log verify
      ./data
  millrace log verify /var/lib/kafka /mnt/disk2/kafka --json
  millrace log verify data/orders-0/00000000000000000000.log

What it finds is of three kinds: "damage" (records cannot be read),
"rebuildable" (a broker makes it again from the records), "note" (nothing to
do).

Exit codes: 0 sound, 2 wrong usage, 4 something is wrong with the files
`;

export function logCommand(): Command {
  return new Command('log')
    .description('look at data directories, without a broker')
    .addCommand(dumpCommand())
    .addCommand(verifyCommand());
}

function topicOption(): Option {
  return new Option('-t, --topic <name>', 'only this topic; may be repeated').argParser(collect);
}

function dumpCommand(): Command {
  const offset = wholeNumber(0, Number.MAX_SAFE_INTEGER);
  return new Command('dump')
    .description('print batches, and records')
    .argument('[path...]', 'log directories, partitions or .log files', [defaultPath])
    .addOption(topicOption())
    .option('-r, --records', 'the records, too')
    .addOption(new Option('--from <offset>', 'first offset').argParser(offset))
    .addOption(new Option('--to <offset>', 'first offset that is not wanted').argParser(offset))
    .addOption(
      new Option('-f, --format <format>', 'how keys and values are shown')
        .choices(byteFormats)
        .default('text'),
    )
    .option('--no-decode', "keep the brokers' own records as bytes")
    .option('--json', 'a JSON object a line')
    .addHelpText('after', dumpHelp)
    .action(async (paths: string[], options: DumpOptions) => {
      const { runDump } = await import('../log/dump.ts');
      await runDump(paths, options);
    });
}

function verifyCommand(): Command {
  return new Command('verify')
    .description('find damage')
    .argument('[path...]', 'log directories, partitions or .log files', [defaultPath])
    .addOption(topicOption())
    .option('--json', 'one JSON object')
    .addHelpText('after', verifyHelp)
    .action(async (paths: string[], options: VerifyOptions) => {
      const { runVerify } = await import('../log/verify.ts');
      runVerify(paths, options);
    });
}
