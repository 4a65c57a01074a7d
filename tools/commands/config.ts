/** `millrace config`: settings of topics, brokers and groups. */
import { Argument, Command, Option } from 'commander';
import { type ConnectOptions, connecting } from '../cli/connect.ts';
import { collect, collectPairs } from '../cli/options.ts';

const help = `
Examples:
  millrace config describe topic orders
  millrace config describe broker 1 --all
  millrace config alter topic orders --set retention.ms=86400000
  millrace config alter topic orders --unset segment.bytes --dry-run
  millrace config alter topic orders --append cleanup.policy=compact
  millrace config alter broker all --set message.max.bytes=2000000
`;

export interface DescribeConfigOptions extends ConnectOptions {
  readonly all?: boolean;
}

export interface AlterConfigOptions extends ConnectOptions {
  readonly set?: Readonly<Record<string, string>>;
  readonly unset?: readonly string[];
  readonly append?: Readonly<Record<string, string>>;
  readonly subtract?: Readonly<Record<string, string>>;
  readonly dryRun?: boolean;
}

export type ResourceType = 'topic' | 'broker' | 'group';

export function configCommand(): Command {
  return new Command('config')
    .description('settings of topics, brokers and groups: describe, alter')
    .addHelpText('after', help)
    .addCommand(describeCommand())
    .addCommand(alterCommand());
}

function typeArgument(): Argument {
  return new Argument('<type>', 'of what').choices(['topic', 'broker', 'group']);
}

function describeCommand(): Command {
  const command = new Command('describe')
    .description('what is set, and where')
    .addArgument(typeArgument())
    .argument('<name>', 'of a broker its id, or "all"')
    .option('-a, --all', 'what has its default, too');
  return connecting(command).action(
    async (type: ResourceType, name: string, options: DescribeConfigOptions) => {
      const { describeConfig } = await import('../cli/config_run.ts');
      await describeConfig(type, name, options);
    },
  );
}

function alterCommand(): Command {
  const pair = (flags: string, text: string): Option =>
    new Option(flags, `${text}; may be repeated`).argParser(collectPairs);
  const command = new Command('alter')
    .description('change settings, all or none')
    .addArgument(typeArgument())
    .argument('<name>', 'of a broker its id, or "all"')
    .addOption(pair('-s, --set <key=value>', 'a setting'))
    .addOption(
      new Option('--unset <key>', 'back to the default; may be repeated').argParser(collect),
    )
    .addOption(pair('--append <key=value>', 'to a list'))
    .addOption(pair('--subtract <key=value>', 'from a list'))
    .option('--dry-run', 'only ask whether that is allowed');
  return connecting(command).action(
    async (type: ResourceType, name: string, options: AlterConfigOptions) => {
      const { alterConfig } = await import('../cli/config_run.ts');
      await alterConfig(type, name, options);
    },
  );
}
