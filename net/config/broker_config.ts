/**
 * The typed configuration of a broker. A plain value that can be posted to threads. Times in milliseconds, sizes in
 * bytes; Kafka's names in camel case, see docs/configuration.md for what each means.
 */
import { availableParallelism, hostname, totalmem } from 'node:os';
import { resolve } from 'node:path';
import type { LogConfig } from '../../engine/log/log_config.ts';
import { type CleanerConfig, readCleaner } from './cleaner_config.ts';
import { crossCheck } from './cross_checks.ts';
import { type GroupConfig, readGroups } from './group_config.ts';
import { brokerKeys } from './key_table.ts';
import { type ListenerSettings, readListeners } from './listeners.ts';
import { type QuorumConfig, readQuorum } from './quorum_config.ts';
import {
  type ReplicationConfig,
  readReplication,
  readThrottledRates,
  type ThrottledRates,
} from './replication_config.ts';
import type { Settings } from './settings.ts';
import { logDefaults } from './topic_config.ts';
import { canonicalText } from './value_check.ts';

export interface BrokerConfig extends ListenerSettings {
  readonly nodeId: number;
  readonly rack: string | null;
  /** Absolute paths, at least one. */
  readonly logDirs: readonly string[];
  /** Absolute path, one of `logDirs`. */
  readonly metadataLogDir: string;
  /** Number of shard threads. */
  readonly shards: number;
  readonly durability: 'fsync' | 'os';

  readonly numPartitions: number;
  readonly defaultReplicationFactor: number;
  /** Where the topic has none of its own, see `minInsyncReplicasFor`. */
  readonly minInsyncReplicas: number;
  /** Where the topic says nothing else. */
  readonly uncleanLeaderElectionEnable: boolean;
  readonly autoCreateTopicsEnable: boolean;
  readonly deleteTopicEnable: boolean;

  readonly socketRequestMaxBytes: number;
  readonly socketListenBacklogSize: number;
  /** Memory for requests; never -1, never less than `socketRequestMaxBytes`. */
  readonly queuedMaxRequestBytes: number;
  /** Negative: connections are never closed for being idle. */
  readonly connectionsMaxIdleMs: number;
  readonly maxConnections: number;
  readonly maxConnectionsPerIp: number;
  /** Number of connections by address. */
  readonly maxConnectionsPerIpOverrides: Readonly<Record<string, number>>;
  readonly maxIncrementalFetchSessionCacheSlots: number;
  readonly maxRequestPartitionSizeLimit: number;
  readonly fetchMaxBytes: number;

  readonly logFlushOffsetCheckpointIntervalMs: number;
  readonly logFlushStartOffsetCheckpointIntervalMs: number;
  readonly logRetentionCheckIntervalMs: number;
  /** Negative: no warnings. */
  readonly logRetentionWarnAheadMs: number;
  readonly producerIdExpirationMs: number;
  readonly producerIdExpirationCheckIntervalMs: number;
  readonly cleaner: CleanerConfig;
  readonly backgroundThreads: number;
  readonly numRecoveryThreadsPerDataDir: number;

  readonly groups: GroupConfig;
  readonly quorum: QuorumConfig;
  readonly replication: ReplicationConfig;
  readonly throttledRates: ThrottledRates;

  /** Settings of a topic that has none of its own; see `logConfigFor`. */
  readonly logDefaults: LogConfig;
  /** Known keys that were set in the file or on the command line, canonical text: what DescribeConfigs reports. */
  readonly explicit: Readonly<Record<string, string>>;
  /** Keys set at run time that count, canonical text: for the whole cluster, and over those for this broker. */
  readonly overrides: {
    readonly cluster: Readonly<Record<string, string>>;
    readonly broker: Readonly<Record<string, string>>;
  };
}

/** What can be set while the broker runs; every thread must take a new value of it without a restart. */
export type DynamicConfig = Pick<
  BrokerConfig,
  | 'cleaner'
  | 'logDefaults'
  | 'minInsyncReplicas'
  | 'uncleanLeaderElectionEnable'
  | 'throttledRates'
  | 'maxConnections'
  | 'maxConnectionsPerIp'
  | 'maxConnectionsPerIpOverrides'
  | 'backgroundThreads'
  | 'numRecoveryThreadsPerDataDir'
>;

/** Facts about the machine that defaults depend on. */
export interface Surroundings {
  readonly cwd: string;
  readonly hostname: string;
  readonly memoryBytes: number;
  /** Processors that the process may use; 1 when nothing is said. */
  readonly cores?: number;
}

export function localSurroundings(): Surroundings {
  const limit = process.constrainedMemory();
  const total = totalmem();
  return {
    cwd: process.cwd(),
    hostname: hostname(),
    memoryBytes: limit > 0 && limit < total ? limit : total,
    cores: availableParallelism(),
  };
}

/** Reads every key that Millrace acts on. Problems are recorded in `settings.problems`; the result counts only without errors. */
export function buildBrokerConfig(settings: Settings, around: Surroundings): BrokerConfig {
  const identity = readIdentity(settings, around.cores ?? 1);
  const quorum = readQuorum(settings, identity.nodeId);
  const config: BrokerConfig = {
    ...readListeners(settings, around.hostname, quorum.voters.length > 0),
    ...identity,
    quorum,
    replication: readReplication(settings),
    ...readStorage(settings, around.cwd),
    ...readTopicDefaults(settings),
    ...readNetworkLimits(settings, around.memoryBytes),
    ...readUpkeep(settings),
    groups: readGroups(settings),
    ...readDynamicConfig(settings),
    explicit: explicitTexts(settings),
    overrides: { cluster: {}, broker: {} },
  };
  crossCheck(settings, config);
  return config;
}

/** The part of the configuration that can change at run time, from settings in which the overrides stand already. */
export function readDynamicConfig(settings: Settings): DynamicConfig {
  return {
    logDefaults: logDefaults(settings, readDurability(settings)),
    ...readCleaner(settings),
    minInsyncReplicas: settings.number('min.insync.replicas'),
    uncleanLeaderElectionEnable: settings.boolean('unclean.leader.election.enable'),
    throttledRates: readThrottledRates(settings),
    maxConnections: settings.number('max.connections'),
    maxConnectionsPerIp: settings.number('max.connections.per.ip'),
    maxConnectionsPerIpOverrides: readOverrides(settings),
    backgroundThreads: settings.number('background.threads'),
    numRecoveryThreadsPerDataDir: settings.number('num.recovery.threads.per.data.dir'),
  };
}

function readDurability(settings: Settings): BrokerConfig['durability'] {
  return settings.text('log.durability') === 'os' ? 'os' : 'fsync';
}

function readIdentity(
  settings: Settings,
  cores: number,
): Pick<BrokerConfig, 'nodeId' | 'rack' | 'shards'> {
  const brokerId = settings.number('broker.id');
  let nodeId = settings.number('node.id');
  if (settings.has('broker.id') && brokerId >= 0) {
    if (settings.has('node.id') && nodeId !== brokerId) {
      settings.refuse('broker.id', `node.id=${nodeId} says otherwise. Allowed: one of the two`);
    }
    nodeId = brokerId;
  }
  const roles = settings.list('process.roles');
  if (roles.length === 1) {
    settings.refuse(
      'process.roles',
      'not supported yet in this version: a node is broker and controller in one. Allowed: broker,controller',
    );
  }
  refuseAuthorizer(settings);
  // One processor is left to main, the kernel and the pool.
  const asked = settings.number('num.shards');
  const shards = asked === -1 ? Math.max(1, cores - 1) : asked;
  return { nodeId, rack: settings.text('broker.rack'), shards };
}

function refuseAuthorizer(settings: Settings): void {
  if (settings.text('authorizer.class.name') === '') return;
  settings.refuse(
    'authorizer.class.name',
    'Millrace has no authorization yet, everybody who connects may do everything. Allowed: leave it out',
  );
}

function readStorage(
  settings: Settings,
  cwd: string,
): Pick<BrokerConfig, 'logDirs' | 'metadataLogDir' | 'durability'> {
  const key = settings.has('log.dirs') ? 'log.dirs' : 'log.dir';
  const given = [settings.list('log.dir'), settings.list('log.dirs')];
  const named = (key === 'log.dirs' ? given[1] : given[0]) ?? [];
  const logDirs = named.map((directory) => resolve(cwd, directory));
  if (new Set(logDirs).size !== logDirs.length) {
    settings.refuse(key, 'two of these are the same directory. Allowed: each once');
  }
  const metadata = settings.text('metadata.log.dir');
  const metadataLogDir = metadata === null ? (logDirs[0] ?? cwd) : resolve(cwd, metadata);
  if (!logDirs.includes(metadataLogDir)) {
    settings.refuse(
      'metadata.log.dir',
      `allowed: one of the data directories (${named.join(', ')})`,
    );
  }
  return { logDirs, metadataLogDir, durability: readDurability(settings) };
}

function readTopicDefaults(
  settings: Settings,
): Pick<
  BrokerConfig,
  'numPartitions' | 'defaultReplicationFactor' | 'autoCreateTopicsEnable' | 'deleteTopicEnable'
> {
  return {
    numPartitions: settings.number('num.partitions'),
    defaultReplicationFactor: settings.number('default.replication.factor'),
    autoCreateTopicsEnable: settings.boolean('auto.create.topics.enable'),
    deleteTopicEnable: settings.boolean('delete.topic.enable'),
  };
}

const mebibyte = 1_048_576;

function readNetworkLimits(settings: Settings, memoryBytes: number): NetworkLimits {
  const socketRequestMaxBytes = settings.number('socket.request.max.bytes');
  const queued = settings.number('queued.max.request.bytes');
  const share = Math.min(Math.floor(memoryBytes / 8), 512 * mebibyte);
  return {
    socketRequestMaxBytes,
    socketListenBacklogSize: settings.number('socket.listen.backlog.size'),
    queuedMaxRequestBytes: queued > 0 ? queued : Math.max(share, socketRequestMaxBytes),
    connectionsMaxIdleMs: settings.number('connections.max.idle.ms'),
    maxIncrementalFetchSessionCacheSlots: settings.number(
      'max.incremental.fetch.session.cache.slots',
    ),
    maxRequestPartitionSizeLimit: settings.number('max.request.partition.size.limit'),
    fetchMaxBytes: settings.number('fetch.max.bytes'),
  };
}

type NetworkLimits = Pick<
  BrokerConfig,
  | 'socketRequestMaxBytes'
  | 'socketListenBacklogSize'
  | 'queuedMaxRequestBytes'
  | 'connectionsMaxIdleMs'
  | 'maxIncrementalFetchSessionCacheSlots'
  | 'maxRequestPartitionSizeLimit'
  | 'fetchMaxBytes'
>;

function readOverrides(settings: Settings): Record<string, number> {
  const key = 'max.connections.per.ip.overrides';
  const overrides: Record<string, number> = {};
  for (const item of (settings.text(key) ?? '').split(',')) {
    if (item.trim() === '') continue;
    const match = /^(.+):(\d{1,9})$/.exec(item.trim());
    if (match === null) settings.refuse(key, 'allowed: address:number, comma-separated');
    else overrides[(match[1] as string).replace(/^\[|\]$/g, '')] = Number(match[2]);
  }
  return overrides;
}

function readUpkeep(
  settings: Settings,
): Pick<
  BrokerConfig,
  | 'logFlushOffsetCheckpointIntervalMs'
  | 'logFlushStartOffsetCheckpointIntervalMs'
  | 'logRetentionCheckIntervalMs'
  | 'logRetentionWarnAheadMs'
  | 'producerIdExpirationMs'
  | 'producerIdExpirationCheckIntervalMs'
> {
  return {
    logFlushOffsetCheckpointIntervalMs: settings.number('log.flush.offset.checkpoint.interval.ms'),
    logFlushStartOffsetCheckpointIntervalMs: settings.number(
      'log.flush.start.offset.checkpoint.interval.ms',
    ),
    logRetentionCheckIntervalMs: settings.number('log.retention.check.interval.ms'),
    logRetentionWarnAheadMs: settings.number('log.retention.warn.ahead.ms'),
    producerIdExpirationMs: settings.number('producer.id.expiration.ms'),
    producerIdExpirationCheckIntervalMs: settings.number(
      'producer.id.expiration.check.interval.ms',
    ),
  };
}

function explicitTexts(settings: Settings): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const { key, value } of settings.explicit.values()) {
    const known = brokerKeys().get(key);
    if (known === undefined || !settings.has(key)) continue;
    texts[key] = known.effect === 'none' ? value.trim() : canonicalText(known, value);
  }
  return texts;
}
