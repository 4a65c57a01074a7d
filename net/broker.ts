/**
 * A broker put together: log directories, metadata quorum, shard threads, listeners; and its orderly end.
 *
 * Thread: main, which accepts connections, leads the metadata log and writes checkpoints, and does none of the
 * data path's work. Everything that dies unexpectedly ends in `failed`: the process must stop then, and the next
 * start recovers (fail-stop).
 */
import { NodeDisk, nodeClock, nodeRandom, readBootId } from '../engine/node_ports.ts';
import type { Disk } from '../engine/ports.ts';
import { type SupervisedThread, Supervisor } from '../engine/thread/supervisor.ts';
import { metadataTopicName } from '../replication/metadata/records.ts';
import type { BrokerConfig } from './config/broker_config.ts';
import { Listeners } from './listeners.ts';
import { LogDirectories } from './log_directories.ts';
import type { Logger } from './logger.ts';
import {
  type MetadataQuorumParts,
  openMetadataQuorum,
  randomUuid,
  supportedFeatures,
} from './metadata_quorum.ts';
import type { FromShard, ShardThreadData, ToShard } from './shard_messages.ts';

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

/**
 * Starts a broker and resolves when it serves. Rejects with a text for people when it cannot start; what was opened
 * until then is closed again.
 */
export async function startBroker(
  config: BrokerConfig,
  logger: Logger,
  seams: BrokerSeams = {},
): Promise<Broker> {
  const broker = new RunningBroker(config, logger, seams);
  try {
    await broker.start();
    return broker;
  } catch (error) {
    await broker.abandon();
    throw error;
  }
}

class RunningBroker implements Broker {
  readonly failed: Promise<Error>;
  readonly #config: BrokerConfig;
  readonly #logger: Logger;
  readonly #disk: Disk;
  readonly #shardEntry: URL;
  readonly #failure = Promise.withResolvers<Error>();
  readonly #listeners: Listeners;
  readonly #supervisor: Supervisor;
  #directories: LogDirectories | null = null;
  #quorum: MetadataQuorumParts | null = null;
  #brokerEpoch = -1;
  #checkpointTimer: NodeJS.Timeout | null = null;
  #isShardClean: boolean = false;

  constructor(config: BrokerConfig, logger: Logger, seams: BrokerSeams) {
    this.#config = config;
    this.#logger = logger;
    this.#disk = seams.disk ?? new NodeDisk();
    this.#shardEntry = seams.shardEntry ?? new URL('./shard_main.ts', import.meta.url);
    this.failed = this.#failure.promise;
    this.#listeners = new Listeners(config, logger);
    this.#supervisor = new Supervisor({
      onFailure: ({ name, reason, error }) => this.#fail(`thread ${name} ${reason}`, error),
      onUnresponsive: (name, silentMs) =>
        logger.warn({ thread: name, silentMs: Math.round(silentMs) }, 'a thread does not respond'),
    });
  }

  get address(): { host: string; port: number } {
    return this.#listeners.address;
  }

  /** The order matters: the lock first, then the listener's port, so that a second broker disturbs nothing. */
  async start(): Promise<void> {
    const config = this.#config;
    const directories = LogDirectories.open({
      config,
      disk: this.#disk,
      random: nodeRandom,
      bootId: readBootId(),
      logger: this.#logger,
    });
    this.#directories = directories;
    // The thread loads its modules while the metadata log is read here.
    const shard = this.#spawnShard();
    await this.#listeners.listen(shard.worker);
    this.#quorum = await this.#openQuorum(directories);
    await this.#register(directories);
    directories.tidy(this.#quorum.host.image);
    const start: ToShard = {
      type: 'shard.start',
      data: { config, clusterId: directories.clusterId, logDirs: directories.data() },
    };
    shard.worker.postMessage(start);
    await Promise.race([this.#quorum.host.attach(shard.worker), this.#throwOnFailure()]);
    await Promise.race([shard.ready, this.#throwOnFailure()]);
    this.#checkpointTimer = setInterval(
      () => this.#checkpointMetadata(),
      config.logFlushOffsetCheckpointIntervalMs,
    );
    this.#checkpointTimer.unref();
  }

  async stop(): Promise<void> {
    await this.#listeners.close();
    const late = await this.#supervisor.stop(stopGraceMs.threads);
    if (late.length > 0) this.#logger.error(`did not stop in time: ${late.join(', ')}`);
    const quorum = this.#quorum!;
    const directories = this.#directories!;
    if (this.#checkpointTimer !== null) clearInterval(this.#checkpointTimer);
    try {
      await quorum.host.close();
      this.#reportMetadata(directories, quorum);
      await directories.written();
      if (!this.#isShardClean) throw new Error('not all logs could be closed');
      directories.markClean(this.#brokerEpoch);
    } finally {
      directories.close();
    }
  }

  /** Closes what a failed start has opened. The reason is on its way to the caller, so that errors here are not. */
  async abandon(): Promise<void> {
    await this.#listeners.close();
    await this.#supervisor.stop(stopGraceMs.threads);
    if (this.#checkpointTimer !== null) clearInterval(this.#checkpointTimer);
    await this.#quorum?.host.close().catch(() => undefined);
    this.#directories?.close();
  }

  #spawnShard(): SupervisedThread {
    const data: ShardThreadData = {
      logger: { ...this.#logger.options, thread: 'shard 0' },
      graceMs: stopGraceMs.requests,
    };
    const shard = this.#supervisor.spawn({ name: 'shard 0', entry: this.#shardEntry, data });
    shard.worker.on('message', (message: FromShard) => this.#onShardMessage(message));
    return shard;
  }

  #openQuorum(directories: LogDirectories): Promise<MetadataQuorumParts> {
    const { metadata, clusterId } = directories;
    return openMetadataQuorum({
      config: this.#config,
      disk: this.#disk,
      clock: nodeClock,
      random: nodeRandom,
      clusterId,
      directoryId: metadata.meta.directoryId,
      recoveryPoint: metadata.marksOf(metadataTopicName, 0).recoveryPoint,
      cleanShutdown: metadata.cleanShutdown,
      afterPowerLoss: metadata.afterPowerLoss,
      dropCache: metadata.flushFailed,
      onWarning: (message) => this.#logger.warn(message),
      onFailed: (error) => {
        directories.noteFlushFailure(metadata.path);
        this.#fail(`the metadata log failed: ${error.message}`, error);
      },
    });
  }

  async #register(directories: LogDirectories): Promise<void> {
    const reply = await this.#quorum!.host.request({
      type: 'registerBroker',
      brokerId: this.#config.nodeId,
      incarnationId: randomUuid(nodeRandom),
      endPoints: this.#listeners.advertised(),
      features: supportedFeatures,
      rack: this.#config.rack,
      logDirs: directories.directoryIds,
      previousBrokerEpoch: directories.cleanShutdown ? directories.metadata.cleanBrokerEpoch : -1,
    });
    if (reply.result === null)
      throw new Error(`the controller refused the broker: ${reply.errorMessage}`);
    this.#brokerEpoch = reply.result.brokerEpoch;
  }

  #onShardMessage(message: FromShard): void {
    const directories = this.#directories!;
    switch (message.type) {
      case 'shard.closed':
        this.#listeners.closed(message.connectionId);
        break;
      case 'shard.checkpoint':
        directories.report(message.dirs);
        break;
      case 'shard.deleted':
        directories.removePartition(message);
        break;
      case 'shard.stopped':
        this.#isShardClean = message.clean;
        break;
      case 'shard.dirFailed':
        directories.noteFlushFailure(message.path);
        break;
      case 'shard.failed':
        this.#fail(message.reason, null);
        break;
    }
  }

  #checkpointMetadata(): void {
    const quorum = this.#quorum!;
    quorum.store.checkpoint().then(
      () => this.#reportMetadata(this.#directories!, quorum),
      (error: unknown) => this.#logger.warn({ error }, 'checkpoint of the metadata log put off'),
    );
  }

  #reportMetadata(directories: LogDirectories, { store }: MetadataQuorumParts): void {
    const { recoveryPoint, logStartOffset, flushedOffset } = store.log;
    const marks = { recoveryPoint, logStartOffset, highWatermark: flushedOffset };
    const partitions = [{ ...metadataPartition, ...marks }];
    directories.report([{ path: directories.metadata.path, partitions }]);
  }

  #fail(reason: string, cause: Error | null): void {
    this.#failure.resolve(new Error(reason, { cause: cause ?? undefined }));
  }

  async #throwOnFailure(): Promise<never> {
    throw await this.failed;
  }
}
