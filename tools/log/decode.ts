/** Records of the brokers' own topics as objects: committed offsets and groups, transactions, the cluster's metadata. */
import type { BatchRecord } from '../../engine/batch/records.ts';
import type { MessageName } from '../../net/protocol/messages.gen.ts';
import {
  type CoordinatorKey,
  decodeCoordinatorKey,
  decodeMetadataRecord,
  decodeVersioned,
} from '../../net/protocol/record_codec.ts';

export interface DecodedRecord {
  readonly type: string;
  readonly key?: unknown;
  /** Null: a tombstone. */
  readonly value: unknown;
}

const coordinators = {
  __consumer_offsets: 'group',
  __share_group_state: 'share',
  __transaction_state: 'transaction',
} as const;

/** Null for what is no record of that topic's, or cannot be read. */
export function decodeRecord(
  topic: string,
  isControl: boolean,
  { key, value }: BatchRecord,
): DecodedRecord | null {
  if (isControl) return null;
  try {
    if (topic === '__cluster_metadata') {
      if (value === null) return null;
      const { name, value: decoded } = decodeMetadataRecord(value);
      return { type: name, value: decoded };
    }
    if (!Object.hasOwn(coordinators, topic) || key === null) return null;
    const decoded = decodeCoordinatorKey(coordinators[topic as keyof typeof coordinators], key);
    return decoded === null ? null : withValue(decoded, value);
  } catch {
    // Whatever a record holds, the dump goes on: it is shown as bytes.
    return null;
  }
}

function withValue({ name, value: key }: CoordinatorKey, value: Uint8Array | null): DecodedRecord {
  const type = name.replace(/Key$/, '');
  if (value === null) return { type, key, value: null };
  return { type, key, value: decodeVersioned(`${type}Value` as MessageName, value).value };
}
