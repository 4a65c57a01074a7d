/**
 * What main and a shard thread say to each other, beside the quorum's messages on the same port
 * (`quorum_messages.ts`). All of it is structured-cloneable.
 */
import type { MessagePort } from 'node:worker_threads';
import type {
  LogStart,
  PartitionCheckpoint,
  PartitionMarks,
} from '../engine/log/checkpoint_table.ts';
import type { DamagedReplicas } from '../replication/metadata/controller_api.ts';
import type { BrokerConfig } from './config/broker_config.ts';
import type { FabricMemory } from './fabric/fabric_memory.ts';
import type { TopicPlacement } from './fabric/placements.ts';
import type { LoggerOptions } from './logger.ts';
import type { ConnectionOrigin } from './server/connection.ts';

/** What the thread is made with. */
export interface ShardThreadData {
  readonly logger: LoggerOptions;
  /** For answers to running requests when the thread is told to stop, milliseconds. */
  readonly graceMs: number;
  readonly fabric: FabricMemory;
}

/** What a shard begins its work with. */
export interface ShardData {
  readonly config: BrokerConfig;
  readonly clusterId: string;
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
  /** Of each partition directory that is there, by its name (`topic-0`). */
  readonly partitions: Map<string, PartitionMarks>;
}

export type ToShard =
  /** Comes before anything else, the quorum's messages included. */
  | { readonly type: 'shard.start'; readonly data: ShardData }
  /** Where partitions go, before the metadata that creates them. */
  | { readonly type: 'shard.placed'; readonly topics: readonly TopicPlacement[] }
  /** All shards have opened their logs: connections may be served. */
  | { readonly type: 'shard.serve' }
  /** No shard has requests under way any more: close the logs. */
  | { readonly type: 'shard.close' }
  /** The log starts of that request are on stable storage, or could not be written. */
  | { readonly type: 'shard.logStartsStored'; readonly number: number; readonly failed: boolean }
  /** A thread of the cleaner's is free: the port is to it, for one job (`cleaner_messages.ts`). */
  | { readonly type: 'shard.cleaner'; readonly port: MessagePort }
  /** A log directory failed on another shard. */
  | { readonly type: 'shard.failDir'; readonly path: string; readonly reason: string }
  /** A descriptor that is the shard's from now on. */
  | { readonly type: 'shard.connection'; readonly fd: number; readonly origin: ConnectionOrigin };

export type FromShard =
  | { readonly type: 'shard.closed'; readonly connectionId: number }
  /** The shard has a log to clean: how much it needs that, for comparison with other shards'. */
  | { readonly type: 'shard.dirty'; readonly need: number }
  | { readonly type: 'shard.checkpoint'; readonly dirs: readonly LogDirCheckpoint[] }
  | ({ readonly type: 'shard.logStarts' } & LogStartRequest)
  | ({ readonly type: 'shard.deleted' } & DeletedPartition)
  /** No request of this shard's connections is under way any more. */
  | { readonly type: 'shard.drained' }
  /** All logs are closed; `clean` when all that is in them is on stable storage. */
  | { readonly type: 'shard.stopped'; readonly clean: boolean }
  /** A log that was opened lacks records that may have been acknowledged. */
  | { readonly type: 'shard.damaged'; readonly replicas: DamagedReplicas }
  /** A write or flush failed, and the directory is offline. */
  | { readonly type: 'shard.dirFailed'; readonly path: string; readonly reason: string }
  /** The shard cannot go on; the process must stop with this reason. */
  | { readonly type: 'shard.failed'; readonly reason: string };

/** Offsets of a shard's partitions in one log directory, for its checkpoint files. */
export interface LogDirCheckpoint {
  readonly path: string;
  readonly partitions: readonly PartitionCheckpoint[];
}

/** Asks main to have log starts on stable storage, where they count from then on. */
export interface LogStartRequest {
  /** Of the request, in the answer. */
  readonly number: number;
  /** The log directory. */
  readonly path: string;
  readonly starts: readonly LogStart[];
}

export interface DeletedPartition {
  /** The log directory. */
  readonly path: string;
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
  /** The partition's directory under its new name, to be removed. */
  readonly renamed: string;
}
