/** Answers by topic and partition, parts of which are known before the coordinator is asked. */

interface Topic<P> {
  readonly name: string;
  readonly topicId?: string;
  readonly partitions: readonly P[];
}

/** Which of the partitions asked for exist in a topic of `count` partitions, and which do not. */
export function splitByExistence<P extends { readonly partitionIndex: number }>(
  partitions: readonly P[],
  count: number,
): { known: P[]; unknown: P[] } {
  const known: P[] = [];
  const unknown: P[] = [];
  for (const partition of partitions) {
    const { partitionIndex } = partition;
    if (partitionIndex >= 0 && partitionIndex < count) known.push(partition);
    else unknown.push(partition);
  }
  return { known, unknown };
}

/** Both lists in one, each topic once: some clients keep only one entry of a name. */
export function mergeTopics<P, T extends Topic<P>>(first: readonly T[], second: readonly T[]): T[] {
  const merged = new Map<string, T>();
  for (const topic of [...first, ...second]) {
    const key = `${topic.name} ${topic.topicId ?? ''}`;
    const before = merged.get(key);
    const partitions = [...(before?.partitions ?? []), ...topic.partitions];
    merged.set(key, { ...topic, partitions });
  }
  return [...merged.values()];
}
