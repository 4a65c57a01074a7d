/** New partitions, whether their topic is new or grows: which brokers may have them, and their first records. */
import type { MetadataImage } from './image.ts';
import { type Placement, placeReplicas, type RandomBelow } from './placement.ts';
import { type PartitionRecord, uuidZero } from './records.ts';

const assignment = 'The manual partition assignment includes';

/** Lets chance and the racks decide among the brokers that are registered. */
export function placeOnBrokers(
  image: MetadataImage,
  partitions: number,
  replicationFactor: number,
  random: RandomBelow,
): Placement {
  const brokers = [...image.brokers.values()].map(({ id, rack }) => ({
    id,
    rack,
    fenced: !image.isActive(id),
  }));
  return placeReplicas(brokers, partitions, replicationFactor, random);
}

/** Why a client's own choice of brokers is refused, for people and in Kafka's words; null when it is fine. */
export function assignmentProblem(
  image: MetadataImage,
  brokerIds: readonly number[],
  partitionId: number,
  replicationFactor: number,
): string | null {
  const problem = replicasProblem(image, brokerIds);
  if (problem !== null) return problem;
  if (brokerIds.length !== replicationFactor)
    return `${assignment} a partition with ${brokerIds.length} replica(s), but this is not consistent with previous partitions, which have ${replicationFactor} replica(s).`;
  if (!brokerIds.some((id) => image.isActive(id)))
    return `All brokers specified in the manual partition assignment for partition ${partitionId} are fenced or in controlled shutdown.`;
  return null;
}

/** The same for brokers that need not be there at once, as those of a reassignment. */
export function replicasProblem(image: MetadataImage, brokerIds: readonly number[]): string | null {
  if (brokerIds.length === 0) return `${assignment} an empty replica list.`;
  const unknown = brokerIds.find((id) => image.broker(id) === undefined);
  if (unknown !== undefined)
    return `${assignment} broker ${unknown}, but no such broker is registered.`;
  const repeated = brokerIds.find((id, index) => brokerIds.indexOf(id) !== index);
  if (repeated !== undefined) return `${assignment} the broker ${repeated} more than once.`;
  return null;
}

/** The record that brings a partition into being, led by the first of its brokers that may. */
export function newPartition(
  image: MetadataImage,
  topicId: string,
  partitionId: number,
  replicas: readonly number[],
): PartitionRecord {
  const isr = replicas.filter((id) => image.isActive(id));
  return {
    type: 'PartitionRecord',
    partitionId,
    topicId,
    replicas,
    isr,
    removingReplicas: [],
    addingReplicas: [],
    leader: isr[0]!,
    leaderRecoveryState: 0,
    leaderEpoch: 0,
    partitionEpoch: 0,
    directories: replicas.map((id) => defaultDirectory(image, id)),
    eligibleLeaderReplicas: null,
    lastKnownElr: null,
  };
}

/** A broker with one directory has no choice to report later; otherwise it says where the replica went (KIP-858). */
export function defaultDirectory(image: MetadataImage, brokerId: number): string {
  const logDirs = image.broker(brokerId)?.logDirs ?? [];
  return logDirs.length === 1 ? logDirs[0]! : uuidZero;
}
