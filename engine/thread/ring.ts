/**
 * A ring of fixed-size descriptors from one thread to one other, in shared memory: what threads say to each other on
 * the data path. Payload never goes through it, only where it lies.
 *
 * Thread: `RingWriter` on the one that fills it, `RingReader` on the one that empties it; either may be looked at from
 * one thread at a time only. Memory: made by whoever starts the threads, shared by both; nobody frees a slot but the
 * reader. Durability: none. A full ring refuses (`claim` says -1): nothing is dropped and nothing queues up here.
 *
 * The indexes run freely over 32 bits. A slot is written with plain stores, and the sequentially consistent store of
 * the index that follows makes it whole for the other side.
 *
 * Invariant: 0 <= tail - head <= slots, modulo 2^32; the reader alone moves head, the writer alone moves tail.
 */
import assert from 'node:assert/strict';

/** The shared part. Structured-cloneable: the clone is the same ring. */
export interface RingMemory {
  readonly buffer: SharedArrayBuffer;
  /** A power of two. */
  readonly slots: number;
  /** Words of 8 bytes in a slot. */
  readonly words: number;
}

/** Each index has a cache line of its own, so that the two threads do not take turns at one. */
const headIndex = 0;
const tailIndex = 16;
const waitingIndex = 32;
const controlBytes = 192;
const wordBytes = 8;

/** Memory for a ring. Pages that are never used cost nothing. */
export function createRing(slots: number, words: number): RingMemory {
  assert(slots >= 2 && Number.isInteger(Math.log2(slots)), `a ring of ${slots} slots`);
  assert(words >= 1, `a ring with slots of ${words} words`);
  const buffer = new SharedArrayBuffer(controlBytes + slots * words * wordBytes);
  return { buffer, slots, words };
}

/**
 * The words of a ring's slots, as numbers and, over the same memory, as 64-bit integers and halves of them. A slot is
 * named by the index of its first word; the halves begin at twice that index.
 */
export interface Words {
  readonly numbers: Float64Array;
  readonly longs: BigInt64Array;
  readonly halves: Int32Array;
}

export function wordsOver(buffer: ArrayBufferLike, byteOffset: number, count: number): Words {
  return {
    numbers: new Float64Array(buffer, byteOffset, count),
    longs: new BigInt64Array(buffer, byteOffset, count),
    halves: new Int32Array(buffer, byteOffset, count * 2),
  };
}

export class RingWriter {
  readonly words: Words;
  readonly slots: number;
  readonly slotWords: number;
  readonly #control: Int32Array;
  /** The reader's index as last seen: it is asked again only when the ring seems full. */
  #head: number;
  #tail: number;

  constructor(memory: RingMemory) {
    this.#control = new Int32Array(memory.buffer, 0, controlBytes / 4);
    this.words = wordsOver(memory.buffer, controlBytes, memory.slots * memory.words);
    this.slots = memory.slots;
    this.slotWords = memory.words;
    this.#head = Atomics.load(this.#control, headIndex);
    this.#tail = Atomics.load(this.#control, tailIndex);
  }

  /** Slots that are free now; the reader may free more at any moment. */
  get room(): number {
    this.#head = Atomics.load(this.#control, headIndex);
    return this.slots - ((this.#tail - this.#head) | 0);
  }

  /** The first word of the next slot, which `publish` hands over once it is filled in; -1 when the ring is full. */
  claim(): number {
    if (((this.#tail - this.#head) | 0) === this.slots && this.room === 0) return -1;
    return (this.#tail & (this.slots - 1)) * this.slotWords;
  }

  /** Hands over the slot that was claimed. */
  publish(): void {
    this.#tail = (this.#tail + 1) | 0;
    Atomics.store(this.#control, tailIndex, this.#tail);
  }

  /**
   * Asks the reader to say so (`RingReader.takeWaiting`) when it has made room. Returns true when there is room by now,
   * and then nothing was asked for.
   */
  waitForRoom(): boolean {
    Atomics.store(this.#control, waitingIndex, 1);
    // The reader may have made room just before it could see the question.
    if (this.room === 0) return false;
    Atomics.store(this.#control, waitingIndex, 0);
    return true;
  }
}

export class RingReader {
  readonly words: Words;
  readonly slots: number;
  readonly slotWords: number;
  readonly #control: Int32Array;
  #head: number;
  /** The writer's index as last seen. */
  #tail: number;

  constructor(memory: RingMemory) {
    this.#control = new Int32Array(memory.buffer, 0, controlBytes / 4);
    this.words = wordsOver(memory.buffer, controlBytes, memory.slots * memory.words);
    this.slots = memory.slots;
    this.slotWords = memory.words;
    this.#head = Atomics.load(this.#control, headIndex);
    this.#tail = this.#head;
  }

  /** The first word of the oldest slot, which stays until `advance`; -1 when the ring is empty. */
  peek(): number {
    if (this.#tail === this.#head) {
      this.#tail = Atomics.load(this.#control, tailIndex);
      if (this.#tail === this.#head) return -1;
    }
    return (this.#head & (this.slots - 1)) * this.slotWords;
  }

  /** Gives the slot that `peek` showed back to the writer. */
  advance(): void {
    this.#head = (this.#head + 1) | 0;
    Atomics.store(this.#control, headIndex, this.#head);
  }

  /** Whether the writer waits for room; call it after `advance`, and wake the writer if so. */
  takeWaiting(): boolean {
    if (Atomics.load(this.#control, waitingIndex) === 0) return false;
    return Atomics.exchange(this.#control, waitingIndex, 0) === 1;
  }
}
