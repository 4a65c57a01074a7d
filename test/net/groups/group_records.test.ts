import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { GroupRecord } from '../../../engine/groups/group_records.ts';
import { decodeGroupRecord, encodeGroupRecord } from '../../../net/groups/group_records.ts';
import { zeroUuid } from '../../../net/protocol/interning.ts';
import type { MessageName } from '../../../net/protocol/messages.gen.ts';
import { ProtocolError } from '../../../net/protocol/reader.ts';
import { fromHex, goldenValue, goldenVectors, toHex } from '../protocol/golden.ts';

const test = suite('records of groups');

/** Key and value somewhere in a larger piece of memory, as in a log. */
function decode(key: Uint8Array, value: Uint8Array | null): GroupRecord | null {
  const bytes = Buffer.concat([Buffer.alloc(3), key, Buffer.alloc(2), value ?? Buffer.alloc(0)]);
  return decodeGroupRecord(bytes, 3, key.length, 5 + key.length, value?.length ?? -1);
}

const types = [
  'OffsetCommit',
  'GroupMetadata',
  'ConsumerGroupMetadata',
  'ConsumerGroupPartitionMetadata',
  'ConsumerGroupMemberMetadata',
  'ConsumerGroupTargetAssignmentMetadata',
  'ConsumerGroupTargetAssignmentMember',
  'ConsumerGroupCurrentMemberAssignment',
] as const;

test("Kafka's bytes of every kind and version are read", () => {
  for (const type of types) {
    const keyName: MessageName = `${type}Key`;
    const valueName: MessageName = `${type}Value`;
    for (const [, , keyJson, keyHex, keyPrefix] of goldenVectors(keyName))
      for (const [version, sample, json, hex, prefix] of goldenVectors(valueName)) {
        const key = goldenValue(keyName, 0, keyJson);
        const value = goldenValue(valueName, version, json);
        const record = decode(fromHex(keyPrefix + keyHex), fromHex(prefix + hex));
        assert.deepEqual(record, { type, key, value }, `${valueName} v${version} ${sample}`);
      }
  }
});

test('a null value is a tombstone, in both directions', () => {
  for (const type of types)
    for (const [, , keyJson, keyHex, keyPrefix] of goldenVectors(`${type}Key`)) {
      const record = { type, key: goldenValue(`${type}Key`, 0, keyJson), value: null };
      const encoded = encodeGroupRecord(record as never);
      assert.equal(toHex(encoded.key), keyPrefix + keyHex);
      assert.equal(encoded.value, null);
      assert.deepEqual(decode(encoded.key, null), record);
    }
});

test('offsets of the time before Kafka 0.9 are read like later ones', () => {
  const [vector] = goldenVectors('LegacyOffsetCommitKey').slice(-1);
  assert(vector !== undefined);
  const [, , json, hex, prefix] = vector;
  const record = decode(fromHex(prefix + hex), null);
  const key = goldenValue('LegacyOffsetCommitKey', 0, json);
  assert.deepEqual(record, { type: 'OffsetCommit', key, value: null });
});

const commit = {
  offset: 1n << 60n,
  leaderEpoch: 7,
  metadata: 'möglich',
  commitTimestamp: 1_700_000_000_000n,
  expireTimestamp: -1n,
  topicId: zeroUuid,
};

/** The version that the value is written in, and what it says when it is read back. */
function written(value: typeof commit): [number, unknown] {
  const key = { group: 'g', topic: 't', partition: 3 };
  const encoded = encodeGroupRecord({ type: 'OffsetCommit', key, value });
  assert(encoded.value !== null);
  const read = decode(encoded.key, encoded.value);
  assert.deepEqual(read?.key, key);
  return [encoded.value[1] as number, read.value];
}

test('an offset is written in the version that can say what it has', () => {
  assert.deepEqual(written(commit), [4, commit]);
  const withId = { ...commit, topicId: 'b8tRS7h4TJ2Vt43Dp85v2A' };
  assert.deepEqual(written(withId), [4, withId]);
  const expires = { ...commit, expireTimestamp: 1_700_000_100_000n };
  assert.deepEqual(written(expires), [1, { ...expires, leaderEpoch: -1 }]);
});

test('a group of the classic protocol is written in version 3', () => {
  const value = {
    protocolType: 'consumer',
    generation: 5,
    protocol: 'range',
    leader: 'm-1',
    currentStateTimestamp: 1_700_000_000_000n,
    members: [
      {
        memberId: 'm-1',
        groupInstanceId: 'instance',
        clientId: 'client',
        clientHost: '/127.0.0.1',
        rebalanceTimeout: 300_000,
        sessionTimeout: 45_000,
        subscription: new Uint8Array([1, 2]),
        assignment: new Uint8Array([3]),
      },
    ],
  };
  const record: GroupRecord = { type: 'GroupMetadata', key: { group: 'g' }, value };
  const encoded = encodeGroupRecord(record);
  assert(encoded.value !== null);
  assert.equal(encoded.value[1], 3);
  assert.deepEqual(decode(encoded.key, encoded.value), record);
});

test('other kinds of groups, unknown kinds and records without a key are passed over', () => {
  for (const name of ['ShareGroupMetadataKey', 'StreamsGroupMetadataKey'] as const)
    for (const [, , , hex, prefix] of goldenVectors(name))
      assert.equal(decode(fromHex(prefix + hex), null), null);
  assert.equal(decode(fromHex('7fff0000'), fromHex('0000')), null);
  assert.equal(decodeGroupRecord(new Uint8Array(4), 0, -1, 0, 2), null);
});

test('what is malformed or newer is an error and not half a record', () => {
  const { key, value } = encodeGroupRecord({
    type: 'OffsetCommit',
    key: { group: 'g', topic: 't', partition: 3 },
    value: commit,
  });
  assert(value !== null);
  assert.throws(() => decode(key.subarray(0, -1), value), ProtocolError);
  assert.throws(() => decode(Buffer.concat([key, Buffer.alloc(1)]), value), ProtocolError);
  assert.throws(() => decode(key, value.subarray(0, -1)), ProtocolError);
  assert.throws(() => decode(key, Buffer.concat([value, Buffer.alloc(1)])), ProtocolError);
  const newer = new Uint8Array(value);
  newer[1] = 9;
  assert.throws(() => decode(key, newer), /version 9, and only 0 to 4 are known/);
});

test.run();
