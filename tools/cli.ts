/** The commands of `millrace`, their options, and what the exit codes mean. */
import { readFileSync } from 'node:fs';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { logLevels } from '../net/logger.ts';
import { wholeNumber } from './cli/options.ts';
import type { ClusterOptions } from './cluster.ts';
import { ExitCode, type StartOptions } from './start_options.ts';

const startHelp = `
Examples:
  millrace start
      one node, data in ./data, clients connect to 127.0.0.1:9092
  millrace start --set log.dirs=/var/lib/millrace --set num.partitions=6
  millrace start --config server.properties --log-format json
      a properties file with Kafka's names; --set wins over it
  millrace start --set listeners=PLAINTEXT://:9092 \\
      --set advertised.listeners=PLAINTEXT://broker.example:9092
      clients on other machines: listen everywhere, and say where they find this

With npm: npm start -- --set log.dirs=/var/lib/millrace

SIGTERM, SIGINT and SIGHUP stop cleanly; a second one ends the process at once
(the next start then recovers).

Exit codes:
  0  stopped cleanly
  1  failed while running; the reason is on the log
  2  wrong option or setting; nothing was opened
  3  could not start: port in use, data directory locked or not writable, ...
`;

/** Runs the command line. Ends the process itself on every way out but a broker that is running. */
export async function main(argv: readonly string[]): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', ignoreClosedPipe);
  try {
    await (await program(argv[2])).parseAsync(argv);
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Help and version asked for have exit code 0; help shown because no command was given is a usage error.
    process.exitCode = error.exitCode === 0 ? ExitCode.stopped : ExitCode.usage;
  }
}

/** Whoever reads what is printed may have enough of it: `millrace --help | head`. */
function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
}

/** The commands other than `start` and `cluster`; what they need is loaded when they are called. */
const commands: readonly {
  readonly name: string;
  readonly description: string;
  readonly load: () => Promise<Command>;
}[] = [
  {
    name: 'topic',
    description: 'topics: create, list, describe, alter, delete, add-partitions',
    load: async () => (await import('./commands/topic.ts')).topicCommand(),
  },
  {
    name: 'produce',
    description: 'send messages from standard input, a file, or the command line',
    load: async () => (await import('./commands/produce.ts')).produceCommand(),
  },
  {
    name: 'consume',
    description: 'print messages',
    load: async () => (await import('./commands/consume.ts')).consumeCommand(),
  },
  {
    name: 'group',
    description: 'consumer groups: list, describe with lag, reset, delete',
    load: async () => (await import('./commands/group.ts')).groupCommand(),
  },
  {
    name: 'config',
    description: 'settings of topics, brokers and groups: describe, alter',
    load: async () => (await import('./commands/config.ts')).configCommand(),
  },
  {
    name: 'cluster-info',
    description: 'brokers, controller, log directories and the quorum',
    load: async () => (await import('./commands/cluster_info.ts')).clusterInfoCommand(),
  },
  {
    name: 'bench',
    description: 'measure: produce, consume, latency',
    load: async () => (await import('./commands/bench.ts')).benchCommand(),
  },
  {
    name: 'log',
    description: 'look at data directories, without a broker: dump, verify',
    load: async () => (await import('./commands/log.ts')).logCommand(),
  },
];

/** @param called the first argument, which may name a command */
async function program(called: string | undefined): Promise<Command> {
  const command = new Command('millrace')
    .description('A distributed log that speaks the Kafka protocol.')
    .version(version(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .exitOverride();
  command.addCommand(inheriting(command, startCommand()));
  command.addCommand(inheriting(command, clusterCommand()));
  for (const { name, description, load } of commands) {
    const isWanted = called === name;
    const one = isWanted ? await load() : new Command(name).description(description);
    command.addCommand(inheriting(command, one));
  }
  return command;
}

/** Errors of commands and of their own commands are those of the program. */
function inheriting(parent: Command, command: Command): Command {
  command.copyInheritedSettings(parent);
  for (const one of command.commands) inheriting(command, one);
  return command;
}

function startCommand(): Command {
  return new Command('start')
    .description('start a broker')
    .option('-c, --config <file>', 'properties file, as server.properties of Kafka')
    .addOption(settingOption('one setting; may be repeated'))
    .addOption(
      new Option('--log-format <format>', 'form of log lines')
        .choices(['text', 'json'])
        .default('text'),
    )
    .addOption(
      new Option('--log-level <level>', 'least level of log lines')
        .choices(logLevels)
        .default('info'),
    )
    .addHelpText('after', startHelp)
    .allowExcessArguments(false)
    .action(async (options: StartOptions) => {
      const { start } = await import('./start.ts');
      await start(options, version());
    });
}

const clusterHelp = `
Examples:
  millrace cluster
      three brokers, data in ./data/cluster/1 to 3, clients connect to
      127.0.0.1:9092, 9093 and 9094
  millrace cluster --brokers 5 --port 19092 --set num.partitions=6

Every line of a broker is printed behind its number. Ctrl-C stops all brokers; a
broker that is killed leaves the others running. For brokers on several hosts,
see docs/cluster.md.
`;

function clusterCommand(): Command {
  return new Command('cluster')
    .description('start several brokers on this machine as one cluster, for trying')
    .addOption(
      new Option('-n, --brokers <number>', 'how many').argParser(wholeNumber(1, 9)).default(3),
    )
    .option('-d, --dir <directory>', 'where the brokers keep their data', './data/cluster')
    .addOption(
      new Option('-p, --port <port>', 'of the first broker, the others have the next ones')
        .argParser(wholeNumber(1, 65_000))
        .default(9092),
    )
    .addOption(settingOption('one setting for all brokers; may be repeated'))
    .addHelpText('after', clusterHelp)
    .allowExcessArguments(false)
    .action(async (options: ClusterOptions) => {
      const { runCluster } = await import('./cluster.ts');
      await runCluster(options);
    });
}

function settingOption(about: string): Option {
  return new Option('-s, --set <key=value>', about).argParser(collectSetting).default([], 'none');
}

function collectSetting(text: string, earlier: readonly string[]): readonly string[] {
  if (!/^\s*[^=\s]/.test(text) || !text.includes('=')) {
    throw new InvalidArgumentError('Allowed: key=value.');
  }
  return [...earlier, text];
}

function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  const { version: number } = JSON.parse(text) as { version: string };
  return number;
}
