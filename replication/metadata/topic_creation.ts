/** What creating one topic means: which records, or why not. A pure function of the image and the request. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { ConfigEntry, CreateTopicResult, NewTopic } from './controller_api.ts';
import type { MetadataImage } from './image.ts';
import { placeReplicas, type RandomBelow } from './placement.ts';
import {
  ConfigResourceType,
  type MetadataRecord,
  type PartitionRecord,
  uuidZero,
} from './records.ts';

/** As Kafka's controller: a topic or a request beyond this is refused, so that a batch of records stays small. */
export const partitionsPerRequestMax = 10_000;

/** In UTF-16 units; Kafka's controller takes values up to the largest int16. */
const configValueLengthMax = 32_767;

/**
 * Checks the overrides of a new topic together. `error` says for people why they are refused, or is null; `values` are
 * the texts to be stored, in their normal form.
 */
export type TopicConfigCheck = (configs: readonly ConfigEntry[]) => {
  readonly error: string | null;
  readonly values: ReadonlyMap<string, string>;
};

export interface TopicCreationOptions {
  readonly defaultPartitions: number;
  readonly defaultReplicationFactor: number;
  readonly checkTopicConfigs: TopicConfigCheck;
  readonly random: RandomBelow;
  /** A new id, never all zero. */
  readonly newUuid: () => string;
}

export interface TopicPlan {
  readonly result: CreateTopicResult;
  /** Empty when `result` is an error. */
  readonly records: readonly MetadataRecord[];
}

interface Problem {
  readonly errorCode: Exclude<ErrorCode, 0>;
  readonly errorMessage: string;
}

/** Plans a topic whose name has been checked already and is free. */
export function planTopic(
  image: MetadataImage,
  topic: NewTopic,
  options: TopicCreationOptions,
): TopicPlan {
  const configs = checkConfigs(topic.configs, options.checkTopicConfigs);
  if ('errorCode' in configs) return { result: refuseTopic(topic.name, configs), records: [] };
  const replicas =
    topic.assignments.length > 0
      ? assignedReplicas(image, topic)
      : placedReplicas(image, topic, options);
  if ('errorCode' in replicas) return { result: refuseTopic(topic.name, replicas), records: [] };
  const topicId = unusedUuid(image, options.newUuid);
  const records: MetadataRecord[] = [{ type: 'TopicRecord', name: topic.name, topicId }];
  for (const [name, value] of configs)
    records.push({
      type: 'ConfigRecord',
      resourceType: ConfigResourceType.topic,
      resourceName: topic.name,
      name,
      value,
    });
  replicas.forEach((brokerIds, partitionId) => {
    records.push(newPartition(image, topicId, partitionId, brokerIds));
  });
  const result: CreateTopicResult = {
    name: topic.name,
    topicId,
    errorCode: ErrorCode.NONE,
    errorMessage: null,
    numPartitions: replicas.length,
    replicationFactor: replicas[0]!.length,
  };
  return { result, records };
}

export function refuseTopic(name: string, problem: Problem): CreateTopicResult {
  return { name, topicId: uuidZero, numPartitions: -1, replicationFactor: -1, ...problem };
}

function checkConfigs(
  configs: readonly ConfigEntry[],
  check: TopicConfigCheck,
): ReadonlyMap<string, string> | Problem {
  for (const { name, value } of configs) {
    if (value === null) return invalidConfig(`Null value not supported for topic configs: ${name}`);
    if (value.length > configValueLengthMax)
      return invalidConfig(`The value of ${name} is longer than ${configValueLengthMax}.`);
  }
  const { error, values } = check(configs);
  return error === null ? values : invalidConfig(error);
}

function invalidConfig(errorMessage: string): Problem {
  return { errorCode: ErrorCode.INVALID_CONFIG, errorMessage };
}

function placedReplicas(
  image: MetadataImage,
  topic: NewTopic,
  options: TopicCreationOptions,
): readonly (readonly number[])[] | Problem {
  if (topic.replicationFactor < -1 || topic.replicationFactor === 0)
    return {
      errorCode: ErrorCode.INVALID_REPLICATION_FACTOR,
      errorMessage: `Replication factor must be larger than 0, or -1 for the default; it is ${topic.replicationFactor}.`,
    };
  if (topic.numPartitions < -1 || topic.numPartitions === 0)
    return {
      errorCode: ErrorCode.INVALID_PARTITIONS,
      errorMessage: `Number of partitions must be larger than 0, or -1 for the default; it is ${topic.numPartitions}.`,
    };
  const partitions = topic.numPartitions === -1 ? options.defaultPartitions : topic.numPartitions;
  const replicationFactor =
    topic.replicationFactor === -1 ? options.defaultReplicationFactor : topic.replicationFactor;
  const placement = placeReplicas(
    [...image.brokers.values()].map(({ id, rack }) => ({ id, rack, fenced: !mayLead(image, id) })),
    partitions,
    replicationFactor,
    options.random,
  );
  if (placement.problem === null) return placement.replicas;
  return {
    errorCode: ErrorCode.INVALID_REPLICATION_FACTOR,
    errorMessage: `Unable to replicate the partition ${replicationFactor} time(s): ${placement.problem}`,
  };
}

function assignedReplicas(
  image: MetadataImage,
  topic: NewTopic,
): readonly (readonly number[])[] | Problem {
  if (topic.replicationFactor !== -1)
    return {
      errorCode: ErrorCode.INVALID_REQUEST,
      errorMessage: 'With a manual partition assignment the replication factor must be -1.',
    };
  if (topic.numPartitions !== -1)
    return {
      errorCode: ErrorCode.INVALID_REQUEST,
      errorMessage: 'With a manual partition assignment the number of partitions must be -1.',
    };
  const replicas: (readonly number[])[] = [];
  const first = topic.assignments[0]!;
  for (const { partitionIndex, brokerIds } of topic.assignments) {
    if (replicas[partitionIndex] !== undefined)
      return invalidAssignment(`Partition ${partitionIndex} is assigned more than once.`);
    if (partitionIndex < 0 || partitionIndex >= topic.assignments.length)
      return invalidAssignment(
        `Partitions must be numbered from 0 without gaps: ${partitionIndex} of ${topic.assignments.length} is not.`,
      );
    const problem = assignmentProblem(image, partitionIndex, brokerIds, first.brokerIds.length);
    if (problem !== null) return invalidAssignment(problem);
    replicas[partitionIndex] = brokerIds;
  }
  return replicas;
}

function assignmentProblem(
  image: MetadataImage,
  partitionIndex: number,
  brokerIds: readonly number[],
  replicationFactor: number,
): string | null {
  if (brokerIds.length === 0)
    return `The manual assignment of partition ${partitionIndex} has no replicas.`;
  if (brokerIds.length !== replicationFactor)
    return `The manual assignment of partition ${partitionIndex} has ${brokerIds.length} replica(s), others have ${replicationFactor}.`;
  const unknown = brokerIds.find((id) => image.broker(id) === undefined);
  if (unknown !== undefined)
    return `The manual assignment of partition ${partitionIndex} has broker ${unknown}, but no such broker is registered.`;
  const repeated = brokerIds.find((id, index) => brokerIds.indexOf(id) !== index);
  if (repeated !== undefined)
    return `The manual assignment of partition ${partitionIndex} has broker ${repeated} more than once.`;
  if (!brokerIds.some((id) => mayLead(image, id)))
    return `All brokers in the manual assignment of partition ${partitionIndex} are fenced or shutting down.`;
  return null;
}

function invalidAssignment(errorMessage: string): Problem {
  return { errorCode: ErrorCode.INVALID_REPLICA_ASSIGNMENT, errorMessage };
}

function mayLead(image: MetadataImage, brokerId: number): boolean {
  const broker = image.broker(brokerId);
  return broker !== undefined && !broker.fenced && !broker.inControlledShutdown;
}

function newPartition(
  image: MetadataImage,
  topicId: string,
  partitionId: number,
  replicas: readonly number[],
): PartitionRecord {
  const isr = replicas.filter((id) => mayLead(image, id));
  return {
    type: 'PartitionRecord',
    partitionId,
    topicId,
    replicas,
    isr,
    removingReplicas: [],
    addingReplicas: [],
    leader: isr[0]!,
    leaderRecoveryState: 0,
    leaderEpoch: 0,
    partitionEpoch: 0,
    directories: replicas.map((id) => defaultDirectory(image, id)),
    eligibleLeaderReplicas: null,
    lastKnownElr: null,
  };
}

/** A broker with one directory has no choice to report later; otherwise it says where the replica went (KIP-858). */
function defaultDirectory(image: MetadataImage, brokerId: number): string {
  const logDirs = image.broker(brokerId)?.logDirs ?? [];
  return logDirs.length === 1 ? logDirs[0]! : uuidZero;
}

function unusedUuid(image: MetadataImage, newUuid: () => string): string {
  for (;;) {
    const uuid = newUuid();
    if (image.topicById(uuid) === undefined) return uuid;
  }
}
