/**
 * The records of `__consumer_offsets` between their bytes and the objects of the group machines: Kafka's formats, all
 * versions readable, and written in those that Kafka 4 writes.
 *
 * Thread: any; a call runs to its end.
 */
import type { GroupRecord } from '../../engine/groups/group_records.ts';
import { type Codec, codecFor, versionsOf } from '../protocol/codec.ts';
import { ProtocolError, Reader } from '../protocol/reader.ts';
import { encodeCoordinatorKey, encodeVersioned } from '../protocol/record_codec.ts';

type RecordType = GroupRecord['type'];

/** One kind of record as it is read. Its codecs are kept at hand: a log holds millions of records of few kinds. */
class StoredType {
  readonly type: RecordType;
  readonly #key: Codec<unknown>;
  readonly #valueName: `${RecordType}Value`;
  readonly #values: (Codec<unknown> | undefined)[] = [];

  constructor(type: RecordType) {
    this.type = type;
    this.#key = codecFor(`${type}Key`, 0);
    this.#valueName = `${type}Value`;
  }

  decodeKey(): unknown {
    return decodeRest(this.#key);
  }

  decodeValue(version: number): unknown {
    return decodeRest(this.#values[version] ?? this.#valueCodec(version));
  }

  #valueCodec(version: number): Codec<unknown> {
    const name = this.#valueName;
    const { min, max } = versionsOf(name);
    if (version < min || version > max)
      throw new ProtocolError(`${name}: version ${version}, and only ${min} to ${max} are known`);
    const codec = codecFor(name, version);
    this.#values[version] = codec;
    return codec;
  }
}

/** By the number in front of a key; the first two, of an offset commit, have the same fields. */
const typesByKey = [
  'OffsetCommit',
  'OffsetCommit',
  'GroupMetadata',
  'ConsumerGroupMetadata',
  'ConsumerGroupPartitionMetadata',
  'ConsumerGroupMemberMetadata',
  'ConsumerGroupTargetAssignmentMetadata',
  'ConsumerGroupTargetAssignmentMember',
  'ConsumerGroupCurrentMemberAssignment',
] as const satisfies readonly RecordType[];

const storedTypes: (StoredType | undefined)[] = [];

/** Undefined for kinds that are not read here. */
function storedType(number: number): StoredType | undefined {
  const known = storedTypes[number];
  const type = typesByKey[number];
  if (known !== undefined || type === undefined) return known;
  const stored = new StoredType(type);
  storedTypes[number] = stored;
  return stored;
}

const groupMetadataVersion = 3;
const consumerGroupVersion = 0;
const offsetCommitVersion = 4;
/** The only one with a time of expiry. */
const offsetCommitVersionWithExpiry = 1;

const noExpiry = -1n;

export interface EncodedRecord {
  readonly key: Uint8Array;
  /** null: a tombstone. */
  readonly value: Uint8Array | null;
}

export function encodeGroupRecord(record: GroupRecord): EncodedRecord {
  const { type } = record;
  // The fields of a record's key and value are those of the schemas that its type names.
  const key = encodeCoordinatorKey(`${type}Key`, record.key as never);
  if (record.value === null) return { key, value: null };
  return { key, value: encodeVersioned(`${type}Value`, versionOf(record), record.value as never) };
}

function versionOf(record: GroupRecord): number {
  if (record.type === 'GroupMetadata') return groupMetadataVersion;
  if (record.type !== 'OffsetCommit') return consumerGroupVersion;
  const hasExpiry = record.value?.expireTimestamp !== noExpiry;
  return hasExpiry ? offsetCommitVersionWithExpiry : offsetCommitVersion;
}

const reader = new Reader(new Uint8Array(0));

/**
 * The record whose key and value lie in `bytes` (length -1: null). Null for what is no record of a consumer group: other
 * kinds of groups, and kinds that are not known, which Kafka skips as well when it loads.
 *
 * @throws ProtocolError when a key or value of a known kind is malformed or of a newer version
 */
export function decodeGroupRecord(
  bytes: Uint8Array,
  keyAt: number,
  keyLength: number,
  valueAt: number,
  valueLength: number,
): GroupRecord | null {
  if (keyLength < 2) return null;
  reader.reset(bytes, keyAt, keyAt + keyLength);
  const stored = storedType(int16('type of a key'));
  if (stored === undefined) return null;
  const { type } = stored;
  const key = stored.decodeKey();
  if (valueLength === -1) return { type, key, value: null } as GroupRecord;
  reader.reset(bytes, valueAt, valueAt + valueLength);
  return { type, key, value: stored.decodeValue(int16('version of a value')) } as GroupRecord;
}

function int16(field: string): number {
  return reader.view.getInt16(reader.take(2, field));
}

function decodeRest(codec: Codec<unknown>): unknown {
  const value = codec.decode(reader);
  if (reader.remaining !== 0) reader.fail('end', `${reader.remaining} bytes are left over`);
  return value;
}
