/** Builds the metadata plane of a broker: log, quorum, controller and host, from the broker's configuration. */
import { randomInt } from 'node:crypto';
import type { Clock, Disk, Random } from '../engine/ports.ts';
import { Controller } from '../replication/metadata/controller.ts';
import { MetadataImage } from '../replication/metadata/image.ts';
import type { FeatureRange, MetadataDelta, Voter } from '../replication/metadata/records.ts';
import { FileStateStore } from '../replication/raft/file_state_store.ts';
import type { RaftReply, RaftRequest, RaftTransport } from '../replication/raft/messages.ts';
import { metadataLogPath, PartitionLogStore } from '../replication/raft/partition_log_store.ts';
import type { RaftTimers } from '../replication/raft/raft_options.ts';
import { RaftQuorum } from '../replication/raft/raft_quorum.ts';
import { newestSnapshot } from '../replication/raft/raft_snapshots.ts';
import { SnapshotFiles } from '../replication/raft/snapshot_files.ts';
import type { BrokerConfig } from './config/broker_config.ts';
import { checkDynamicConfigs, listDefault } from './config/dynamic_config.ts';
import { checkTopicConfigs } from './config/topic_config.ts';
import { metadataCodec, metadataVersionLevel, metadataVersionLevelMin } from './metadata_codec.ts';
import { QuorumHost } from './quorum_host.ts';

export interface MetadataQuorumOptions {
  readonly config: BrokerConfig;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  /** '' while the node has joined none. */
  readonly clusterId: string;
  /** The node has joined a cluster: has to be on stable storage on return. @throws DiskError */
  readonly onClusterId: (clusterId: string) => void;
  /** Null: the node is alone. */
  readonly transport: RaftTransport | null;
  /** Where the node serves the quorum's requests; empty when it is alone. */
  readonly endpoints: Voter['endpoints'];
  /** Directory id (`meta.properties`) of `config.metadataLogDir`. */
  readonly directoryId: string;
  /** Of `__cluster_metadata-0`, from that directory's checkpoint; 0 without an entry. */
  readonly recoveryPoint: number;
  readonly cleanShutdown: boolean;
  readonly afterPowerLoss: boolean;
  readonly dropCache: boolean;
  readonly onWarning: (message: string) => void;
  /** The metadata log's storage failed: stop the process with this reason. */
  /** See `QuorumHostOptions.beforeDelta`; called for what is replayed, too. */
  readonly beforeDelta: (delta: MetadataDelta) => void;
  readonly onFailed: (error: Error) => void;
}

export interface MetadataQuorumParts {
  readonly host: QuorumHost;
  /** For the directory's checkpoints: `store.checkpoint()`, `store.log.recoveryPoint`. */
  readonly store: PartitionLogStore;
  /** Answers what other members of the quorum ask. */
  handle(request: RaftRequest, done: (reply: RaftReply) => void): void;
}

const timers: RaftTimers = {
  now: () => performance.now(),
  setTimer: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/** What a broker of this version supports, for its registration. */
export const supportedFeatures: readonly FeatureRange[] = [
  {
    name: 'metadata.version',
    minSupportedVersion: metadataVersionLevelMin,
    maxSupportedVersion: metadataVersionLevel,
  },
  { name: 'kraft.version', minSupportedVersion: 0, maxSupportedVersion: 1 },
];

/**
 * Opens the metadata log and takes part in its quorum, which a node that is alone leads at once. Afterwards `host.image` holds all that was committed; the broker registers itself
 * with `host.request({ type: 'registerBroker', … })` before it attaches shards. Rejects with a text for people.
 */
export async function openMetadataQuorum(
  options: MetadataQuorumOptions,
): Promise<MetadataQuorumParts> {
  const { config, disk, clock, random, clusterId, onWarning } = options;
  const files = new SnapshotFiles(disk, metadataLogPath(config.metadataLogDir));
  const loaded = newestSnapshot(files, metadataCodec, onWarning);
  const defer = (run: () => void): void => void setImmediate(run);
  const store = await PartitionLogStore.open({
    disk,
    clock,
    random,
    logDir: config.metadataLogDir,
    recoveryPoint: options.recoveryPoint,
    cleanShutdown: options.cleanShutdown,
    afterPowerLoss: options.afterPowerLoss,
    dropCache: options.dropCache,
    snapshotEndOffset: loaded?.id.endOffset ?? 0,
    defer,
  });
  const { voters, fetchTimeoutMs, electionTimeoutMs, electionBackoffMaxMs, requestTimeoutMs } =
    config.quorum;
  const isAlone = voters.length === 0;
  const controllerName = config.controllerListeners[0]?.name ?? '';
  const quorum = new RaftQuorum({
    self: {
      voterId: config.nodeId,
      voterDirectoryId: options.directoryId,
      endpoints: options.endpoints,
    },
    configuredVoters: voters.map(({ nodeId, host, port }) => ({
      voterId: nodeId,
      endpoints: [{ name: controllerName, host, port }],
    })),
    clusterId,
    newClusterId: randomUuid(random),
    onClusterId: async (adopted) => options.onClusterId(adopted),
    transport: options.transport,
    timers,
    random,
    timeouts: { fetchTimeoutMs, electionTimeoutMs, electionBackoffMaxMs, requestTimeoutMs },
    store,
    stateStore: new FileStateStore(disk, store.log.dir),
    snapshots: {
      files,
      loaded,
      everyBytes: config.quorum.snapshotEveryBytes,
      intervalMs: config.quorum.snapshotIntervalMs,
      fetchBytesMax: config.quorum.fetchSnapshotMaxBytes,
      defer,
    },
    codec: metadataCodec,
    wallMs: () => clock.wallMs(),
    onWarning,
  });
  const controller = new Controller({
    nodeId: config.nodeId,
    defaultPartitions: config.numPartitions,
    defaultReplicationFactor: config.defaultReplicationFactor,
    deleteTopicEnable: config.deleteTopicEnable,
    sessionTimeoutMs: isAlone ? null : config.quorum.brokerSessionTimeoutMs,
    leaderBalanceIntervalMs: balanceIntervalOf(config),
    minInsyncReplicas: config.minInsyncReplicas,
    uncleanLeaderElectionEnable: config.uncleanLeaderElectionEnable,
    formationFeatures: [{ name: 'metadata.version', level: metadataVersionLevel }],
    checkTopicConfigs,
    checkBrokerConfigs: checkDynamicConfigs,
    listDefault,
    random: randomInt,
    newUuid: () => randomUuid(random),
  });
  const image = new MetadataImage(clusterId);
  const { onFailed, beforeDelta } = options;
  const host = new QuorumHost({ quorum, controller, clock, image, onFailed, beforeDelta });
  await host.start();
  return { host, store, handle: (request, done) => quorum.handle(request, done) };
}

/** With one broker there is nothing to balance. */
function balanceIntervalOf({ quorum, replication }: BrokerConfig): number | null {
  const { autoLeaderRebalanceEnable, leaderImbalanceCheckIntervalMs } = replication;
  return quorum.voters.length > 0 && autoLeaderRebalanceEnable
    ? leaderImbalanceCheckIntervalMs
    : null;
}

/** A uuid of version 4 in Kafka's form: 22 characters of base64url, not beginning with '-', which tools take for an option. */
export function randomUuid(random: Random): string {
  for (;;) {
    const bytes = random.bytes(16);
    bytes[6] = (bytes[6]! & 0x0f) | 0x40;
    bytes[8] = (bytes[8]! & 0x3f) | 0x80;
    const text = Buffer.from(bytes).toString('base64url');
    if (!text.startsWith('-')) return text;
  }
}
