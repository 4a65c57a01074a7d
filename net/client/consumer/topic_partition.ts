/** Partitions by name, and sets of them. */

export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

/** Partitions of one topic. */
export interface TopicPartitions {
  readonly topic: string;
  readonly partitions: readonly number[];
}

/** Names a partition among all: the last dash ends the topic. */
export function keyOf({ topic, partition }: TopicPartition): string {
  return `${topic}-${partition}`;
}

/** Those of `all` that are not in `less`, in their order. */
export function without<T extends TopicPartition>(
  all: readonly T[],
  less: readonly TopicPartition[],
): T[] {
  if (less.length === 0) return [...all];
  const keys = new Set(less.map(keyOf));
  return all.filter((one) => !keys.has(keyOf(one)));
}

/** By topic, in the order in which topics come first. */
export function byTopic(partitions: readonly TopicPartition[]): TopicPartitions[] {
  const topics = new Map<string, number[]>();
  for (const { topic, partition } of partitions) {
    const known = topics.get(topic);
    if (known === undefined) topics.set(topic, [partition]);
    else known.push(partition);
  }
  return [...topics].map(([topic, numbers]) => ({ topic, partitions: numbers }));
}

export function flatten(topics: readonly TopicPartitions[]): TopicPartition[] {
  return topics.flatMap(({ topic, partitions }) =>
    partitions.map((partition) => ({ topic, partition })),
  );
}
