/** `millrace bench`: measures what a cluster gives this client. */
import { Command, Option } from 'commander';
import { type ConnectOptions, connecting } from '../cli/connect.ts';
import { wholeNumber } from '../cli/options.ts';

export interface BenchOptions extends ConnectOptions {
  readonly topic: string;
  readonly partitions: number;
  readonly size: number;
  readonly rate: number;
  readonly seconds: number;
  readonly compression: 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd';
  readonly acks: 'all' | '1' | '0';
  readonly linger: number;
  readonly batch: number;
}

export interface BenchConsumeOptions extends ConnectOptions {
  readonly topic: string;
  readonly max?: number;
}

const help = `
The load is open-loop: messages are due at fixed times, whether or not
earlier ones have been answered, and a latency counts from the time at which
its message was due. So a stall shows in all messages that it held up.

Examples:
  millrace bench produce
      ten seconds as fast as it goes, messages of 100 bytes, acks=all
  millrace bench produce --rate 20000 --size 1000 --linger 5 --compression zstd
  millrace bench consume
      reads what bench produce has written
  millrace bench latency --rate 500
      from the time at which a message is due until it is consumed
`;

export function benchCommand(): Command {
  return new Command('bench')
    .description('measure: produce, consume, latency')
    .addHelpText('after', help)
    .addCommand(produceCommand())
    .addCommand(consumeCommand())
    .addCommand(latencyCommand());
}

function topicOption(): Option {
  return new Option('-t, --topic <name>', 'made if it is not there').default('millrace-bench');
}

/** @param rate messages a second; 0 is as fast as it goes */
function loading(command: Command, rate: number): Command {
  const number = (flags: string, text: string, value: number, most: number, least = 0): Option =>
    new Option(flags, text).argParser(wholeNumber(least, most)).default(value);
  return command
    .addOption(topicOption())
    .addOption(number('-p, --partitions <number>', 'of a topic that is made', 3, 10_000, 1))
    .addOption(number('-n, --size <bytes>', 'of a value', 100, 100_000_000, 8))
    .addOption(number('-r, --rate <number>', 'messages a second, 0: no limit', rate, 10_000_000))
    .addOption(number('-d, --seconds <number>', 'how long', 10, 86_400, 1))
    .addOption(
      new Option('-z, --compression <codec>', 'of batches')
        .choices(['none', 'gzip', 'snappy', 'lz4', 'zstd'])
        .default('none'),
    )
    .addOption(new Option('--acks <acks>', 'who answers').choices(['all', '1', '0']).default('all'))
    .addOption(number('--linger <ms>', 'how long a batch waits for more', 0, 60_000))
    .addOption(number('--batch <bytes>', 'size of a batch', 131_072, 100_000_000, 1));
}

function produceCommand(): Command {
  const command = loading(new Command('produce').description('how fast it takes messages'), 0);
  return connecting(command).action(async (options: BenchOptions) => {
    const { benchProduce } = await import('../bench/produce.ts');
    await benchProduce(options);
  });
}

function consumeCommand(): Command {
  const command = new Command('consume')
    .description('how fast it gives them back')
    .addOption(topicOption())
    .addOption(
      new Option('-n, --max <number>', 'end after so many').argParser(
        wholeNumber(1, Number.MAX_SAFE_INTEGER),
      ),
    );
  return connecting(command).action(async (options: BenchConsumeOptions) => {
    const { benchConsume } = await import('../bench/consume.ts');
    await benchConsume(options);
  });
}

function latencyCommand(): Command {
  const about = 'from the time at which a message is due until it is consumed';
  const command = loading(new Command('latency').description(about), 200);
  return connecting(command).action(async (options: BenchOptions) => {
    const { benchLatency } = await import('../bench/latency.ts');
    await benchLatency(options);
  });
}
