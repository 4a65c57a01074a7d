/**
 * The records of `__consumer_offsets` as objects, with the names and fields of Kafka's schemas; their encoding is done
 * outside. A record whose value is null is a tombstone. int64 fields are `bigint`, as they come from and go to a log
 * that others may have written.
 */

export interface OffsetCommitKey {
  readonly group: string;
  readonly topic: string;
  readonly partition: number;
}

export interface OffsetCommitValue {
  readonly offset: bigint;
  /** -1: not known. */
  readonly leaderEpoch: number;
  readonly metadata: string;
  /** Milliseconds since 1970. */
  readonly commitTimestamp: bigint;
  /** -1 unless the client asked for a retention of its own (OffsetCommit up to version 4). */
  readonly expireTimestamp: bigint;
  /** The zero uuid where the client spoke of the topic by name and it could not be looked up. */
  readonly topicId: string;
}

export interface GroupMetadataKey {
  readonly group: string;
}

export interface GroupMetadataValue {
  readonly protocolType: string;
  readonly generation: number;
  readonly protocol: string | null;
  readonly leader: string | null;
  /** Since when the group is in the state that this record shows; milliseconds since 1970, -1 if not known. */
  readonly currentStateTimestamp: bigint;
  readonly members: readonly GroupMetadataMember[];
}

export interface GroupMetadataMember {
  readonly memberId: string;
  readonly groupInstanceId: string | null;
  readonly clientId: string;
  readonly clientHost: string;
  /** Milliseconds, as all time-outs here. */
  readonly rebalanceTimeout: number;
  readonly sessionTimeout: number;
  /** Of the protocol that was chosen. */
  readonly subscription: Uint8Array;
  readonly assignment: Uint8Array;
}

export interface ConsumerGroupKey {
  readonly groupId: string;
}

export interface ConsumerGroupMemberKey {
  readonly groupId: string;
  readonly memberId: string;
}

export interface ConsumerGroupMetadataValue {
  readonly epoch: number;
  /** Of the subscribed topics as they were when the epoch began; 0 if not known. */
  readonly metadataHash: bigint;
}

export interface ConsumerGroupMemberMetadataValue {
  readonly instanceId: string | null;
  readonly rackId: string | null;
  readonly clientId: string;
  readonly clientHost: string;
  readonly subscribedTopicNames: readonly string[];
  readonly subscribedTopicRegex: string | null;
  readonly rebalanceTimeoutMs: number;
  readonly serverAssignor: string | null;
  /** Only in groups that both protocols share, which are not served here; null in what is written. */
  readonly classicMemberMetadata: {
    readonly sessionTimeoutMs: number;
    readonly supportedProtocols: readonly {
      readonly name: string;
      readonly metadata: Uint8Array;
    }[];
  } | null;
}

/** Written by Kafka up to 4.0; read so that a tombstone follows when the group is deleted, never written. */
export interface ConsumerGroupPartitionMetadataValue {
  readonly topics: readonly {
    readonly topicId: string;
    readonly topicName: string;
    readonly numPartitions: number;
  }[];
}

export interface ConsumerGroupTargetAssignmentMetadataValue {
  readonly assignmentEpoch: number;
  /** Milliseconds since 1970, 0 if not known. */
  readonly assignmentTimestamp: bigint;
}

export interface TopicPartitions {
  readonly topicId: string;
  readonly partitions: readonly number[];
}

export interface ConsumerGroupTargetAssignmentMemberValue {
  readonly topicPartitions: readonly TopicPartitions[];
}

export interface OwnedTopicPartitions extends TopicPartitions {
  /** In which epoch each partition was assigned, in the order of `partitions`; null in older records. */
  readonly assignmentEpochs: readonly number[] | null;
}

export interface ConsumerGroupCurrentMemberAssignmentValue {
  readonly memberEpoch: number;
  readonly previousMemberEpoch: number;
  /** One of `MemberState`. */
  readonly state: number;
  readonly assignedPartitions: readonly OwnedTopicPartitions[];
  readonly partitionsPendingRevocation: readonly OwnedTopicPartitions[];
}

/** `type` is Kafka's name without "Key" and "Value". */
export type GroupRecord =
  | Entry<'OffsetCommit', OffsetCommitKey, OffsetCommitValue>
  | Entry<'GroupMetadata', GroupMetadataKey, GroupMetadataValue>
  | Entry<'ConsumerGroupMetadata', ConsumerGroupKey, ConsumerGroupMetadataValue>
  | Entry<'ConsumerGroupPartitionMetadata', ConsumerGroupKey, ConsumerGroupPartitionMetadataValue>
  | Entry<'ConsumerGroupMemberMetadata', ConsumerGroupMemberKey, ConsumerGroupMemberMetadataValue>
  | Entry<
      'ConsumerGroupTargetAssignmentMetadata',
      ConsumerGroupKey,
      ConsumerGroupTargetAssignmentMetadataValue
    >
  | Entry<
      'ConsumerGroupTargetAssignmentMember',
      ConsumerGroupMemberKey,
      ConsumerGroupTargetAssignmentMemberValue
    >
  | Entry<
      'ConsumerGroupCurrentMemberAssignment',
      ConsumerGroupMemberKey,
      ConsumerGroupCurrentMemberAssignmentValue
    >;

interface Entry<Type extends string, Key, Value> {
  readonly type: Type;
  readonly key: Key;
  readonly value: Value | null;
}
