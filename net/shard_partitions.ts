/**
 * The partitions of a shard: opens and drops their logs as the metadata says, and carries what happens to the
 * logs (written, flushed, directory failed) to those who lead or follow with them.
 *
 * Thread: the shard's own. Concurrency: none; a metadata delta is acted on in one go. Durability: opening a log
 * makes nothing durable; the first flush that counts covers the names of its files too (`FlushGroup`).
 */
import { ErrorCode } from '../engine/error_code.gen.ts';
import type { FlushEvents } from '../engine/log/flush_group.ts';
import { parentOf, partitionDirectoryName } from '../engine/log/partition_directory.ts';
import type { PartitionLog } from '../engine/log/partition_log.ts';
import { type Clock, type Disk, DiskError, type Random } from '../engine/ports.ts';
import type { MetadataChanges, PartitionReference } from '../replication/metadata/changes.ts';
import type { DamagedReplicas } from '../replication/metadata/controller_api.ts';
import type { MetadataImage, PartitionImage, TopicImage } from '../replication/metadata/image.ts';
import type { PartitionFollower } from '../replication/partition/follower.ts';
import type { PartitionReplica } from '../replication/partition/replica.ts';
import type { LiveConfig } from './config/live_config.ts';
import { logConfigFor, minInsyncReplicasFor, type TopicOverrides } from './config/topic_config.ts';
import type { Placements } from './fabric/placements.ts';
import { LogCuts } from './log_cuts.ts';
import { type LogDirUse, type LogDirUseRequest, useOf } from './log_dir_use.ts';
import { isIn, LogDirs } from './log_dirs.ts';
import type { Logger } from './logger.ts';
import { brokerViewOf, PartitionRoles, type PartitionRolesOptions } from './partition_roles.ts';
import type { PartitionTable } from './partition_table.ts';
import { lacksRecords, reportRecovery } from './recovery_report.ts';
import type { LogStarts } from './retention/log_starts.ts';
import type { DeletedPartition, LogDirCheckpoint, LogDirData } from './shard_messages.ts';

export interface ShardPartitionsOptions
  extends Pick<PartitionRolesOptions, 'propose' | 'onHighWatermark' | 'onWritten'> {
  /** Settings as they are now. */
  readonly live: Pick<LiveConfig, 'current'>;
  readonly image: MetadataImage;
  /** Which partitions are this shard's. */
  readonly placements: Placements;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly logDirs: readonly LogDirData[];
  readonly logger: Logger;
  /** Runs the function after the events of the current turn. */
  readonly defer: (run: () => void) => void;
  /** Calls `run` when the cleaner does not touch the log's files any more. */
  readonly release: (log: PartitionLog, run: () => void) => void;
  /** Has main write down log starts, and lower recovery points. */
  readonly starts: LogStarts;
  /** A partition's directory waits under a new name to be removed. */
  readonly onDeleted: (log: PartitionLog, deleted: DeletedPartition) => void;
  /** A log that was opened lacks records that may have been acknowledged. */
  readonly onDamaged?: (replicas: DamagedReplicas) => void;
  /** A write or flush in the log directory failed. */
  readonly onDirFailed: (path: string, reason: string) => void;
  /** No log directory is left. */
  readonly onAllFailed: (reason: string) => void;
}

export class ShardPartitions {
  readonly #options: ShardPartitionsOptions;
  readonly #roles: PartitionRoles;
  readonly #cuts: LogCuts;
  readonly #dirs: LogDirs;
  /** Could not be opened for lack of space; tried again with every tick. */
  #unopened: PartitionReference[] = [];
  #producersCheckedMs: number;
  /** That this broker had in the metadata of the start: of a life before. */
  #oldBrokerEpoch: number | null = null;
  #isRegistered: boolean = false;

  constructor(options: ShardPartitionsOptions) {
    this.#options = options;
    this.#producersCheckedMs = options.clock.monotonicMs();
    this.#cuts = new LogCuts(options);
    this.#roles = new PartitionRoles({
      ...options,
      brokers: brokerViewOf(options.image, options.live),
      isOurLife: () => this.#isRegistered,
      cut: (follower, offset, anew, done) => this.#cuts.cut(follower, offset, anew, done),
      storeLogStart: (follower, offset) => void options.starts.advance(follower, offset),
    });
    this.#dirs = new LogDirs({
      ...options,
      events: (path) => this.#events(path),
      replicas: () => this.replicas,
    });
  }

  /** Partitions that are led here. */
  get table(): PartitionTable {
    return this.#roles.leaders;
  }

  /** Those that are led elsewhere, or nowhere, and copied here. */
  get followers(): PartitionTable<PartitionFollower> {
    return this.#roles.followers;
  }

  /** Both. */
  get replicas(): Iterable<PartitionReplica> {
    return this.#roles.values();
  }

  /** Acts on a metadata delta that has been applied to the image. */
  apply(changes: MetadataChanges): void {
    const hasRegistered = this.#noteRegistration();
    for (const { topic, partition } of changes.deletedPartitions)
      this.#drop(topic, partition.partitionId, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
    for (const created of changes.createdPartitions)
      if (this.#isOurs(created)) this.#open(created);
      else this.#dirs.forgetMarks(created.topic.name, created.partition.partitionId);
    for (const changed of changes.changedPartitions) this.#change(changed);
    if (hasRegistered)
      for (const { topicId, partition } of [...this.followers.values()]) {
        const topic = this.#options.image.topicById(topicId)!;
        this.#change({ topic, partition: topic.partitions[partition]! });
      }
    for (const name of changes.changedTopicConfigs) this.#updateConfig(name);
  }

  /** True: from this delta on this broker is registered with this life of it. A node alone is before it opens its logs. */
  #noteRegistration(): boolean {
    if (this.#isRegistered) return false;
    const { image, live } = this.#options;
    const { nodeId, quorum } = live.current;
    const epoch = image.broker(nodeId)?.epoch ?? -1;
    this.#oldBrokerEpoch ??= epoch;
    this.#isRegistered = quorum.voters.length === 0 || epoch > this.#oldBrokerEpoch;
    return this.#isRegistered;
  }

  /** The settings that topics get from the broker have changed. */
  updateConfigs(): void {
    for (const name of new Set([...this.replicas].map(({ topic }) => topic)))
      this.#updateConfig(name);
  }

  /** Once a second: timed flushes, producers to forget, logs to try again. */
  tick(): void {
    this.#dirs.tick();
    const unopened = this.#unopened;
    this.#unopened = [];
    for (const reference of unopened) this.#open(reference);
    this.#roles.tick();
    const { clock, live } = this.#options;
    const everyMs = live.current.producerIdExpirationCheckIntervalMs;
    if (clock.monotonicMs() - this.#producersCheckedMs < everyMs) return;
    this.#producersCheckedMs = clock.monotonicMs();
    for (const { log } of this.replicas) log.expireProducers(clock.wallMs());
  }

  /** Another shard has found that the log directory does not work any more. */
  failDirectory(path: string, reason: string): void {
    this.#dirs.takeOffline(path, new DiskError('EIO', reason));
  }

  /** The same, found in the directory of a log. */
  failDirectoryOf(log: PartitionLog, error: DiskError): void {
    this.#dirs.takeOffline(parentOf(log.dir), error);
  }

  /** Brings what a restart would have to read again up to date on the disk; `done` gets the directories that went well. */
  checkpoint(done: (dir: LogDirCheckpoint) => void): void {
    this.#dirs.checkpoint(done);
  }

  /** The sizes of this shard's partitions, by log directory. */
  use(request: LogDirUseRequest): LogDirUse[] {
    return useOf(this.replicas, this.#dirs.offline, request);
  }

  /** Closes all logs. `clean`: all that is in them is on stable storage; `dirs` has the marks of those that are. */
  close(): Promise<{ dirs: LogDirCheckpoint[]; clean: boolean }> {
    return this.#dirs.close();
  }

  #events(path: string): FlushEvents {
    return {
      onWritten: (log, _from, to, error) => {
        const replica = this.#roles.of(log);
        if (replica === undefined) return;
        if (error !== ErrorCode.NONE) replica.logWriteFailed(error);
        else {
          replica.logWritten(to);
          if (log.config.durability === 'os') replica.logFlushed(to);
        }
        if (error !== ErrorCode.NONE) this.#warnOfFullDisk(path);
      },
      onFlushed: (log, offset) => {
        this.#roles.of(log)?.logFlushed(offset);
        this.#cuts.flushed(log);
      },
      onDirectoryFailed: (error) => this.#failDir(path, error),
    };
  }

  #isOurs({ topic, partition }: PartitionReference): boolean {
    const { live, placements } = this.#options;
    return (
      partition.replicas.includes(live.current.nodeId) &&
      placements.isOurs(topic.id, partition.partitionId)
    );
  }

  #open(reference: PartitionReference): void {
    const { live, image, logger } = this.#options;
    const { topic, partition } = reference;
    const { partitionId } = partition;
    const overrides = image.topicConfigs(topic.name);
    try {
      const opened = this.#dirs.open(topic, partitionId, logConfigFor(overrides, live.current));
      if (opened === null) return;
      reportRecovery(opened.log, opened.isKnown, logger);
      if (lacksRecords(opened.log, opened.isKnown, partition.replicas.length > 1))
        this.#options.onDamaged?.({ topicId: topic.id, partitions: [partitionId] });
      const minInsyncReplicas = this.#minInsyncReplicas(overrides, partition);
      this.#roles.begin(reference, { ...opened, minInsyncReplicas });
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      this.#unopened.push(reference);
      logger.logLimited(
        'log not opened',
        60_000,
        'error',
        { partition: partitionDirectoryName(topic.name, partitionId), error },
        'a partition cannot be opened while the disk is full; trying again until there is room',
      );
    }
  }

  #change(changed: PartitionReference): void {
    const { topic, partition } = changed;
    const isHere = this.#roles.find(topic.id, partition.partitionId) !== undefined;
    if (!this.#isOurs(changed)) {
      if (isHere) this.#drop(topic, partition.partitionId, ErrorCode.NOT_LEADER_OR_FOLLOWER);
      return;
    }
    const overrides = this.#options.image.topicConfigs(topic.name);
    if (isHere) this.#roles.change(changed, this.#minInsyncReplicas(overrides, partition));
    else {
      this.#forgetUnopened(topic, partition.partitionId);
      this.#open(changed);
    }
  }

  #forgetUnopened(topic: TopicImage, partition: number): void {
    this.#unopened = this.#unopened.filter(
      (one) => one.topic.id !== topic.id || one.partition.partitionId !== partition,
    );
  }

  #drop(topic: TopicImage, partition: number, reason: ErrorCode): void {
    this.#forgetUnopened(topic, partition);
    const replica = this.#roles.find(topic.id, partition);
    if (replica === undefined) {
      // Never opened: a later topic of the name is not to begin where this one did.
      this.#dirs.forgetMarks(topic.name, partition);
      return;
    }
    const { log, topicId } = replica;
    this.#roles.end(replica, reason);
    this.#cuts.forget(log);
    const removed = this.#dirs.remove(log);
    if (removed === null) return;
    this.#options.onDeleted(log, { ...removed, topic: topic.name, topicId, partition });
  }

  #updateConfig(topic: string): void {
    const { image, live } = this.#options;
    const overrides = image.topicConfigs(topic);
    const config = logConfigFor(overrides, live.current);
    const { id = '', partitions = [] } = image.topic(topic) ?? {};
    for (const partition of partitions)
      this.#roles
        .find(id, partition.partitionId)
        ?.updateConfig(config, this.#minInsyncReplicas(overrides, partition));
  }

  /** A setting above the number of replicas means all of them, as in Kafka, or nothing could ever be produced. */
  #minInsyncReplicas(overrides: TopicOverrides, { replicas }: PartitionImage): number {
    return Math.min(minInsyncReplicasFor(overrides, this.#options.live.current), replicas.length);
  }

  #failDir(path: string, error: DiskError): void {
    this.#options.logger.error(
      { dir: path, error },
      'log directory is offline: a write or flush failed. Check the disk, then restart',
    );
    for (const replica of this.replicas)
      if (isIn(replica.log, path)) replica.refuse(ErrorCode.KAFKA_STORAGE_ERROR);
    this.#options.onDirFailed(path, error.message);
    if ([...this.#dirs.offline.values()].every((isOffline) => isOffline))
      this.#options.onAllFailed(
        `every log directory is offline, the last one for: ${error.message}`,
      );
  }

  #warnOfFullDisk(path: string): void {
    this.#options.logger.logLimited(
      `full ${path}`,
      60_000,
      'error',
      { dir: path },
      'the disk is full: produce requests are refused until there is room again',
    );
  }
}
