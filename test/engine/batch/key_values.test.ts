import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { encodeBatch } from '../../../engine/batch/encode.ts';
import { recordCountOf } from '../../../engine/batch/header.ts';
import { visitKeyValues } from '../../../engine/batch/key_values.ts';
import { BatchFormatError, recordBytesOf } from '../../../engine/batch/records.ts';

const test = suite('keys and values');

type Pair = readonly [key: string | null, value: string | null];

const bytesOf = (text: string | null): Uint8Array | null =>
  text === null ? null : new TextEncoder().encode(text);

function textOf(bytes: Uint8Array, at: number, length: number): string | null {
  return length < 0 ? null : Buffer.from(bytes.subarray(at, at + length)).toString();
}

function visit(bytes: Uint8Array, count: number): Pair[] {
  const pairs: Pair[] = [];
  visitKeyValues(bytes, 0, bytes.length, count, (buf, keyAt, keyLength, valueAt, valueLength) => {
    pairs.push([textOf(buf, keyAt, keyLength), textOf(buf, valueAt, valueLength)]);
  });
  return pairs;
}

const pairs: Pair[] = [
  ['k', 'v'],
  [null, 'v'],
  ['k', null],
  ['', ''],
  [null, null],
  ['x'.repeat(200), 'y'.repeat(20_000)],
];

const batch = encodeBatch({
  records: pairs.map(([key, value], index) => ({
    key: bytesOf(key),
    value: bytesOf(value),
    timestamp: 1_700_000_000_000n + (1n << BigInt(index * 7)),
    headers: index === 2 ? [{ key: bytesOf('header')!, value: null }] : [],
  })),
});

test('every record is visited, whatever its timestamp and headers', () => {
  const bytes = recordBytesOf(batch, 0, 1 << 20);
  assert.deepEqual(visit(bytes, recordCountOf(batch, 0)), pairs);
});

test('records that are cut short, or lie about a length, are an error', () => {
  const bytes = recordBytesOf(batch, 0, 1 << 20);
  const count = recordCountOf(batch, 0);
  for (const length of [0, 1, 5, 40, bytes.length - 1])
    assert.throws(() => visit(bytes.subarray(0, length), count), BatchFormatError, `${length}`);
  for (let at = 0; at < 60; at += 1)
    for (const value of [0x01, 0x7f, 0x80, 0xff]) {
      const changed = new Uint8Array(bytes);
      changed[at] = value;
      // Either an error or some records, but always an end, and nothing outside of the bytes.
      try {
        visit(changed, count);
      } catch (error) {
        assert(error instanceof BatchFormatError, `${error}`);
      }
    }
});

test.run();
