/**
 * The latest offset of each key in the part of a log that is being cleaned: a fixed-size table with open addressing in
 * one typed array, as Kafka's SkimpyOffsetMap. 24 bytes a slot: a 128-bit hash of the key and the offset.
 *
 * The table is far larger than the CPU's caches, so that nearly every look-up waits for memory. Keys are looked up in
 * batches: `stage` hashes each, `bring` reads all their slots in one loop, where the waits overlap, and `put` and `get`
 * find them in the cache. One after the other they took most of a cleaning's time.
 *
 * Thread: the cleaner's. Bounded: when it is full, `put` says so, and the log is cleaned up to there.
 */
import assert from 'node:assert/strict';
import { hashKey, hashWords } from './key_hash.ts';

export const offsetMapSlotBytes = 24;
/** Keys that can be staged at a time: their slots take a quarter of a core's first cache. */
export const stagedKeysMax = 128;
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
  readonly #hashes: Int32Array = new Int32Array(stagedKeysMax * hashWords);
  /** Where the search for each staged key begins; behind them a number of no meaning, see `bring`. */
  readonly #first: Int32Array = new Int32Array(stagedKeysMax + 1);
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

  /** Takes down a key as number `at`, below `stagedKeysMax`, of those that are looked up next. */
  stage(at: number, buf: Uint8Array, keyStart: number, keyLength: number): void {
    hashKey(buf, keyStart, keyLength, this.#seed, this.#hashes, at * hashWords);
    const hash = this.#hashes[at * hashWords] as number;
    // A multiplication in place of a division, which costs as much as the hash.
    this.#first[at] = Math.floor(((hash >>> 0) / twoTo32) * this.#slots);
  }

  /** Reads the slots of the first `count` staged keys. */
  bring(count: number): void {
    const words = this.#words;
    const first = this.#first;
    let brought = 0;
    for (let at = 0; at < count; at += 1) {
      const slot = (first[at] as number) * slotWords;
      // A slot may begin in one line of the cache and end in the next.
      brought ^= (words[slot] as number) ^ (words[slot + lowWord] as number);
    }
    // It must go somewhere, or the compiler would leave out the reading.
    first[stagedKeysMax] = brought;
  }

  /**
   * Notes that the staged key has a record at `offset`, which is beyond all offsets put in before.
   * @returns false when the key is new and there is no room for it
   */
  put(at: number, offset: number): boolean {
    const words = this.#words;
    const slot = this.#find(at);
    const isFree = words[slot + highWord] === 0 && words[slot + lowWord] === 0;
    if (isFree) {
      if (this.#size >= this.#entriesMax) return false;
      this.#size += 1;
      const hashes = this.#hashes;
      const from = at * hashWords;
      words[slot] = hashes[from] as number;
      words[slot + 1] = hashes[from + 1] as number;
      words[slot + 2] = hashes[from + 2] as number;
      words[slot + 3] = hashes[from + 3] as number;
    }
    const stored = offset + 1;
    words[slot + highWord] = Math.floor(stored / twoTo32);
    words[slot + lowWord] = stored | 0;
    return true;
  }

  /** The latest offset of the staged key, or -1. */
  get(at: number): number {
    const words = this.#words;
    const slot = this.#find(at);
    const high = words[slot + highWord] as number;
    return high * twoTo32 + ((words[slot + lowWord] as number) >>> 0) - 1;
  }

  /** Where the key's slot begins, or the free slot that it would get. */
  #find(at: number): number {
    const words = this.#words;
    const hashes = this.#hashes;
    const from = at * hashWords;
    const h0 = hashes[from] as number;
    const h1 = hashes[from + 1] as number;
    const h2 = hashes[from + 2] as number;
    const h3 = hashes[from + 3] as number;
    let number = this.#first[at] as number;
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
