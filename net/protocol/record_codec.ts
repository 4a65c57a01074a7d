/**
 * Messages that are stored as the key or value of a record, with what Kafka puts in front of them:
 * - metadata records: uvarint frame version (1), uvarint record type, uvarint version (KIP-631);
 * - keys of the coordinators' logs: int16 record type; their values: int16 version;
 * - other stored data (consumer protocol, transaction markers, producer snapshots): int16 version.
 */
import { codecFor, versionsOf } from './codec.ts';
import type { MessageInputs, MessageName, MessageTypes } from './messages.gen.ts';
import { ProtocolError, Reader } from './reader.ts';
import {
  groupKeyNames,
  metadataRecordNames,
  shareKeyNames,
  transactionKeyNames,
} from './record_types.gen.ts';
import { loadSchema } from './schema.ts';
import { Writer } from './writer.ts';

export type MetadataRecordName = (typeof metadataRecordNames)[keyof typeof metadataRecordNames];

/** A metadata record with its name, so that a `switch` on `name` gives `value` its type. */
export type MetadataRecord = {
  [N in MetadataRecordName]: {
    readonly name: N;
    readonly version: number;
    readonly value: MessageTypes[N];
  };
}[MetadataRecordName];

type KeyName =
  | (typeof groupKeyNames)[keyof typeof groupKeyNames]
  | (typeof shareKeyNames)[keyof typeof shareKeyNames]
  | (typeof transactionKeyNames)[keyof typeof transactionKeyNames];

/** A key of a coordinator's log, with its name. */
export type CoordinatorKey = {
  [N in KeyName]: { readonly name: N; readonly value: MessageTypes[N] };
}[KeyName];

const keyNames: Readonly<Record<string, Readonly<Record<number, KeyName>>>> = {
  group: groupKeyNames,
  share: shareKeyNames,
  transaction: transactionKeyNames,
};
const metadataNames: Readonly<Record<number, MetadataRecordName>> = metadataRecordNames;
const metadataFrameVersion = 1;
const writer: Writer = new Writer();

/** The bytes of a metadata record, with its frame. Throws when `value` cannot be said in `version`. */
export function encodeMetadataRecord<N extends MetadataRecordName>(
  name: N,
  version: number,
  value: MessageInputs[N],
): Uint8Array {
  writer.uvarint(metadataFrameVersion);
  writer.uvarint(loadSchema(name).apiKey as number);
  writer.uvarint(version);
  return finish(name, version, value);
}

/**
 * Reads a metadata record. Throws a ProtocolError when it is malformed, and when its type or version is not known
 * to us: metadata that a node cannot understand must stop it, not be skipped.
 */
export function decodeMetadataRecord(bytes: Uint8Array): MetadataRecord {
  const reader = new Reader(bytes);
  reader.enter('metadata record');
  const frameVersion = reader.uvarint('frame version');
  if (frameVersion !== metadataFrameVersion) {
    reader.fail('frame version', `${frameVersion}, and only ${metadataFrameVersion} is known`);
  }
  const type = reader.uvarint('type');
  const name = metadataNames[type];
  if (name === undefined) {
    return reader.fail('type', `${type} is not known: the log was written by a newer version`);
  }
  const version = reader.uvarint('version');
  checkVersion(name, version);
  const value = decodeAll(reader, name, version);
  return { name, version, value } as MetadataRecord;
}

/** The bytes of a key of a coordinator's log. */
export function encodeCoordinatorKey<N extends KeyName>(
  name: N,
  value: MessageInputs[N],
): Uint8Array {
  writer.int16(loadSchema(name).apiKey as number);
  return finish(name, 0, value);
}

/**
 * Reads a key of the log of the `coordinator`; null when its type is not known, which Kafka skips when it loads.
 * Throws a ProtocolError when it is malformed.
 */
export function decodeCoordinatorKey(
  coordinator: 'group' | 'share' | 'transaction',
  bytes: Uint8Array,
): CoordinatorKey | null {
  const reader = new Reader(bytes);
  reader.enter(`key of the ${coordinator} coordinator`);
  const name = keyNames[coordinator]?.[reader.view.getInt16(reader.take(2, 'type'))];
  if (name === undefined) return null;
  return { name, value: decodeAll(reader, name, 0) } as CoordinatorKey;
}

/** The bytes of stored data that has its version in front: values of the coordinators' logs, and other data. */
export function encodeVersioned<N extends MessageName>(
  name: N,
  version: number,
  value: MessageInputs[N],
): Uint8Array {
  writer.int16(version);
  return finish(name, version, value);
}

/** Reads stored data that has its version in front. Throws a ProtocolError when it is malformed or too new. */
export function decodeVersioned<N extends MessageName>(
  name: N,
  bytes: Uint8Array,
): { version: number; value: MessageTypes[N] } {
  const reader = new Reader(bytes);
  reader.enter(name);
  const version = reader.view.getInt16(reader.take(2, 'version'));
  checkVersion(name, version);
  return { version, value: decodeAll(reader, name, version) };
}

function checkVersion(name: MessageName, version: number): void {
  const { min, max } = versionsOf(name);
  if (version < min || version > max) {
    throw new ProtocolError(`${name}: version ${version} is not known, only ${min} to ${max} are`);
  }
}

function decodeAll<N extends MessageName>(
  reader: Reader,
  name: N,
  version: number,
): MessageTypes[N] {
  const value = codecFor(name, version).decode(reader);
  if (reader.remaining !== 0) reader.fail('end', `${reader.remaining} bytes are left over`);
  return value;
}

/** A copy: records are kept and posted to other threads, where a view would drag the writer's chunk along. */
function finish<N extends MessageName>(
  name: N,
  version: number,
  value: MessageInputs[N],
): Uint8Array {
  try {
    codecFor(name, version).encode(writer, value);
    return new Uint8Array(writer.bytes.subarray(writer.start, writer.pos));
  } finally {
    writer.abandon();
  }
}
