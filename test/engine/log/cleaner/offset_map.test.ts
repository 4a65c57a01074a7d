import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { hashKey, hashWords } from '../../../../engine/log/cleaner/key_hash.ts';
import { OffsetMap, stagedKeysMax } from '../../../../engine/log/cleaner/offset_map.ts';
import { SeededRandom } from '../../../sim/seeded_random.ts';

const test = suite('offset_map');
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** One key at a time. */
class SingleKeys {
  readonly map: OffsetMap;

  constructor(slots: number, loadFactor: number, seed: number) {
    this.map = new OffsetMap(slots, loadFactor, seed);
  }

  put(buf: Uint8Array, keyStart: number, keyLength: number, offset: number): boolean {
    this.map.stage(0, buf, keyStart, keyLength);
    this.map.bring(1);
    return this.map.put(0, offset);
  }

  get(buf: Uint8Array, keyStart: number, keyLength: number): number {
    this.map.stage(0, buf, keyStart, keyLength);
    this.map.bring(1);
    return this.map.get(0);
  }
}

function hex(text: string, seed: number): string {
  const bytes = bytesOf(`xx${text}`);
  const hash = new Int32Array(1 + hashWords);
  hashKey(bytes, 2, bytes.length - 2, seed, hash, 1);
  return [...hash.subarray(1)].map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
}

test('the hash is MurmurHash3_x86_128, by the values that are known of it', () => {
  assert.equal(hex('', 0), '00000000000000000000000000000000');
  assert.equal(
    hex('The quick brown fox jumps over the lazy dog', 0),
    '2f1583c3ecee2c675d7bf66ce5e91d2c',
  );
  assert.notEqual(hex('a', 1), hex('a', 2));
});

test('keys of every length have hashes of their own', () => {
  const hashes = new Set<string>();
  for (let length = 0; length < 70; length += 1)
    for (const letter of ['a', 'b']) hashes.add(hex(letter.repeat(length), 9));
  // Both letters make the empty key.
  assert.equal(hashes.size, 139);
});

test('the latest offset of a key is the one that counts, the empty key being one', () => {
  const map = new SingleKeys(10, 0.9, 1);
  const key = bytesOf('..key');
  assert.equal(map.get(key, 2, 3), -1);
  assert(map.put(key, 2, 3, 0));
  assert.equal(map.get(key, 2, 3), 0);
  assert(map.put(key, 2, 0, 7));
  assert(map.put(key, 2, 3, 2 ** 40 + 5));
  assert.equal(map.get(key, 2, 3), 2 ** 40 + 5);
  assert.equal(map.get(key, 0, 0), 7);
  assert.equal(map.map.size, 2);
});

test('when it is full a new key has no room, and known ones go on', () => {
  const map = new SingleKeys(10, 0.5, 1);
  const keys = Array.from({ length: 6 }, (_, at) => bytesOf(`key-${at}`));
  for (const [at, key] of keys.entries())
    assert.equal(map.put(key, 0, key.length, at), at < 5, `key ${at}`);
  assert(map.put(keys[0]!, 0, 5, 99));
  assert.equal(map.get(keys[0]!, 0, 5), 99);
  assert.equal(map.get(keys[5]!, 0, 5), -1);
});

test('against a map of the language, with any load', () => {
  const random = new SeededRandom(3);
  for (const slots of [2, 3, 64, 1000]) {
    const map = new SingleKeys(slots, 1, random.below(2 ** 31));
    const reference = new Map<string, number>();
    for (let offset = 0; offset < slots * 3; offset += 1) {
      const text = `k${random.below(slots)}`;
      const key = bytesOf(text);
      const isTaken = map.put(key, 0, key.length, offset);
      assert.equal(isTaken, reference.has(text) || reference.size < slots - 1);
      if (isTaken) reference.set(text, offset);
    }
    for (let number = 0; number < slots; number += 1) {
      const key = bytesOf(`k${number}`);
      assert.equal(map.get(key, 0, key.length), reference.get(`k${number}`) ?? -1);
    }
  }
});

test('keys that are staged together do not disturb each other, the same key among them', () => {
  const map = new OffsetMap(400, 0.9, 5);
  const keys = Array.from({ length: stagedKeysMax }, (_, at) => bytesOf(`key-${at % 100}`));
  for (const [at, key] of keys.entries()) map.stage(at, key, 0, key.length);
  map.bring(keys.length);
  for (const at of keys.keys()) assert(map.put(at, at));
  assert.equal(map.size, 100);
  const before = keys.map((_, at) => map.get(at));
  assert.deepEqual(
    before,
    keys.map((_, at) => (at % 100 < stagedKeysMax - 100 ? (at % 100) + 100 : at)),
  );
});

test.run();
