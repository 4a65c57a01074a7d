/**
 * The latest offset of each key in the part of a log that is being cleaned: a fixed-size table with open addressing in
 * one typed array, as Kafka's SkimpyOffsetMap. 24 bytes a slot: a 128-bit hash of the key and the offset.
 *
 * Thread: the cleaner's. Bounded: when it is full, `put` says so, and the log is cleaned up to there.
 */
import assert from 'node:assert/strict';
import { hashKey, keyHash } from './key_hash.ts';

export const offsetMapSlotBytes = 24;
const slotWords = 6;
/** Words of a slot: hash 0 to 3, then the offset plus one in two words; both 0 in a slot that is free. */
const highWord = 4;
const lowWord = 5;
const twoTo32 = 0x1_0000_0000;

export class OffsetMap {
  readonly #words: Int32Array;
  readonly #slots: number;
  readonly #entriesMax: number;
  readonly #seed: number;
  #size = 0;
  /** Up to and with it, every record of the part has been put in. */
  latestOffset = -1;

  /**
   * @param slots rounded down from the memory there is, at least 2
   * @param loadFactor share of the slots that are filled at most
   * @param seed of the hash: any 32-bit number, another one for each map
   */
  constructor(slots: number, loadFactor: number, seed: number) {
    assert(slots >= 2, `${slots} slots`);
    this.#words = new Int32Array(slots * slotWords);
    this.#slots = slots;
    // One slot stays free, so that every search ends.
    this.#entriesMax = Math.max(1, Math.min(slots - 1, Math.floor(slots * loadFactor)));
    this.#seed = seed | 0;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Notes that the key has a record at `offset`, which is beyond all offsets put in before.
   * @returns false when the key is new and there is no room for it
   */
  put(buf: Uint8Array, keyStart: number, keyLength: number, offset: number): boolean {
    const words = this.#words;
    const slot = this.#find(buf, keyStart, keyLength);
    const isFree = words[slot + highWord] === 0 && words[slot + lowWord] === 0;
    if (isFree) {
      if (this.#size >= this.#entriesMax) return false;
      this.#size += 1;
      words[slot] = keyHash[0] as number;
      words[slot + 1] = keyHash[1] as number;
      words[slot + 2] = keyHash[2] as number;
      words[slot + 3] = keyHash[3] as number;
    }
    const stored = offset + 1;
    words[slot + highWord] = Math.floor(stored / twoTo32);
    words[slot + lowWord] = stored | 0;
    return true;
  }

  /** The latest offset of the key, or -1. */
  get(buf: Uint8Array, keyStart: number, keyLength: number): number {
    const words = this.#words;
    const slot = this.#find(buf, keyStart, keyLength);
    const high = words[slot + highWord] as number;
    return high * twoTo32 + ((words[slot + lowWord] as number) >>> 0) - 1;
  }

  /** Where the key's slot begins, or the free slot that it would get. */
  #find(buf: Uint8Array, keyStart: number, keyLength: number): number {
    hashKey(buf, keyStart, keyLength, this.#seed);
    const words = this.#words;
    const h0 = keyHash[0] as number;
    const h1 = keyHash[1] as number;
    const h2 = keyHash[2] as number;
    const h3 = keyHash[3] as number;
    // A multiplication in place of a division, which costs as much as the hash.
    let number = Math.floor(((h0 >>> 0) / twoTo32) * this.#slots);
    for (;;) {
      const slot = number * slotWords;
      if (
        words[slot] === h0 &&
        words[slot + 1] === h1 &&
        words[slot + 2] === h2 &&
        words[slot + 3] === h3
      )
        if (words[slot + highWord] !== 0 || words[slot + lowWord] !== 0) return slot;
      if (words[slot + highWord] === 0 && words[slot + lowWord] === 0) return slot;
      number += 1;
      if (number === this.#slots) number = 0;
    }
  }
}
