/** Seeded mutations of byte strings, of the kinds that break decoders: lengths, counts, cuts and splices. */
import type { Random } from '../harness/split_mix.ts';

export function randomBytes(random: Random, length: number): Uint8Array {
  return new Uint8Array(length).map(() => random(256));
}

/** Values that lengths, counts and tags go wrong with. */
const hostile: readonly (readonly number[])[] = [
  [0xff, 0xff, 0xff, 0xff],
  [0x7f, 0xff, 0xff, 0xff],
  [0x80, 0x00, 0x00, 0x00],
  [0xff, 0xff, 0xff, 0xfe],
  [0x7f, 0xff],
  [0x80, 0x00],
  [0xff, 0xfe],
  [0xff, 0xff, 0xff, 0xff, 0x0f],
  [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
  [0x80, 0x80, 0x80, 0x80, 0x00],
  [0x00],
  [0x01],
  [0x02],
  [0x41],
  [0xff],
];

/** A mutated copy of `sample`, parts of it taken from `other`; one to four mutations. */
export function mutate(random: Random, sample: Uint8Array, other: Uint8Array): Uint8Array {
  let bytes: Uint8Array = new Uint8Array(sample);
  for (let count = 1 + random(4); count > 0; count -= 1) bytes = mutateOnce(random, bytes, other);
  return bytes;
}

function mutateOnce(random: Random, bytes: Uint8Array, other: Uint8Array): Uint8Array {
  const at = random(bytes.length + 1);
  switch (random(7)) {
    case 0:
      if (at < bytes.length) bytes[at] = (bytes[at] as number) ^ (1 << random(8));
      return bytes;
    case 1:
      if (at < bytes.length) bytes[at] = random(256);
      return bytes;
    case 2:
      return bytes.slice(0, at);
    case 3: {
      const value = hostile[random(hostile.length)] as readonly number[];
      return splice(bytes, at, value.length, value);
    }
    case 4: {
      const value = hostile[random(hostile.length)] as readonly number[];
      return splice(bytes, at, 0, value);
    }
    case 5:
      return splice(bytes, at, random(8), []);
    default: {
      const from = random(other.length + 1);
      return splice(bytes, at, random(32), other.subarray(from, from + random(64)));
    }
  }
}

function splice(
  bytes: Uint8Array,
  at: number,
  removed: number,
  inserted: ArrayLike<number>,
): Uint8Array {
  const rest = bytes.subarray(Math.min(bytes.length, at + removed));
  const result = new Uint8Array(at + inserted.length + rest.length);
  result.set(bytes.subarray(0, at));
  result.set(inserted, at);
  result.set(rest, at + inserted.length);
  return result;
}
