/**
 * A page cache whose contents and device are the test's: all is cached until `drop`, and then what fills have brought
 * in, which end when the test says so.
 */
import { fstatSync } from 'node:fs';
import type { PageCache } from '../../engine/ports.ts';

const pageBytes = 4096;

export interface SimFill {
  readonly fd: number;
  readonly position: number;
  readonly length: number;
  end(): void;
}

export class SimPageCache implements PageCache {
  readonly fillBytesMax: number;
  readonly #fileOf: (fd: number) => unknown;
  /** Numbers of cached pages by file. Of other files everything is cached, or nothing. */
  #pages = new Map<unknown, Set<number>>();
  #areOthersCached: boolean = true;
  /** Under way, oldest first. */
  readonly fills: SimFill[] = [];
  /** All that were ever begun. */
  fillsTotal = 0;
  /** Fills end by themselves, in a later turn. */
  isFast: boolean = false;
  /** A device that fails: fills end and bring nothing. */
  isBroken: boolean = false;

  /** @param fileOf tells files apart whatever descriptor they are open under */
  constructor(
    fileOf: (fd: number) => unknown = (fd) => fstatSync(fd).ino,
    fillBytesMax: number = 64 * 1024,
  ) {
    this.#fileOf = fileOf;
    this.fillBytesMax = fillBytesMax;
  }

  /** Nothing is cached any more. */
  drop(): void {
    this.#pages = new Map();
    this.#areOthersCached = false;
  }

  /** Nothing of one file is. */
  dropFile(file: unknown): void {
    this.#pages.set(file, new Set());
  }

  isCached(fd: number, position: number, length: number): boolean {
    const cached = this.#pages.get(this.#fileOf(fd));
    if (cached === undefined) return this.#areOthersCached;
    for (const page of pagesOf(position, length)) if (!cached.has(page)) return false;
    return true;
  }

  fill(fd: number, position: number, length: number, done: () => void): void {
    this.fillsTotal += 1;
    const file = this.#fileOf(fd);
    const fill: SimFill = {
      fd,
      position,
      length,
      end: () => {
        this.fills.splice(this.fills.indexOf(fill), 1);
        if (!this.isBroken) this.#add(file, position, length);
        done();
      },
    };
    this.fills.push(fill);
    if (this.isFast) setImmediate(() => fill.end());
  }

  /** Ends the fills under way, not those that begin with that. */
  endFills(): void {
    for (const fill of [...this.fills]) fill.end();
  }

  deviceOf(_fd: number): number {
    return 1;
  }

  #add(file: unknown, position: number, length: number): void {
    if (this.#areOthersCached && !this.#pages.has(file)) return;
    const cached = this.#pages.get(file) ?? new Set();
    this.#pages.set(file, cached);
    for (const page of pagesOf(position, length)) cached.add(page);
  }
}

function* pagesOf(position: number, length: number): Generator<number> {
  const last = Math.floor((position + length - 1) / pageBytes);
  for (let page = Math.floor(position / pageBytes); page <= last; page += 1) yield page;
}
