/**
 * A disk that does what another one does and writes down every change and flush, with the bytes: `JournalPlayer` makes
 * from it any state that a power cut could have left.
 *
 * A change is noted before it is made, the end of a flush before it is told: what a client saw acknowledged at journal
 * position J was flushed by entries before J.
 */
import type { Disk, FileStatus, FlushCallback } from '../../engine/ports.ts';
import { type FlushTarget, JournalWriter } from './journal.ts';

export class RecordingDisk implements Disk {
  readonly #disk: Disk;
  readonly #journal: JournalWriter;
  readonly #name: string;
  #flushes = 0;

  /**
   * @param name tells this disk's flushes from those of others that share the counter
   * @param path the journal's file; not on the recorded disk's directory
   */
  constructor(disk: Disk, name: string, path: string, counter: Int32Array) {
    this.#disk = disk;
    this.#name = name;
    this.#journal = new JournalWriter(path, counter);
  }

  get mayWait(): boolean {
    return this.#disk.mayWait;
  }

  set mayWait(mayWait: boolean) {
    this.#disk.mayWait = mayWait;
  }

  open(path: string, create: boolean): number {
    const fd = this.#disk.open(path, create);
    this.#journal.add({ op: 'open', fd, path, create });
    return fd;
  }

  close(fd: number): void {
    this.#journal.add({ op: 'close', fd });
    this.#disk.close(fd);
  }

  read(fd: number, buf: Uint8Array, offset: number, length: number, position: number): number {
    return this.#disk.read(fd, buf, offset, length, position);
  }

  write(fd: number, buf: Uint8Array, offset: number, length: number, position: number): void {
    this.#journal.add({ op: 'write', fd, position }, buf.subarray(offset, offset + length));
    this.#disk.write(fd, buf, offset, length, position);
  }

  writev(fd: number, views: readonly Uint8Array[], length: number, position: number): void {
    this.#journal.add({ op: 'write', fd, position }, Buffer.concat(views));
    this.#disk.writev(fd, views, length, position);
  }

  truncate(fd: number, size: number): void {
    this.#journal.add({ op: 'truncate', fd, size });
    this.#disk.truncate(fd, size);
  }

  size(fd: number): number {
    return this.#disk.size(fd);
  }

  flush(fd: number, done: FlushCallback): void {
    this.#disk.flush(fd, this.#flushing({ fd }, done));
  }

  flushSync(fd: number): void {
    const end = this.#flushing({ fd }, () => {});
    this.#disk.flushSync(fd);
    end(null);
  }

  flushDirectory(path: string, done: FlushCallback): void {
    this.#disk.flushDirectory(path, this.#flushing({ directory: path }, done));
  }

  flushDirectorySync(path: string): void {
    const end = this.#flushing({ directory: path }, () => {});
    this.#disk.flushDirectorySync(path);
    end(null);
  }

  watchFileSystem(path: string): void {
    this.#disk.watchFileSystem(path);
  }

  flushFileSystem(path: string, done: FlushCallback): boolean {
    return this.#disk.flushFileSystem(path, this.#flushing({ everything: true }, done));
  }

  #flushing(what: FlushTarget, done: FlushCallback): FlushCallback {
    this.#flushes += 1;
    const id = `${this.#name}-${this.#flushes}`;
    this.#journal.add({ op: 'flush', id, what });
    return (error) => {
      if (error === null) this.#journal.add({ op: 'flushed', id });
      done(error);
    };
  }

  startWriteBack(fd: number, position: number, length: number): void {
    this.#disk.startWriteBack(fd, position, length);
  }

  dropCache(fd: number, position: number, length: number): boolean {
    return this.#disk.dropCache(fd, position, length);
  }

  rename(from: string, to: string): void {
    this.#journal.add({ op: 'rename', from, to });
    this.#disk.rename(from, to);
  }

  unlink(path: string): void {
    this.#journal.add({ op: 'unlink', path });
    this.#disk.unlink(path);
  }

  mkdir(path: string): boolean {
    const isMade = this.#disk.mkdir(path);
    if (isMade) this.#journal.add({ op: 'mkdir', path });
    return isMade;
  }

  removeTree(path: string, done: FlushCallback): void {
    this.#journal.add({ op: 'unlink', path });
    this.#disk.removeTree(path, done);
  }

  list(path: string): string[] | null {
    return this.#disk.list(path);
  }

  status(path: string): FileStatus | null {
    return this.#disk.status(path);
  }

  readFile(path: string): Uint8Array | null {
    return this.#disk.readFile(path);
  }

  lock(path: string): string | null {
    return this.#disk.lock(path);
  }

  unlock(path: string): void {
    this.#disk.unlock(path);
  }

  writeFile(path: string, bytes: Uint8Array): void {
    const fd = this.open(path, true);
    this.truncate(fd, 0);
    this.write(fd, bytes, 0, bytes.length, 0);
    this.close(fd);
  }
}
