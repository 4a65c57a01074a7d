/** Serves what handlers of administration on other shards ask of this one's partitions. */
import { findProducers } from './partition_producers.ts';
import type { ShardCalls } from './shard_calls.ts';
import type { ShardPartitions } from './shard_partitions.ts';

export function serveAdministration(calls: ShardCalls, partitions: ShardPartitions): void {
  calls.serve('logDirs.use', (request) => partitions.use(request));
  calls.serve('partition.producers', (request) => findProducers(partitions.table, request));
}
