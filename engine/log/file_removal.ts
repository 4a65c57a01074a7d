/**
 * Removes files off the thread and one after the other: to free a large file takes the kernel a while, and thousands at
 * once would take all of libuv's threads from the flushes.
 *
 * Thread: the shard's own. Memory: what waits. Durability: none; what was not removed goes at the next start.
 */
import type { Disk, DiskError } from '../ports.ts';

interface Doomed {
  /** Asked for when its turn has come: its directory may have another name by then, and its name another owner. */
  readonly path: () => string;
  readonly onFailed: (error: DiskError, path: string) => void;
}

export class FileRemoval {
  readonly #disk: Disk;
  #doomed: Doomed[] = [];
  /** Those before it are gone. */
  #next = 0;
  #isRemoving: boolean = false;

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  /** Removes the file when those before it are gone. */
  remove(path: () => string, onFailed: Doomed['onFailed'] = () => {}): void {
    this.#doomed.push({ path, onFailed });
    if (!this.#isRemoving) this.#removeNext();
  }

  #removeNext(): void {
    const doomed = this.#doomed[this.#next];
    this.#isRemoving = doomed !== undefined;
    if (doomed === undefined) {
      this.#doomed = [];
      this.#next = 0;
      return;
    }
    this.#next += 1;
    const path = doomed.path();
    this.#disk.removeTree(path, (error) => {
      if (error !== null) doomed.onFailed(error, path);
      this.#removeNext();
    });
  }
}
