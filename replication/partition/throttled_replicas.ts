/**
 * Which replicas of a topic are throttled (KIP-73), as `leader.replication.throttled.replicas` and
 * `follower.replication.throttled.replicas` name them: `*` for all, or partition:brokerId, comma-separated.
 */

/** Of one topic, those of one broker. */
export interface ThrottledReplicas {
  has(partition: number): boolean;
}

const all: ThrottledReplicas = { has: () => true };
const none: ThrottledReplicas = { has: () => false };

/** @param text checked when it was set; undefined: the topic says nothing */
export function throttledReplicas(text: string | undefined, brokerId: number): ThrottledReplicas {
  if (text === undefined || text === '') return none;
  if (text === '*') return all;
  const partitions = new Set<number>();
  for (const item of text.split(',')) {
    const [partition, broker] = item.trim().split(':');
    if (Number(broker) === brokerId) partitions.add(Number(partition));
  }
  return partitions;
}
