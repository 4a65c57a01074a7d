/** What `millrace group` shows. */
import type { Admin } from '../../net/client/admin.ts';
import type { GroupDescription, GroupMember } from '../../net/client/admin_groups.ts';
import type { TopicPartition } from '../../net/client/consumer/topic_partition.ts';
import { MillraceError } from '../../net/client/errors.ts';
import { type ConnectOptions, withClient } from './connect.ts';
import { flowText } from './flow.ts';
import { countText, spanText } from './quantity.ts';
import { printTable } from './table.ts';
import { colour, printJson, writeOut } from './terminal.ts';

export function listGroups(options: ConnectOptions): Promise<void> {
  return withClient(options, async (client) => {
    const groups = await client.admin().listGroups();
    if (options.json === true) printJson(groups);
    else if (groups.length === 0) writeOut('there are no groups\n');
    else
      printTable(
        ['group', 'type', 'state', 'protocol'],
        groups.map(({ groupId, type, state, protocolType }) => [
          groupId,
          type || '-',
          state || '-',
          protocolType || '-',
        ]),
      );
  });
}

interface LagView extends TopicPartition {
  /** Null where the group has committed nothing. */
  readonly committed: number | null;
  /** Null for a partition that is not there any more, or has no leader. */
  readonly end: number | null;
  readonly lag: number | null;
  /** How long ago the first record was written that the group has not read; 0 when there is none. */
  readonly lagMs: number | null;
  readonly memberId: string | null;
}

interface GroupView extends GroupDescription {
  readonly partitions: readonly LagView[];
  readonly totalLag: number;
}

export function describeGroups(groups: readonly string[], options: ConnectOptions): Promise<void> {
  return withClient(options, async (client) => {
    const admin = client.admin();
    const views: GroupView[] = [];
    for (const group of groups) views.push(await viewOf(admin, group));
    if (options.json === true) {
      printJson(views);
      return;
    }
    for (const [number, view] of views.entries()) {
      if (number > 0) writeOut('\n');
      printGroup(view);
    }
  });
}

async function viewOf(admin: Admin, groupId: string): Promise<GroupView> {
  const [group, offsets] = await Promise.all([
    admin.describeGroup(groupId),
    admin.groupOffsets(groupId),
  ]);
  const keys = new Map<string, TopicPartition & { committed: number | null }>();
  for (const { topic, partition, offset } of offsets)
    keys.set(`${topic} ${partition}`, { topic, partition, committed: offset });
  for (const { assignment } of group.members)
    for (const { topic, partition } of assignment) {
      const key = `${topic} ${partition}`;
      if (!keys.has(key)) keys.set(key, { topic, partition, committed: null });
    }
  const list = [...keys.values()].sort(
    (a, b) => a.topic.localeCompare(b.topic) || a.partition - b.partition,
  );
  const ends = await endsOf(admin, list);
  const ages = await agesOf(admin, list, ends);
  const partitions = list.map(({ topic, partition, committed }, number): LagView => {
    const end = ends[number] ?? null;
    const lag = end === null || committed === null ? null : Math.max(0, end - committed);
    const owner = group.members.find(({ assignment }) =>
      assignment.some((one) => one.topic === topic && one.partition === partition),
    );
    const lagMs = ages[number] ?? null;
    return { topic, partition, committed, end, lag, lagMs, memberId: owner?.memberId ?? null };
  });
  const totalLag = partitions.reduce((sum, { lag }) => sum + (lag ?? 0), 0);
  return { ...group, partitions, totalLag };
}

/** Null for what is not there any more. */
async function endsOf(admin: Admin, list: readonly TopicPartition[]): Promise<(number | null)[]> {
  return await Promise.all(
    list.map(async ({ topic, partition }) => {
      try {
        const [found] = await admin.listOffsets([{ topic, partition }], 'latest');
        return found?.offset ?? null;
      } catch (error) {
        if (error instanceof MillraceError && error.code === 'UNKNOWN_TOPIC_OR_PARTITION')
          return null;
        throw error;
      }
    }),
  );
}

async function agesOf(
  admin: Admin,
  list: readonly (TopicPartition & { readonly committed: number | null })[],
  ends: readonly (number | null)[],
): Promise<(number | null)[]> {
  const nowMs = Date.now();
  return await Promise.all(
    list.map(async ({ topic, partition, committed }, number) => {
      const end = ends[number] ?? null;
      if (committed === null || end === null) return null;
      if (committed >= end) return 0;
      try {
        const [ms] = await admin.timestampsAt([{ topic, partition, offset: committed }]);
        return ms === undefined || ms < 0 ? null : Math.max(0, nowMs - ms);
      } catch (error) {
        // The records there have been deleted: how old they were nobody knows.
        if (error instanceof MillraceError && error.code === 'OFFSET_OUT_OF_RANGE') return null;
        throw error;
      }
    }),
  );
}

function printGroup(view: GroupView): void {
  const { groupId, type, state, assignor, coordinatorId, members, partitions, totalLag } = view;
  const count = countText(members.length, 'member');
  const parts = [type, stateText(state), assignor, count, `coordinator ${coordinatorId}`];
  const about = parts.filter((text) => text !== '').join(', ');
  writeOut(`${flowText([colour('bold', groupId), about])}\n\n`);
  if (partitions.length === 0) writeOut('nothing is committed, and nobody reads\n');
  else {
    printTable(
      ['topic', 'partition', 'committed', 'end', 'lag', 'behind', 'member'],
      partitions.map((one) => [
        one.topic,
        one.partition,
        one.committed,
        one.end,
        one.lag,
        one.lagMs === null ? null : one.lagMs === 0 ? '0 s' : spanText(one.lagMs),
        shortName(members.find(({ memberId }) => memberId === one.memberId)),
      ]),
    );
    writeOut(`total lag: ${countText(totalLag, 'record')}\n`);
  }
  if (members.length === 0) return;
  writeOut('\n');
  printTable(
    ['member', 'client', 'host', 'partitions'],
    members.map((one) => [shortName(one), one.clientId, one.host, one.assignment.length]),
  );
}

function stateText(state: string): string {
  if (state === 'Stable') return colour('green', state);
  return state === 'Empty' || state === 'Dead' ? colour('dim', state) : colour('yellow', state);
}

/** A static member's own name, or the client's with the beginning of what makes its member id unique. */
function shortName(member: GroupMember | undefined): string {
  if (member === undefined) return '-';
  if (member.instanceId !== null) return member.instanceId;
  const unique = member.memberId.replace(`${member.clientId}-`, '').slice(0, 8);
  return `${member.clientId}-${unique}`;
}
