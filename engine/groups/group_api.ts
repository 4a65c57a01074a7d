/**
 * What clients ask of a group's coordinator and what it answers, one group at a time: the fields of Kafka's messages,
 * less those that the server adds to every answer (throttle time, authorized operations).
 *
 * A request that names several groups (DescribeGroups, DeleteGroups, OffsetFetch from version 8, ConsumerGroupDescribe)
 * is split by the caller; the old single-group forms (LeaveGroup below version 3, OffsetFetch below 8) are brought into
 * the form below.
 */
import type { ErrorCode } from '../error_code.gen.ts';
import type { TopicPartitions } from './group_records.ts';

/** Who asks, as DescribeGroups shows it. */
export interface Client {
  readonly clientId: string;
  /** Kafka writes it with a leading slash. */
  readonly clientHost: string;
}

export interface JoinGroupRequest {
  readonly groupId: string;
  readonly sessionTimeoutMs: number;
  /** Version 0 has none: the caller puts the session time-out. */
  readonly rebalanceTimeoutMs: number;
  /** Empty: the coordinator is to name the member. */
  readonly memberId: string;
  readonly groupInstanceId: string | null;
  readonly protocolType: string;
  /** In order of preference. */
  readonly protocols: readonly { readonly name: string; readonly metadata: Uint8Array }[];
  readonly reason: string | null;
  /** KIP-394, version 4 and later: a dynamic member must come back with the id that it is told. */
  readonly requireKnownMemberId: boolean;
  /** KIP-814, version 9 and later. */
  readonly supportSkippingAssignment: boolean;
}

export interface JoinGroupReply {
  readonly errorCode: ErrorCode;
  readonly generationId: number;
  readonly protocolType: string | null;
  /** Null below version 7 must be sent as an empty string. */
  readonly protocolName: string | null;
  readonly leader: string;
  readonly skipAssignment: boolean;
  readonly memberId: string;
  /** Of all members, for the leader only. */
  readonly members: readonly {
    readonly memberId: string;
    readonly groupInstanceId: string | null;
    readonly metadata: Uint8Array;
  }[];
}

export interface SyncGroupRequest {
  readonly groupId: string;
  readonly generationId: number;
  readonly memberId: string;
  readonly groupInstanceId: string | null;
  /** From version 5; null: not said, not checked. */
  readonly protocolType: string | null;
  readonly protocolName: string | null;
  /** From the leader only. */
  readonly assignments: readonly { readonly memberId: string; readonly assignment: Uint8Array }[];
}

export interface SyncGroupReply {
  readonly errorCode: ErrorCode;
  readonly protocolType: string | null;
  readonly protocolName: string | null;
  readonly assignment: Uint8Array;
}

export interface HeartbeatRequest {
  readonly groupId: string;
  readonly generationId: number;
  readonly memberId: string;
  readonly groupInstanceId: string | null;
}

export interface LeaveGroupRequest {
  readonly groupId: string;
  readonly members: readonly {
    readonly memberId: string;
    readonly groupInstanceId: string | null;
    readonly reason: string | null;
  }[];
}

export interface LeaveGroupReply {
  readonly errorCode: ErrorCode;
  /** Below version 3 the one member's error is the answer's. */
  readonly members: readonly {
    readonly memberId: string;
    readonly groupInstanceId: string | null;
    readonly errorCode: ErrorCode;
  }[];
}

export interface OffsetCommitRequest {
  readonly groupId: string;
  /** In which version it was asked: from 9 on the client knows the errors of KIP-848. */
  readonly apiVersion: number;
  /** -1 with an empty member id: a consumer that is no member ("simple"), or an administrator. */
  readonly generationIdOrMemberEpoch: number;
  readonly memberId: string;
  readonly groupInstanceId: string | null;
  /** -1: the broker's. Versions 2 to 4 only. */
  readonly retentionTimeMs: bigint;
  /** Topics that do not exist are answered by the caller and not passed on. */
  readonly topics: readonly {
    readonly name: string;
    readonly topicId: string;
    readonly partitions: readonly {
      readonly partitionIndex: number;
      readonly committedOffset: bigint;
      readonly committedLeaderEpoch: number;
      readonly committedMetadata: string | null;
    }[];
  }[];
}

export interface OffsetCommitReply {
  readonly topics: readonly {
    readonly name: string;
    readonly topicId: string;
    readonly partitions: readonly {
      readonly partitionIndex: number;
      readonly errorCode: ErrorCode;
    }[];
  }[];
}

export interface OffsetFetchRequest {
  readonly groupId: string;
  /** From version 9; null and -1: not checked. */
  readonly memberId: string | null;
  readonly memberEpoch: number;
  /** Null: all that the group has. */
  readonly topics:
    | readonly {
        readonly name: string;
        readonly topicId: string;
        readonly partitionIndexes: readonly number[];
      }[]
    | null;
}

export interface OffsetFetchReply {
  readonly groupId: string;
  readonly errorCode: ErrorCode;
  readonly topics: readonly OffsetFetchReplyTopic[];
}

export interface OffsetFetchReplyTopic {
  readonly name: string;
  readonly topicId: string;
  readonly partitions: readonly {
    readonly partitionIndex: number;
    /** -1: none, which is no error. */
    readonly committedOffset: bigint;
    readonly committedLeaderEpoch: number;
    readonly metadata: string | null;
    readonly errorCode: ErrorCode;
  }[];
}

export interface OffsetDeleteRequest {
  readonly groupId: string;
  readonly topics: readonly {
    readonly name: string;
    readonly partitions: readonly { readonly partitionIndex: number }[];
  }[];
}

export interface OffsetDeleteReply {
  readonly errorCode: ErrorCode;
  readonly topics: readonly {
    readonly name: string;
    readonly partitions: readonly {
      readonly partitionIndex: number;
      readonly errorCode: ErrorCode;
    }[];
  }[];
}

export interface ListGroupsRequest {
  /** Empty: all. Case does not matter; what is unknown matches nothing. */
  readonly statesFilter: readonly string[];
  readonly typesFilter: readonly string[];
}

export interface ListGroupsReply {
  readonly errorCode: ErrorCode;
  readonly groups: readonly {
    readonly groupId: string;
    readonly protocolType: string;
    readonly groupState: string;
    readonly groupType: string;
  }[];
}

export interface GroupIdRequest {
  readonly groupId: string;
}

/** One entry of the DescribeGroups answer. A group that does not exist is GROUP_ID_NOT_FOUND; below version 6 the caller
 * sends no error then, as the state "Dead" says it. */
export interface DescribeGroupReply {
  readonly errorCode: ErrorCode;
  readonly errorMessage: string | null;
  readonly groupId: string;
  readonly groupState: string;
  readonly protocolType: string;
  readonly protocolData: string;
  readonly members: readonly {
    readonly memberId: string;
    readonly groupInstanceId: string | null;
    readonly clientId: string;
    readonly clientHost: string;
    readonly memberMetadata: Uint8Array;
    readonly memberAssignment: Uint8Array;
  }[];
}

export interface ConsumerGroupHeartbeatRequest {
  readonly groupId: string;
  /** In which version it was asked: from 1 on members name themselves. */
  readonly apiVersion: number;
  readonly memberId: string;
  /** 0: join; -1: leave; -2: a static member leaves for a while. */
  readonly memberEpoch: number;
  readonly instanceId: string | null;
  readonly rackId: string | null;
  /** -1, null: as it was said before. */
  readonly rebalanceTimeoutMs: number;
  readonly subscribedTopicNames: readonly string[] | null;
  readonly subscribedTopicRegex: string | null;
  readonly serverAssignor: string | null;
  readonly topicPartitions: readonly TopicPartitions[] | null;
}

export interface ConsumerGroupHeartbeatReply {
  readonly errorCode: ErrorCode;
  readonly errorMessage: string | null;
  readonly memberId: string | null;
  readonly memberEpoch: number;
  readonly heartbeatIntervalMs: number;
  /** Null: as it was. */
  readonly assignment: { readonly topicPartitions: readonly TopicPartitions[] } | null;
}

export interface NamedTopicPartitions extends TopicPartitions {
  readonly topicName: string;
}

/** One entry of the ConsumerGroupDescribe answer. */
export interface ConsumerGroupDescribeReply {
  readonly errorCode: ErrorCode;
  readonly errorMessage: string | null;
  readonly groupId: string;
  readonly groupState: string;
  readonly groupEpoch: number;
  readonly assignmentEpoch: number;
  readonly assignorName: string;
  readonly members: readonly {
    readonly memberId: string;
    readonly instanceId: string | null;
    readonly rackId: string | null;
    readonly memberEpoch: number;
    readonly clientId: string;
    readonly clientHost: string;
    readonly subscribedTopicNames: readonly string[];
    readonly subscribedTopicRegex: string | null;
    readonly assignment: { readonly topicPartitions: readonly NamedTopicPartitions[] };
    readonly targetAssignment: { readonly topicPartitions: readonly NamedTopicPartitions[] };
    readonly memberType: number;
  }[];
}

/** Every call and its answer, by Kafka's names. */
export interface GroupCalls {
  JoinGroup: { readonly request: JoinGroupRequest; readonly reply: JoinGroupReply };
  SyncGroup: { readonly request: SyncGroupRequest; readonly reply: SyncGroupReply };
  Heartbeat: {
    readonly request: HeartbeatRequest;
    readonly reply: { readonly errorCode: ErrorCode };
  };
  LeaveGroup: { readonly request: LeaveGroupRequest; readonly reply: LeaveGroupReply };
  OffsetCommit: { readonly request: OffsetCommitRequest; readonly reply: OffsetCommitReply };
  OffsetFetch: { readonly request: OffsetFetchRequest; readonly reply: OffsetFetchReply };
  OffsetDelete: { readonly request: OffsetDeleteRequest; readonly reply: OffsetDeleteReply };
  ListGroups: { readonly request: ListGroupsRequest; readonly reply: ListGroupsReply };
  DescribeGroups: { readonly request: GroupIdRequest; readonly reply: DescribeGroupReply };
  DeleteGroups: {
    readonly request: GroupIdRequest;
    readonly reply: { readonly errorCode: ErrorCode };
  };
  ConsumerGroupHeartbeat: {
    readonly request: ConsumerGroupHeartbeatRequest;
    readonly reply: ConsumerGroupHeartbeatReply;
  };
  ConsumerGroupDescribe: {
    readonly request: GroupIdRequest;
    readonly reply: ConsumerGroupDescribeReply;
  };
}

export type GroupApi = keyof GroupCalls;

/** A request with its API, to be told apart by `api`. */
export type GroupRequest = {
  [Api in GroupApi]: { readonly api: Api; readonly body: GroupCalls[Api]['request'] };
}[GroupApi];

export type GroupReply = {
  [Api in GroupApi]: { readonly api: Api; readonly body: GroupCalls[Api]['reply'] };
}[GroupApi];
