/** Files and directories that one flush covers, and the two ways to flush them: each alone, or the file system. */
import { type Disk, DiskError, type FlushCallback } from '../ports.ts';

export class FlushSet {
  /** Descriptors, which the adder keeps open (segments are pinned). */
  readonly #files: number[] = [];
  /** Small files that are closed already. */
  readonly #paths: string[] = [];
  readonly #directories = new Set<string>();

  get count(): number {
    return this.#files.length + this.#paths.length + this.#directories.size;
  }

  addFile(fd: number): void {
    this.#files.push(fd);
  }

  addPath(path: string): void {
    this.#paths.push(path);
  }

  addDirectory(path: string): void {
    this.#directories.add(path);
  }

  clear(): void {
    this.#files.length = 0;
    this.#paths.length = 0;
    this.#directories.clear();
  }

  /**
   * Flushes everything and calls `done` once, with the worst error if there is one, after the last flush has ended.
   * @param root a directory on the same file system
   * @param eachMax up to so many are flushed one by one (in parallel); more by one syncfs(2) where there is one
   */
  flush(disk: Disk, root: string, eachMax: number, done: FlushCallback): void {
    if (this.count > eachMax && disk.flushFileSystem(root, done)) return;
    let running = 1;
    let worst: DiskError | null = null;
    const one: FlushCallback = (error) => {
      // A failure must not hide behind a flush that could not even be tried.
      if (error !== null && (worst === null || worst.isPassing)) worst = error;
      running -= 1;
      if (running === 0) done(worst);
    };
    running += this.count;
    for (const fd of this.#files) disk.flush(fd, one);
    for (const path of this.#paths) flushPath(disk, path, one);
    for (const path of this.#directories)
      disk.flushDirectory(path, (error) => one(isGone(error) ? null : error));
    one(null);
  }

  /** @throws DiskError */
  flushSync(disk: Disk): void {
    for (const fd of this.#files) disk.flushSync(fd);
    for (const path of this.#paths) {
      const fd = disk.open(path, false);
      try {
        disk.flushSync(fd);
      } finally {
        disk.close(fd);
      }
    }
    for (const path of this.#directories) disk.flushDirectorySync(path);
  }
}

function flushPath(disk: Disk, path: string, done: FlushCallback): void {
  let fd: number;
  try {
    fd = disk.open(path, false);
  } catch (error) {
    done(isGone(error) ? null : asDiskError(error));
    return;
  }
  disk.flush(fd, (error) => {
    disk.close(fd);
    done(error);
  });
}

/**
 * Replaced or removed since: whatever took its place is flushed with its own set. Of directories it is those of deleted
 * partitions, which get another name.
 */
function isGone(error: unknown): boolean {
  return error instanceof DiskError && error.code === 'ENOENT';
}

/** Anything that is not an error of the disk is a fault of the program and goes on up. */
export function asDiskError(error: unknown): DiskError {
  if (error instanceof DiskError) return error;
  throw error;
}
