/**
 * The broker's log directories as main sees them: opened and locked together, one cluster id among them, their
 * checkpoint files written from what the threads report, marked clean at the end.
 *
 * Thread: main. Durability: a checkpoint is on stable storage before the next one of its directory begins; the
 * clean-shutdown marker is written only after the last checkpoints.
 */
import { CheckpointTable, type LogStart } from '../engine/log/checkpoint_table.ts';
import { LogDirectory } from '../engine/log/log_directory.ts';
import { LogDirectoryError } from '../engine/log/log_directory_options.ts';
import { parsePartitionDirectory, strayDirectory } from '../engine/log/partition_directory.ts';
import type { BootId, Disk, DiskError, Random } from '../engine/ports.ts';
import type { MetadataImage } from '../replication/metadata/image.ts';
import { metadataTopicName } from '../replication/metadata/records.ts';
import type { BrokerConfig } from './config/broker_config.ts';
import type { Logger } from './logger.ts';
import type { DeletedPartition, LogDirCheckpoint, LogDirData } from './shard_messages.ts';

export interface LogDirectoriesOptions {
  readonly config: BrokerConfig;
  readonly disk: Disk;
  readonly random: Random;
  readonly bootId: BootId;
  readonly logger: Logger;
}

/** Log starts that count once they are on stable storage. */
interface WaitingStarts {
  starts: readonly LogStart[];
  readonly done: (error: DiskError | null) => void;
}

interface Entry {
  readonly directory: LogDirectory;
  /** The latest that any thread reported, or else what was there at the start. */
  readonly checkpoints: CheckpointTable;
  isWriting: boolean;
  /** More than log starts. */
  isChanged: boolean;
  /** All files have been written in this run, and none has failed since: what they say need not be written again. */
  isStored: boolean;
  startsWaiting: WaitingStarts[];
  /** Those of the write under way. */
  startsWriting: WaitingStarts[];
  whenWritten: (() => void)[];
}

export class LogDirectories {
  readonly #entries: readonly Entry[];
  readonly #options: LogDirectoriesOptions;
  /** Paths that were set aside. */
  readonly #strays = new Set<string>();

  /** Opens and locks every directory of `log.dirs`. @throws LogDirectoryError or DiskError, with a text for people */
  static open(options: LogDirectoriesOptions): LogDirectories {
    const { config, disk, random, bootId, logger } = options;
    // The metadata's directory first: a new one beside it joins its cluster.
    const paths = [...new Set([config.metadataLogDir, ...config.logDirs])];
    const directories: LogDirectory[] = [];
    try {
      for (const path of paths) {
        const clusterId = directories[0]?.meta.clusterId ?? null;
        const { nodeId } = config;
        const joinsLater = config.quorum.voters.length > 0;
        directories.push(
          LogDirectory.open({ disk, random, bootId, path, nodeId, clusterId, joinsLater }),
        );
      }
    } catch (error) {
      for (const directory of directories) directory.close();
      throw error;
    }
    for (const { warnings } of directories) for (const warning of warnings) logger.warn(warning);
    return new LogDirectories(options, directories);
  }

  private constructor(options: LogDirectoriesOptions, directories: readonly LogDirectory[]) {
    this.#options = options;
    this.#entries = directories.map((directory) => ({
      directory,
      checkpoints: checkpointsOf(directory),
      isWriting: false,
      isChanged: false,
      isStored: false,
      startsWaiting: [],
      startsWriting: [],
      whenWritten: [],
    }));
  }

  /** '' while the node has joined no cluster. */
  get clusterId(): string {
    return this.metadata.meta.clusterId;
  }

  /** Makes all directories part of a cluster; before anything is said in its name. @throws DiskError */
  adoptCluster(clusterId: string): void {
    for (const { directory } of this.#entries) directory.adoptCluster(clusterId);
  }

  /** That of the metadata log. */
  get metadata(): LogDirectory {
    return this.#entries[0]!.directory;
  }

  get directoryIds(): string[] {
    return this.#entries.map(({ directory }) => directory.meta.directoryId);
  }

  /** All were closed as they should be. */
  get cleanShutdown(): boolean {
    return this.#entries.every(({ directory }) => directory.cleanShutdown);
  }

  /** The epoch that the broker had when it closed all of them, -1 when it did not. */
  get cleanBrokerEpoch(): number {
    return this.cleanShutdown ? this.metadata.cleanBrokerEpoch : -1;
  }

  /** For the threads that open logs. */
  data(): LogDirData[] {
    return this.#entries.map(({ directory }) => ({
      path: directory.path,
      cleanShutdown: directory.cleanShutdown,
      afterPowerLoss: directory.afterPowerLoss,
      dropCache: directory.flushFailed,
      partitions: new Map(
        [...directory.partitions].filter(
          ([name]) => !this.#strays.has(`${directory.path}/${name}`),
        ),
      ),
    }));
  }

  /**
   * Looks at what lies in the directories without belonging to any topic: leftovers of deleted partitions are
   * removed, directories of topics that the metadata does not know are set aside by a new name, so that a topic
   * created later does not inherit their records. Call after the metadata's replay, before any log is opened.
   */
  tidy(image: MetadataImage): void {
    for (const { directory, checkpoints } of this.#entries) {
      for (const name of directory.deleted) this.#removeDeleted(directory, name);
      for (const [name, { topicId }] of directory.partitions) {
        if (!isStray(name, topicId, image, this.#options.config.nodeId)) continue;
        this.#setAside(directory, name);
        const parsed = parsePartitionDirectory(name);
        if (parsed !== null) checkpoints.remove(parsed.topic, parsed.partition, topicId ?? '');
      }
    }
  }

  /** Takes over what threads report, and writes the checkpoint files when there is something new. */
  report(dirs: readonly LogDirCheckpoint[]): void {
    for (const { path, partitions } of dirs) {
      const entry = this.#entry(path);
      if (!entry.isStored) entry.isChanged = true;
      for (const one of partitions) if (entry.checkpoints.report(one)) entry.isChanged = true;
      this.#write(entry);
    }
  }

  /** Moves log starts up; `done(null)` when that is on stable storage. */
  storeLogStarts(
    path: string,
    starts: readonly LogStart[],
    done: (error: DiskError | null) => void,
  ): void {
    const entry = this.#entry(path);
    entry.startsWaiting.push({ starts, done });
    this.#write(entry);
  }

  /** A partition is gone: its files are removed, and whoever takes its name starts from nothing. */
  removePartition({ path, topic, topicId, partition, renamed }: DeletedPartition): void {
    const entry = this.#entry(path);
    if (entry.checkpoints.remove(topic, partition, topicId)) entry.isChanged = true;
    for (const one of [...entry.startsWaiting, ...entry.startsWriting])
      one.starts = one.starts.filter(
        (start) => start.topicId !== topicId || start.partition !== partition,
      );
    this.#write(entry);
    this.#removeDeleted(entry.directory, renamed.slice(path.length + 1));
  }

  /** See `LogDirectory.noteFlushFailure`. */
  noteFlushFailure(path: string): void {
    this.#entry(path).directory.noteFlushFailure();
  }

  /** Fulfilled when all that was reported is in the checkpoint files. */
  async written(): Promise<void> {
    for (const entry of this.#entries)
      while (entry.isWriting) await new Promise<void>((resolve) => entry.whenWritten.push(resolve));
  }

  /** Writes the clean-shutdown markers; only after everything has been closed and `written`. @throws DiskError */
  markClean(brokerEpoch: number): void {
    for (const { directory } of this.#entries) directory.markClean(brokerEpoch);
  }

  /** Gives up the locks. */
  close(): void {
    for (const { directory } of this.#entries) directory.close();
  }

  #entry(path: string): Entry {
    const entry = this.#entries.find(({ directory }) => directory.path === path);
    if (entry === undefined)
      throw new LogDirectoryError(`${path} is no log directory of this broker`);
    return entry;
  }

  #write(entry: Entry): void {
    const { directory, checkpoints, isChanged, startsWaiting: writing } = entry;
    if (entry.isWriting || !(isChanged || writing.length > 0)) return;
    entry.isWriting = true;
    entry.isChanged = false;
    entry.startsWaiting = [];
    entry.startsWriting = writing;
    const starts = (): LogStart[] => writing.flatMap((one) => one.starts);
    const end = (error: DiskError | null): void => {
      entry.isWriting = false;
      entry.isStored = error === null && (entry.isStored || isChanged);
      if (error !== null) this.#warn(entry, error);
      if (error === null) checkpoints.advance(starts());
      entry.startsWriting = [];
      for (const { done } of writing) done(error);
      this.#write(entry);
      if (entry.isWriting) return;
      const waiting = entry.whenWritten;
      entry.whenWritten = [];
      for (const resolve of waiting) resolve();
    };
    const values = checkpoints.valuesWith(starts());
    const areStartsAll = starts().every((one) => one.recoveryPointMax === undefined);
    if (isChanged || !areStartsAll) directory.writeCheckpoints(values, end);
    else directory.writeLogStarts(values, end);
  }

  #warn({ directory }: Entry, error: DiskError): void {
    this.#options.logger.warn(
      { dir: directory.path, error },
      'checkpoints could not be written: the next start will read more of the logs',
    );
  }

  #removeDeleted(directory: LogDirectory, name: string): void {
    directory.removeDeleted(name, (error) => {
      if (error === null) return;
      this.#options.logger.warn({ name, error }, 'a deleted partition could not be removed');
    });
  }

  #setAside(directory: LogDirectory, name: string): void {
    const { disk, random, logger } = this.#options;
    const path = `${directory.path}/${name}`;
    const renamed = strayDirectory(path, random);
    this.#strays.add(path);
    disk.rename(path, renamed);
    logger.warn(
      { path, renamed },
      'a partition directory belongs to no topic and was set aside; remove it when its records are not needed',
    );
  }
}

/** A partition that is opened late, because its disk was full, must not lose its line until then. */
function checkpointsOf({ partitions }: LogDirectory): CheckpointTable {
  const checkpoints = new CheckpointTable();
  for (const [name, found] of partitions) {
    const parsed = parsePartitionDirectory(name);
    if (parsed !== null) checkpoints.report({ ...parsed, ...found, topicId: found.topicId ?? '' });
  }
  return checkpoints;
}

function isStray(
  name: string,
  topicId: string | null,
  image: MetadataImage,
  nodeId: number,
): boolean {
  const parsed = parsePartitionDirectory(name);
  if (parsed === null || parsed.topic === metadataTopicName) return false;
  const topic = image.topic(parsed.topic);
  if (topic?.partitions[parsed.partition]?.replicas.includes(nodeId) !== true) return true;
  return topicId !== null && topicId !== topic.id;
}
