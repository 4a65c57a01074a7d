/**
 * Records of the cluster metadata log, with Kafka's names and fields (KIP-500, KIP-631 and later ones), as plain
 * structured-cloneable objects. How they are encoded is not this layer's business: see `MetadataRecordCodec`.
 *
 * Units and forms: ids of topics, directories and incarnations are Kafka's 22-character base64url texts; offsets,
 * broker epochs and producer ids are numbers (they stay below 2^53); `null` in a change record means "unchanged".
 */

/** Kafka's all-zero uuid: "no topic id", and for a replica's directory "not assigned yet". */
export const uuidZero = 'AAAAAAAAAAAAAAAAAAAAAA';

/** Kafka's `Uuid.METADATA_TOPIC_ID` (0, 1); as a directory id it means LOST. */
export const uuidMetadataTopic = 'AAAAAAAAAAAAAAAAAAAAAQ';

export const metadataTopicName = '__cluster_metadata';

/** Kafka's `ConfigResource.Type`. */
export const ConfigResourceType = {
  topic: 2,
  broker: 4,
  brokerLogger: 8,
  clientMetrics: 16,
  group: 32,
} as const;

export interface TopicRecord {
  readonly type: 'TopicRecord';
  readonly name: string;
  readonly topicId: string;
}

/** The whole state of a partition; `directories` runs parallel to `replicas` (KIP-858). */
export interface PartitionRecord {
  readonly type: 'PartitionRecord';
  readonly partitionId: number;
  readonly topicId: string;
  readonly replicas: readonly number[];
  readonly isr: readonly number[];
  readonly removingReplicas: readonly number[];
  readonly addingReplicas: readonly number[];
  readonly leader: number;
  /** 0 recovered, 1 recovering after an unclean election (KIP-704). */
  readonly leaderRecoveryState: number;
  readonly leaderEpoch: number;
  readonly partitionEpoch: number;
  readonly directories: readonly string[];
  readonly eligibleLeaderReplicas: readonly number[] | null;
  readonly lastKnownElr: readonly number[] | null;
}

/** Changes fields of a partition; each such record raises the partition epoch by one. */
export interface PartitionChangeRecord {
  readonly type: 'PartitionChangeRecord';
  readonly partitionId: number;
  readonly topicId: string;
  readonly isr: readonly number[] | null;
  /** -2 unchanged, -1 no leader. Setting it, even to the same broker, raises the leader epoch by one. */
  readonly leader: number;
  readonly replicas: readonly number[] | null;
  readonly removingReplicas: readonly number[] | null;
  readonly addingReplicas: readonly number[] | null;
  /** -1 unchanged. */
  readonly leaderRecoveryState: number;
  readonly directories: readonly string[] | null;
  readonly eligibleLeaderReplicas: readonly number[] | null;
  readonly lastKnownElr: readonly number[] | null;
}

/** `value` null removes the override. */
export interface ConfigRecord {
  readonly type: 'ConfigRecord';
  readonly resourceType: number;
  readonly resourceName: string;
  readonly name: string;
  readonly value: string | null;
}

/** Removes the topic, its partitions and its config overrides. */
export interface RemoveTopicRecord {
  readonly type: 'RemoveTopicRecord';
  readonly topicId: string;
}

export interface BrokerEndpoint {
  /** The listener's name. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL. */
  readonly securityProtocol: number;
}

export interface FeatureRange {
  readonly name: string;
  readonly minSupportedVersion: number;
  readonly maxSupportedVersion: number;
}

export interface RegisterBrokerRecord {
  readonly type: 'RegisterBrokerRecord';
  readonly brokerId: number;
  readonly incarnationId: string;
  readonly brokerEpoch: number;
  readonly endPoints: readonly BrokerEndpoint[];
  readonly features: readonly FeatureRange[];
  readonly rack: string | null;
  readonly fenced: boolean;
  readonly inControlledShutdown: boolean;
  readonly logDirs: readonly string[];
}

/** `fenced` and `inControlledShutdown`: -1 cleared, 0 unchanged, 1 set; of the latter only 0 and 1 exist. */
export interface BrokerRegistrationChangeRecord {
  readonly type: 'BrokerRegistrationChangeRecord';
  readonly brokerId: number;
  readonly brokerEpoch: number;
  readonly fenced: number;
  readonly inControlledShutdown: number;
  /** Empty: unchanged. */
  readonly logDirs: readonly string[];
}

export interface UnregisterBrokerRecord {
  readonly type: 'UnregisterBrokerRecord';
  readonly brokerId: number;
  readonly brokerEpoch: number;
}

/** Level 0 removes the feature. */
export interface FeatureLevelRecord {
  readonly type: 'FeatureLevelRecord';
  readonly name: string;
  readonly featureLevel: number;
}

/** `nextProducerId` is the first id that has not been given to any broker. */
export interface ProducerIdsRecord {
  readonly type: 'ProducerIdsRecord';
  readonly brokerId: number;
  readonly brokerEpoch: number;
  readonly nextProducerId: number;
}

export interface NoOpRecord {
  readonly type: 'NoOpRecord';
}

/** A record that another product wrote and that no part here uses (ACLs, quotas, …): kept in the log, not in the image. */
export interface UnknownRecord {
  readonly type: 'UnknownRecord';
  /** Kafka's name of its kind. */
  readonly name: string;
}

export type MetadataRecord =
  | TopicRecord
  | PartitionRecord
  | PartitionChangeRecord
  | ConfigRecord
  | RemoveTopicRecord
  | RegisterBrokerRecord
  | BrokerRegistrationChangeRecord
  | UnregisterBrokerRecord
  | FeatureLevelRecord
  | ProducerIdsRecord
  | NoOpRecord
  | UnknownRecord;

/** A voter of the metadata quorum, known by number and directory id together (KIP-853). */
export interface Voter {
  readonly voterId: number;
  readonly voterDirectoryId: string;
  readonly endpoints: readonly {
    readonly name: string;
    readonly host: string;
    readonly port: number;
  }[];
}

/** Records of the quorum's own, in control batches: they take offsets but never reach the image. */
export type QuorumControlRecord =
  | { readonly type: 'LeaderChange'; readonly leaderId: number; readonly voters: readonly Voter[] }
  | { readonly type: 'KRaftVersion'; readonly kraftVersion: number }
  | { readonly type: 'Voters'; readonly voters: readonly Voter[] }
  /** First and last of a snapshot. Milliseconds since 1970. */
  | { readonly type: 'SnapshotHeader'; readonly lastContainedLogTimestamp: number }
  | { readonly type: 'SnapshotFooter' };

/** Turns records into the bytes that Kafka's tools read, and back. Implemented in net, which knows the encoding. */
export interface MetadataRecordCodec {
  /** The value of a data record: frame version, api key and version as uvarints, then the message. */
  encode(record: MetadataRecord): Uint8Array;
  /** Throws on bytes that are no metadata record; a record kind that is merely unused becomes an `UnknownRecord`. */
  decode(value: Uint8Array): MetadataRecord;
  /** Key and value of a control record. */
  encodeControl(record: QuorumControlRecord): { key: Uint8Array; value: Uint8Array };
  /** null for a control record that says nothing that matters here. */
  decodeControl(key: Uint8Array, value: Uint8Array): QuorumControlRecord | null;
}

/** What one batch of the metadata log changes. Plain data, so that it can be posted to other threads. */
export interface MetadataBatch {
  readonly snapshot: false;
  /** Offset of the first record; the others follow without gaps. */
  readonly firstOffset: number;
  /** Offset of the last record. A batch of the quorum's own records has offsets, but no `records` here. */
  readonly lastOffset: number;
  /** Term of the quorum in which the batch was written. */
  readonly epoch: number;
  /** Leader of the quorum as far as known, or -1. */
  readonly leaderId: number;
  readonly records: readonly MetadataRecord[];
}

/** Everything up to `lastOffset` (-1 when nothing has ever been committed), for those who join late. */
export interface MetadataSnapshot {
  readonly snapshot: true;
  readonly lastOffset: number;
  readonly epoch: number;
  readonly leaderId: number;
  /** Offset of the last change of a feature, -1 when there was none. */
  readonly featuresEpoch: number;
  readonly records: readonly MetadataRecord[];
}

export type MetadataDelta = MetadataBatch | MetadataSnapshot;
