/** The cluster's brokers, where they keep their data, and the quorum of the metadata. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { AdminOptions } from './admin_options.ts';
import type { Cluster } from './cluster.ts';
import { brokerError } from './errors.ts';
import type { BrokerInfo } from './metadata.ts';

export interface ClusterDescription {
  readonly clusterId: string | null;
  /** -1 while there is none. */
  readonly controllerId: number;
  /** By id. */
  readonly brokers: readonly BrokerInfo[];
}

/** A broker's directory with logs. */
export interface LogDirectoryInfo {
  readonly brokerId: number;
  readonly path: string;
  /** Kafka's error code; 0 while the directory is in order. */
  readonly errorCode: number;
  /** Of the file system; -1 where the broker does not tell it. */
  readonly totalBytes: number;
  readonly usableBytes: number;
  readonly replicas: readonly {
    readonly topic: string;
    readonly partition: number;
    readonly bytes: number;
    /** How far the replica's log is behind the high watermark. */
    readonly offsetLag: number;
  }[];
}

export interface QuorumReplica {
  readonly id: number;
  readonly logEndOffset: number;
  /** Behind the leader's log, in records. */
  readonly lag: number;
  /** Milliseconds since 1970; -1 where it is not known. */
  readonly lastFetchMs: number;
  readonly lastCaughtUpMs: number;
}

export interface QuorumDescription {
  readonly leaderId: number;
  readonly leaderEpoch: number;
  readonly highWatermark: number;
  readonly voters: readonly QuorumReplica[];
  readonly observers: readonly QuorumReplica[];
}

export async function describeCluster(
  cluster: Cluster,
  options: AdminOptions = {},
): Promise<ClusterDescription> {
  const reply = await cluster.request(
    'any',
    'Metadata',
    { topics: [], allowAutoTopicCreation: false },
    { ...options, minVersion: 4 },
  );
  cluster.metadata.update(reply, performance.now());
  const brokers = reply.brokers
    .map(({ nodeId: id, host, port, rack }) => ({ id, host, port, rack }))
    .sort((a, b) => a.id - b.id);
  return { clusterId: reply.clusterId, controllerId: reply.controllerId, brokers };
}

/** Of one broker, or of all. */
export async function describeLogDirs(
  cluster: Cluster,
  options: AdminOptions & { readonly brokerId?: number | undefined } = {},
): Promise<LogDirectoryInfo[]> {
  const { brokerId, signal, timeoutMs } = options;
  if (brokerId === undefined) await cluster.refresh();
  const ids = brokerId === undefined ? [...cluster.metadata.brokers.keys()] : [brokerId];
  const answers = await Promise.all(
    ids
      .sort((a, b) => a - b)
      .map(async (id) => {
        const reply = await cluster.request(
          id,
          'DescribeLogDirs',
          { topics: null },
          { ...{ signal, timeoutMs }, errorOf: ({ errorCode }) => errorCode },
        );
        if (reply.errorCode !== ErrorCode.NONE)
          throw brokerError(reply.errorCode, `log directories of broker ${id}`);
        return reply.results.map(
          (one): LogDirectoryInfo => ({
            brokerId: id,
            path: one.logDir,
            errorCode: one.errorCode,
            totalBytes: Number(one.totalBytes),
            usableBytes: Number(one.usableBytes),
            replicas: one.topics.flatMap(({ name: topic, partitions }) =>
              partitions.map(({ partitionIndex: partition, partitionSize, offsetLag }) => ({
                ...{ topic, partition },
                bytes: Number(partitionSize),
                offsetLag: Number(offsetLag),
              })),
            ),
          }),
        );
      }),
  );
  return answers.flat();
}

/** Of the metadata (KIP-595). Throws UNSUPPORTED_VERSION at a Kafka with ZooKeeper. */
export async function describeQuorum(
  cluster: Cluster,
  options: AdminOptions = {},
): Promise<QuorumDescription> {
  const topic = { topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] };
  const reply = await cluster.request(
    'any',
    'DescribeQuorum',
    { topics: [topic] },
    {
      ...options,
      errorOf: ({ errorCode, topics }) => topics[0]?.partitions[0]?.errorCode ?? errorCode,
    },
  );
  const found = reply.topics[0]?.partitions[0];
  const errorCode = reply.errorCode || (found?.errorCode ?? ErrorCode.UNKNOWN_SERVER_ERROR);
  if (found === undefined || errorCode !== ErrorCode.NONE)
    throw brokerError(errorCode, 'describing the quorum', found?.errorMessage);
  const leader = found.currentVoters.find(({ replicaId }) => replicaId === found.leaderId);
  const end = Number(leader?.logEndOffset ?? found.highWatermark);
  const replicaOf = (one: (typeof found.currentVoters)[number]): QuorumReplica => ({
    id: one.replicaId,
    logEndOffset: Number(one.logEndOffset),
    lag: Math.max(0, end - Number(one.logEndOffset)),
    lastFetchMs: Number(one.lastFetchTimestamp),
    lastCaughtUpMs: Number(one.lastCaughtUpTimestamp),
  });
  const byId = (a: QuorumReplica, b: QuorumReplica): number => a.id - b.id;
  return {
    leaderId: found.leaderId,
    leaderEpoch: found.leaderEpoch,
    highWatermark: Number(found.highWatermark),
    voters: found.currentVoters.map(replicaOf).sort(byId),
    observers: found.observers.map(replicaOf).sort(byId),
  };
}
