/**
 * System calls that Node does not offer, through koffi. Loaded on first use, once for each thread. `native()` is null on
 * systems where the library cannot be loaded: then each caller goes on in plain Node, but for the handing over of
 * connections between threads (`net/listeners.ts`), which refuses to start.
 *
 * Return values follow the kernel's raw convention: zero or more on success, minus errno on failure.
 */
import { createRequire } from 'node:module';
import { constants } from 'node:os';

export interface Native {
  /** dup(2). */
  dup(fd: number): number;
  /**
   * sendfile(2): up to `count` bytes of `inFd` from `offset` on to the socket `outFd`; the file's own offset stays.
   * Returns the bytes sent, or minus errno (EAGAIN when the socket is full).
   */
  sendfile(outFd: number, inFd: number, offset: number, count: number): number;
  /** syncfs(2) on libuv's pool; `done` gets 0 or minus errno. */
  syncfs(fd: number, done: (result: number) => void): void;
  /** fcntl(F_OFD_SETLK): an exclusive lock on the whole file, held until the descriptor's last copy is closed. */
  lockFile(fd: number): number;
  /** cachestat(2), Linux 6.5: how many pages of the range are in the page cache, those that are still being read included. */
  cachedPages(fd: number, offset: number, length: number): number;
  /** preadv2(2) with RWF_NOWAIT: 1 when the byte at `offset` can be read without waiting; EAGAIN, or 0 past the end. */
  peek(fd: number, offset: number): number;
  /** posix_fadvise(POSIX_FADV_RANDOM): reads of this descriptor bring in what they ask for and no more. */
  stopReadAhead(fd: number): number;
  /** posix_fadvise(POSIX_FADV_DONTNEED). */
  dropCache(fd: number, offset: number, length: number): number;
  /**
   * sync_file_range(SYNC_FILE_RANGE_WRITE) on libuv's pool: begins write-back of dirty pages. Allocating their blocks and
   * handing them to the device takes a third of a millisecond for each megabyte, and waits while the device's queue is full.
   */
  startWriteBack(fd: number, offset: number, length: number): void;
}

const fOfdSetlk = 37;
const fWrlck = 1;
const flockBytes = 32;
const posixFadvRandom = 1;
const posixFadvDontneed = 4;
const rwfNowait = 8;
/** The number is the same on all architectures. */
const sysCachestat = 451;
const syncFileRangeWrite = 2;

type Callable = ((...args: unknown[]) => number) & {
  async(...args: [...unknown[], (error: Error | null, result: number) => void]): void;
};
interface Koffi {
  address(memory: ArrayBufferView): bigint;
  load(path: string | null): { func(prototype: string): Callable };
  errno(): number;
}

let loaded: Native | null | undefined;

/** The calls, or null where they are not to be had (not Linux, or no prebuilt library). */
export function native(): Native | null {
  if (loaded === undefined) loaded = process.platform === 'linux' ? load() : null;
  return loaded;
}

function load(): Native | null {
  try {
    return bind(createRequire(import.meta.url)('koffi') as Koffi);
  } catch {
    return null;
  }
}

function bind(koffi: Koffi): Native {
  const libc = koffi.load(null);
  const dup = libc.func('int dup(int fd)');
  const sendfile = libc.func('int64_t sendfile64(int out, int in, void *offset, size_t count)');
  const syncfs = libc.func('int syncfs(int fd)');
  // Variadic in C, but integer arguments travel alike on the systems that we run on.
  const fcntl = libc.func('int fcntl(int fd, int command, void *lock)');
  const fadvise = libc.func(
    'int posix_fadvise64(int fd, int64_t offset, int64_t length, int advice)',
  );
  const fileRange = libc.func(
    'int sync_file_range(int fd, int64_t offset, int64_t length, unsigned int flags)',
  );
  // Variadic as well, and not in every libc under its own name.
  const syscall = libc.func(
    'int64_t syscall(int64_t number, int64_t fd, void *range, void *stat, int64_t flags)',
  );
  const preadv2 = libc.func(
    'int64_t preadv64v2(int fd, void *iov, int count, int64_t offset, int flags)',
  );
  const sendOffset = new BigInt64Array(1);
  const cacheRange = new BigUint64Array(2);
  const cacheStat = new BigUint64Array(5);
  const peeked = new Uint8Array(1);
  const peekVector = new BigUint64Array([koffi.address(peeked), 1n]);

  return {
    dup: (fd) => withErrno(koffi, dup(fd)),
    sendfile: (outFd, inFd, offset, count) => {
      sendOffset[0] = BigInt(offset);
      return withErrno(koffi, sendfile(outFd, inFd, sendOffset, count));
    },
    syncfs: (fd, done) => {
      // errno belongs to the pool's thread and is gone here: EIO stands for whatever it was.
      syncfs.async(fd, (error, result) =>
        done(error === null && result === 0 ? 0 : -constants.errno.EIO),
      );
    },
    lockFile: (fd) => {
      const lock = new Uint8Array(flockBytes);
      new Int16Array(lock.buffer)[0] = fWrlck;
      return withErrno(koffi, fcntl(fd, fOfdSetlk, lock));
    },
    cachedPages: (fd, offset, length) => {
      cacheRange[0] = BigInt(offset);
      cacheRange[1] = BigInt(length);
      const result = syscall(sysCachestat, fd, cacheRange, cacheStat, 0);
      return result < 0 ? -koffi.errno() : Number(cacheStat[0]);
    },
    peek: (fd, offset) => {
      // The vector names memory by its address alone: this keeps it.
      peeked[0] = 0;
      return withErrno(koffi, preadv2(fd, peekVector, 1, offset, rwfNowait));
    },
    stopReadAhead: (fd) => -fadvise(fd, 0, 0, posixFadvRandom),
    dropCache: (fd, offset, length) => -fadvise(fd, offset, length, posixFadvDontneed),
    // A hint: should the file be closed meanwhile, or another one have its number, no harm is done.
    startWriteBack: (fd, offset, length) =>
      fileRange.async(fd, offset, length, syncFileRangeWrite, () => {}),
  };
}

function withErrno(koffi: Koffi, result: number): number {
  return result < 0 ? -koffi.errno() : result;
}
