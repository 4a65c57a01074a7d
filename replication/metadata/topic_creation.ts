/** What creating one topic means: which records, or why not. A pure function of the image and the request. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { type ConfigRules, configValueLengthMax } from './config_alteration.ts';
import type { ConfigEntry, CreateTopicResult, NewTopic } from './controller_api.ts';
import type { MetadataImage } from './image.ts';
import { assignmentProblem, newPartition, placeOnBrokers } from './new_partitions.ts';
import type { RandomBelow } from './placement.ts';
import { ConfigResourceType, type MetadataRecord, uuidZero } from './records.ts';

/** As Kafka's controller: a topic or a request beyond this is refused, so that a batch of records stays small. */
export const partitionsPerRequestMax = 10_000;

export interface TopicCreationOptions {
  readonly defaultPartitions: number;
  readonly defaultReplicationFactor: number;
  readonly checkTopicConfigs: ConfigRules['checkTopicConfigs'];
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
  check: ConfigRules['checkTopicConfigs'],
): ReadonlyMap<string, string> | Problem {
  for (const { name, value } of configs) {
    if (value === null) return invalidConfig(`Null value not supported for topic configs: ${name}`);
    if (value.length > configValueLengthMax)
      return invalidConfig(`The value of ${name} is longer than ${configValueLengthMax}.`);
  }
  const { error, values } = check(configs, null);
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
  const placement = placeOnBrokers(image, partitions, replicationFactor, options.random);
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
    const problem = assignmentProblem(image, brokerIds, partitionIndex, first.brokerIds.length);
    if (problem !== null) return invalidAssignment(problem);
    replicas[partitionIndex] = brokerIds;
  }
  return replicas;
}

function invalidAssignment(errorMessage: string): Problem {
  return { errorCode: ErrorCode.INVALID_REPLICA_ASSIGNMENT, errorMessage };
}

function unusedUuid(image: MetadataImage, newUuid: () => string): string {
  for (;;) {
    const uuid = newUuid();
    if (image.topicById(uuid) === undefined) return uuid;
  }
}
