/** `millrace topic`: makes, lists, describes, changes and deletes topics. */
import { Command, Option } from 'commander';
import { type ConnectOptions, connecting } from '../cli/connect.ts';
import { collect, collectPairs, wholeNumber } from '../cli/options.ts';

const partitionsMax = 100_000;

const help = `
Examples:
  millrace topic create orders --partitions 6 --set retention.ms=86400000
  millrace topic list
  millrace topic describe orders
  millrace topic alter orders --set cleanup.policy=compact --unset retention.ms
  millrace topic add-partitions orders 12
  millrace topic delete orders
`;

export interface CreateOptions extends ConnectOptions {
  readonly partitions?: number;
  readonly replicas?: number;
  readonly set?: Readonly<Record<string, string>>;
  readonly ifNotExists?: boolean;
}

export interface ListOptions extends ConnectOptions {
  readonly internal?: boolean;
}

export interface AlterOptions extends ConnectOptions {
  readonly set?: Readonly<Record<string, string>>;
  readonly unset?: readonly string[];
}

export interface DeleteOptions extends ConnectOptions {
  readonly ifExists?: boolean;
}

export function topicCommand(): Command {
  return new Command('topic')
    .description('topics: create, list, describe, alter, delete, add-partitions')
    .addHelpText('after', help)
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(describeCommand())
    .addCommand(alterCommand())
    .addCommand(addPartitionsCommand())
    .addCommand(deleteCommand());
}

function createCommand(): Command {
  const command = new Command('create')
    .description('make a topic')
    .argument('<topic>')
    .addOption(
      new Option('-p, --partitions <number>', "default: the broker's num.partitions").argParser(
        wholeNumber(1, partitionsMax),
      ),
    )
    .addOption(
      new Option('-r, --replicas <number>', 'copies of each partition').argParser(
        wholeNumber(1, 32_767),
      ),
    )
    .addOption(setOption())
    .option('--if-not-exists', 'one that is there already is no error');
  return connecting(command).action(async (topic: string, options: CreateOptions) => {
    const { createTopic } = await import('../cli/topic_changes.ts');
    await createTopic(topic, options);
  });
}

function listCommand(): Command {
  const command = new Command('list')
    .description('all topics')
    .option('--internal', "the brokers' own, too");
  return connecting(command).action(async (options: ListOptions) => {
    const { listTopics } = await import('../cli/topic_views.ts');
    await listTopics(options);
  });
}

function describeCommand(): Command {
  const command = new Command('describe')
    .description('partitions, offsets and settings')
    .argument('<topic...>');
  return connecting(command).action(async (topics: string[], options: ConnectOptions) => {
    const { describeTopics } = await import('../cli/topic_views.ts');
    await describeTopics(topics, options);
  });
}

function alterCommand(): Command {
  const command = new Command('alter')
    .description('change settings')
    .argument('<topic>')
    .addOption(setOption())
    .addOption(
      new Option('--unset <key>', 'back to the default; may be repeated').argParser(collect),
    );
  return connecting(command).action(async (topic: string, options: AlterOptions) => {
    const { alterTopic } = await import('../cli/topic_changes.ts');
    await alterTopic(topic, options);
  });
}

function addPartitionsCommand(): Command {
  const command = new Command('add-partitions')
    .description('more partitions; keys change theirs')
    .argument('<topic>')
    .argument('<total>', 'with those that there are', wholeNumber(1, partitionsMax));
  return connecting(command).action(
    async (topic: string, total: number, options: ConnectOptions) => {
      const { addPartitions } = await import('../cli/topic_changes.ts');
      await addPartitions(topic, total, options);
    },
  );
}

function deleteCommand(): Command {
  const command = new Command('delete')
    .description('delete topics with all their records')
    .argument('<topic...>')
    .option('--if-exists', 'one that is not there is no error');
  return connecting(command).action(async (topics: string[], options: DeleteOptions) => {
    const { deleteTopics } = await import('../cli/topic_changes.ts');
    await deleteTopics(topics, options);
  });
}

function setOption(): Option {
  return new Option('-s, --set <key=value>', 'a setting; may be repeated').argParser(collectPairs);
}
