/**
 * What main and a shard thread say to each other, beside the quorum's messages on the same port
 * (`quorum_messages.ts`). All of it is structured-cloneable.
 */
import type { BrokerConfig } from './config/broker_config.ts';
import type { LoggerOptions } from './logger.ts';
import type { ConnectionOrigin } from './server/connection.ts';

/** What a shard thread is started with. */
export interface ShardData {
  readonly config: BrokerConfig;
  readonly clusterId: string;
  readonly logger: LoggerOptions;
  readonly logDirs: readonly LogDirData[];
}

/** What main found out about a log directory before any log was opened. */
export interface LogDirData {
  readonly path: string;
  /** The last stop was clean: nothing has to be recovered. */
  readonly cleanShutdown: boolean;
  /** The machine may have lost power since: unflushed pages may be gone. */
  readonly afterPowerLoss: boolean;
  /** A flush failed before the stop: the page cache may hold what the device does not. */
  readonly dropCache: boolean;
  /** By partition directory name, `topic-0`. */
  readonly partitions: ReadonlyMap<string, PartitionMarks>;
}

/** What the checkpoint files say of a partition that is there; -1 where they say nothing. */
export interface PartitionMarks {
  readonly recoveryPoint: number;
  readonly logStartOffset: number;
}

export type ToShard =
  /** A descriptor that is the shard's from now on. */
  | { readonly type: 'shard.connection'; readonly fd: number; readonly origin: ConnectionOrigin }
  /** Answer what is running, then close connections and logs and say `shard.stopped`. */
  | { readonly type: 'shard.stop'; readonly graceMs: number };

export type FromShard =
  | { readonly type: 'shard.closed'; readonly connectionId: number }
  | { readonly type: 'shard.checkpoint'; readonly dirs: readonly LogDirCheckpoint[] }
  | { readonly type: 'shard.stopped'; readonly clean: boolean }
  /** The shard cannot go on; the process must stop with this reason. */
  | { readonly type: 'shard.failed'; readonly reason: string };

/** Offsets of a shard's partitions in one log directory, for its checkpoint files. */
export interface LogDirCheckpoint {
  readonly path: string;
  readonly partitions: readonly PartitionCheckpoint[];
}

export interface PartitionCheckpoint {
  readonly topic: string;
  readonly partition: number;
  readonly recoveryPoint: number;
  readonly logStartOffset: number;
  readonly highWatermark: number;
}
