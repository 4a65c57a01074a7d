/**
 * Small caches of the short strings that every request repeats: topic names, client ids, topic ids. A hit costs
 * a hash over the bytes and one comparison, allocates nothing, and returns a string whose own hash is known
 * already, so that the map look-up that follows is cheap too.
 *
 * Thread: one cache a thread, as each thread loads this module. Memory is bounded: `slots` entries of at most
 * `internedBytesMax` bytes; a hostile client can only evict entries.
 */

/** Longer strings are not kept. */
export const internedBytesMax = 64;

/** The all-zero id in Kafka's text form: "no topic id". */
export const zeroUuid = 'AAAAAAAAAAAAAAAAAAAAAA';

const slots = 4_096;
const strings: string[] = new Array<string>(slots).fill('');
const uuids: string[] = new Array<string>(slots).fill(zeroUuid);
const uuidWords: Int32Array = new Int32Array(slots * 4);

/**
 * The string of the `length` bytes at `start`, all of them ASCII; null when one of them is not, and then the
 * caller decodes UTF-8. `length` is at most `internedBytesMax`.
 */
export function internAscii(bytes: Uint8Array, start: number, length: number): string | null {
  let hash = length;
  let seen = 0;
  const end = start + length;
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at] as number;
    seen |= byte;
    hash = Math.imul(hash ^ byte, 0x01000193);
  }
  if (seen > 0x7f) return null;
  const slot = (hash ^ (hash >>> 15)) & (slots - 1);
  const known = strings[slot] as string;
  if (known.length === length && equals(known, bytes, start)) return known;
  const text = asciiText(bytes, start, end);
  strings[slot] = text;
  return text;
}

/** Kafka's text form of the 16 bytes at `position`: base64url without padding, 22 characters. */
export function internUuid(view: DataView, position: number): string {
  const a = view.getInt32(position);
  const b = view.getInt32(position + 4);
  const c = view.getInt32(position + 8);
  const d = view.getInt32(position + 12);
  const hash = Math.imul(a ^ c, 0x9e3779b1) ^ Math.imul(b ^ d, 0x85ebca6b);
  const slot = (hash ^ (hash >>> 15)) & (slots - 1);
  const word = slot * 4;
  if (
    uuidWords[word] === a &&
    uuidWords[word + 1] === b &&
    uuidWords[word + 2] === c &&
    uuidWords[word + 3] === d
  ) {
    return uuids[slot] as string;
  }
  const text = Buffer.from(view.buffer, view.byteOffset + position, 16).toString('base64url');
  uuids[slot] = text;
  uuidWords[word] = a;
  uuidWords[word + 1] = b;
  uuidWords[word + 2] = c;
  uuidWords[word + 3] = d;
  return text;
}

function equals(text: string, bytes: Uint8Array, start: number): boolean {
  for (let at = 0; at < text.length; at += 1) {
    if (text.charCodeAt(at) !== bytes[start + at]) return false;
  }
  return true;
}

function asciiText(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1');
}
