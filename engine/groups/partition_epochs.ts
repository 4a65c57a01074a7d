/** Partitions of several topics, each with the member epoch in which it was assigned. */
import type { OwnedTopicPartitions, TopicPartitions } from './group_records.ts';

/** By topic id and partition. Invariant: no empty maps within. */
export type PartitionEpochs = ReadonlyMap<string, ReadonlyMap<number, number>>;
export type MutablePartitionEpochs = Map<string, Map<number, number>>;

export const noPartitions: PartitionEpochs = new Map();

export function addPartition(
  to: MutablePartitionEpochs,
  topicId: string,
  partition: number,
  epoch: number,
): void {
  const partitions = to.get(topicId);
  if (partitions === undefined) to.set(topicId, new Map([[partition, epoch]]));
  else partitions.set(partition, epoch);
}

/** From a record; where it does not tell an epoch, `epoch` is taken. */
export function readPartitions(
  topics: readonly OwnedTopicPartitions[],
  epoch: number,
): PartitionEpochs {
  const read: MutablePartitionEpochs = new Map();
  for (const { topicId, partitions, assignmentEpochs } of topics)
    for (const [index, partition] of partitions.entries())
      addPartition(read, topicId, partition, assignmentEpochs?.[index] ?? epoch);
  return read;
}

export function writePartitions(partitions: PartitionEpochs): OwnedTopicPartitions[] {
  return [...partitions].map(([topicId, epochs]) => ({
    topicId,
    partitions: [...epochs.keys()],
    assignmentEpochs: [...epochs.values()],
  }));
}

export function withoutEpochs(partitions: PartitionEpochs): TopicPartitions[] {
  return [...partitions].map(([topicId, epochs]) => ({
    topicId,
    partitions: [...epochs.keys()],
  }));
}

/** Whether both name the same partitions. */
export function samePartitions(a: PartitionEpochs, b: PartitionEpochs): boolean {
  if (a.size !== b.size) return false;
  for (const [topicId, partitions] of a) {
    const others = b.get(topicId);
    if (others?.size !== partitions.size) return false;
    for (const partition of partitions.keys()) if (!others.has(partition)) return false;
  }
  return true;
}

/** Whether all that a client lists are among `partitions`. */
export function areWithin(
  topics: readonly TopicPartitions[],
  partitions: PartitionEpochs,
): boolean {
  return topics.every(({ topicId, partitions: listed }) => {
    const known = partitions.get(topicId);
    return listed.every((partition) => known?.has(partition) === true);
  });
}

/** Whether any that a client lists are among `partitions`. */
export function overlap(topics: readonly TopicPartitions[], partitions: PartitionEpochs): boolean {
  return topics.some(({ topicId, partitions: listed }) => {
    const known = partitions.get(topicId);
    return known !== undefined && listed.some((partition) => known.has(partition));
  });
}
