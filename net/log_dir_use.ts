/** What a shard tells of its partitions' sizes (`ShardPartitions.use`): for DescribeLogDirs. Structured-cloneable. */
import { parentOf } from '../engine/log/partition_directory.ts';
import type { PartitionLog } from '../engine/log/partition_log.ts';

export interface LogDirUseRequest {
  /** Null: all topics. */
  readonly topics:
    | readonly { readonly topic: string; readonly partitions: readonly number[] }[]
    | null;
}

export interface PartitionUse {
  readonly topic: string;
  readonly partition: number;
  /** Of the segments' log files. */
  readonly bytes: number;
}

/** The partitions of one shard in one log directory. */
export interface LogDirUse {
  readonly path: string;
  readonly isOffline: boolean;
  readonly partitions: readonly PartitionUse[];
}

/** @param isOffline for the path of each log directory */
export function useOf(
  replicas: Iterable<{ readonly log: PartitionLog }>,
  isOffline: ReadonlyMap<string, boolean>,
  { topics }: LogDirUseRequest,
): LogDirUse[] {
  const wanted = topics && new Map(topics.map((one) => [one.topic, new Set(one.partitions)]));
  const found = new Map<string, PartitionUse[]>([...isOffline.keys()].map((path) => [path, []]));
  for (const { log } of replicas) {
    const { topic, partition, size } = log;
    if (wanted !== null && wanted.get(topic)?.has(partition) !== true) continue;
    found.get(parentOf(log.dir))?.push({ topic, partition, bytes: size });
  }
  return [...found].map(([path, partitions]) => ({
    path,
    isOffline: isOffline.get(path) === true,
    partitions,
  }));
}
