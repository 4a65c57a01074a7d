/**
 * A shard's part of the log directories: where each partition's log lies, its flush group, and what main has found out
 * about the directory before any log was opened.
 *
 * Thread: the shard's own. A directory that fails is offline for good; the others go on.
 */
import type { FlushEvents } from '../engine/log/flush_group.ts';
import { FlushGroup, flushEachMaxDefault } from '../engine/log/flush_group.ts';
import type { LogConfig } from '../engine/log/log_config.ts';
import { parentOf, partitionDirectoryName } from '../engine/log/partition_directory.ts';
import { PartitionLog } from '../engine/log/partition_log.ts';
import { SegmentCache } from '../engine/log/segment_cache.ts';
import { type Clock, type Disk, DiskError, type Random } from '../engine/ports.ts';
import type { TopicImage } from '../replication/metadata/image.ts';
import type { PartitionReplica } from '../replication/partition/replica.ts';
import type { Logger } from './logger.ts';
import type { LogDirCheckpoint, LogDirData } from './shard_messages.ts';

export interface LogDirsOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly logDirs: readonly LogDirData[];
  readonly logger: Logger;
  /** Runs the function after the events of the current turn. */
  readonly defer: (run: () => void) => void;
  readonly events: (path: string) => FlushEvents;
  /** Whose logs these are, for the checkpoints. */
  readonly replicas: () => Iterable<PartitionReplica>;
}

interface LogDir extends LogDirData {
  readonly group: FlushGroup;
  /** Logs of this shard in it. */
  logs: number;
}

export interface OpenedLog {
  readonly log: PartitionLog;
  /** Of its directory. */
  readonly flushGroup: FlushGroup;
  /** As the checkpoint has it; 0 where it has none. */
  readonly highWatermark: number;
  /** The checkpoints know the partition. */
  readonly isKnown: boolean;
}

/** Segments that nobody writes to but that stay open, with their indexes in memory: 5 MB each at the most. */
const openSegmentsMax = 256;

export class LogDirs {
  readonly #options: LogDirsOptions;
  readonly #dirs: readonly LogDir[];
  readonly #cache: SegmentCache = new SegmentCache(openSegmentsMax);

  constructor(options: LogDirsOptions) {
    const { disk, clock, defer, events, logDirs } = options;
    this.#options = options;
    this.#dirs = logDirs.map((data) => {
      const { path } = data;
      const flushEachMax = flushEachMaxDefault;
      const group = new FlushGroup({
        disk,
        clock,
        dir: path,
        events: events(path),
        defer,
        flushEachMax,
      });
      return { ...data, group, logs: 0 };
    });
  }

  /** Whether each has failed, by its path. */
  get offline(): ReadonlyMap<string, boolean> {
    return new Map(this.#dirs.map(({ path, group }) => [path, group.failure !== null]));
  }

  /**
   * Opens the log where it lies, or makes one. @throws DiskError that passes (the disk is full); another one takes the
   * directory offline, and the answer is null
   */
  open(topic: TopicImage, partition: number, config: LogConfig): OpenedLog | null {
    const name = partitionDirectoryName(topic.name, partition);
    const dir = this.#place(name);
    const marks = dir.partitions.get(name);
    let log: PartitionLog;
    try {
      log = PartitionLog.open({
        ...this.#options,
        cache: this.#cache,
        dir: `${dir.path}/${name}`,
        topic: topic.name,
        partition,
        topicId: topic.id,
        config,
        recoveryPoint: marks?.recoveryPoint ?? 0,
        logStartOffset: marks?.logStartOffset ?? 0,
        cleanedOffset: marks?.cleanedOffset ?? 0,
        cleanShutdown: dir.cleanShutdown,
        afterPowerLoss: dir.afterPowerLoss,
        dropCache: dir.dropCache,
        setAsideDamage: true,
      });
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      // The other directories are not to suffer from it; the last one's end is the shard's.
      if (error.isPassing) throw error;
      dir.group.takeOffline(error);
      return null;
    }
    // The marks describe what was there at the start, and not a later topic of the same name. When the log could not be
    // opened they stay for the next attempt, which must look for it in the same directory.
    dir.partitions.delete(name);
    dir.logs += 1;
    dir.group.adopt(log);
    const highWatermark = marks?.highWatermark ?? 0;
    return { log, flushGroup: dir.group, highWatermark, isKnown: marks !== undefined };
  }

  /** Marks describe what was there at the start, and not a later topic of the same name. */
  forgetMarks(topic: string, partition: number): void {
    const name = partitionDirectoryName(topic, partition);
    for (const { partitions } of this.#dirs) partitions.delete(name);
  }

  /**
   * Takes the log out of its directory: the partition is none of this broker's any more.
   * @returns where it waits to be removed; null when the disk is broken: then the next start sets it aside
   */
  remove(log: PartitionLog): { readonly path: string; readonly renamed: string } | null {
    const dir = this.#dirs.find(({ path }) => isIn(log, path))!;
    dir.group.forget(log);
    dir.logs -= 1;
    try {
      return { path: dir.path, renamed: log.delete() };
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      log.closeFiles();
      dir.group.takeOffline(error);
      return null;
    }
  }

  /** Once a second. */
  tick(): void {
    for (const { group } of this.#dirs) group.tick();
  }

  takeOffline(path: string, error: DiskError): void {
    this.#dirs.find((one) => one.path === path)?.group.takeOffline(error);
  }

  /** See `ShardPartitions.checkpoint`. */
  checkpoint(done: (dir: LogDirCheckpoint) => void): void {
    for (const dir of this.#dirs)
      dir.group.checkpoint((error) => {
        if (error === null) done(this.#marks(dir));
        else this.#options.logger.warn({ dir: dir.path, error }, 'checkpoint put off');
      });
  }

  /** See `ShardPartitions.close`. */
  async close(): Promise<{ dirs: LogDirCheckpoint[]; clean: boolean }> {
    const dirs: LogDirCheckpoint[] = [];
    for (const dir of this.#dirs) {
      const error = await new Promise<DiskError | null>((resolve) => dir.group.close(resolve));
      if (error === null) dirs.push(this.#marks(dir));
      else this.#options.logger.error({ dir: dir.path, error }, 'logs could not be closed');
    }
    return { dirs, clean: dirs.length === this.#dirs.length };
  }

  /** Where the partition is, or else the directory with the fewest logs of those that have not failed. */
  #place(name: string): LogDir {
    let best: LogDir | null = null;
    for (const dir of this.#dirs) {
      if (dir.partitions.has(name)) return dir;
      if (dir.group.failure === null && (best === null || dir.logs < best.logs)) best = dir;
    }
    return best ?? this.#dirs[0]!;
  }

  #marks(dir: LogDir): LogDirCheckpoint {
    const partitions = [];
    for (const replica of this.#options.replicas())
      if (isIn(replica.log, dir.path)) partitions.push(...marksOf(replica).partitions);
    return { path: dir.path, partitions };
  }
}

/** What the checkpoints are to say of one partition now. */
export function marksOf({ log, highWatermark }: PartitionReplica): LogDirCheckpoint {
  const { topic, topicId, partition, recoveryPoint, logStartOffset } = log;
  const { cleanedOffset } = log.cleaning;
  const marks = { recoveryPoint, logStartOffset, highWatermark, cleanedOffset };
  return { path: parentOf(log.dir), partitions: [{ topic, topicId, partition, ...marks }] };
}

/** One log directory may lie in another one. */
export function isIn(log: PartitionLog, logDir: string): boolean {
  return parentOf(log.dir) === logDir;
}
