/** How a broker shows the metadata image to clients of one of its listeners: shared by the APIs that describe it. */
import { ErrorCode } from '../engine/error_code.gen.ts';
import type { BrokerImage, MetadataImage, PartitionImage } from '../replication/metadata/image.ts';

/** What an authorised-operations field says when it was not asked for (KIP-430). */
export const operationsNotAsked = -2_147_483_648;

/** Kafka's `AclOperation` codes. */
const Operation = {
  read: 3,
  write: 4,
  create: 5,
  delete: 6,
  alter: 7,
  describe: 8,
  clusterAction: 9,
  describeConfigs: 10,
  alterConfigs: 11,
  idempotentWrite: 12,
} as const;

/** Without an authorizer everybody may do everything that there is to do with a topic, or with the cluster. */
export const topicOperations: number = operationBits([
  Operation.read,
  Operation.write,
  Operation.create,
  Operation.delete,
  Operation.alter,
  Operation.describe,
  Operation.describeConfigs,
  Operation.alterConfigs,
]);
export const clusterOperations: number = operationBits([
  Operation.create,
  Operation.alter,
  Operation.describe,
  Operation.clusterAction,
  Operation.describeConfigs,
  Operation.alterConfigs,
  Operation.idempotentWrite,
]);
/** The same for a group. */
export const groupOperations: number = operationBits([
  Operation.read,
  Operation.delete,
  Operation.describe,
  Operation.describeConfigs,
  Operation.alterConfigs,
]);

function operationBits(operations: readonly number[]): number {
  return operations.reduce((bits, operation) => bits | (1 << operation), 0);
}

export interface BrokerView {
  readonly broker: BrokerImage;
  readonly host: string;
  readonly port: number;
}

/** The brokers that clients of the listener can reach; fenced ones only where asked for. */
export function brokersOf(
  image: MetadataImage,
  listener: string,
  includeFenced: boolean,
): BrokerView[] {
  const views: BrokerView[] = [];
  for (const broker of image.brokers.values()) {
    if (broker.fenced && !includeFenced) continue;
    const endpoint = image.endpoint(broker.id, listener);
    if (endpoint !== undefined) views.push({ broker, host: endpoint.host, port: endpoint.port });
  }
  return views;
}

/** As the answers of Metadata and DescribeTopicPartitions name its fields. */
export interface PartitionView {
  readonly errorCode: ErrorCode;
  readonly partitionIndex: number;
  readonly leaderId: number;
  readonly leaderEpoch: number;
  readonly replicaNodes: readonly number[];
  readonly isrNodes: readonly number[];
  readonly offlineReplicas: readonly number[];
}

/**
 * Whether clients of the listener can use the partition. LISTENER_NOT_FOUND is younger than Metadata v6: before it such
 * a leader counts as not available (KIP-302 and Kafka's `KRaftMetadataCache`).
 */
export function partitionView(
  image: MetadataImage,
  partition: PartitionImage,
  listener: string,
  knowsListenerNotFound: boolean,
): PartitionView {
  const { leader } = partition;
  const view = {
    errorCode: ErrorCode.NONE,
    partitionIndex: partition.partitionId,
    leaderId: leader,
    leaderEpoch: partition.leaderEpoch,
    replicaNodes: partition.replicas,
    isrNodes: partition.isr,
    // Of no use to this listener's clients, as in Kafka: fenced, unknown, or not to be reached by it.
    offlineReplicas: partition.replicas.filter(
      (id) => !image.isAlive(id) || image.endpoint(id, listener) === undefined,
    ),
  };
  if (!image.isAlive(leader))
    return { ...view, errorCode: ErrorCode.LEADER_NOT_AVAILABLE, leaderId: -1 };
  if (image.endpoint(leader, listener) === undefined) {
    const errorCode = knowsListenerNotFound
      ? ErrorCode.LISTENER_NOT_FOUND
      : ErrorCode.LEADER_NOT_AVAILABLE;
    return { ...view, errorCode, leaderId: -1 };
  }
  return view;
}

/** What a handler of these APIs needs to know about a request; a `RequestContext` is one. */
export interface Caller {
  readonly apiVersion: number;
  readonly connection: { readonly listener: string };
}
