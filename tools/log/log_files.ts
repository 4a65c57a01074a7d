/** Finds the partitions and segments below a path, and reads their files. Never writes. */
import {
  closeSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { offsetInFileName } from '../../engine/log/file_names.ts';
import {
  parsePartitionDirectory,
  type TopicPartition,
} from '../../engine/log/partition_directory.ts';
import type { Disk } from '../../engine/ports.ts';

/** A segment's file with batches. */
export interface SegmentFile {
  readonly path: string;
  readonly baseOffset: number;
  readonly size: number;
}

export interface PartitionFiles extends TopicPartition {
  readonly path: string;
  /** By base offset. */
  readonly segments: readonly SegmentFile[];
  /** Names of all files in the directory. */
  readonly names: readonly string[];
}

/** What a path on the command line turned out to hold. */
export interface FoundLogs {
  /** The directories with checkpoint files: those that hold the partitions. */
  readonly directories: readonly string[];
  readonly partitions: readonly PartitionFiles[];
}

/** The path cannot be looked at; the message says why, and what would do. */
export class LogPathError extends Error {}

/** Reads as a `Disk` does, which is all that a scan asks for. */
export const readOnlyDisk: Pick<Disk, 'read'> = {
  read(fd, buf, offset, length, position) {
    let done = 0;
    while (done < length) {
      const count = readSync(fd, buf, offset + done, length - done, position + done);
      if (count === 0) break;
      done += count;
    }
    return done;
  },
};

/** Everything below a log directory, a partition's directory, or one segment's file. @throws LogPathError */
export function findLogs(path: string): FoundLogs {
  const status = statSync(path, { throwIfNoEntry: false });
  if (status === undefined) throw new LogPathError(`${path}: there is no such file or directory.`);
  if (!status.isDirectory()) return ofFile(path, status.size);
  const names = namesIn(path);
  if (names.some((name) => offsetInFileName(name, '.log') >= 0))
    return { directories: [], partitions: [partitionAt(path, names)] };
  const found = names.filter(
    (name) => parsePartitionDirectory(name) !== null && statSync(join(path, name)).isDirectory(),
  );
  if (found.length === 0 && !names.includes('meta.properties'))
    throw new LogPathError(
      `${path} is no log directory: it holds neither meta.properties nor partitions. Name the directory that log.dirs names, the directory of a partition, or a .log file.`,
    );
  const partitions = found.map((name) => partitionAt(join(path, name), namesIn(join(path, name))));
  partitions.sort((a, b) => a.topic.localeCompare(b.topic) || a.partition - b.partition);
  return { directories: [path], partitions };
}

function ofFile(path: string, size: number): FoundLogs {
  const baseOffset = offsetInFileName(basename(path), '.log');
  if (baseOffset < 0)
    throw new LogPathError(
      `${path} is no segment: those are named after an offset of 20 digits, as 00000000000000000000.log.`,
    );
  const dir = dirname(path);
  const one = partitionAt(dir, [basename(path)]);
  return { directories: [], partitions: [{ ...one, segments: [{ path, baseOffset, size }] }] };
}

function namesIn(path: string): string[] {
  try {
    return readdirSync(path).sort();
  } catch (error) {
    throw new LogPathError(`${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function partitionAt(path: string, names: readonly string[]): PartitionFiles {
  const name = basename(join(process.cwd(), path));
  const { topic, partition } = parsePartitionDirectory(basename(path)) ??
    parsePartitionDirectory(name) ?? { topic: basename(path), partition: 0 };
  const segments: SegmentFile[] = [];
  for (const file of names) {
    const baseOffset = offsetInFileName(file, '.log');
    if (baseOffset < 0) continue;
    segments.push({ path: join(path, file), baseOffset, size: statSync(join(path, file)).size });
  }
  segments.sort((a, b) => a.baseOffset - b.baseOffset);
  return { path, topic, partition, segments, names };
}

/** Opens a file for the time of a call. */
export function withFile<T>(path: string, use: (fd: number, size: number) => T): T {
  const fd = openSync(path, 'r');
  try {
    return use(fd, fstatSync(fd).size);
  } finally {
    closeSync(fd);
  }
}

/** The whole of a small file, or null when there is none. */
export function readIfThere(path: string): Uint8Array | null {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
