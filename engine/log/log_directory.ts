/**
 * What a log directory holds beside the partitions: the lock, `meta.properties`, the checkpoint files, the
 * clean-shutdown marker, and what is left of deleted partitions. Names and formats are Kafka's.
 *
 * Thread: main. Durability: `meta.properties`, checkpoints and the marker are flushed, with their names, before the call
 * returns or calls back.
 */
import type { BootId, Disk, DiskError } from '../ports.ts';
import { formatCheckpoint, parseCheckpoint } from './checkpoint_text.ts';
import { partitionMetadataFile } from './file_names.ts';
import {
  LogDirectoryError,
  type LogDirectoryOptions,
  writeFlushed,
} from './log_directory_options.ts';
import { parseTopicId } from './log_parts.ts';
import { temporarySuffix } from './log_state_store.ts';
import { type MetaProperties, openMetaProperties } from './meta_properties.ts';
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

const recoveryPointFile = 'recovery-point-offset-checkpoint';
const highWatermarkFile = 'replication-offset-checkpoint';
const logStartFile = 'log-start-offset-checkpoint';
const cleanedFile = 'cleaner-offset-checkpoint';

/** What the checkpoints say of a partition; 0 where they say nothing. */
export interface PartitionMarks {
  readonly recoveryPoint: number;
  readonly logStartOffset: number;
  readonly highWatermark: number;
  /** Below it the log is compacted; absent where it never was. */
  readonly cleanedOffset?: number;
}

export interface PartitionCheckpoint extends PartitionMarks {
  readonly topic: string;
  readonly partition: number;
}

const noMarks: PartitionMarks = { recoveryPoint: 0, logStartOffset: 0, highWatermark: 0 };

export class LogDirectory {
  readonly path: string;
  readonly meta: MetaProperties;
  /** The last owner closed everything: nothing lies past the recovery points. */
  readonly cleanShutdown: boolean;
  /** The broker epoch in the clean-shutdown marker, -1 when there is none. */
  readonly cleanBrokerEpoch: number;
  /** The machine has been started since the directory was last open, or it cannot be known. See `LogOptions`. */
  readonly afterPowerLoss: boolean;
  /** A flush had failed. See `LogOptions.dropCache`. */
  readonly flushFailed: boolean;
  /** By the name of the partition's directory, for each such directory that is there. */
  readonly partitions: ReadonlyMap<string, PartitionMarks>;
  /** Names of the directories of deleted partitions: see `removeDeleted`. */
  readonly deleted: readonly string[];
  /** What was odd but no obstacle, for people. */
  readonly warnings: readonly string[];
  readonly #disk: Disk;
  readonly #bootId: BootId;
  #isBootNoted: boolean = false;
  /** The checkpoint of the cleaner has entries. */
  #hasCleaned: boolean;

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
    this.meta = openMetaProperties(options, hasPartitions);
    const marker = disk.readFile(`${path}/${cleanShutdownFile}`);
    this.cleanShutdown = marker !== null;
    this.cleanBrokerEpoch = marker === null ? -1 : brokerEpochIn(marker);
    this.flushFailed = names.includes(flushFailedFile);
    if (!this.flushFailed) this.clearFlushFailure();
    this.afterPowerLoss = this.#isOtherBoot(options.bootId);
    this.partitions = readMarks(disk, path, names, warnings);
    this.#hasCleaned = names.includes(cleanedFile);
    this.deleted = names.filter(isDeletedDirectory);
    if (marker !== null) {
      disk.unlink(`${path}/${cleanShutdownFile}`);
      disk.flushDirectorySync(path);
    }
  }

  #isOtherBoot(bootId: BootId): boolean {
    const bytes = this.#disk.readFile(`${this.path}/${bootFile}`);
    return bootId === null || bytes === null || new TextDecoder().decode(bytes).trim() !== bootId;
  }

  /** Not before the first checkpoint: a start that is killed in the middle of recovery leaves it to the next one. */
  #noteBoot(): void {
    if (this.#isBootNoted) return;
    this.#disk.writeFile(
      `${this.path}/${bootFile}`,
      new TextEncoder().encode(`${this.#bootId ?? ''}\n`),
    );
    this.#isBootNoted = true;
  }

  /** Marks of the partition, zeros when there are none. */
  marksOf(topic: string, partition: number): PartitionMarks {
    return this.partitions.get(partitionDirectoryName(topic, partition)) ?? noMarks;
  }

  /** The topic id in a partition's directory, or null: to tell a partition from an older one of the same name. */
  topicIdIn(directoryName: string): string | null {
    const bytes = this.#disk.readFile(`${this.path}/${directoryName}/${partitionMetadataFile}`);
    return bytes === null ? null : parseTopicId(bytes);
  }

  /**
   * Replaces the recovery-point, high-watermark, log-start and cleaner checkpoints. Give all partitions that are open: one that is
   * left out is recovered from its start, and a deleted one must be left out before another takes its name.
   */
  writeCheckpoints(
    partitions: readonly PartitionCheckpoint[],
    done: (error: DiskError | null) => void,
  ): void {
    const line = (one: PartitionCheckpoint, offset: number): string =>
      `${one.topic} ${one.partition} ${offset}`;
    const files: Array<[string, string[]]> = [
      [recoveryPointFile, partitions.map((one) => line(one, one.recoveryPoint))],
      [highWatermarkFile, partitions.map((one) => line(one, one.highWatermark))],
      [
        logStartFile,
        partitions
          .filter((one) => one.logStartOffset > 0)
          .map((one) => line(one, one.logStartOffset)),
      ],
    ];
    const cleaned = partitions
      .filter(({ cleanedOffset = 0 }) => cleanedOffset > 0)
      .map((one) => line(one, one.cleanedOffset ?? 0));
    if (cleaned.length > 0 || this.#hasCleaned) files.push([cleanedFile, cleaned]);
    this.#hasCleaned = cleaned.length > 0;
    try {
      this.#replace(files, done);
    } catch (error) {
      done(error as DiskError);
    }
  }

  #replace(
    files: ReadonlyArray<[string, string[]]>,
    done: (error: DiskError | null) => void,
  ): void {
    const disk = this.#disk;
    let left = files.length;
    let firstError: DiskError | null = null;
    const finish = (): void => {
      if (firstError !== null) {
        done(firstError);
        return;
      }
      try {
        for (const [name] of files)
          disk.rename(`${this.path}/${name}${temporarySuffix}`, `${this.path}/${name}`);
        this.#noteBoot();
      } catch (error) {
        done(error as DiskError);
        return;
      }
      disk.flushDirectory(this.path, done);
    };
    for (const [name, lines] of files) {
      const path = `${this.path}/${name}${temporarySuffix}`;
      disk.writeFile(path, formatCheckpoint(lines));
      const fd = disk.open(path, false);
      disk.flush(fd, (error) => {
        disk.close(fd);
        firstError ??= error;
        left -= 1;
        if (left === 0) finish();
      });
    }
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

function readMarks(
  disk: Disk,
  path: string,
  names: readonly string[],
  warnings: string[],
): Map<string, PartitionMarks> {
  const recoveryPoints = readOffsets(disk, path, recoveryPointFile, warnings);
  const highWatermarks = readOffsets(disk, path, highWatermarkFile, warnings);
  const logStarts = readOffsets(disk, path, logStartFile, warnings);
  const cleaned = readOffsets(disk, path, cleanedFile, warnings);
  const marks = new Map<string, PartitionMarks>();
  for (const name of names) {
    if (parsePartitionDirectory(name) === null) continue;
    marks.set(name, {
      recoveryPoint: recoveryPoints.get(name) ?? 0,
      logStartOffset: logStarts.get(name) ?? 0,
      highWatermark: highWatermarks.get(name) ?? 0,
      cleanedOffset: cleaned.get(name) ?? 0,
    });
  }
  return marks;
}

/** An unreadable checkpoint counts as empty: recovery then reads more than it would have to. */
function readOffsets(
  disk: Disk,
  path: string,
  name: string,
  warnings: string[],
): Map<string, number> {
  const offsets = new Map<string, number>();
  const bytes = disk.readFile(`${path}/${name}`);
  // Kafka makes the files empty.
  if (bytes === null || bytes.length === 0) return offsets;
  const lines = parseCheckpoint(bytes);
  for (const line of lines ?? []) {
    const [topic, partition, offset] = line.split(' ');
    offsets.set(`${topic}-${partition}`, Number(offset));
  }
  const isGood = lines !== null && [...offsets.values()].every((o) => Number.isSafeInteger(o));
  if (isGood) return offsets;
  warnings.push(`${path}/${name} cannot be read and is made anew.`);
  return new Map();
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
