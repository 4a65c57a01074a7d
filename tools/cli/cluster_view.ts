/** What `millrace cluster-info` shows. */
import type { LogDirectoryInfo, QuorumDescription } from '../../net/client/admin_cluster.ts';
import { MillraceError } from '../../net/client/errors.ts';
import type { TopicInfo } from '../../net/client/metadata.ts';
import { errorName } from '../../net/protocol/errors.ts';
import { type ConnectOptions, withClient } from './connect.ts';
import { byteText, countText } from './quantity.ts';
import { printTable } from './table.ts';
import { colour, printJson, writeOut } from './terminal.ts';

interface BrokerView {
  readonly id: number;
  readonly address: string;
  readonly rack: string | null;
  readonly isController: boolean;
  readonly leaders: number;
  readonly replicas: number;
  readonly outOfSync: number;
  readonly bytes: number;
}

export function showCluster(options: ConnectOptions): Promise<void> {
  return withClient(options, async (client) => {
    const admin = client.admin();
    const cluster = await admin.describeCluster();
    const [topics, dirs, quorum] = await Promise.all([
      admin.listTopics({ internal: true }),
      admin.describeLogDirs(),
      quorumOrNull(admin.describeQuorum()),
    ]);
    const brokers = cluster.brokers.map(
      ({ id, host, port, rack }): BrokerView => ({
        ...{ id, rack, address: `${host}:${port}`, isController: id === cluster.controllerId },
        ...countsOf(id, topics),
        bytes: bytesOf(dirs.filter(({ brokerId }) => brokerId === id)),
      }),
    );
    const { clusterId } = cluster;
    if (options.json === true) {
      printJson({
        clusterId,
        brokers,
        topics: topics.length,
        logDirs: withoutReplicas(dirs),
        quorum,
      });
      return;
    }
    const partitions = topics.reduce((sum, topic) => sum + topic.partitions.length, 0);
    const counts = [
      countText(brokers.length, 'broker'),
      countText(topics.length, 'topic'),
      countText(partitions, 'partition'),
    ];
    writeOut(`${colour('bold', `cluster ${clusterId ?? '?'}`)}  ${counts.join(', ')}\n\n`);
    printBrokers(brokers);
    writeOut('\n');
    printDirs(dirs);
    if (quorum === null) return;
    writeOut('\n');
    printQuorum(quorum);
  });
}

/** Null where there is none that would tell: an older Kafka. */
async function quorumOrNull(asked: Promise<QuorumDescription>): Promise<QuorumDescription | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'UNSUPPORTED_VERSION') return null;
    throw error;
  }
}

function countsOf(
  id: number,
  topics: readonly TopicInfo[],
): Pick<BrokerView, 'leaders' | 'replicas' | 'outOfSync'> {
  const all = topics.flatMap(({ partitions }) => partitions);
  const here = all.filter(({ replicas }) => replicas.includes(id));
  return {
    leaders: all.filter(({ leaderId }) => leaderId === id).length,
    replicas: here.length,
    outOfSync: here.filter(({ inSyncReplicas }) => !inSyncReplicas.includes(id)).length,
  };
}

function bytesOf(dirs: readonly LogDirectoryInfo[]): number {
  return dirs.reduce(
    (sum, { replicas }) => sum + replicas.reduce((part, { bytes }) => part + bytes, 0),
    0,
  );
}

function withoutReplicas(dirs: readonly LogDirectoryInfo[]): unknown[] {
  return dirs.map(({ replicas, ...rest }) => ({
    ...rest,
    replicas: replicas.length,
    bytes: replicas.reduce((sum, { bytes }) => sum + bytes, 0),
  }));
}

function printBrokers(brokers: readonly BrokerView[]): void {
  printTable(
    ['broker', 'address', 'leaders', 'replicas', 'out of sync', 'size', 'role'],
    brokers.map((one) => [
      one.id,
      one.address,
      one.leaders,
      one.replicas,
      one.outOfSync === 0 ? 0 : colour('yellow', String(one.outOfSync)),
      byteText(one.bytes),
      one.isController ? 'controller' : '',
    ]),
  );
}

function printDirs(dirs: readonly LogDirectoryInfo[]): void {
  printTable(
    ['broker', 'log directory', 'replicas', 'free', 'of', 'state'],
    dirs.map((one) => [
      one.brokerId,
      one.path,
      one.replicas.length,
      one.usableBytes < 0 ? null : byteText(one.usableBytes),
      one.totalBytes < 0 ? null : byteText(one.totalBytes),
      one.errorCode === 0 ? 'ok' : colour('red', errorName(one.errorCode)),
    ]),
  );
}

function printQuorum(quorum: QuorumDescription): void {
  const { leaderId, leaderEpoch, highWatermark, voters, observers } = quorum;
  writeOut(`quorum: leader ${leaderId}, epoch ${leaderEpoch}, committed up to ${highWatermark}\n`);
  printTable(
    ['node', 'part', 'log end', 'behind'],
    [
      ...voters.map((one) => [
        one.id,
        one.id === leaderId ? 'leader' : 'voter',
        one.logEndOffset,
        one.lag,
      ]),
      ...observers.map((one) => [one.id, 'observer', one.logEndOffset, one.lag]),
    ],
  );
}
