import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { codecFor, versionsOf } from '../../../net/protocol/codec.ts';
import type { MessageName } from '../../../net/protocol/messages.gen.ts';
import { Reader } from '../../../net/protocol/reader.ts';
import { Writer } from '../../../net/protocol/writer.ts';
import {
  fromHex,
  goldenValue,
  goldenVectors,
  messageNames,
  toHex,
  unknownTagVectors,
} from './golden.ts';

const test = suite('golden vectors');
const writer = new Writer();

function encode(name: MessageName, version: number, value: unknown): string {
  codecFor(name, version).encode(writer, value as never);
  const { bytes, holes } = writer.finish();
  assert.equal(holes.length, 0);
  return toHex(bytes);
}

/** Decodes `hex` from the middle of other bytes, so that offsets are seen to be honoured. */
function decode(name: MessageName, version: number, hex: string): unknown {
  const bytes = fromHex(`5a5a5a${hex}5a`);
  const reader = new Reader(bytes, 3, bytes.length - 1);
  const value = codecFor(name, version).decode(reader);
  assert.equal(reader.remaining, 0, `${name} v${version}: bytes are left`);
  return value;
}

test('there are schemas for all messages of the protocol, and for two of our own', () => {
  assert.equal(messageNames().length, 278 + 2);
});

for (const name of messageNames()) {
  test(`${name} in both directions`, () => {
    const vectors = goldenVectors(name);
    assert(vectors.length > 0, `${name} has no golden vectors`);
    for (const [version, sample, json, hex] of vectors) {
      const where = `${name} v${version} ${sample}`;
      const value = goldenValue(name, version, json);
      assert.equal(encode(name, version, value), hex, where);
      const decoded = decode(name, version, hex);
      assert.deepStrictEqual(decoded, value, where);
      assert.equal(encode(name, version, decoded), hex, `${where}, again`);
    }
  });
}

test('unknown tagged fields are skipped, at every depth', () => {
  const vectors = unknownTagVectors();
  assert(vectors.length > 200, `only ${vectors.length} vectors`);
  for (const [name, version, json, hex] of vectors) {
    assert.deepStrictEqual(decode(name, version, hex), goldenValue(name, version, json), name);
  }
});

test('objects of all versions have one shape', () => {
  for (const name of messageNames()) {
    const shapes = new Set<string>();
    for (const [version, , , hex] of goldenVectors(name)) {
      shapes.add(Object.keys(decode(name, version, hex) as object).join());
    }
    assert.equal(shapes.size, 1, name);
  }
});

test('a version outside the range of the schema is refused', () => {
  for (const name of messageNames()) {
    const { min, max } = versionsOf(name);
    for (const version of [min - 1, max + 1, min + 0.5]) {
      assert.throws(() => codecFor(name, version), RangeError, `${name} v${version}`);
    }
  }
});

test('what a version cannot carry is dropped only where the schema says so', () => {
  const fetch = codecFor('FetchRequest', 4);
  const base = { replicaId: -1, maxWaitMs: 0, minBytes: 0, topics: [] };
  fetch.encode(writer, { ...base, rackId: 'a', sessionId: 7 });
  writer.finish();
  const replicaState = { replicaId: 1, replicaEpoch: 2n };
  assert.throws(
    () => fetch.encode(writer, { ...base, replicaState }),
    /^Error: FetchRequest v4: replicaState: set, but this version does not have it$/,
  );
  writer.abandon();
});

test.run();
