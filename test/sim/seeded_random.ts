/** A small deterministic generator (splitmix32). Streams of different seeds are independent for our purposes. */
import type { Random } from '../../engine/ports.ts';

export class SeededRandom implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
    this.below(2);
  }

  next(): number {
    return this.#uint32() / 0x1_0000_0000;
  }

  /** An integer from 0 up to, not including, `bound`. */
  below(bound: number): number {
    return this.#uint32() % bound;
  }

  /** True with the given probability. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  bytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length; at += 1) bytes[at] = this.below(256);
    return bytes;
  }

  #uint32(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  }
}
