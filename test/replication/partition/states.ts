/** Partitions as the metadata have them, for tests. */
import type { ReplicaSet } from '../../../replication/partition/isr.ts';

/** Broker 1 has the only copy, and leads with this epoch. */
export function loneState(leaderEpoch: number): ReplicaSet {
  return { replicas: [1], isr: [1], leaderEpoch, partitionEpoch: leaderEpoch };
}
