/**
 * Requests to the controller and their results, as plain structured-cloneable data: they cross threads today and hosts
 * later. Error codes and semantics are those of Kafka's KRaft controller.
 */
import type { ErrorCode } from '../../engine/error_code.gen.ts';
import type { BrokerEndpoint, FeatureRange } from './records.ts';

export interface ConfigEntry {
  readonly name: string;
  /** null asks for the default. */
  readonly value: string | null;
}

export interface NewTopic {
  readonly name: string;
  /** -1: the controller's default. */
  readonly numPartitions: number;
  /** -1: the controller's default. */
  readonly replicationFactor: number;
  /** Replicas by partition; empty: the controller places them. With it the two numbers above must be -1. */
  readonly assignments: readonly {
    readonly partitionIndex: number;
    readonly brokerIds: readonly number[];
  }[];
  readonly configs: readonly ConfigEntry[];
}

export interface CreateTopicsRequest {
  readonly topics: readonly NewTopic[];
  /** True: everything is checked, nothing changes. */
  readonly validateOnly: boolean;
}

export interface CreateTopicResult {
  readonly name: string;
  /** All zero unless the topic was created. */
  readonly topicId: string;
  readonly errorCode: ErrorCode;
  /** For people; null without an error. */
  readonly errorMessage: string | null;
  /** -1 with an error. */
  readonly numPartitions: number;
  /** -1 with an error. */
  readonly replicationFactor: number;
}

export interface CreateTopicsResult {
  /** One for each distinct name asked for. */
  readonly topics: readonly CreateTopicResult[];
}

/** Exactly one of name and topicId is given: the other is null. */
export interface TopicToDelete {
  readonly name: string | null;
  readonly topicId: string | null;
}

export interface DeleteTopicsRequest {
  readonly topics: readonly TopicToDelete[];
}

export interface DeleteTopicResult {
  /** null when only an id was given and it is unknown. */
  readonly name: string | null;
  /** All zero when only a name was given and it is unknown. */
  readonly topicId: string;
  readonly errorCode: ErrorCode;
  readonly errorMessage: string | null;
}

export interface DeleteTopicsResult {
  readonly topics: readonly DeleteTopicResult[];
}

/** A topic that is to have more partitions. */
export interface TopicGrowth {
  readonly name: string;
  /** How many it is to have in the end. */
  readonly count: number;
  /** Brokers of each new partition, leader first; null: the controller places them. */
  readonly assignments: readonly (readonly number[])[] | null;
}

export interface CreatePartitionsRequest {
  readonly topics: readonly TopicGrowth[];
  /** True: everything is checked, nothing changes. */
  readonly validateOnly: boolean;
}

export interface CreatePartitionsResult {
  /** One for each distinct name asked for. */
  readonly topics: readonly {
    readonly name: string;
    readonly errorCode: ErrorCode;
    readonly errorMessage: string | null;
  }[];
}

/** One key of a resource; `operation` is Kafka's `AlterConfigOp.OpType`. */
export interface ConfigChange extends ConfigEntry {
  readonly operation: number;
}

/** A resource whose settings change: a topic (type 2) or brokers (type 4; the name is an id, or '' for all). */
export interface ConfigsToAlter {
  readonly resourceType: number;
  readonly resourceName: string;
  /** True: what is not among the changes loses its override (AlterConfigs as it was before KIP-339). */
  readonly replacesAll: boolean;
  readonly changes: readonly ConfigChange[];
}

export interface AlterConfigsRequest {
  readonly resources: readonly ConfigsToAlter[];
  /** True: everything is checked, nothing changes. */
  readonly validateOnly: boolean;
}

export interface AlterConfigsResult {
  /** In the order of the request. */
  readonly resources: readonly {
    readonly resourceType: number;
    readonly resourceName: string;
    readonly errorCode: ErrorCode;
    readonly errorMessage: string | null;
  }[];
}

export interface AllocateProducerIdsRequest {
  readonly brokerId: number;
  readonly brokerEpoch: number;
}

/** The broker may hand out `firstProducerId` … `firstProducerId + length - 1`, and nobody else ever will. */
export interface AllocateProducerIdsResult {
  readonly firstProducerId: number;
  readonly length: number;
}

export interface RegisterBrokerRequest {
  readonly brokerId: number;
  /** Drawn anew at each start of the process. */
  readonly incarnationId: string;
  /** Advertised endpoints, with the ports that were really bound. */
  readonly endPoints: readonly BrokerEndpoint[];
  readonly features: readonly FeatureRange[];
  readonly rack: string | null;
  readonly logDirs: readonly string[];
  /**
   * The epoch of the broker's last run when nothing that it said to have can be missing from its logs, or -1 (KIP-966).
   * It can be said after a clean shutdown and, where replicas acknowledge only what is flushed, also after a crash.
   * With -1 the broker is no replica to elect any more where another one may take its place.
   */
  readonly previousBrokerEpoch: number;
  /** Replicas whose logs were found damaged: records that they had acknowledged are known to be missing. */
  readonly damagedReplicas: readonly DamagedReplicas[];
}

/** Of one topic. */
export interface DamagedReplicas {
  readonly topicId: string;
  readonly partitions: readonly number[];
}

/**
 * Errors: DUPLICATE_BROKER_REGISTRATION while another process with this id holds its session. In a cluster of several
 * nodes the broker is fenced until a heartbeat finds it caught up.
 */
export interface RegisterBrokerResult {
  readonly brokerEpoch: number;
}

/** Sent every `broker.heartbeat.interval.ms` (KIP-631); errors: BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH. */
export interface BrokerHeartbeatRequest {
  readonly brokerId: number;
  readonly brokerEpoch: number;
  /** Offset of the last metadata record that the broker has acted on, -1 before the first. */
  readonly currentMetadataOffset: number;
  /** True while the broker does not want to be used, because it starts. */
  readonly wantFence: boolean;
  /** True asks for a controlled shutdown: leadership moves away first. */
  readonly wantShutDown: boolean;
  /** Ids of log directories that have failed (KIP-858). */
  readonly offlineLogDirs: readonly string[];
}

export interface BrokerHeartbeatResult {
  /** True when the broker has acted on its own registration: it may be unfenced. */
  readonly isCaughtUp: boolean;
  readonly isFenced: boolean;
  /** True when nothing keeps the broker any more: it leads nothing, or nobody could take over. */
  readonly shouldShutDown: boolean;
}

/** A change of in-sync replicas that partition leaders ask for (KIP-497, KIP-903). */
export interface AlterPartitionRequest {
  readonly brokerId: number;
  readonly brokerEpoch: number;
  readonly topics: readonly {
    readonly topicId: string;
    readonly partitions: readonly PartitionToAlter[];
  }[];
}

export interface PartitionToAlter {
  readonly partitionIndex: number;
  readonly leaderEpoch: number;
  /** Members of the new ISR, the leader among them, with the broker epochs that the leader saw them fetch with. */
  readonly newIsr: readonly { readonly brokerId: number; readonly brokerEpoch: number }[];
  /** 0 recovered, 1 recovering (KIP-704). */
  readonly leaderRecoveryState: number;
  /** The partition epoch that the proposal rests on. */
  readonly partitionEpoch: number;
}

/**
 * Whole-request errors: STALE_BROKER_EPOCH. Of a partition: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION,
 * NOT_CONTROLLER (its epochs are newer than this controller's view), FENCED_LEADER_EPOCH, INVALID_REQUEST (not the leader, or a
 * malformed ISR), INVALID_UPDATE_VERSION (the partition epoch has moved on), INELIGIBLE_REPLICA (a member is fenced, shutting
 * down, or registered with another epoch), NEW_LEADER_ELECTED (done, and with it the leader has changed).
 */
export interface AlterPartitionResult {
  readonly topics: readonly {
    readonly topicId: string;
    readonly partitions: readonly AlteredPartition[];
  }[];
}

/** With an error (but for NEW_LEADER_ELECTED) the state fields are -1 and empty. */
export interface AlteredPartition {
  readonly partitionIndex: number;
  readonly errorCode: ErrorCode;
  readonly leaderId: number;
  readonly leaderEpoch: number;
  readonly isr: readonly number[];
  readonly leaderRecoveryState: number;
  readonly partitionEpoch: number;
}

/** Kafka's `ElectionType`. */
export const ElectionType = { preferred: 0, unclean: 1 } as const;

export interface ElectLeadersRequest {
  /** One of `ElectionType`; another is refused with INVALID_REQUEST. */
  readonly electionType: number;
  /** null: all partitions; then those that need nothing are left out of the result. */
  readonly topics:
    | readonly {
        readonly name: string;
        readonly partitions: readonly number[];
      }[]
    | null;
}

/** A partition of a result that has nothing but its error; ELECTION_NOT_NEEDED and the like come with a message. */
export interface PartitionOutcome {
  readonly partitionIndex: number;
  readonly errorCode: ErrorCode;
  readonly errorMessage: string | null;
}

export interface TopicOutcomes {
  readonly name: string;
  readonly partitions: readonly PartitionOutcome[];
}

export interface ElectLeadersResult {
  readonly topics: readonly TopicOutcomes[];
}

/** Partitions that are to move to other brokers (KIP-455). */
export interface AlterPartitionReassignmentsRequest {
  /** False: a target of another size than what it replaces is refused (KIP-860). */
  readonly allowReplicationFactorChange: boolean;
  readonly topics: readonly {
    readonly name: string;
    readonly partitions: readonly {
      readonly partitionIndex: number;
      /** The brokers in the end, preferred leader first; null cancels the reassignment that is under way. */
      readonly replicas: readonly number[] | null;
    }[];
  }[];
}

export interface AlterPartitionReassignmentsResult {
  readonly topics: readonly TopicOutcomes[];
}

/** Removes a broker that will not come back; error: BROKER_ID_NOT_REGISTERED. */
export interface UnregisterBrokerRequest {
  readonly brokerId: number;
}

/** Nothing but that it is done. */
export type UnregisterBrokerResult = Readonly<Record<never, never>>;

/** Every request that the controller takes, with what comes back. */
export interface ControllerApi {
  createTopics: { request: CreateTopicsRequest; result: CreateTopicsResult };
  deleteTopics: { request: DeleteTopicsRequest; result: DeleteTopicsResult };
  createPartitions: { request: CreatePartitionsRequest; result: CreatePartitionsResult };
  alterConfigs: { request: AlterConfigsRequest; result: AlterConfigsResult };
  allocateProducerIds: { request: AllocateProducerIdsRequest; result: AllocateProducerIdsResult };
  registerBroker: { request: RegisterBrokerRequest; result: RegisterBrokerResult };
  brokerHeartbeat: { request: BrokerHeartbeatRequest; result: BrokerHeartbeatResult };
  alterPartition: { request: AlterPartitionRequest; result: AlterPartitionResult };
  electLeaders: { request: ElectLeadersRequest; result: ElectLeadersResult };
  alterPartitionReassignments: {
    request: AlterPartitionReassignmentsRequest;
    result: AlterPartitionReassignmentsResult;
  };
  unregisterBroker: { request: UnregisterBrokerRequest; result: UnregisterBrokerResult };
}

export type ControllerRequestType = keyof ControllerApi;

export type ControllerRequest = {
  [K in ControllerRequestType]: { readonly type: K } & ControllerApi[K]['request'];
}[ControllerRequestType];

/** The request as a whole either has a result or failed with a code (NOT_CONTROLLER, REQUEST_TIMED_OUT, …). */
export type ControllerReply<Result> =
  | { readonly errorCode: 0; readonly result: Result }
  | {
      readonly errorCode: Exclude<ErrorCode, 0>;
      readonly errorMessage: string;
      readonly result: null;
    };

export type AnyControllerReply = ControllerReply<ControllerApi[ControllerRequestType]['result']>;
