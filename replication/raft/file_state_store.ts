/** The vote file on a real disk: `quorum-state` in the directory of the metadata log, as Kafka keeps it. */
import { join } from 'node:path';
import type { Disk, DiskError } from '../../engine/ports.ts';
import type { QuorumStateStore } from './quorum_state.ts';

export class FileStateStore implements QuorumStateStore {
  readonly #disk: Disk;
  readonly #dir: string;

  /** @param dir the directory of the metadata log, which must exist and whose own name must be flushed already */
  constructor(disk: Disk, dir: string) {
    this.#disk = disk;
    this.#dir = dir;
  }

  /** @throws DiskError */
  load(): string | null {
    const bytes = this.#disk.readFile(join(this.#dir, 'quorum-state'));
    return bytes === null ? null : Buffer.from(bytes).toString('utf8');
  }

  /** Writes a new file, flushes it, renames it over the old one and flushes the directory. Rejects with a DiskError. */
  async save(text: string): Promise<void> {
    const disk = this.#disk;
    const path = join(this.#dir, 'quorum-state');
    const temporary = `${path}.tmp`;
    disk.writeFile(temporary, Buffer.from(text));
    const fd = disk.open(temporary, false);
    try {
      await flushed((done) => disk.flush(fd, done));
    } finally {
      disk.close(fd);
    }
    disk.rename(temporary, path);
    await flushed((done) => disk.flushDirectory(this.#dir, done));
  }
}

function flushed(start: (done: (error: DiskError | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    start((error) => {
      if (error === null) resolve();
      else reject(error);
    });
  });
}
