/**
 * Work whose speed depends on the machine and on the runtime, never on our code: one kind for code that the JIT
 * compiles, one for native code that streams through memory, one for threads that wake each other, and for the disk one
 * whose flushes are small and one whose flushes are large.
 */
import {
  closeSync,
  fdatasyncSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { crc32 } from 'node:zlib';
import { consume } from './benchmark.ts';

export type CalibrationName = 'script' | 'native' | 'threads' | 'disk' | 'large flushes';

const scriptBytes = new Uint8Array(64 * 1024).map((_, k) => (k * k) >>> 3);
const nativeBytes = new Uint8Array(256 * 1024).map((_, k) => (k * k) >>> 5);
const diskPage = new Uint8Array(4096).fill(7);
const diskPages = new Uint8Array(1_048_576).fill(7);

/** How long a kind of work is repeated, milliseconds. */
const calibrationMs: Record<CalibrationName, number> = {
  script: 15,
  native: 15,
  threads: 15,
  disk: 60,
  'large flushes': 60,
};
const repetitionsMin = 10;

/** Branches and arithmetic over bytes, as decoding is. */
function runScript(): void {
  let hash = 0x811c9dc5;
  let run = 0;
  for (let k = 0; k < scriptBytes.length; k += 1) {
    const byte = scriptBytes[k] as number;
    if (byte > 0x7f) run += byte & 0x7f;
    else hash = Math.imul(hash ^ (byte + run), 0x01000193);
  }
  consume(hash);
}

function runNative(): void {
  consume(crc32(nativeBytes));
}

export class Calibration {
  readonly #dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
  readonly #fd = openSync(join(this.#dir, 'calibration'), 'w');
  readonly #turns = new Int32Array(new SharedArrayBuffer(8));
  #position = 0;
  readonly #works: Readonly<Record<CalibrationName, () => void>> = {
    script: runScript,
    native: runNative,
    threads: () => this.#runThreads(),
    disk: () => this.#runDisk(diskPage),
    'large flushes': () => this.#runDisk(diskPages),
  };

  constructor() {
    const echo = new URL('./calibration_echo.ts', import.meta.url);
    new Worker(echo, { workerData: this.#turns }).unref();
  }

  /** Nanoseconds of one repetition, now. */
  measure(name: CalibrationName): number {
    const work = this.#works[name];
    const samples: number[] = [];
    const end = performance.now() + calibrationMs[name];
    for (let now = performance.now(); now < end || samples.length < repetitionsMin; ) {
      work();
      const after = performance.now();
      samples.push(after - now);
      now = after;
    }
    ftruncateSync(this.#fd);
    this.#position = 0;
    return undisturbed(samples.sort((a, b) => a - b)) * 1e6;
  }

  close(): void {
    this.#turn(-1);
    closeSync(this.#fd);
    rmSync(this.#dir, { recursive: true });
  }

  /** An append and its flush. */
  #runDisk(bytes: Uint8Array): void {
    writeSync(this.#fd, bytes, 0, bytes.length, this.#position);
    this.#position += bytes.length;
    fdatasyncSync(this.#fd);
  }

  /** The other thread is woken, and wakes this one. */
  #runThreads(): void {
    const before = Atomics.load(this.#turns, 1);
    this.#turn(before + 1);
    Atomics.wait(this.#turns, 1, before);
  }

  #turn(turn: number): void {
    Atomics.store(this.#turns, 0, turn);
    Atomics.notify(this.#turns, 0);
  }
}

/**
 * What a sample takes when nothing else gets in the way: the lower decile, since others on the machine only make a
 * sample longer, and the smallest of all is a matter of luck.
 */
export function undisturbed(sorted: readonly number[]): number {
  return sorted[Math.floor(sorted.length / 10)] as number;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle] as number;
  return ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}
