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
   * The broker epoch that the last clean shutdown left on disk (KIP-966), or -1 after an unclean one. Then the broker
   * may lack the end of what it wrote, so the partitions that it leads get a new leader epoch.
   */
  readonly previousBrokerEpoch: number;
}

export interface RegisterBrokerResult {
  readonly brokerEpoch: number;
}

/** Every request that the controller takes, with what comes back. */
export interface ControllerApi {
  createTopics: { request: CreateTopicsRequest; result: CreateTopicsResult };
  deleteTopics: { request: DeleteTopicsRequest; result: DeleteTopicsResult };
  createPartitions: { request: CreatePartitionsRequest; result: CreatePartitionsResult };
  alterConfigs: { request: AlterConfigsRequest; result: AlterConfigsResult };
  allocateProducerIds: { request: AllocateProducerIdsRequest; result: AllocateProducerIdsResult };
  registerBroker: { request: RegisterBrokerRequest; result: RegisterBrokerResult };
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
