/**
 * What a log directory holds beside the partitions: the lock, `meta.properties`, the checkpoint files, the
 * clean-shutdown marker, and what is left of deleted partitions. Names and formats are Kafka's.
 *
 * Thread: main. Durability: `meta.properties`, checkpoints and the marker are flushed, with their names, before the call
 * returns or calls back.
 */
import type { BootId, Disk, DiskError } from '../ports.ts';
import { CheckpointFiles, type FoundPartition } from './checkpoint_files.ts';
import type { PartitionCheckpoint, PartitionMarks } from './checkpoint_table.ts';
import { asDiskError } from './flush_set.ts';
import {
  LogDirectoryError,
  type LogDirectoryOptions,
  writeFlushed,
} from './log_directory_options.ts';
import { type MetaProperties, openMetaProperties, writeMetaProperties } from './meta_properties.ts';
import {
  isDeletedDirectory,
  parentOf,
  parsePartitionDirectory,
  partitionDirectoryName,
} from './partition_directory.ts';

const lockFile = '.lock';
const cleanShutdownFile = '.kafka_cleanshutdown';
/** Ours: in which run of the machine the directory was last recovered and checkpointed. */
const bootFile = '.millrace_boot';
/**
 * Ours, an empty file under one of two names, so that noting a failure takes a rename and no space: a flush failed, and
 * the page cache may be better than the disk; or not.
 */
const flushFailedFile = '.millrace_flush_failed';
const flushGoodFile = '.millrace_flush_good';

const noMarks: PartitionMarks = { recoveryPoint: 0, logStartOffset: 0, highWatermark: 0 };

export class LogDirectory {
  readonly path: string;
  /** The last owner closed everything: nothing lies past the recovery points. */
  readonly cleanShutdown: boolean;
  /** The broker epoch in the clean-shutdown marker, -1 when there is none. */
  readonly cleanBrokerEpoch: number;
  /** The machine has been started since the directory was last open, or it cannot be known. See `LogOptions`. */
  readonly afterPowerLoss: boolean;
  /** A flush had failed. See `LogOptions.dropCache`. */
  readonly flushFailed: boolean;
  /** By the name of the partition's directory, for each such directory that is there. */
  readonly partitions: ReadonlyMap<string, FoundPartition>;
  /** Names of the directories of deleted partitions: see `removeDeleted`. */
  readonly deleted: readonly string[];
  /** What was odd but no obstacle, for people. */
  readonly warnings: readonly string[];
  #meta: MetaProperties;
  readonly #disk: Disk;
  readonly #bootId: BootId;
  readonly #checkpoints: CheckpointFiles;
  #isBootNoted: boolean = false;

  /**
   * Creates the directory when it is not there, locks it for this process, and reads it. The clean-shutdown marker is
   * taken away: from here on only `markClean` brings it back.
   * @throws LogDirectoryError, DiskError
   */
  static open(options: LogDirectoryOptions): LogDirectory {
    const { disk, path } = options;
    makeDirectory(disk, path);
    const holder = disk.lock(`${path}/${lockFile}`);
    if (holder !== null) {
      const who = holder === '' ? 'another process' : `process ${holder}`;
      throw new LogDirectoryError(
        `${path} is in use by ${who}. A data directory belongs to one broker: stop that one, or set log.dirs to another directory.`,
      );
    }
    return new LogDirectory(options, disk.list(path) ?? []);
  }

  private constructor(options: LogDirectoryOptions, names: readonly string[]) {
    const { disk, path } = options;
    const warnings: string[] = [];
    this.path = path;
    this.#disk = disk;
    this.#bootId = options.bootId;
    this.warnings = warnings;
    const hasPartitions = names.some((name) => parsePartitionDirectory(name) !== null);
    this.#meta = openMetaProperties(options, hasPartitions);
    const marker = disk.readFile(`${path}/${cleanShutdownFile}`);
    this.cleanShutdown = marker !== null;
    this.cleanBrokerEpoch = marker === null ? -1 : brokerEpochIn(marker);
    this.flushFailed = names.includes(flushFailedFile);
    if (!this.flushFailed) this.clearFlushFailure();
    this.afterPowerLoss = this.#isOtherBoot(options.bootId);
    this.#checkpoints = new CheckpointFiles(disk, path);
    this.partitions = this.#checkpoints.read(names, warnings);
    this.deleted = names.filter(isDeletedDirectory);
    if (marker !== null) {
      disk.unlink(`${path}/${cleanShutdownFile}`);
      disk.flushDirectorySync(path);
    }
  }

  get meta(): MetaProperties {
    return this.#meta;
  }

  /** Makes a directory without a cluster part of one, for good. @throws DiskError */
  adoptCluster(clusterId: string): void {
    if (this.#meta.clusterId === clusterId) return;
    this.#meta = { ...this.#meta, clusterId };
    writeMetaProperties(this.#disk, this.path, this.#meta);
  }

  #isOtherBoot(bootId: BootId): boolean {
    const bytes = this.#disk.readFile(`${this.path}/${bootFile}`);
    return bootId === null || bytes === null || new TextDecoder().decode(bytes).trim() !== bootId;
  }

  /** Not before the first checkpoint: a start that is killed in the middle of recovery leaves it to the next one. */
  #noteBoot(): DiskError | null {
    if (this.#isBootNoted) return null;
    const bytes = new TextEncoder().encode(`${this.#bootId ?? ''}\n`);
    try {
      this.#disk.writeFile(`${this.path}/${bootFile}`, bytes);
    } catch (error) {
      return asDiskError(error);
    }
    this.#isBootNoted = true;
    return null;
  }

  /** Marks of the partition, zeros when there are none. */
  marksOf(topic: string, partition: number): PartitionMarks {
    const found = this.partitions.get(partitionDirectoryName(topic, partition));
    if (found === undefined) return noMarks;
    const { recoveryPoint, logStartOffset, highWatermark } = found;
    return { recoveryPoint, logStartOffset, highWatermark };
  }

  /** See `CheckpointFiles.write`. A deleted partition must be left out before another takes its name. */
  writeCheckpoints(
    partitions: readonly PartitionCheckpoint[],
    done: (error: DiskError | null) => void,
  ): void {
    this.#checkpoints.write(partitions, (error) => done(error ?? this.#noteBoot()));
  }

  /** See `CheckpointFiles.writeLogStarts`. */
  writeLogStarts(
    partitions: readonly PartitionCheckpoint[],
    done: (error: DiskError | null) => void,
  ): void {
    this.#checkpoints.writeLogStarts(partitions, done);
  }

  /** Everything is closed and flushed, and the checkpoints say so. @throws DiskError */
  markClean(brokerEpoch: number): void {
    const disk = this.#disk;
    this.clearFlushFailure();
    writeFlushed(
      disk,
      `${this.path}/${cleanShutdownFile}`,
      new TextEncoder().encode(JSON.stringify({ version: 0, brokerEpoch })),
    );
  }

  /** Gives up the lock. Nothing in the directory may be touched any more. */
  close(): void {
    this.#disk.unlock(`${this.path}/${lockFile}`);
  }

  /**
   * A flush has failed. Best effort, on a disk that may be broken: it need not outlive the machine's run, since a new
   * run begins with an empty page cache.
   */
  noteFlushFailure(): void {
    try {
      this.#nameFlushFile(flushGoodFile, flushFailedFile);
    } catch {
      // The file system has gone read-only, which means a restart of it, and that empties the cache.
    }
  }

  /** All partitions have been read from the device and flushed since the failure. */
  clearFlushFailure(): void {
    this.#nameFlushFile(flushFailedFile, flushGoodFile);
  }

  #nameFlushFile(from: string, to: string): void {
    const disk = this.#disk;
    const path = `${this.path}/${from}`;
    if (disk.status(path) !== null) disk.rename(path, `${this.path}/${to}`);
    else if (disk.status(`${this.path}/${to}`) === null)
      disk.writeFile(`${this.path}/${to}`, new Uint8Array(0));
  }

  /** Removes a deleted partition's directory (a name from `deleted`, or the last part of `PartitionLog.delete`). */
  removeDeleted(directoryName: string, done: (error: DiskError | null) => void): void {
    if (isDeletedDirectory(directoryName))
      this.#disk.removeTree(`${this.path}/${directoryName}`, done);
    else done(null);
  }
}

function brokerEpochIn(marker: Uint8Array): number {
  try {
    const { brokerEpoch } = JSON.parse(new TextDecoder().decode(marker)) as {
      brokerEpoch?: unknown;
    };
    return typeof brokerEpoch === 'number' ? brokerEpoch : -1;
  } catch {
    return -1;
  }
}

function makeDirectory(disk: Disk, path: string): void {
  const status = disk.status(path);
  if (status?.isDirectory) return;
  if (status !== null) throw new LogDirectoryError(`${path} is a file, not a directory.`);
  const parent = parentOf(path);
  if (parent !== path) makeDirectory(disk, parent);
  disk.mkdir(path);
  disk.flushDirectorySync(parent);
}
