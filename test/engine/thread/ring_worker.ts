/** Fills a ring from a thread of its own, in bursts, each slot's words derived from its number. */
import { workerData } from 'node:worker_threads';
import { type RingMemory, RingWriter, type Words } from '../../../engine/thread/ring.ts';

export interface RingWorkerData {
  readonly memory: RingMemory;
  readonly count: number;
}

/** What word `k` of message `sequence` holds; a slot of two messages' words would not fit this. */
export function fillSlot(words: Words, at: number, count: number, sequence: number): void {
  for (let k = 0; k < count - 1; k += 1) words.numbers[at + k] = sequence * 16 + k;
  // All bits in use, NaNs among them.
  words.longs[at + count - 1] = BigInt.asIntN(64, BigInt(sequence) * 0x9e3779b97f4a7c15n);
}

/** The number of the word that is wrong, or -1. */
export function wrongWord(words: Words, at: number, count: number, sequence: number): number {
  for (let k = 0; k < count - 1; k += 1) if (words.numbers[at + k] !== sequence * 16 + k) return k;
  const last = BigInt.asIntN(64, BigInt(sequence) * 0x9e3779b97f4a7c15n);
  return words.longs[at + count - 1] === last ? -1 : count - 1;
}

if (workerData?.memory !== undefined) {
  const { memory, count } = workerData as RingWorkerData;
  const writer = new RingWriter(memory);
  const sleep = new Int32Array(new SharedArrayBuffer(4));
  let seed = 12_345;
  for (let sequence = 0; sequence < count; ) {
    const at = writer.claim();
    if (at < 0) {
      // Both threads may share a core.
      Atomics.wait(sleep, 0, 0, 0.05);
      continue;
    }
    fillSlot(writer.words, at, memory.words, sequence);
    writer.publish();
    sequence += 1;
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    // Now and then the other side gets time to empty it.
    if (seed % 997 === 0) for (let k = 0; k < seed % 20_000; k += 1) Atomics.pause();
  }
}
