/** The real disk, clock and randomness. Any thread; holds nothing but a directory descriptor for each syncfs path. */

import { randomFillSync } from 'node:crypto';
import fs from 'node:fs';
import { native } from './native.ts';
import {
  type BootId,
  type Clock,
  ColdRead,
  type Disk,
  DiskError,
  type FileStatus,
  type FlushCallback,
  type PageCache,
  type Random,
} from './ports.ts';

const { O_CREAT, O_RDWR, O_RDONLY, O_DIRECTORY } = fs.constants;
const fileMode = 0o644;

export class NodeDisk implements Disk {
  readonly #syncDescriptors = new Map<string, number>();
  /** Descriptors of the files that are locked, by path. */
  readonly #locks = new Map<string, number>();
  readonly #pageCache: PageCache | null;
  mayWait: boolean = true;

  /** @param pageCache for threads that read without waiting; null: `mayWait` makes no difference */
  constructor(pageCache: PageCache | null = null) {
    this.#pageCache = pageCache;
  }

  open(path: string, create: boolean): number {
    try {
      return fs.openSync(path, create ? O_RDWR | O_CREAT : O_RDWR, fileMode);
    } catch (error) {
      throw diskError(error);
    }
  }

  close(fd: number): void {
    try {
      fs.closeSync(fd);
    } catch (error) {
      throw diskError(error);
    }
  }

  read(fd: number, buf: Uint8Array, offset: number, length: number, position: number): number {
    if (!this.mayWait && this.#pageCache?.isCached(fd, position, length) === false)
      throw new ColdRead(fd, position, length);
    try {
      let done = 0;
      while (done < length) {
        const count = fs.readSync(fd, buf, offset + done, length - done, position + done);
        if (count === 0) break;
        done += count;
      }
      return done;
    } catch (error) {
      throw diskError(error);
    }
  }

  write(fd: number, buf: Uint8Array, offset: number, length: number, position: number): void {
    let count = 0;
    try {
      count = fs.writeSync(fd, buf, offset, length, position);
    } catch (error) {
      throw diskError(error);
    }
    if (count !== length)
      this.#finishShortWrite(fd, [buf.subarray(offset, offset + length)], count, position);
  }

  writev(fd: number, views: readonly Uint8Array[], length: number, position: number): void {
    let count = 0;
    try {
      count = fs.writevSync(fd, views as Uint8Array[], position);
    } catch (error) {
      throw diskError(error);
    }
    if (count !== length) this.#finishShortWrite(fd, views, count, position);
  }

  /**
   * The kernel reports what it could write and the reason only on the next call, so that a full disk looks like a
   * success with a smaller number. Going on with the rest either writes it or brings out the reason.
   */
  #finishShortWrite(
    fd: number,
    views: readonly Uint8Array[],
    count: number,
    position: number,
  ): void {
    let skip = count;
    let at = position + count;
    for (const view of views) {
      let from = Math.min(skip, view.length);
      skip -= from;
      while (from < view.length) {
        let written = 0;
        try {
          written = fs.writeSync(fd, view, from, view.length - from, at);
        } catch (error) {
          throw diskError(error);
        }
        if (written === 0)
          throw new DiskError('ENOSPC', `write of ${view.length - from} bytes wrote none`);
        from += written;
        at += written;
      }
    }
  }

  truncate(fd: number, size: number): void {
    try {
      fs.ftruncateSync(fd, size);
    } catch (error) {
      throw diskError(error);
    }
  }

  size(fd: number): number {
    return fs.fstatSync(fd).size;
  }

  flush(fd: number, done: FlushCallback): void {
    fs.fdatasync(fd, (error) => done(error === null ? null : flushError(error)));
  }

  flushSync(fd: number): void {
    try {
      fs.fdatasyncSync(fd);
    } catch (error) {
      throw flushError(error);
    }
  }

  flushDirectory(path: string, done: FlushCallback): void {
    fs.open(path, O_RDONLY | O_DIRECTORY, (openError, fd) => {
      if (openError !== null) {
        done(diskError(openError));
        return;
      }
      fs.fsync(fd, (error) => {
        fs.closeSync(fd);
        done(error === null ? null : flushError(error));
      });
    });
  }

  flushDirectorySync(path: string): void {
    let fd = -1;
    try {
      fd = fs.openSync(path, O_RDONLY | O_DIRECTORY);
    } catch (error) {
      throw diskError(error);
    }
    try {
      fs.fsyncSync(fd);
    } catch (error) {
      throw flushError(error);
    } finally {
      fs.closeSync(fd);
    }
  }

  watchFileSystem(path: string): void {
    if (native() === null || this.#syncDescriptors.has(path)) return;
    try {
      this.#syncDescriptors.set(path, fs.openSync(path, O_RDONLY | O_DIRECTORY));
    } catch (error) {
      throw diskError(error);
    }
  }

  flushFileSystem(path: string, done: FlushCallback): boolean {
    const calls = native();
    const fd = this.#syncDescriptors.get(path);
    if (calls === null || fd === undefined) return false;
    calls.syncfs(fd, (result) =>
      done(
        result === 0
          ? null
          : new DiskError('EIO', `syncfs of ${path} failed (${result})`, undefined, true),
      ),
    );
    return true;
  }

  startWriteBack(fd: number, position: number, length: number): void {
    native()?.startWriteBack(fd, position, length);
  }

  dropCache(fd: number, position: number, length: number): boolean {
    return native()?.dropCache(fd, position, length) === 0;
  }

  rename(from: string, to: string): void {
    try {
      fs.renameSync(from, to);
    } catch (error) {
      throw diskError(error);
    }
  }

  unlink(path: string): void {
    try {
      fs.unlinkSync(path);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw diskError(error);
    }
  }

  mkdir(path: string): boolean {
    try {
      fs.mkdirSync(path);
      return true;
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false;
      throw diskError(error);
    }
  }

  removeTree(path: string, done: (error: DiskError | null) => void): void {
    fs.rm(path, { recursive: true, force: true }, (error) =>
      done(error === null ? null : diskError(error)),
    );
  }

  list(path: string): string[] | null {
    // Nearly always when there is none: an exception takes twenty times as long.
    if (this.status(path) === null) return null;
    try {
      return fs.readdirSync(path);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null;
      throw diskError(error);
    }
  }

  status(path: string): FileStatus | null {
    try {
      const status = fs.statSync(path, { throwIfNoEntry: false });
      if (status === undefined) return null;
      const isDirectory = status.isDirectory();
      return { size: isDirectory ? 0 : status.size, isDirectory, modifiedMs: status.mtimeMs };
    } catch (error) {
      throw diskError(error);
    }
  }

  readFile(path: string): Uint8Array | null {
    try {
      return fs.readFileSync(path);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null;
      throw diskError(error);
    }
  }

  lock(path: string): string | null {
    const fd = this.open(path, true);
    const holder = fs.readFileSync(path, 'utf8').trim();
    const calls = native();
    // Without record locks, a living process of that number counts as the holder.
    const isHeld = calls === null ? isOtherProcess(holder) : calls.lockFile(fd) < 0;
    if (isHeld) {
      this.close(fd);
      return holder;
    }
    fs.ftruncateSync(fd, 0);
    fs.writeSync(fd, `${process.pid}\n`, 0);
    // The descriptor stays open: the lock is its.
    this.#locks.set(path, fd);
    return null;
  }

  unlock(path: string): void {
    const fd = this.#locks.get(path);
    if (fd === undefined) return;
    this.#locks.delete(path);
    fs.ftruncateSync(fd, 0);
    this.close(fd);
  }

  writeFile(path: string, bytes: Uint8Array): void {
    try {
      fs.writeFileSync(path, bytes, { mode: fileMode });
    } catch (error) {
      throw diskError(error);
    }
  }
}

export const nodeClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

export const nodeRandom: Random = {
  next: () => Math.random(),
  bytes: (length) => randomFillSync(new Uint8Array(length)),
};

/** Linux's name for this run of the machine; it changes with every boot. */
export function readBootId(): BootId {
  try {
    return fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return null;
  }
}

function isOtherProcess(holder: string): boolean {
  const pid = Number(holder);
  if (!Number.isSafeInteger(pid) || pid <= 0 || pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'EIO';
}

function flushError(error: unknown): DiskError {
  return new DiskError(codeOf(error), (error as Error).message, error, true);
}

function diskError(error: unknown): DiskError {
  return new DiskError(codeOf(error), (error as Error).message, error);
}
