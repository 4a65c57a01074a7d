/**
 * Metadata records in Kafka's encoding (KIP-631), and the quorum's control records (KIP-595, KIP-853): the bytes that
 * `kafka-dump-log --cluster-metadata-decoder` reads.
 *
 * Versions are those that metadata.version 4.4-IV2 writes. Our records differ from Kafka's schemas in two ways: they
 * carry their type, and int64 fields are numbers.
 */
import type {
  MetadataRecord,
  MetadataRecordCodec,
  QuorumControlRecord,
} from '../replication/metadata/records.ts';
import { codecFor } from './protocol/codec.ts';
import type { MessageInputs, MessageName, MessageTypes } from './protocol/messages.gen.ts';
import { Reader } from './protocol/reader.ts';
import {
  decodeMetadataRecord,
  encodeMetadataRecord,
  type MetadataRecord as StoredRecord,
} from './protocol/record_codec.ts';
import { Writer } from './protocol/writer.ts';

/** Kafka's `metadata.version` level of 4.4-IV2, the newest that its release 4.4 has declared stable. */
export const metadataVersionLevel = 33;
/** Kafka's oldest, 3.3-IV3; what stands in the log of a cluster formed by it is understood. */
export const metadataVersionLevelMin = 7;

const versions = {
  partition: 2,
  partitionChange: 2,
  registerBroker: 4,
  brokerRegistrationChange: 3,
} as const;

/** Kafka's `ControlRecordType`. */
const ControlType = {
  leaderChange: 2,
  snapshotHeader: 3,
  snapshotFooter: 4,
  kraftVersion: 5,
  voters: 6,
} as const;

export const metadataCodec: MetadataRecordCodec = {
  encode,
  decode: (value) => fromStored(decodeMetadataRecord(value)),
  encodeControl,
  decodeControl,
};

function encode(record: MetadataRecord): Uint8Array {
  switch (record.type) {
    case 'PartitionRecord':
      return encodeMetadataRecord(record.type, versions.partition, record);
    case 'PartitionChangeRecord':
      return encodeMetadataRecord(record.type, versions.partitionChange, record);
    case 'RegisterBrokerRecord':
      return encodeMetadataRecord(record.type, versions.registerBroker, {
        ...record,
        brokerEpoch: BigInt(record.brokerEpoch),
      });
    case 'BrokerRegistrationChangeRecord':
      return encodeMetadataRecord(record.type, versions.brokerRegistrationChange, {
        ...record,
        brokerEpoch: BigInt(record.brokerEpoch),
      });
    case 'UnregisterBrokerRecord':
      return encodeMetadataRecord(record.type, 0, {
        ...record,
        brokerEpoch: BigInt(record.brokerEpoch),
      });
    case 'ProducerIdsRecord':
      return encodeMetadataRecord(record.type, 0, {
        ...record,
        brokerEpoch: BigInt(record.brokerEpoch),
        nextProducerId: BigInt(record.nextProducerId),
      });
    case 'UnknownRecord':
      throw new Error(`a ${record.name} was read without its content: it cannot be written`);
    default:
      return encodeMetadataRecord(record.type, 0, record);
  }
}

function fromStored(record: StoredRecord): MetadataRecord {
  switch (record.name) {
    case 'TopicRecord':
    case 'PartitionRecord':
    case 'PartitionChangeRecord':
    case 'ConfigRecord':
    case 'RemoveTopicRecord':
    case 'FeatureLevelRecord':
    case 'NoOpRecord':
      // The type checker does not keep a name and the value that belongs to it together here.
      return { type: record.name, ...record.value } as MetadataRecord;
    default:
      return fromStoredBroker(record);
  }
}

function fromStoredBroker(record: StoredRecord): MetadataRecord {
  switch (record.name) {
    case 'RegisterBrokerRecord':
      return brokerRegistration(record.value);
    case 'BrokerRegistrationChangeRecord':
      return {
        type: record.name,
        brokerId: record.value.brokerId,
        brokerEpoch: Number(record.value.brokerEpoch),
        fenced: record.value.fenced,
        inControlledShutdown: record.value.inControlledShutdown,
        logDirs: record.value.logDirs,
      };
    case 'FenceBrokerRecord':
      return fencing(record.value.id, record.value.epoch, 1);
    case 'UnfenceBrokerRecord':
      return fencing(record.value.id, record.value.epoch, -1);
    case 'UnregisterBrokerRecord':
      return {
        type: record.name,
        brokerId: record.value.brokerId,
        brokerEpoch: Number(record.value.brokerEpoch),
      };
    case 'ProducerIdsRecord':
      return {
        type: record.name,
        brokerId: record.value.brokerId,
        brokerEpoch: Number(record.value.brokerEpoch),
        nextProducerId: Number(record.value.nextProducerId),
      };
    // What Kafka's controllers write about themselves says nothing about the cluster's state; a transaction that was
    // ended stands as if its records had been one batch.
    case 'BeginTransactionRecord':
    case 'EndTransactionRecord':
    case 'RegisterControllerRecord':
    case 'UnregisterControllerRecord':
    case 'ZkMigrationStateRecord':
      return { type: 'NoOpRecord' };
    case 'AbortTransactionRecord':
      throw new Error(
        'The metadata log holds an aborted transaction of another product, which cannot be replayed.',
      );
    default:
      return { type: 'UnknownRecord', name: record.name };
  }
}

function brokerRegistration(value: MessageTypes['RegisterBrokerRecord']): MetadataRecord {
  return {
    type: 'RegisterBrokerRecord',
    brokerId: value.brokerId,
    incarnationId: value.incarnationId,
    brokerEpoch: Number(value.brokerEpoch),
    endPoints: value.endPoints,
    features: value.features,
    rack: value.rack,
    fenced: value.fenced,
    inControlledShutdown: value.inControlledShutdown,
    logDirs: value.logDirs,
  };
}

/** The record kinds of before KIP-866, as the newer one says it. */
function fencing(brokerId: number, epoch: bigint, fenced: 1 | -1): MetadataRecord {
  return {
    type: 'BrokerRegistrationChangeRecord',
    brokerId,
    brokerEpoch: Number(epoch),
    fenced,
    inControlledShutdown: 0,
    logDirs: [],
  };
}

function encodeControl(record: QuorumControlRecord): { key: Uint8Array; value: Uint8Array } {
  switch (record.type) {
    case 'LeaderChange':
      return control(ControlType.leaderChange, 'LeaderChangeMessage', {
        version: 0,
        leaderId: record.leaderId,
        voters: record.voters.map(({ voterId }) => ({ voterId })),
        grantingVoters: record.voters.map(({ voterId }) => ({ voterId })),
      });
    case 'KRaftVersion':
      return control(ControlType.kraftVersion, 'KRaftVersionRecord', {
        version: 0,
        kRaftVersion: record.kraftVersion,
      });
    case 'Voters':
      return control(ControlType.voters, 'VotersRecord', {
        version: 0,
        voters: record.voters.map((voter) => ({
          ...voter,
          kRaftVersionFeature: { minSupportedVersion: 0, maxSupportedVersion: 1 },
        })),
      });
    case 'SnapshotHeader':
      return control(ControlType.snapshotHeader, 'SnapshotHeaderRecord', {
        version: 0,
        lastContainedLogTimestamp: BigInt(record.lastContainedLogTimestamp),
      });
    case 'SnapshotFooter':
      return control(ControlType.snapshotFooter, 'SnapshotFooterRecord', { version: 0 });
  }
}

/** Control records have no frame: the key is int16 version and int16 type, the value is the message alone. */
function control<N extends MessageName>(
  type: number,
  name: N,
  value: MessageInputs[N],
): { key: Uint8Array; value: Uint8Array } {
  const writer = new Writer();
  codecFor(name, 0).encode(writer, value);
  return { key: new Uint8Array([0, 0, type >> 8, type]), value: writer.finish().bytes };
}

function decodeControl(key: Uint8Array, value: Uint8Array): QuorumControlRecord | null {
  const type = ((key[2] ?? 0) << 8) | (key[3] ?? 0);
  const reader = new Reader(value);
  if (type === ControlType.leaderChange) {
    // The message begins with its own version; directory ids came with version 1.
    const message = codecFor('LeaderChangeMessage', value[1] ?? 0).decode(reader);
    const voters = message.voters.map((voter) => ({ ...voter, endpoints: [] }));
    return { type: 'LeaderChange', leaderId: message.leaderId, voters };
  }
  if (type === ControlType.kraftVersion) {
    const { kRaftVersion } = codecFor('KRaftVersionRecord', 0).decode(reader);
    return { type: 'KRaftVersion', kraftVersion: kRaftVersion };
  }
  if (type === ControlType.snapshotHeader) {
    const message = codecFor('SnapshotHeaderRecord', 0).decode(reader);
    const lastContainedLogTimestamp = Number(message.lastContainedLogTimestamp);
    return { type: 'SnapshotHeader', lastContainedLogTimestamp };
  }
  if (type === ControlType.snapshotFooter) return { type: 'SnapshotFooter' };
  if (type !== ControlType.voters) return null;
  const { voters } = codecFor('VotersRecord', 0).decode(reader);
  return { type: 'Voters', voters };
}
