/** What `millrace group` changes: committed offsets, and groups as a whole. */
import type { Admin } from '../../net/client/admin.ts';
import type { TopicPartition } from '../../net/client/consumer/topic_partition.ts';
import type { ResetOptions } from '../commands/group.ts';
import { CommandError, type ConnectOptions, withClient } from './connect.ts';
import { printTable } from './table.ts';
import { colour, printJson, say, writeOut } from './terminal.ts';

interface Change extends TopicPartition {
  readonly from: number | null;
  readonly to: number;
}

export function resetGroup(group: string, options: ResetOptions): Promise<void> {
  return withClient(options, async (client) => {
    checkPlace(options);
    const admin = client.admin();
    const committed = new Map(
      (await admin.groupOffsets(group)).map((one) => [keyOf(one), one] as const),
    );
    const chosen = await choose(admin, [...committed.values()], options);
    if (chosen.length === 0)
      throw new CommandError(
        `group ${group} has committed nothing.`,
        'Name the topics with --topic: offsets can be set for partitions that it has never read.',
      );
    const targets = await targetsOf(admin, chosen, committed, options);
    const changes = chosen.map(({ topic, partition }, number): Change => {
      const from = committed.get(keyOf({ topic, partition }))?.offset ?? null;
      return { topic, partition, from, to: targets[number] as number };
    });
    const isExecuted = options.execute === true;
    if (isExecuted)
      await admin.alterGroupOffsets(
        group,
        changes.map(({ topic, partition, to }) => ({ topic, partition, offset: to })),
      );
    print(changes, isExecuted, options.json === true);
  });
}

function checkPlace({ to, toTime, by, topic, allTopics }: ResetOptions): void {
  const places = [to, toTime, by].filter((one) => one !== undefined).length;
  if (places !== 1)
    throw new CommandError('say where to: one of --to, --to-time and --by.', 'See --help.');
  if ((topic === undefined) === (allTopics !== true))
    throw new CommandError(
      'say what: either --topic, or --all-topics for all that the group has committed.',
    );
}

/** The partitions that are meant. */
async function choose(
  admin: Admin,
  committed: readonly TopicPartition[],
  { topic: wanted }: ResetOptions,
): Promise<TopicPartition[]> {
  if (wanted === undefined) return committed.map(({ topic, partition }) => ({ topic, partition }));
  const chosen: TopicPartition[] = [];
  for (const text of wanted) {
    const match = /^([^:]+)(?::(\d+(?:,\d+)*))?$/.exec(text);
    if (match === null)
      throw new CommandError(`--topic ${text}: write a topic, or topic:0,2 for some partitions.`);
    const topic = match[1] as string;
    const { partitions } = await admin.describeTopic(topic);
    const numbers = match[2]?.split(',').map(Number) ?? partitions.map((one) => one.partition);
    for (const partition of numbers) {
      if (partition >= partitions.length)
        throw new CommandError(
          `--topic ${text}: ${topic} has partitions 0 to ${partitions.length - 1}.`,
        );
      chosen.push({ topic, partition });
    }
  }
  return chosen;
}

/** Within what the partitions hold: an offset beyond would be one that no consumer can begin with. */
async function targetsOf(
  admin: Admin,
  chosen: readonly TopicPartition[],
  committed: ReadonlyMap<string, { readonly offset: number }>,
  { to, toTime, by }: ResetOptions,
): Promise<number[]> {
  const [earliest, latest, byTime] = await Promise.all([
    admin.listOffsets(chosen, 'earliest'),
    admin.listOffsets(chosen, 'latest'),
    toTime === undefined ? [] : admin.listOffsets(chosen, toTime),
  ]);
  return chosen.map((one, number) => {
    const first = earliest[number]?.offset ?? 0;
    const end = latest[number]?.offset ?? 0;
    if (to === 'earliest') return first;
    if (to === 'latest') return end;
    if (toTime !== undefined) {
      const found = byTime[number]?.offset ?? -1;
      return found < 0 ? end : found;
    }
    const wanted =
      by === undefined ? (to as number) : (committed.get(keyOf(one))?.offset ?? end) + by;
    return Math.min(end, Math.max(first, wanted));
  });
}

function print(changes: readonly Change[], isExecuted: boolean, isJson: boolean): void {
  if (isJson) {
    printJson({ executed: isExecuted, changes });
    return;
  }
  printTable(
    ['topic', 'partition', 'now', isExecuted ? 'set to' : 'would be', 'change'],
    changes.map(({ topic, partition, from, to }) => [
      topic,
      partition,
      from,
      to,
      from === null ? null : to - from,
    ]),
  );
  if (!isExecuted) say(colour('yellow', 'nothing was changed; --execute does it'));
}

export function deleteGroups(groups: readonly string[], options: ConnectOptions): Promise<void> {
  return withClient(options, async (client) => {
    const admin = client.admin();
    for (const group of groups) {
      await admin.deleteGroup(group);
      if (options.json !== true) writeOut(`deleted ${group}\n`);
    }
    if (options.json === true) printJson({ deleted: groups });
  });
}

function keyOf({ topic, partition }: TopicPartition): string {
  return `${topic} ${partition}`;
}
