/**
 * The doors through which the engine reaches the machine: disk, clock, randomness. The broker gives it the real ones
 * (`node_ports.ts`), tests a simulated disk that loses what was not flushed.
 *
 * Files are meant by descriptor (a real one, so that it can be handed to sendfile(2)), directories by path. Calls
 * that move bytes to or from the page cache are synchronous; calls that wait for the device take a callback.
 */

const passingCodes = new Set(['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN']);

/** An operating error of the disk. `code` is the system's name for it ('EIO', 'ENOSPC', 'ENOENT' …). */
export class DiskError extends Error {
  readonly code: string;
  /**
   * A flush was tried and failed, for whatever reason: what it covered may be lost though the cache shows it, and
   * flushing again would report success.
   */
  readonly isFlushFailure: boolean;

  constructor(code: string, message: string, cause?: unknown, isFlushFailure = false) {
    super(message, { cause });
    this.name = 'DiskError';
    this.code = code;
    this.isFlushFailure = isFlushFailure;
  }

  /** No room, quota, descriptors or memory: nothing is broken, and the same call can succeed later. */
  get isPassing(): boolean {
    return !this.isFlushFailure && passingCodes.has(this.code);
  }
}

/**
 * Thrown by a read that must not wait for the device, for what is not in the page cache. Who gets it has the range
 * brought in, calls `release` and tries again.
 */
export class ColdRead extends Error {
  readonly fd: number;
  readonly position: number;
  readonly length: number;
  /** Lets go of whatever keeps the descriptor open. Set by who knows the file; called once. */
  release: (() => void) | null = null;

  constructor(fd: number, position: number, length: number) {
    super('not in the page cache');
    this.fd = fd;
    this.position = position;
    this.length = length;
  }
}

/** `error` is null when everything written before the call is on stable storage. */
export type FlushCallback = (error: DiskError | null) => void;

export interface FileStatus {
  /** Bytes; 0 for a directory. */
  readonly size: number;
  readonly isDirectory: boolean;
  /** Time of the last change, wall clock in milliseconds. */
  readonly modifiedMs: number;
}

export interface Disk {
  /**
   * Opens a file for reading and writing; creates it when it is not there and `create` says so. The name of a created
   * file survives a power cut only after a flush of its directory.
   * @throws DiskError
   */
  open(path: string, create: boolean): number;
  close(fd: number): void;
  /** False: `read` throws a `ColdRead` where it would have to wait for the device. Whoever changes it changes it back. */
  mayWait: boolean;
  /** Reads up to `length` bytes at `position` into `buf` at `offset`; fewer only where the file ends. */
  read(fd: number, buf: Uint8Array, offset: number, length: number, position: number): number;
  /**
   * Writes all the bytes. Where only some could be written it throws, and the file may hold them.
   * @throws DiskError
   */
  write(fd: number, buf: Uint8Array, offset: number, length: number, position: number): void;
  /** The same for several views at once, in one system call where that is possible. `length` is their sum in bytes. */
  writev(fd: number, views: readonly Uint8Array[], length: number, position: number): void;
  truncate(fd: number, size: number): void;
  /** Size of an open file in bytes. */
  size(fd: number): number;

  /** fdatasync(2): the file's bytes and size, not its name. */
  flush(fd: number, done: FlushCallback): void;
  flushSync(fd: number): void;
  /** fsync(2) of a directory: the names in it. */
  flushDirectory(path: string, done: FlushCallback): void;
  flushDirectorySync(path: string): void;
  /**
   * Call before the first write that `flushFileSystem(path)` is to cover: errors of write-back are told only to
   * descriptors that were open when they happened. @throws DiskError
   */
  watchFileSystem(path: string): void;
  /**
   * syncfs(2): every file and name of the file system that holds `path`. Returns false, without calling `done`, where
   * the system has no such call or the file system is not watched.
   */
  flushFileSystem(path: string, done: FlushCallback): boolean;
  /** Asks for write-back to begin, without waiting. Best effort. */
  startWriteBack(fd: number, position: number, length: number): void;
  /**
   * Lets go of cached pages so that the next read comes from the device: after a failed flush the cache may hold clean
   * pages that the device never got. Returns false where the system cannot.
   */
  dropCache(fd: number, position: number, length: number): boolean;

  rename(from: string, to: string): void;
  /** Removes a file; one that is not there is no error. */
  unlink(path: string): void;
  /** Creates a directory (its parent must exist); one that is there already is no error. Returns true if it was made. */
  mkdir(path: string): boolean;
  /** Removes a file, or a directory with all that is in it, off the thread. One that is not there is no error. */
  removeTree(path: string, done: (error: DiskError | null) => void): void;
  /** Names in a directory, in no particular order; null when there is no such directory. */
  list(path: string): string[] | null;
  status(path: string): FileStatus | null;
  /** The whole of a small file, or null when there is none. */
  readFile(path: string): Uint8Array | null;
  /**
   * Locks a file (created when it is not there) for this process until it ends, however it ends, and writes its process
   * id into it. Returns null on success, else what the holder wrote.
   */
  lock(path: string): string | null;
  /** Gives up a lock of this process; one that it does not hold is no error. */
  unlock(path: string): void;
  /** Creates or replaces a file, in place: not atomic, not flushed. */
  writeFile(path: string, bytes: Uint8Array): void;
}

/** What the system has in memory of the files' contents. */
export interface PageCache {
  /**
   * Whether all of the range can be read without waiting for the device. Where the system does not tell, that is the
   * answer for short ranges, and long ones count as cold.
   */
  isCached(fd: number, position: number, length: number): boolean;
  /**
   * Brings the range in, off the thread, by reading it; `done` is called in any case: a broken device shows when the
   * bytes are wanted. `length` is at most `fillBytesMax`.
   */
  fill(fd: number, position: number, length: number, done: () => void): void;
  readonly fillBytesMax: number;
  /** A name for the device that the file lies on. */
  deviceOf(fd: number): number;
}

export interface Clock {
  /** Milliseconds since 1970; may jump either way. */
  wallMs(): number;
  /** Milliseconds from an arbitrary start; never goes back. */
  monotonicMs(): number;
}

/** Tells one run of the machine from another: null where the system has no such name. */
export type BootId = string | null;

export interface Random {
  /** A number from 0 up to, not including, 1. */
  next(): number;
  /** `length` random bytes, fit for identifiers. */
  bytes(length: number): Uint8Array;
}
