/**
 * The partitions of a shard: opens and drops their logs as the metadata says, and carries what happens to the
 * logs (written, flushed, directory failed) to their leaders.
 *
 * Thread: the shard's own. Concurrency: none; a metadata delta is acted on in one go. Durability: opening a log
 * makes nothing durable; the first flush that counts covers the names of its files too (`FlushGroup`).
 */
import { ErrorCode } from '../engine/error_code.gen.ts';
import type { PartitionCheckpoint } from '../engine/log/checkpoint_table.ts';
import { type FlushEvents, FlushGroup, flushEachMaxDefault } from '../engine/log/flush_group.ts';
import { parentOf, partitionDirectoryName } from '../engine/log/partition_directory.ts';
import { PartitionLog } from '../engine/log/partition_log.ts';
import { SegmentCache } from '../engine/log/segment_cache.ts';
import { type Clock, type Disk, DiskError, type Random } from '../engine/ports.ts';
import type { MetadataChanges, PartitionReference } from '../replication/metadata/changes.ts';
import type { MetadataImage, PartitionImage, TopicImage } from '../replication/metadata/image.ts';
import { PartitionLeader } from '../replication/partition/leader.ts';
import type { LiveConfig } from './config/live_config.ts';
import { logConfigFor, minInsyncReplicasFor, type TopicOverrides } from './config/topic_config.ts';
import type { Placements } from './fabric/placements.ts';
import type { LogDirUse, LogDirUseRequest, PartitionUse } from './log_dir_use.ts';
import type { Logger } from './logger.ts';
import { PartitionTable } from './partition_table.ts';
import { reportRecovery } from './recovery_report.ts';
import type { DeletedPartition, LogDirCheckpoint, LogDirData } from './shard_messages.ts';

export interface ShardPartitionsOptions {
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
  /** The partition has more to read. */
  readonly onHighWatermark: (leader: PartitionLeader) => void;
  /** A partition's directory waits under a new name to be removed. */
  readonly onDeleted: (log: PartitionLog, deleted: DeletedPartition) => void;
  /** A write or flush in the log directory failed. */
  readonly onDirFailed: (path: string, reason: string) => void;
  /** No log directory is left. */
  readonly onAllFailed: (reason: string) => void;
}

interface LogDir extends LogDirData {
  readonly group: FlushGroup;
  /** Logs of this shard in it. */
  logs: number;
}

/** Segments that nobody writes to but that stay open, with their indexes in memory: 5 MB each at the most. */
const openSegmentsMax = 256;

export class ShardPartitions {
  readonly table: PartitionTable = new PartitionTable();
  readonly #options: ShardPartitionsOptions;
  readonly #dirs: LogDir[];
  readonly #cache: SegmentCache = new SegmentCache(openSegmentsMax);
  readonly #leaders = new Map<PartitionLog, PartitionLeader>();
  /** Could not be opened for lack of space; tried again with every tick. */
  #unopened: PartitionReference[] = [];
  #producersCheckedMs: number;

  constructor(options: ShardPartitionsOptions) {
    this.#options = options;
    this.#producersCheckedMs = options.clock.monotonicMs();
    this.#dirs = options.logDirs.map((dir) => this.#makeDir(dir));
  }

  /** Acts on a metadata delta that has been applied to the image. */
  apply(changes: MetadataChanges): void {
    for (const { topic, partition } of changes.deletedPartitions)
      this.#drop(topic, partition.partitionId);
    for (const created of changes.createdPartitions)
      if (this.#isOurs(created)) this.#open(created);
      else this.#forgetMarks(created);
    for (const { topic, partition } of changes.changedPartitions) {
      const leader = this.table.byId(topic.id, partition.partitionId);
      if (leader === undefined) continue;
      leader.lead(partition.leaderEpoch, partition.isr.length);
    }
    for (const name of changes.changedTopicConfigs) this.#updateConfig(name);
  }

  /** The settings that topics get from the broker have changed. */
  updateConfigs(): void {
    for (const name of new Set([...this.#leaders.values()].map(({ topic }) => topic)))
      this.#updateConfig(name);
  }

  /** Once a second: timed flushes, producers to forget, logs to try again. */
  tick(): void {
    for (const { group } of this.#dirs) group.tick();
    const unopened = this.#unopened;
    this.#unopened = [];
    for (const reference of unopened) this.#open(reference);
    const { clock, live } = this.#options;
    const everyMs = live.current.producerIdExpirationCheckIntervalMs;
    if (clock.monotonicMs() - this.#producersCheckedMs < everyMs) return;
    this.#producersCheckedMs = clock.monotonicMs();
    for (const log of this.#leaders.keys()) log.expireProducers(clock.wallMs());
  }

  /** Another shard has found that the log directory does not work any more. */
  failDirectory(path: string, reason: string): void {
    const dir = this.#dirs.find((one) => one.path === path);
    dir?.group.takeOffline(new DiskError('EIO', reason));
  }

  /** The same, found in the directory of a log. */
  failDirectoryOf(log: PartitionLog, error: DiskError): void {
    this.#dirs.find(({ path }) => isIn(log, path))?.group.takeOffline(error);
  }

  /** What the checkpoints are to say of one partition now. */
  marksOf(leader: PartitionLeader): LogDirCheckpoint {
    return { path: parentOf(leader.log.dir), partitions: [checkpointOf(leader)] };
  }

  /** Brings what a restart would have to read again up to date on the disk; `done` gets the directories that went well. */
  checkpoint(done: (dir: LogDirCheckpoint) => void): void {
    for (const dir of this.#dirs)
      dir.group.checkpoint((error) => {
        if (error === null) done(this.#marks(dir));
        else this.#options.logger.warn({ dir: dir.path, error }, 'checkpoint put off');
      });
  }

  /** The sizes of this shard's partitions, by log directory. */
  use({ topics }: LogDirUseRequest): LogDirUse[] {
    const wanted = topics && new Map(topics.map((one) => [one.topic, new Set(one.partitions)]));
    const partitions = new Map<string, PartitionUse[]>(this.#dirs.map(({ path }) => [path, []]));
    for (const log of this.#leaders.keys()) {
      const { topic, partition, size } = log;
      if (wanted !== null && wanted.get(topic)?.has(partition) !== true) continue;
      partitions.get(parentOf(log.dir))?.push({ topic, partition, bytes: size });
    }
    return this.#dirs.map(({ path, group }) => ({
      path,
      isOffline: group.failure !== null,
      partitions: partitions.get(path) ?? [],
    }));
  }

  /** Closes all logs. `clean`: all that is in them is on stable storage; `dirs` has the marks of those that are. */
  async close(): Promise<{ dirs: LogDirCheckpoint[]; clean: boolean }> {
    const dirs: LogDirCheckpoint[] = [];
    for (const dir of this.#dirs) {
      const error = await new Promise<DiskError | null>((resolve) => dir.group.close(resolve));
      if (error === null) dirs.push(this.#marks(dir));
      else this.#options.logger.error({ dir: dir.path, error }, 'logs could not be closed');
    }
    return { dirs, clean: dirs.length === this.#dirs.length };
  }

  #makeDir(data: LogDirData): LogDir {
    const { disk, clock, defer } = this.#options;
    const group = new FlushGroup({
      disk,
      clock,
      dir: data.path,
      events: this.#events(data.path),
      defer,
      flushEachMax: flushEachMaxDefault,
    });
    return { ...data, group, logs: 0 };
  }

  #events(path: string): FlushEvents {
    return {
      onWritten: (log, _from, to, error) => {
        const leader = this.#leaders.get(log);
        if (leader === undefined) return;
        if (error !== ErrorCode.NONE) leader.logWriteFailed(error);
        else {
          leader.logWritten(to);
          if (log.config.durability === 'os') leader.logFlushed(to);
        }
        if (error !== ErrorCode.NONE) this.#warnOfFullDisk(path);
      },
      onFlushed: (log, offset) => this.#leaders.get(log)?.logFlushed(offset),
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

  /** Marks describe what was there at the start, and not a later topic of the same name that comes to this shard. */
  #forgetMarks({ topic, partition }: PartitionReference): void {
    const name = partitionDirectoryName(topic.name, partition.partitionId);
    for (const dir of this.#dirs) dir.partitions.delete(name);
  }

  #open(reference: PartitionReference): void {
    const { topic, partition } = reference;
    const dir = this.#place(topic.name, partition.partitionId);
    try {
      this.#add(reference, dir);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      // The other directories are not to suffer from it; the last one's end is the shard's.
      if (!error.isPassing) {
        dir.group.takeOffline(error);
        return;
      }
      this.#unopened.push(reference);
      const name = partitionDirectoryName(topic.name, partition.partitionId);
      this.#options.logger.logLimited(
        'log not opened',
        60_000,
        'error',
        { partition: name, error },
        'a partition cannot be opened while the disk is full; trying again until there is room',
      );
    }
  }

  /** Where the partition is, or else the directory with the fewest logs of those that have not failed. */
  #place(topic: string, partition: number): LogDir {
    const name = partitionDirectoryName(topic, partition);
    let best: LogDir | null = null;
    for (const dir of this.#dirs) {
      if (dir.partitions.has(name)) return dir;
      if (dir.group.failure === null && (best === null || dir.logs < best.logs)) best = dir;
    }
    return best ?? this.#dirs[0]!;
  }

  #add({ topic, partition }: PartitionReference, dir: LogDir): void {
    const { live, image, disk, clock, random } = this.#options;
    const name = partitionDirectoryName(topic.name, partition.partitionId);
    const marks = dir.partitions.get(name);
    const overrides = image.topicConfigs(topic.name);
    const log = PartitionLog.open({
      disk,
      clock,
      random,
      cache: this.#cache,
      dir: `${dir.path}/${name}`,
      topic: topic.name,
      partition: partition.partitionId,
      topicId: topic.id,
      config: logConfigFor(overrides, live.current),
      recoveryPoint: marks?.recoveryPoint ?? 0,
      logStartOffset: marks?.logStartOffset ?? 0,
      cleanedOffset: marks?.cleanedOffset ?? 0,
      cleanShutdown: dir.cleanShutdown,
      afterPowerLoss: dir.afterPowerLoss,
      dropCache: dir.dropCache,
      setAsideDamage: true,
    });
    // The marks describe what was there at the start, and not a later topic of the same name. When the log could not be
    // opened they stay for the next attempt, which must look for it in the same directory.
    dir.partitions.delete(name);
    reportRecovery(log, marks !== undefined, this.#options.logger);
    const leader = new PartitionLeader({
      topic: topic.name,
      topicId: topic.id,
      partition: partition.partitionId,
      leaderEpoch: partition.leaderEpoch,
      log,
      flushGroup: dir.group,
      isrSize: partition.isr.length,
      minInsyncReplicas: this.#minInsyncReplicas(overrides, partition),
      onHighWatermark: this.#options.onHighWatermark,
    });
    this.#leaders.set(log, leader);
    this.table.add(leader);
    dir.logs += 1;
    dir.group.adopt(log);
    // It lies in a directory that has failed since the start.
    if (dir.group.failure !== null) leader.refuse(ErrorCode.KAFKA_STORAGE_ERROR);
  }

  #drop(topic: TopicImage, partition: number): void {
    this.#unopened = this.#unopened.filter(
      (one) => one.topic.id !== topic.id || one.partition.partitionId !== partition,
    );
    const leader = this.table.remove(topic.id, partition);
    if (leader === undefined) {
      // Never opened: a later topic of the name is not to begin where this one did.
      const name = partitionDirectoryName(topic.name, partition);
      for (const { partitions } of this.#dirs) partitions.delete(name);
      return;
    }
    const { log } = leader;
    const dir = this.#dirs.find(({ path }) => isIn(log, path))!;
    leader.refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
    this.#leaders.delete(log);
    dir.group.forget(log);
    dir.logs -= 1;
    try {
      const renamed = log.delete();
      const { topic: name, topicId } = leader;
      this.#options.onDeleted(log, { path: dir.path, topic: name, topicId, partition, renamed });
    } catch (error) {
      // Its directory keeps its name, and the next start sets it aside.
      if (!(error instanceof DiskError)) throw error;
      log.closeFiles();
      dir.group.takeOffline(error);
    }
  }

  #updateConfig(topic: string): void {
    const { image, live } = this.#options;
    const overrides = image.topicConfigs(topic);
    for (const partition of image.topic(topic)?.partitions ?? [])
      this.table
        .byName(topic, partition.partitionId)
        ?.updateConfig(
          logConfigFor(overrides, live.current),
          this.#minInsyncReplicas(overrides, partition),
        );
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
    for (const [log, leader] of this.#leaders)
      if (isIn(log, path)) leader.refuse(ErrorCode.KAFKA_STORAGE_ERROR);
    this.#options.onDirFailed(path, error.message);
    if (this.#dirs.every(({ group }) => group.failure !== null))
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

  #marks(dir: LogDir): LogDirCheckpoint {
    const partitions = [];
    for (const [log, leader] of this.#leaders) {
      if (isIn(log, dir.path)) partitions.push(checkpointOf(leader));
    }
    return { path: dir.path, partitions };
  }
}

function checkpointOf({ log, highWatermark }: PartitionLeader): PartitionCheckpoint {
  const { topic, topicId, partition, recoveryPoint, logStartOffset } = log;
  const { cleanedOffset } = log.cleaning;
  return { topic, topicId, partition, recoveryPoint, logStartOffset, highWatermark, cleanedOffset };
}

/** One log directory may lie in another one. */
function isIn(log: PartitionLog, logDir: string): boolean {
  return parentOf(log.dir) === logDir;
}
