import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { MessageName } from '../../../net/protocol/messages.gen.ts';
import { ProtocolError } from '../../../net/protocol/reader.ts';
import {
  decodeCoordinatorKey,
  decodeMetadataRecord,
  decodeVersioned,
  encodeCoordinatorKey,
  encodeMetadataRecord,
  encodeVersioned,
  type MetadataRecordName,
} from '../../../net/protocol/record_codec.ts';
import { loadSchema } from '../../../net/protocol/schema.ts';
import { fromHex, goldenValue, goldenVectors, messageNames, toHex } from './golden.ts';

const test = suite('record codec');

function stored(type: string, module: string | null): MessageName[] {
  const names = messageNames().filter((name) => {
    const schema = loadSchema(name);
    return schema.type === type && (module === null || schema.module === module);
  });
  assert(names.length > 0);
  return names;
}

test('metadata records, with their frame', () => {
  for (const name of stored('metadata', 'metadata') as MetadataRecordName[]) {
    for (const [version, , json, hex, prefix] of goldenVectors(name)) {
      assert(prefix !== undefined);
      const value = goldenValue(name, version, json) as never;
      assert.equal(toHex(encodeMetadataRecord(name, version, value)), prefix + hex, name);
      assert.deepStrictEqual(decodeMetadataRecord(fromHex(prefix + hex)), { name, version, value });
    }
  }
});

test('keys of the coordinators, with their type', () => {
  for (const coordinator of ['group', 'share', 'transaction'] as const) {
    for (const name of stored('coordinator-key', `${coordinator}-coordinator`)) {
      for (const [version, , json, hex, prefix] of goldenVectors(name)) {
        assert(prefix !== undefined && version === 0);
        const value = goldenValue(name, version, json) as never;
        assert.equal(toHex(encodeCoordinatorKey(name as 'GroupMetadataKey', value)), prefix + hex);
        const key = decodeCoordinatorKey(coordinator, fromHex(prefix + hex));
        assert.deepStrictEqual(key, { name, value });
      }
    }
  }
});

test('values of the coordinators and other stored data, with their version', () => {
  let prefixed = 0;
  for (const name of [...stored('coordinator-value', null), ...stored('data', null)]) {
    for (const [version, , json, hex, prefix] of goldenVectors(name)) {
      if (prefix === undefined) continue;
      prefixed += 1;
      const value = goldenValue(name, version, json) as never;
      assert.equal(toHex(encodeVersioned(name, version, value)), prefix + hex, name);
      assert.deepStrictEqual(decodeVersioned(name, fromHex(prefix + hex)), { version, value });
    }
  }
  assert(prefixed > 100, `${prefixed}`);
});

test('metadata that cannot be understood is an error, not skipped', () => {
  const refuses = (hex: string, message: string) =>
    assert.throws(() => decodeMetadataRecord(fromHex(hex)), { name: 'ProtocolError', message });
  refuses('000200', 'metadata record: frame version: 0, and only 1 is known');
  refuses(
    '016300',
    'metadata record: type: 99 is not known: the log was written by a newer version',
  );
  refuses('010209', 'TopicRecord: version 9 is not known, only 0 to 0 are');
  refuses('01', 'metadata record: type: 1 bytes announced or needed, 0 left in the frame');
  const topic = `010200${'01'}${'00'.repeat(16)}00`;
  assert.equal(decodeMetadataRecord(fromHex(topic)).name, 'TopicRecord');
  refuses(`${topic}00`, 'TopicRecord v0: end: 1 bytes are left over');
});

test('a key of an unknown type is skipped, a value of an unknown version is not', () => {
  assert.equal(decodeCoordinatorKey('group', fromHex('03e7')), null);
  assert.throws(() => decodeCoordinatorKey('group', fromHex('00')), ProtocolError);
  assert.throws(() => decodeVersioned('OffsetCommitValue', fromHex('0063')), {
    message: 'OffsetCommitValue: version 99 is not known, only 0 to 4 are',
  });
});

test('encoded records own their memory', () => {
  const record = encodeMetadataRecord('NoOpRecord', 0, {});
  assert.equal(toHex(record), '01140000');
  assert.equal(record.buffer.byteLength, record.length);
});

test.run();
