/**
 * A broker put together: log directories, metadata quorum, shard threads, listeners; and its orderly end.
 *
 * Thread: main, which accepts connections, leads the metadata log and writes checkpoints, and does none of the
 * data path's work. Everything that dies unexpectedly ends in `failed`: the process must stop then, and the next
 * start recovers (fail-stop).
 */
import { NodeDisk, nodeClock, nodeRandom, readBootId } from '../engine/node_ports.ts';
import type { Disk } from '../engine/ports.ts';
import { Supervisor } from '../engine/thread/supervisor.ts';
import type {
  DamagedReplicas,
  RegisterBrokerRequest,
} from '../replication/metadata/controller_api.ts';
import type { MetadataImage } from '../replication/metadata/image.ts';
import {
  ConfigResourceType,
  type MetadataDelta,
  type MetadataRecord,
  metadataTopicName,
  uuidMetadataTopic,
} from '../replication/metadata/records.ts';
import { BrokerThreads, threadCount } from './broker_threads.ts';
import { CleanerPool } from './cleaning/cleaner_pool.ts';
import { ClusterNode } from './cluster_node.ts';
import type { BrokerConfig } from './config/broker_config.ts';
import { LiveConfig } from './config/live_config.ts';
import { PartitionPlacer } from './fabric/partition_placer.ts';
import type { TopicPlacement } from './fabric/placements.ts';
import { Listeners } from './listeners.ts';
import { LogDirectories } from './log_directories.ts';
import type { Logger } from './logger.ts';
import { type MetadataQuorumParts, openMetadataQuorum } from './metadata_quorum.ts';
import { ownRegistration, previousEpochOf } from './own_registration.ts';
import type { FromReplication } from './replication/replication_messages.ts';
import type { FromShard, LogStartRequest, ToShard } from './shard_messages.ts';

/** What tests replace: the disk of main and the worker entry (with the disk of the shards). */
export interface BrokerSeams {
  readonly disk?: Disk;
  readonly shardEntry?: URL;
}

export interface Broker {
  /** Of the first listener, with the port that it really got. */
  readonly address: { readonly host: string; readonly port: number };
  /** Drains and stops cleanly. Rejects when something could not be closed: then the next start recovers. */
  stop(): Promise<void>;
  /** Fulfilled when the broker cannot go on. The process must end. */
  readonly failed: Promise<Error>;
}

/** How long running requests and the closing of logs may take at a stop. */
const stopGraceMs = { requests: 10_000, threads: 30_000 } as const;
const metadataPartition = { topic: metadataTopicName, partition: 0 } as const;

/** The start was given up because somebody wanted the broker to stop. */
export class StartAbandoned extends Error {}

/**
 * Starts a broker and resolves when it serves. Rejects with a text for people when it cannot start; what was opened
 * until then is closed again. One of a cluster serves when a majority of the voters is there, which may take for ever:
 * it is given up (`StartAbandoned`) when `stopRequested` is fulfilled.
 */
export async function startBroker(
  config: BrokerConfig,
  logger: Logger,
  seams: BrokerSeams = {},
  stopRequested: Promise<unknown> = new Promise(() => {}),
): Promise<Broker> {
  const broker = new RunningBroker(config, logger, seams);
  try {
    await broker.start(stopRequested);
    return broker;
  } catch (error) {
    await broker.abandon();
    throw error;
  }
}

class RunningBroker implements Broker {
  readonly failed: Promise<Error>;
  readonly #config: BrokerConfig;
  readonly #live: LiveConfig;
  readonly #logger: Logger;
  readonly #disk: Disk;
  readonly #shardEntry: URL;
  readonly #failure = Promise.withResolvers<Error>();
  readonly #listeners: Listeners;
  readonly #supervisor: Supervisor;
  readonly #cleaners: CleanerPool;
  /** Null: this node is alone. */
  readonly #cluster: ClusterNode | null;
  #directories: LogDirectories | null = null;
  #quorum: MetadataQuorumParts | null = null;
  #brokerEpoch = -1;
  #checkpointTimer: NodeJS.Timeout | null = null;
  readonly #placer: PartitionPlacer;
  #threads: BrokerThreads | null = null;
  /** Threads that have no requests of their connections under way, being stopped or gone. */
  readonly #drained = new Set<number>();
  /** Shards that have closed all their logs. */
  readonly #clean = new Set<number>();
  readonly #failedDirs = new Set<string>();
  #arePlacesTold: boolean = false;
  /** Whose logs, as they were opened, lack records. */
  readonly #damaged: DamagedReplicas[] = [];

  constructor(config: BrokerConfig, logger: Logger, seams: BrokerSeams) {
    this.#config = config;
    this.#live = new LiveConfig(config);
    this.#logger = logger;
    this.#disk = seams.disk ?? new NodeDisk();
    this.#shardEntry = seams.shardEntry ?? new URL('./shard_main.ts', import.meta.url);
    this.failed = this.#failure.promise;
    this.#listeners = new Listeners(config, logger);
    this.#placer = new PartitionPlacer(config.shards, threadCount(config));
    this.#supervisor = new Supervisor({
      onFailure: ({ name, reason, error }) => this.#fail(`thread ${name} ${reason}`, error),
      onUnresponsive: (name, silentMs) =>
        logger.warn({ thread: name, silentMs: Math.round(silentMs) }, 'a thread does not respond'),
    });
    this.#cleaners = new CleanerPool(this.#supervisor, () => this.#live.current.cleaner);
    const isAlone = config.quorum.voters.length === 0;
    this.#cluster = isAlone
      ? null
      : new ClusterNode({
          config,
          logger,
          clusterId: () => this.#directories?.clusterId ?? '',
          silentMs: () => this.#supervisor.silentMs(),
        });
  }

  get address(): { host: string; port: number } {
    return this.#listeners.address;
  }

  /**
   * The order matters: the lock first, then the listener's port, so that a second broker disturbs nothing. A node that is
   * alone registers before it opens its logs, and everybody can use it when they are open. One of a cluster first learns
   * what it is to lead and to follow and opens its logs; only then its listeners for clients are bound, whose ports it
   * registers. Connections that come before it is unfenced wait.
   */
  async start(stopRequested: Promise<unknown>): Promise<void> {
    const abandoned = stopRequested.then(() => {
      throw new StartAbandoned('the start was given up');
    });
    abandoned.catch(() => {});
    // Only what may take for ever: the rest of a start is soon over.
    const unlessAbandoned = (step: Promise<unknown>): Promise<void> =>
      this.#unlessFailed(Promise.race([step, abandoned]));
    const config = this.#config;
    const directories = LogDirectories.open({
      config,
      disk: this.#disk,
      random: nodeRandom,
      bootId: readBootId(),
      logger: this.#logger,
    });
    this.#directories = directories;
    // The threads load their modules while the metadata log is read here.
    const threads = this.#spawnThreads();
    this.#threads = threads;
    const shards = threads.shards.map(({ worker }) => worker);
    if (this.#cluster === null) await this.#listeners.listen(shards);
    await this.#cluster?.listen();
    this.#quorum = await this.#openQuorum(directories);
    if (this.#cluster !== null) await unlessAbandoned(this.#cluster.join(this.#quorum));
    this.#followSettings(this.#quorum.host.image);
    if (this.#cluster === null) await this.#register(directories);
    directories.tidy(this.#quorum.host.image);
    const start: ToShard = {
      type: 'shard.start',
      data: { config, clusterId: directories.clusterId, logDirs: directories.data() },
    };
    const { host } = this.#quorum;
    threads.tell(start);
    this.#tellPlaced(this.#placer.all);
    this.#arePlacesTold = true;
    const attached = threads.all.map(({ worker }) => host.attach(worker));
    await this.#unlessFailed(Promise.all(attached));
    await this.#unlessFailed(Promise.all(threads.all.map((thread) => thread.ready)));
    if (this.#cluster !== null) {
      await this.#listeners.listen(shards);
      await unlessAbandoned(this.#cluster.register(this.#registration(directories)));
      await unlessAbandoned(this.#cluster.serve());
    }
    threads.tell({ type: 'shard.serve' });
    this.#checkpointTimer = setInterval(
      () => this.#checkpointMetadata(),
      config.logFlushOffsetCheckpointIntervalMs,
    );
    this.#checkpointTimer.unref();
  }

  async stop(): Promise<void> {
    await this.#cluster?.leave();
    await this.#listeners.close();
    this.#cleaners.stop();
    const late = await this.#supervisor.stop(stopGraceMs.threads);
    if (late.length > 0) this.#logger.error(`did not stop in time: ${late.join(', ')}`);
    const quorum = this.#quorum!;
    const directories = this.#directories!;
    if (this.#checkpointTimer !== null) clearInterval(this.#checkpointTimer);
    try {
      await quorum.host.close();
      this.#reportMetadata(directories, quorum);
      await directories.written();
      if (this.#clean.size < this.#config.shards) throw new Error('not all logs could be closed');
      directories.markClean(this.#cluster?.brokerEpoch ?? this.#brokerEpoch);
    } finally {
      await this.#cluster?.close();
      directories.close();
    }
  }

  /** Closes what a failed start has opened. The reason is on its way to the caller, so that errors here are not. */
  async abandon(): Promise<void> {
    await this.#listeners.close();
    this.#cleaners.stop();
    await this.#supervisor.stop(stopGraceMs.threads);
    if (this.#checkpointTimer !== null) clearInterval(this.#checkpointTimer);
    await this.#quorum?.host.close().catch(() => undefined);
    await this.#cluster?.close();
    this.#directories?.close();
  }

  #spawnThreads(): BrokerThreads {
    return new BrokerThreads({
      config: this.#config,
      supervisor: this.#supervisor,
      logger: this.#logger,
      shardEntry: this.#shardEntry,
      graceMs: stopGraceMs.requests,
      onMessage: (message, thread) => this.#onThreadMessage(message, thread),
      onExit: (thread) => this.#onDrained(thread),
    });
  }

  /** What is committed before the shards are told everything needs no telling. */
  #place(delta: MetadataDelta): void {
    const placed = this.#placer.follow(delta);
    if (this.#arePlacesTold) this.#tellPlaced(placed);
    this.#cluster?.onDelta(delta);
    if (this.#quorum !== null && delta.records.some(isBrokerSetting))
      this.#followSettings(this.#quorum.host.image);
  }

  /** Takes over settings from the metadata: main acts on the limits of connections, and tells people of problems. */
  #followSettings(image: MetadataImage): void {
    this.#live.follow(image, this.#logger);
    this.#listeners.limit(this.#live.current);
  }

  #tellPlaced(topics: readonly TopicPlacement[]): void {
    if (topics.length > 0) this.#threads?.tell({ type: 'shard.placed', topics });
  }

  /** Logs are closed only when no shard can need those of another one any more. */
  #onDrained(shard: number): void {
    this.#drained.add(shard);
    if (this.#drained.size === this.#threads?.all.length)
      this.#threads.tell({ type: 'shard.close' });
  }

  #onDirFailed(path: string, reason: string): void {
    if (this.#failedDirs.has(path)) return;
    this.#failedDirs.add(path);
    this.#directories!.noteFlushFailure(path);
    this.#threads?.tell({ type: 'shard.failDir', path, reason });
  }

  #openQuorum(directories: LogDirectories): Promise<MetadataQuorumParts> {
    const { metadata, clusterId } = directories;
    return openMetadataQuorum({
      config: this.#config,
      disk: this.#disk,
      clock: nodeClock,
      random: nodeRandom,
      clusterId,
      onClusterId: (adopted) => directories.adoptCluster(adopted),
      transport: this.#cluster?.links ?? null,
      endpoints: this.#cluster?.endpoints ?? [],
      directoryId: metadata.meta.directoryId,
      recoveryPoint: metadata.marksOf(metadataTopicName, 0).recoveryPoint,
      cleanShutdown: metadata.cleanShutdown,
      afterPowerLoss: metadata.afterPowerLoss,
      dropCache: metadata.flushFailed,
      onWarning: (message) => this.#logger.warn(message),
      beforeDelta: (delta) => this.#place(delta),
      onFailed: (error) => {
        directories.noteFlushFailure(metadata.path);
        this.#fail(`the metadata log failed: ${error.message}`, error);
      },
    });
  }

  #registration(directories: LogDirectories): RegisterBrokerRequest {
    const { image } = this.#quorum!.host;
    const epoch =
      this.#cluster === null
        ? directories.cleanBrokerEpoch
        : previousEpochOf(this.#config, directories, image, this.#damaged);
    const endPoints = this.#listeners.advertised();
    return ownRegistration(this.#config, endPoints, directories, epoch, this.#damaged);
  }

  async #register(directories: LogDirectories): Promise<void> {
    const reply = await this.#quorum!.host.request<'registerBroker'>({
      type: 'registerBroker',
      ...this.#registration(directories),
    });
    if (reply.result === null)
      throw new Error(`the controller refused the broker: ${reply.errorMessage}`);
    this.#brokerEpoch = reply.result.brokerEpoch;
  }

  #onThreadMessage(message: FromShard | FromReplication, shard: number): void {
    const directories = this.#directories!;
    switch (message.type) {
      case 'shard.closed':
        this.#listeners.closed(message.connectionId);
        break;
      case 'shard.dirty':
        this.#cleaners.offer(this.#threads!.shards[shard]!.worker, message.need);
        break;
      case 'shard.checkpoint':
        directories.report(message.dirs);
        break;
      case 'shard.logStarts':
        this.#storeLogStarts(message, shard);
        break;
      case 'shard.deleted':
        directories.removePartition(message);
        break;
      case 'shard.drained':
        this.#onDrained(shard);
        break;
      case 'shard.stopped':
        if (message.clean) this.#clean.add(shard);
        break;
      case 'shard.damaged':
        this.#damaged.push(message.replicas);
        break;
      case 'shard.dirFailed':
        this.#onDirFailed(message.path, message.reason);
        break;
      case 'shard.failed':
        this.#fail(message.reason, null);
        break;
      case 'replication.refused':
        this.#quorum?.host.brokerUnreachable(message.brokerId);
        break;
    }
  }

  #storeLogStarts({ number, path, starts }: LogStartRequest, shard: number): void {
    this.#directories!.storeLogStarts(path, starts, (error) => {
      const stored: ToShard = { type: 'shard.logStartsStored', number, failed: error !== null };
      this.#threads!.shards[shard]!.worker.postMessage(stored);
    });
  }

  #checkpointMetadata(): void {
    const quorum = this.#quorum!;
    quorum.store.checkpoint().then(
      () => this.#reportMetadata(this.#directories!, quorum),
      (error: unknown) => this.#logger.warn({ error }, 'checkpoint of the metadata log put off'),
    );
  }

  #reportMetadata(directories: LogDirectories, { store, host }: MetadataQuorumParts): void {
    const { logStartOffset, flushedOffset } = store.log;
    // What is not committed may be cut yet, and other bytes may stand there at the next start.
    const settled = this.#cluster === null ? flushedOffset : host.image.offset + 1;
    const recoveryPoint = Math.min(store.log.recoveryPoint, settled);
    const marks = { recoveryPoint, logStartOffset, highWatermark: flushedOffset };
    const partitions = [{ ...metadataPartition, topicId: uuidMetadataTopic, ...marks }];
    directories.report([{ path: directories.metadata.path, partitions }]);
  }

  #fail(reason: string, cause: Error | null): void {
    this.#failure.resolve(new Error(reason, { cause: cause ?? undefined }));
  }

  /** Waits for what the start waits for, unless the broker fails before. */
  async #unlessFailed(step: Promise<unknown>): Promise<void> {
    const failed = this.failed.then((error) => {
      throw error;
    });
    await Promise.race([step, failed]);
  }
}

function isBrokerSetting(record: MetadataRecord): boolean {
  return record.type === 'ConfigRecord' && record.resourceType === ConfigResourceType.broker;
}
