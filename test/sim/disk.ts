/**
 * A disk that forgets what was not flushed.
 *
 * Writes go to a page cache; a flush takes effect when `endFlushes` is called; `crash` keeps what flushes have made
 * durable and, of the rest, a seeded choice: whole changes, none, or some of their sectors or pages, in any
 * combination. A flush can be made to fail (its pages are clean afterwards and lost), the disk can fill up, writes can
 * fail, and with `ignoresFlushes` it lies, which the tests that use it must notice.
 */
import assert from 'node:assert/strict';
import {
  ColdRead,
  type Disk,
  DiskError,
  type FileStatus,
  type FlushCallback,
} from '../../engine/ports.ts';
import { SimPageCache } from './page_cache.ts';
import { SeededRandom } from './seeded_random.ts';
import { SimDirectory, type SimNode } from './sim_directory.ts';
import { SimFile } from './sim_file.ts';

interface WaitingFlush {
  /** Makes it durable, or loses it. */
  readonly end: (isGood: boolean) => void;
  readonly done: FlushCallback;
}

export interface SimDiskOptions {
  readonly seed: number;
  /** Whether there is a syncfs(2). */
  readonly hasSyncfs?: boolean;
  /** Mutation: flushes report success and do nothing. */
  readonly ignoresFlushes?: boolean;
}

export class SimDisk implements Disk {
  readonly #random: SeededRandom;
  readonly #options: SimDiskOptions;
  readonly #root = new SimDirectory();
  readonly #open = new Map<number, SimFile>();
  readonly #watched = new Set<string>();
  #nextFd = 100;
  #flushes: WaitingFlush[] = [];
  /** Bytes that all files together may take. */
  capacityBytes: number = Number.POSITIVE_INFINITY;
  /** The next flushes to end that fail. */
  failingFlushes = 0;
  /** Directories cannot be opened to be flushed, for want of descriptors. */
  hasNoDescriptors: boolean = false;
  /** Called by each flush that is waited for: lets time pass. */
  onFlushSync: () => void = () => {};
  /** Code of the error with which writes fail, or null. */
  writeError: string | null = null;
  /** All is in it until a test drops something. */
  readonly pageCache: SimPageCache = new SimPageCache((fd) => this.#file(fd), 1 << 20);
  mayWait: boolean = true;
  /** Wall clock, for the times of files. */
  nowMs: () => number = () => 0;
  locks: Set<string> = new Set<string>();
  /** How often each call was made. */
  readonly calls: Map<string, number> = new Map<string, number>();

  constructor(options: SimDiskOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
  }

  // What tests do to it.

  get waitingFlushes(): number {
    return this.#flushes.length;
  }

  get openFiles(): number {
    return this.#open.size;
  }

  /** Ends the flushes under way, those that their callbacks begin not included. */
  endFlushes(): void {
    const flushes = this.#flushes;
    this.#flushes = [];
    for (const { end, done } of flushes) {
      const isGood = this.failingFlushes === 0;
      if (!isGood) this.failingFlushes -= 1;
      if (!(isGood && this.#options.ignoresFlushes)) end(isGood);
      done(isGood ? null : injectedFlushFailure());
    }
  }

  /** The process dies; page cache and disk stay. */
  kill(): void {
    this.#flushes = [];
    this.#open.clear();
    this.#watched.clear();
    this.locks.clear();
  }

  /** The power goes. */
  crash(): void {
    this.kill();
    this.#root.crash(this.#random);
  }

  /** Bytes that all files together take. */
  get usedBytes(): number {
    let bytes = 0;
    for (const node of this.#root.nodes()) if (node instanceof SimFile) bytes += node.cache.size;
    return bytes;
  }

  /** The bytes of a file as the cache has them. */
  bytesOf(path: string): Uint8Array {
    const { cache } = this.#fileAt(path);
    return cache.slice(0, cache.size);
  }

  /** Changes bytes behind everybody's back, in cache and on the device. */
  corrupt(path: string, position: number, bytes: Uint8Array): void {
    const file = this.#fileAt(path);
    file.cache.write(position, bytes);
    file.durable.write(position, bytes);
  }

  // Disk.

  open(path: string, create: boolean): number {
    this.#count('open');
    let node = this.#find(path);
    if (node === null) {
      if (!create) throw new DiskError('ENOENT', `no such file: ${path}`);
      if (this.#room() <= 0) throw new DiskError('ENOSPC', 'disk full');
      node = new SimFile();
      this.#parent(path).add(nameIn(path), node);
    }
    assert(node instanceof SimFile, `${path} is a directory`);
    this.#nextFd += 1;
    this.#open.set(this.#nextFd, node);
    return this.#nextFd;
  }

  close(fd: number): void {
    assert(this.#open.delete(fd), `descriptor ${fd} is not open`);
  }

  read(fd: number, buf: Uint8Array, offset: number, length: number, position: number): number {
    this.#count('read');
    if (!this.mayWait && !this.pageCache.isCached(fd, position, length))
      throw new ColdRead(fd, position, length);
    const bytes = this.#file(fd).cache.slice(position, position + length);
    buf.set(bytes, offset);
    return bytes.length;
  }

  write(fd: number, buf: Uint8Array, offset: number, length: number, position: number): void {
    this.#count('write');
    if (this.writeError !== null) throw new DiskError(this.writeError, 'injected');
    const file = this.#file(fd);
    const grows = Math.max(0, position + length - file.cache.size);
    const room = this.#room();
    const taken = grows > room ? Math.max(0, length - (grows - room)) : length;
    // Not `slice`: a Buffer's is a view.
    const bytes = new Uint8Array(buf.subarray(offset, offset + taken));
    file.modifiedMs = this.nowMs();
    if (taken > 0) file.change({ type: 'write', position, bytes });
    if (taken < length) throw new DiskError('ENOSPC', 'disk full');
  }

  writev(fd: number, views: readonly Uint8Array[], length: number, position: number): void {
    this.#count('writev');
    const all = Buffer.concat(views);
    assert.equal(all.length, length);
    this.write(fd, all, 0, length, position);
  }

  truncate(fd: number, size: number): void {
    this.#count('truncate');
    this.#file(fd).change({ type: 'truncate', size });
  }

  size(fd: number): number {
    return this.#file(fd).cache.size;
  }

  flush(fd: number, done: FlushCallback): void {
    this.#count('flush');
    this.#flushes.push({ end: this.#flushOf([this.#file(fd)]), done });
  }

  flushSync(fd: number): void {
    this.#flushNow([this.#file(fd)]);
  }

  flushDirectory(path: string, done: FlushCallback): void {
    this.#count('flushDirectory');
    if (this.hasNoDescriptors) {
      const error = new DiskError('EMFILE', 'injected: too many open files');
      this.#flushes.push({ end: () => {}, done: (failure) => done(failure ?? error) });
      return;
    }
    this.#flushes.push({ end: this.#flushOf([this.#directory(path)]), done });
  }

  flushDirectorySync(path: string): void {
    this.#flushNow([this.#directory(path)]);
  }

  watchFileSystem(path: string): void {
    this.#watched.add(path);
  }

  flushFileSystem(path: string, done: FlushCallback): boolean {
    if (this.#options.hasSyncfs === false || !this.#watched.has(path)) return false;
    this.#count('flushFileSystem');
    const open = new Set<SimNode>(this.#open.values());
    for (const node of this.#root.nodes()) open.add(node);
    this.#flushes.push({ end: this.#flushOf([...open]), done });
    return true;
  }

  startWriteBack(): void {
    this.#count('startWriteBack');
  }

  dropCache(fd: number, position: number): boolean {
    this.#count('dropCache');
    this.#file(fd).dropCache(position);
    return true;
  }

  rename(from: string, to: string): void {
    const node = this.#find(from);
    if (node === null) throw new DiskError('ENOENT', `no such file: ${from}`);
    const parent = this.#parent(from);
    assert.equal(parent, this.#parent(to), 'the simulated disk renames within a directory');
    parent.rename(nameIn(from), nameIn(to), node);
  }

  unlink(path: string): void {
    if (this.#find(path) !== null) this.#parent(path).remove(nameIn(path));
  }

  mkdir(path: string): boolean {
    if (this.#find(path) !== null) return false;
    this.#parent(path).add(nameIn(path), new SimDirectory());
    return true;
  }

  removeTree(path: string, done: (error: DiskError | null) => void): void {
    this.unlink(path);
    done(null);
  }

  list(path: string): string[] | null {
    this.#count('list');
    const node = this.#find(path);
    return node instanceof SimDirectory ? [...node.names.keys()] : null;
  }

  status(path: string): FileStatus | null {
    this.#count('status');
    const node = this.#find(path);
    if (node === null) return null;
    if (node instanceof SimDirectory) return { size: 0, isDirectory: true, modifiedMs: 0 };
    return { size: node.cache.size, isDirectory: false, modifiedMs: node.modifiedMs };
  }

  readFile(path: string): Uint8Array | null {
    this.#count('readFile');
    return this.#find(path) instanceof SimFile ? this.bytesOf(path) : null;
  }

  writeFile(path: string, bytes: Uint8Array): void {
    const fd = this.open(path, true);
    this.truncate(fd, 0);
    this.write(fd, bytes, 0, bytes.length, 0);
    this.close(fd);
  }

  lock(path: string): string | null {
    if (this.locks.has(path)) return '1';
    this.locks.add(path);
    return null;
  }

  unlock(path: string): void {
    this.locks.delete(path);
  }

  #count(call: string): void {
    this.calls.set(call, (this.calls.get(call) ?? 0) + 1);
  }

  #room(): number {
    const { capacityBytes } = this;
    return capacityBytes === Number.POSITIVE_INFINITY
      ? capacityBytes
      : capacityBytes - this.usedBytes;
  }

  #flushOf(nodes: readonly SimNode[]): (isGood: boolean) => void {
    const covered = nodes.map((node) =>
      node instanceof SimFile
        ? { node, changes: [...node.pending] }
        : { node, changes: node.beginFlush() },
    );
    return (isGood) => {
      for (const one of covered) {
        if (one.node instanceof SimDirectory) {
          if (isGood) one.node.endFlush(one.changes as ReturnType<SimDirectory['beginFlush']>);
          continue;
        }
        const changes = one.changes as SimFile['pending'];
        if (isGood) one.node.makeDurable(changes);
        else one.node.loseChanges(changes, this.#random);
      }
    };
  }

  #flushNow(nodes: readonly SimNode[]): void {
    this.#count('flushSync');
    this.onFlushSync();
    const isGood = this.failingFlushes === 0;
    if (!isGood) this.failingFlushes -= 1;
    if (!(isGood && this.#options.ignoresFlushes)) this.#flushOf(nodes)(isGood);
    if (!isGood) throw injectedFlushFailure();
  }

  #file(fd: number): SimFile {
    const file = this.#open.get(fd);
    assert(file !== undefined, `descriptor ${fd} is not open`);
    return file;
  }

  #fileAt(path: string): SimFile {
    const node = this.#find(path);
    assert(node instanceof SimFile, `${path} is no file`);
    return node;
  }

  #directory(path: string): SimDirectory {
    const node = this.#find(path);
    if (!(node instanceof SimDirectory))
      throw new DiskError('ENOENT', `no such directory: ${path}`);
    return node;
  }

  #parent(path: string): SimDirectory {
    return this.#directory(path.slice(0, path.lastIndexOf('/')));
  }

  #find(path: string): SimNode | null {
    let node: SimNode = this.#root;
    for (const name of path.split('/')) {
      if (name === '') continue;
      if (!(node instanceof SimDirectory)) return null;
      const next = node.names.get(name);
      if (next === undefined) return null;
      node = next;
    }
    return node;
  }
}

function injectedFlushFailure(): DiskError {
  return new DiskError('EIO', 'injected: the flush failed', undefined, true);
}

function nameIn(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
