/**
 * A log directory's checkpoint files: recovery points, high watermarks, log starts and how far logs are
 * compacted, Kafka's in name and form, and one
 * of our own that says which topic ids their lines are about.
 *
 * Thread: main; one write at a time. Durability: what was written is on stable storage, with its names, when the call
 * calls back. The topic ids come last: a line whose id is missing or another one counts for nothing, so that a topic
 * that was deleted and created again just before a crash does not begin with the marks of the one before it.
 */
import type { Disk, DiskError } from '../ports.ts';
import type { PartitionCheckpoint, PartitionMarks } from './checkpoint_table.ts';
import { formatCheckpoint, parseCheckpoint } from './checkpoint_text.ts';
import { partitionMetadataFile } from './file_names.ts';
import { asDiskError } from './flush_set.ts';
import { parseTopicId } from './log_parts.ts';
import { temporarySuffix } from './log_state_store.ts';
import { parsePartitionDirectory, partitionDirectoryName } from './partition_directory.ts';

const recoveryPointFile = 'recovery-point-offset-checkpoint';
const highWatermarkFile = 'replication-offset-checkpoint';
const logStartFile = 'log-start-offset-checkpoint';
const cleanedFile = 'cleaner-offset-checkpoint';
/** Ours. */
const topicIdFile = '.millrace_checkpoint_topics';

/** What is known of a partition's directory. */
export interface FoundPartition extends PartitionMarks {
  /** In its `partition.metadata`; null when there is none. */
  readonly topicId: string | null;
}

type Done = (error: DiskError | null) => void;
type File = readonly [name: string, lines: readonly string[]];

export class CheckpointFiles {
  readonly #disk: Disk;
  readonly #path: string;
  /** The cleaner's checkpoint has lines. */
  #hasCleaned: boolean = false;
  /** What the file with the topic ids says. */
  #topicIds = '';

  constructor(disk: Disk, path: string) {
    this.#disk = disk;
    this.#path = path;
  }

  /**
   * By the name of the partition's directory, for each such name. What is read is on stable storage when it returns: a
   * process that was killed may have given the files their names and not flushed them, and what the next one shows to
   * clients must not be taken back by a power cut. Waits for the device.
   * @param warnings gets what was odd, for people: an unreadable file counts as empty, and recovery reads more
   * @throws DiskError
   */
  read(names: readonly string[], warnings: string[]): Map<string, FoundPartition> {
    this.#disk.flushDirectorySync(this.#path);
    const recoveryPoints = this.#readOffsets(recoveryPointFile, warnings);
    const highWatermarks = this.#readOffsets(highWatermarkFile, warnings);
    const logStarts = this.#readOffsets(logStartFile, warnings);
    const cleaned = this.#readOffsets(cleanedFile, warnings);
    this.#hasCleaned = cleaned.size > 0;
    const topicIds = this.#readTopicIds();
    const found = new Map<string, FoundPartition>();
    for (const name of names) {
      if (parsePartitionDirectory(name) === null) continue;
      const topicId = this.topicIdIn(name);
      // Before there was such a file, in a directory of Kafka's, and where a power cut has taken a young partition's own
      // id, lines are taken for what they are.
      const isAbout = topicIds === null || topicId === null || topicIds.get(name) === topicId;
      const markIn = (offsets: ReadonlyMap<string, number>) =>
        isAbout ? (offsets.get(name) ?? 0) : 0;
      found.set(name, {
        recoveryPoint: markIn(recoveryPoints),
        logStartOffset: markIn(logStarts),
        highWatermark: markIn(highWatermarks),
        cleanedOffset: markIn(cleaned),
        topicId,
      });
    }
    return found;
  }

  /** The topic id in a partition's directory, or null: to tell a partition from an older one of the same name. */
  topicIdIn(directoryName: string): string | null {
    const bytes = this.#disk.readFile(`${this.#path}/${directoryName}/${partitionMetadataFile}`);
    return bytes === null ? null : parseTopicId(bytes);
  }

  /** Replaces all files. Give every partition that is there: what is left out is recovered from its start. */
  write(partitions: readonly PartitionCheckpoint[], done: Done): void {
    const files: File[] = [
      [recoveryPointFile, partitions.map((one) => line(one, one.recoveryPoint))],
      [highWatermarkFile, partitions.map((one) => line(one, one.highWatermark))],
      logStartsOf(partitions),
    ];
    const cleaned = partitions.filter(({ cleanedOffset = 0 }) => cleanedOffset > 0);
    if (cleaned.length > 0 || this.#hasCleaned)
      files.push([cleanedFile, cleaned.map((one) => line(one, one.cleanedOffset ?? 0))]);
    this.#hasCleaned = cleaned.length > 0;
    this.#replaceAll(files, partitions, done);
  }

  /** The same for the log starts alone. */
  writeLogStarts(partitions: readonly PartitionCheckpoint[], done: Done): void {
    this.#replaceAll([logStartsOf(partitions)], partitions, done);
  }

  #replaceAll(
    files: readonly File[],
    partitions: readonly PartitionCheckpoint[],
    done: Done,
  ): void {
    const lines = partitions.map((one) => `${one.topic} ${one.partition} ${one.topicId}`).sort();
    const topicIds = lines.join('\n');
    if (topicIds === this.#topicIds) {
      this.#replace(files, done);
      return;
    }
    this.#replace(files, (error) => {
      if (error !== null) {
        done(error);
        return;
      }
      this.#replace([[topicIdFile, lines]], (failure) => {
        if (failure === null) this.#topicIds = topicIds;
        done(failure);
      });
    });
  }

  #replace(files: readonly File[], done: Done): void {
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
          disk.rename(`${this.#path}/${name}${temporarySuffix}`, `${this.#path}/${name}`);
      } catch (error) {
        done(asDiskError(error));
        return;
      }
      disk.flushDirectory(this.#path, done);
    };
    try {
      for (const [name, lines] of files)
        disk.writeFile(`${this.#path}/${name}${temporarySuffix}`, formatCheckpoint(lines));
    } catch (error) {
      done(asDiskError(error));
      return;
    }
    for (const [name] of files) {
      this.#flushFile(`${this.#path}/${name}${temporarySuffix}`, (error) => {
        firstError ??= error;
        left -= 1;
        if (left === 0) finish();
      });
    }
  }

  #flushFile(path: string, done: Done): void {
    const disk = this.#disk;
    let fd: number;
    try {
      fd = disk.open(path, false);
    } catch (error) {
      done(asDiskError(error));
      return;
    }
    disk.flush(fd, (error) => {
      disk.close(fd);
      done(error);
    });
  }

  #readTopicIds(): ReadonlyMap<string, string> | null {
    const bytes = this.#disk.readFile(`${this.#path}/${topicIdFile}`);
    const lines = bytes === null ? null : parseCheckpoint(bytes);
    if (lines === null) return null;
    this.#topicIds = lines.join('\n');
    return new Map(
      lines.map((text) => {
        const [topic = '', partition, topicId = ''] = text.split(' ');
        return [partitionDirectoryName(topic, Number(partition)), topicId];
      }),
    );
  }

  #readOffsets(name: string, warnings: string[]): Map<string, number> {
    const offsets = new Map<string, number>();
    const bytes = this.#disk.readFile(`${this.#path}/${name}`);
    // Kafka makes the files empty.
    if (bytes === null || bytes.length === 0) return offsets;
    const lines = parseCheckpoint(bytes);
    for (const text of lines ?? []) {
      const [topic, partition, offset] = text.split(' ');
      offsets.set(`${topic}-${partition}`, Number(offset));
    }
    const isGood = lines !== null && [...offsets.values()].every((o) => Number.isSafeInteger(o));
    if (isGood) return offsets;
    warnings.push(`${this.#path}/${name} cannot be read and is made anew.`);
    return new Map();
  }
}

function line(one: PartitionCheckpoint, offset: number): string {
  return `${one.topic} ${one.partition} ${offset}`;
}

function logStartsOf(partitions: readonly PartitionCheckpoint[]): File {
  const later = partitions.filter((one) => one.logStartOffset > 0);
  return [logStartFile, later.map((one) => line(one, one.logStartOffset))];
}
