/**
 * Which partition a message goes to: by its key as Kafka's Java client decides it, so that producers in any language agree;
 * without a key, to one partition for a batch's worth of bytes and then to another one (KIP-794).
 */

/** Called for messages that name no partition. Returns 0 to `partitionCount - 1`; null leaves it to the client. */
export type Partitioner = (
  message: { readonly topic: string; readonly key: Uint8Array | null },
  partitionCount: number,
) => number | null;

const seed = 0x9747b28c;
const multiplier = 0x5bd1e995;

/**
 * MurmurHash 2 of the first `length` bytes with Kafka's seed, as a signed number of 32 bits (`Utils.murmur2` of Kafka's Java
 * client).
 */
export function murmur2(bytes: Uint8Array, length: number = bytes.length): number {
  const whole = length & ~3;
  let hash = seed ^ length;
  for (let at = 0; at < whole; at += 4) {
    let word =
      (bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24);
    word = Math.imul(word, multiplier);
    word ^= word >>> 24;
    hash = Math.imul(hash, multiplier) ^ Math.imul(word, multiplier);
  }
  if (length > whole) {
    let rest = bytes[whole] as number;
    if (length > whole + 1) rest |= (bytes[whole + 1] as number) << 8;
    if (length > whole + 2) rest |= (bytes[whole + 2] as number) << 16;
    hash = Math.imul(hash ^ rest, multiplier);
  }
  hash ^= hash >>> 13;
  hash = Math.imul(hash, multiplier);
  return hash ^ (hash >>> 15);
}

/** Where messages without a key go. One for each topic. */
export class StickyPartition {
  readonly #bytesMax: number;
  #partition = -1;
  #bytesLeft = 0;

  /** @param bytesMax how many bytes go to one partition before the next one is chosen: a batch's */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The partition for a message of `bytes` bytes; `available` are those that have a leader. */
  next(bytes: number, partitionCount: number, available: readonly number[]): number {
    if (this.#bytesLeft <= 0 || this.#partition >= partitionCount) {
      this.#partition = this.#choose(partitionCount, available);
      this.#bytesLeft = this.#bytesMax;
    }
    this.#bytesLeft -= bytes;
    return this.#partition;
  }

  #choose(partitionCount: number, available: readonly number[]): number {
    if (available.length === 0) return Math.floor(Math.random() * partitionCount);
    const others = available.filter((partition) => partition !== this.#partition);
    const from = others.length > 0 ? others : available;
    return from[Math.floor(Math.random() * from.length)] as number;
  }
}
