/** What a shard tells of its partitions' sizes (`ShardPartitions.use`): for DescribeLogDirs. Structured-cloneable. */

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
