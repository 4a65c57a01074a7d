/**
 * A 128-bit hash of a record's key: MurmurHash3_x86_128 (Austin Appleby, public domain), seeded. With 2^32 different
 * keys two of them collide with a probability of 2^-65, so that the offset map stores hashes and no keys, as Kafka's
 * does with MD5. Whoever could craft a collision could as well write the other key.
 *
 * In JavaScript, because a native call for each record costs more than the hash: of a 16-byte key 26 to 44 ns of CPU
 * time here once it is compiled, 520 to 900 ns through xxh3.xxh128, which answers with a BigInt besides (measured on a
 * busy machine, where 94 to 608 ns and 1.4 to 3.8 µs went by on the clock in another run).
 */

const c1 = 0x239b961b;
const c2 = 0xab0e9789 | 0;
const c3 = 0x38b34ae5;
const c4 = 0xa1e38b93 | 0;

/** Words of a hash. */
export const hashWords = 4;

/** Hashes `length` bytes of `buf` from `start` on into the four words of `into` from `intoAt` on. */
export function hashKey(
  buf: Uint8Array,
  start: number,
  length: number,
  seed: number,
  into: Int32Array,
  intoAt: number,
): void {
  let h1 = seed;
  let h2 = seed;
  let h3 = seed;
  let h4 = seed;
  const blocksEnd = start + (length & ~15);
  let at = start;
  for (; at < blocksEnd; at += 16) {
    h1 ^= Math.imul(rotate(Math.imul(word(buf, at), c1), 15), c2);
    h1 = (Math.imul((rotate(h1, 19) + h2) | 0, 5) + 0x561ccd1b) | 0;
    h2 ^= Math.imul(rotate(Math.imul(word(buf, at + 4), c2), 16), c3);
    h2 = (Math.imul((rotate(h2, 17) + h3) | 0, 5) + 0x0bcaa747) | 0;
    h3 ^= Math.imul(rotate(Math.imul(word(buf, at + 8), c3), 17), c4);
    h3 = (Math.imul((rotate(h3, 15) + h4) | 0, 5) + 0x96cd1c35) | 0;
    h4 ^= Math.imul(rotate(Math.imul(word(buf, at + 12), c4), 18), c1);
    h4 = (Math.imul((rotate(h4, 13) + h1) | 0, 5) + 0x32ac3b17) | 0;
  }
  const rest = length & 15;
  if (rest > 12) h4 ^= Math.imul(rotate(Math.imul(tail(buf, at + 12, rest - 12), c4), 18), c1);
  if (rest > 8) h3 ^= Math.imul(rotate(Math.imul(tail(buf, at + 8, rest - 8), c3), 17), c4);
  if (rest > 4) h2 ^= Math.imul(rotate(Math.imul(tail(buf, at + 4, rest - 4), c2), 16), c3);
  if (rest > 0) h1 ^= Math.imul(rotate(Math.imul(tail(buf, at, rest), c1), 15), c2);
  h1 ^= length;
  h2 ^= length;
  h3 ^= length;
  h4 ^= length;
  h1 = (h1 + h2 + h3 + h4) | 0;
  h2 = (h2 + h1) | 0;
  h3 = (h3 + h1) | 0;
  h4 = (h4 + h1) | 0;
  h1 = mix(h1);
  h2 = mix(h2);
  h3 = mix(h3);
  h4 = mix(h4);
  h1 = (h1 + h2 + h3 + h4) | 0;
  into[intoAt] = h1;
  into[intoAt + 1] = h2 + h1;
  into[intoAt + 2] = h3 + h1;
  into[intoAt + 3] = h4 + h1;
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

/** Little-endian, as the reference has it. */
function word(buf: Uint8Array, at: number): number {
  return (
    (buf[at] as number) |
    ((buf[at + 1] as number) << 8) |
    ((buf[at + 2] as number) << 16) |
    ((buf[at + 3] as number) << 24)
  );
}

/** A word of which only the first `count` bytes, 1 to 4 (more counts as 4), are there. */
function tail(buf: Uint8Array, at: number, count: number): number {
  if (count >= 4) return word(buf, at);
  let value = buf[at] as number;
  if (count > 1) value |= (buf[at + 1] as number) << 8;
  if (count > 2) value |= (buf[at + 2] as number) << 16;
  return value;
}

function mix(value: number): number {
  let h = value;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
