/** What `millrace topic` shows. */
import type { Admin } from '../../net/client/admin.ts';
import type { ConfigEntry } from '../../net/client/admin_configs.ts';
import type { PartitionInfo, TopicInfo } from '../../net/client/metadata.ts';
import type { ListOptions } from '../commands/topic.ts';
import { type ConnectOptions, withClient } from './connect.ts';
import { flowText } from './flow.ts';
import { countText } from './quantity.ts';
import { printTable } from './table.ts';
import { colour, printJson, writeOut } from './terminal.ts';

export function listTopics(options: ListOptions): Promise<void> {
  return withClient(options, async (client) => {
    const topics = await client.admin().listTopics({ internal: options.internal });
    if (options.json === true) {
      printJson(topics.map((topic) => summaryOf(topic)));
      return;
    }
    if (topics.length === 0) {
      writeOut('there are no topics\n');
      return;
    }
    const rows = topics.map((topic) => {
      const { partitions, replicas, underReplicated, leaderless } = summaryOf(topic);
      return [topic.name, partitions, replicas, stateText(underReplicated, leaderless)];
    });
    printTable(['topic', 'partitions', 'replicas', 'state'], rows);
  });
}

interface TopicSummary {
  readonly name: string;
  readonly topicId: string | null;
  readonly isInternal: boolean;
  readonly partitions: number;
  readonly replicas: number;
  readonly underReplicated: number;
  readonly leaderless: number;
}

function summaryOf({ name, topicId, isInternal, partitions }: TopicInfo): TopicSummary {
  return {
    ...{ name, topicId, isInternal },
    partitions: partitions.length,
    replicas: Math.max(0, ...partitions.map(({ replicas }) => replicas.length)),
    underReplicated: partitions.filter(isUnderReplicated).length,
    leaderless: partitions.filter(({ leaderId }) => leaderId < 0).length,
  };
}

function isUnderReplicated({ inSyncReplicas, replicas }: PartitionInfo): boolean {
  return inSyncReplicas.length < replicas.length;
}

function stateText(underReplicated: number, leaderless: number): string {
  if (leaderless > 0) return colour('red', `${leaderless} without a leader`);
  if (underReplicated > 0) return colour('yellow', `${underReplicated} under-replicated`);
  return 'ok';
}

export function describeTopics(topics: readonly string[], options: ConnectOptions): Promise<void> {
  return withClient(options, async (client) => {
    const admin = client.admin();
    const views: TopicView[] = [];
    for (const topic of topics) views.push(await viewOf(admin, topic));
    if (options.json === true) {
      printJson(views);
      return;
    }
    for (const [number, view] of views.entries()) {
      if (number > 0) writeOut('\n');
      printTopic(view);
    }
  });
}

interface PartitionView extends PartitionInfo {
  /** Null where no leader could tell. */
  readonly earliest: number | null;
  readonly latest: number | null;
}

interface TopicView extends TopicSummary {
  readonly partitionList: readonly PartitionView[];
  /** Those that are set for the topic. */
  readonly settings: Readonly<Record<string, string | null>>;
}

async function viewOf(admin: Admin, name: string): Promise<TopicView> {
  const topic = await admin.describeTopic(name);
  const led = topic.partitions.filter(({ leaderId }) => leaderId >= 0);
  const [earliest, latest, configs] = await Promise.all([
    admin.listOffsets(led, 'earliest'),
    admin.listOffsets(led, 'latest'),
    admin.describeConfig({ type: 'topic', name }),
  ]);
  const offsetOf = (list: typeof earliest, partition: number): number | null =>
    list.find((one) => one.partition === partition)?.offset ?? null;
  return {
    ...summaryOf(topic),
    partitionList: topic.partitions.map((one) => ({
      ...one,
      earliest: offsetOf(earliest, one.partition),
      latest: offsetOf(latest, one.partition),
    })),
    settings: Object.fromEntries(
      configs.filter(isOfTopic).map(({ name: key, value }) => [key, value]),
    ),
  };
}

function isOfTopic({ source }: ConfigEntry): boolean {
  return source === 'topic';
}

function printTopic(view: TopicView): void {
  const { name, topicId, partitions, replicas, underReplicated, leaderless } = view;
  const state = stateText(underReplicated, leaderless);
  const counts = `${countText(partitions, 'partition')}, ${countText(replicas, 'replica')} each, ${state}`;
  writeOut(`${flowText([colour('bold', name), counts])}\n`);
  if (topicId !== null) writeOut(`id ${topicId}\n`);
  const settings = Object.entries(view.settings);
  for (const [key, value] of settings) writeOut(`${key}=${value ?? '(secret)'}\n`);
  writeOut('\n');
  printTable(
    ['partition', 'leader', 'replicas', 'in sync', 'earliest', 'latest', 'records'],
    view.partitionList.map((one) => {
      const inSync = one.inSyncReplicas.join(',');
      return [
        one.partition,
        one.leaderId < 0 ? colour('red', 'none') : one.leaderId,
        one.replicas.join(','),
        isUnderReplicated(one) ? colour('yellow', inSync) : inSync,
        one.earliest,
        one.latest,
        one.earliest === null || one.latest === null ? null : one.latest - one.earliest,
      ];
    }),
  );
}
