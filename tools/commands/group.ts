/** `millrace group`: lists, describes, resets and deletes consumer groups. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { type ConnectOptions, connecting } from '../cli/connect.ts';
import { collect } from '../cli/options.ts';
import { parseTime } from '../cli/time.ts';

const help = `
Examples:
  millrace group list
  millrace group describe billing
      how far the group is behind, in records and in time, and who reads what
  millrace group reset billing --topic orders --to earliest
      shows what would change; --execute does it
  millrace group reset billing --topic orders:0,2 --to-time 2h --execute
  millrace group delete billing
`;

const resetHelp = `
Shows what would change. Only --execute changes it, and only while the group has
no members.

Examples:
  millrace group reset billing --topic orders --to earliest
  millrace group reset billing --topic orders:0,2 --to 1500 --execute
  millrace group reset billing --all-topics --to-time 2026-11-29T12:00:00Z
      to the first record at or after that time
  millrace group reset billing --all-topics --to-time 30m
      to the first record of the last 30 minutes
  millrace group reset billing --topic orders --by -100
      a hundred records back
`;

export interface ResetOptions extends ConnectOptions {
  readonly topic?: readonly string[];
  readonly allTopics?: boolean;
  readonly to?: 'earliest' | 'latest' | number;
  /** Milliseconds since 1970. */
  readonly toTime?: number;
  readonly by?: number;
  readonly execute?: boolean;
}

export function groupCommand(): Command {
  return new Command('group')
    .description('consumer groups: list, describe with lag, reset, delete')
    .addHelpText('after', help)
    .addCommand(listCommand())
    .addCommand(describeCommand())
    .addCommand(resetCommand())
    .addCommand(deleteCommand());
}

function listCommand(): Command {
  const command = new Command('list').description('all groups');
  return connecting(command).action(async (options: ConnectOptions) => {
    const { listGroups } = await import('../cli/group_views.ts');
    await listGroups(options);
  });
}

function describeCommand(): Command {
  const command = new Command('describe')
    .description('state, members, and lag in records and in time')
    .argument('<group...>');
  return connecting(command).action(async (groups: string[], options: ConnectOptions) => {
    const { describeGroups } = await import('../cli/group_views.ts');
    await describeGroups(groups, options);
  });
}

function resetCommand(): Command {
  const command = new Command('reset')
    .description('move the offsets that a group has committed')
    .argument('<group>')
    .addOption(
      new Option('-t, --topic <topic[:partition,…]>', 'may be repeated').argParser(collect),
    )
    .option('--all-topics', 'all that the group has offsets of')
    .addOption(new Option('--to <where>', 'earliest, latest or an offset').argParser(placeOf))
    .addOption(
      new Option('--to-time <time>', 'a date, or how long ago: 30s, 15m, 2h, 7d').argParser(timeOf),
    )
    .addOption(new Option('--by <records>', 'forward, or back when negative').argParser(shiftOf))
    .option('--execute', 'do it')
    .addHelpText('after', resetHelp);
  return connecting(command).action(async (group: string, options: ResetOptions) => {
    const { resetGroup } = await import('../cli/group_reset.ts');
    await resetGroup(group, options);
  });
}

function deleteCommand(): Command {
  const command = new Command('delete')
    .description('delete groups with what they have committed')
    .argument('<group...>');
  return connecting(command).action(async (groups: string[], options: ConnectOptions) => {
    const { deleteGroups } = await import('../cli/group_reset.ts');
    await deleteGroups(groups, options);
  });
}

function placeOf(text: string): 'earliest' | 'latest' | number {
  if (text === 'earliest' || text === 'latest') return text;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Allowed: earliest, latest or an offset.');
}

function timeOf(text: string): number {
  const ms = parseTime(text, Date.now());
  if (ms === null)
    throw new InvalidArgumentError(
      'Allowed: a date such as 2026-11-29T12:00:00Z, or how long ago: 30s, 15m, 2h, 7d.',
    );
  return ms;
}

function shiftOf(text: string): number {
  if (!/^[+-]?\d{1,15}$/.test(text))
    throw new InvalidArgumentError('Allowed: a whole number, negative to go back.');
  return Number(text);
}
