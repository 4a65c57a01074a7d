/**
 * Plays a recording disk's journal up to any entry, and makes directories of what a power cut at that point could have
 * left: all that flushes had covered, and of the rest a seeded choice of changes, whole, in part, or not at all.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { type JournalEntry, type NumberedEntry, readJournals } from './journal.ts';
import { SeededRandom } from './seeded_random.ts';
import { SimDirectory, type SimNode } from './sim_directory.ts';
import { SimFile } from './sim_file.ts';

/** Tells whether the machine was started anew, which after a power cut it was. */
const bootFile = '.millrace_boot';

export class JournalPlayer {
  readonly #entries: readonly NumberedEntry[];
  readonly #root: string;
  readonly #names = new SimDirectory();
  readonly #open = new Map<number, SimFile>();
  readonly #flushes = new Map<string, () => void>();
  #next = 0;

  /**
   * @param journals the files that recording disks have written, from when `root` was empty or not there
   * @param root path of the data directory as it was recorded
   */
  constructor(journals: readonly string[], root: string) {
    this.#entries = readJournals(journals);
    this.#root = root;
    this.#makeDirectories(root);
  }

  /** Number after the last entry's. */
  get end(): number {
    return (this.#entries.at(-1)?.number ?? -1) + 1;
  }

  /** Plays the entries with numbers below `cut`. Only forward. */
  advanceTo(cut: number): void {
    for (;;) {
      const next = this.#entries[this.#next];
      if (next === undefined || next.number >= cut) return;
      this.#play(next.entry, next.data);
      this.#next += 1;
    }
  }

  /** Makes `target` (which must not exist) what the data directory could be if the power went now. */
  materialise(seed: number, target: string): void {
    const directory = this.#find(this.#root);
    assert(directory instanceof SimDirectory);
    this.#write(directory, target, new SeededRandom(seed));
    fs.rmSync(`${target}/${bootFile}`, { force: true });
  }

  #write(directory: SimDirectory, target: string, random: SeededRandom): void {
    fs.mkdirSync(target, { recursive: true });
    for (const [name, node] of directory.afterCrash(random)) {
      const path = `${target}/${name}`;
      if (node instanceof SimDirectory) {
        this.#write(node, path, random);
        continue;
      }
      const bytes = node.afterCrash(random);
      fs.writeFileSync(path, bytes.slice(0, bytes.size));
    }
  }

  #play(entry: JournalEntry, data: Uint8Array): void {
    switch (entry.op) {
      case 'open':
        this.#open.set(entry.fd, this.#openFile(entry.path));
        return;
      case 'close':
        this.#open.delete(entry.fd);
        return;
      case 'write':
        this.#file(entry.fd).change({ type: 'write', position: entry.position, bytes: data });
        return;
      case 'truncate':
        this.#file(entry.fd).change({ type: 'truncate', size: entry.size });
        return;
      case 'rename':
        this.#rename(entry.from, entry.to);
        return;
      case 'unlink':
        if (this.#find(entry.path) !== null) this.#parent(entry.path).remove(nameIn(entry.path));
        return;
      case 'mkdir':
        this.#parent(entry.path).add(nameIn(entry.path), new SimDirectory());
        return;
      case 'flush':
        this.#flushes.set(entry.id, this.#covered(entry.what));
        return;
      case 'flushed':
        this.#flushes.get(entry.id)?.();
        this.#flushes.delete(entry.id);
    }
  }

  /** What the flush that begins now makes durable when it ends. */
  #covered(what: Extract<JournalEntry, { op: 'flush' }>['what']): () => void {
    let nodes: Iterable<SimNode>;
    if ('fd' in what) nodes = [this.#file(what.fd)];
    else if ('directory' in what) nodes = [this.#directory(what.directory)];
    else nodes = new Set([...this.#names.nodes(), ...this.#open.values()]);
    const ends: Array<() => void> = [];
    for (const node of nodes) {
      if (node instanceof SimFile) {
        const changes = [...node.pending];
        if (changes.length > 0) ends.push(() => node.makeDurable(changes));
      } else {
        const changes = node.beginFlush();
        if (changes.length > 0) ends.push(() => node.endFlush(changes));
      }
    }
    return () => {
      for (const end of ends) end();
    };
  }

  #openFile(path: string): SimFile {
    let node = this.#find(path);
    if (node === null) {
      node = new SimFile();
      this.#parent(path).add(nameIn(path), node);
    }
    assert(node instanceof SimFile, `${path} is a directory`);
    return node;
  }

  #rename(from: string, to: string): void {
    const node = this.#find(from);
    assert(node !== null, `${from} is not there to be renamed`);
    assert.equal(this.#parent(from), this.#parent(to));
    this.#parent(from).rename(nameIn(from), nameIn(to), node);
  }

  #file(fd: number): SimFile {
    const file = this.#open.get(fd);
    assert(file !== undefined, `descriptor ${fd} is not open`);
    return file;
  }

  #directory(path: string): SimDirectory {
    const node = this.#find(path);
    assert(node instanceof SimDirectory, `${path} is no directory`);
    return node;
  }

  #parent(path: string): SimDirectory {
    return this.#directory(path.slice(0, path.lastIndexOf('/')));
  }

  /** The data directory's own path is taken to have been there for ever. */
  #makeDirectories(path: string): void {
    let directory = this.#names;
    for (const name of path.split('/')) {
      if (name === '') continue;
      const next = new SimDirectory();
      directory.add(name, next);
      directory.endFlush(directory.beginFlush());
      directory = next;
    }
  }

  #find(path: string): SimNode | null {
    let node: SimNode = this.#names;
    for (const name of path.split('/')) {
      if (name === '') continue;
      const next: SimNode | undefined =
        node instanceof SimDirectory ? node.names.get(name) : undefined;
      if (next === undefined) return null;
      node = next;
    }
    return node;
  }
}

function nameIn(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
