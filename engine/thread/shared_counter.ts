/** A number that threads add to, in shared memory: a sum that no thread of them owns. */
export class SharedCounter {
  readonly #cell: BigInt64Array;

  /** @param memory from `createCounter` */
  constructor(memory: SharedArrayBuffer) {
    this.#cell = new BigInt64Array(memory);
  }

  get total(): number {
    return Number(Atomics.load(this.#cell, 0));
  }

  /** @param count a whole number */
  add(count: number): void {
    Atomics.add(this.#cell, 0, BigInt(count));
  }
}

export function createCounter(): SharedArrayBuffer {
  return new SharedArrayBuffer(8);
}
