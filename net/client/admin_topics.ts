/** Topics: made, listed, described, extended and deleted; and records deleted from them. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { type AdminOptions, quoted } from './admin_options.ts';
import type { Cluster } from './cluster.ts';
import { brokerError } from './errors.ts';
import type { TopicInfo } from './metadata.ts';

export interface CreateTopicOptions extends AdminOptions {
  /** Default: the broker's num.partitions. Not together with `assignments`. */
  readonly partitions?: number | undefined;
  /** Default: the broker's default.replication.factor. Not together with `assignments`. */
  readonly replicationFactor?: number | undefined;
  /** Replicas of each partition by broker id, the first one preferred as leader. */
  readonly assignments?: readonly (readonly number[])[] | undefined;
  /** Settings of the topic, with Kafka's names. */
  readonly configs?: Readonly<Record<string, string>> | undefined;
  /** A topic of that name is no error, whatever its partitions and settings: what there is is returned. Default false. */
  readonly ifNotExists?: boolean | undefined;
  /** Only checks whether it could be made. */
  readonly validateOnly?: boolean | undefined;
}

export interface CreatedTopic {
  readonly name: string;
  /** Null where the broker does not tell it. */
  readonly topicId: string | null;
  /** -1 where the broker does not tell it. */
  readonly partitions: number;
  readonly replicationFactor: number;
}

const zeroUuid = 'AAAAAAAAAAAAAAAAAAAAAA';
const brokersDefault = -1;

/** Throws TOPIC_ALREADY_EXISTS, INVALID_REPLICATION_FACTOR, INVALID_CONFIG, … */
export async function createTopic(
  cluster: Cluster,
  name: string,
  options: CreateTopicOptions = {},
): Promise<CreatedTopic> {
  const { signal, timeoutMs = cluster.timeoutMs, assignments = [], configs = {} } = options;
  const isAssigned = assignments.length > 0;
  const topic = {
    name,
    numPartitions: isAssigned ? brokersDefault : (options.partitions ?? brokersDefault),
    replicationFactor: isAssigned ? brokersDefault : (options.replicationFactor ?? brokersDefault),
    assignments: assignments.map((ids, partitionIndex) => ({
      partitionIndex,
      brokerIds: [...ids],
    })),
    configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
  };
  const reply = await cluster.request(
    'controller',
    'CreateTopics',
    { topics: [topic], timeoutMs, validateOnly: options.validateOnly ?? false },
    {
      ...{ signal, timeoutMs, isRepeatable: false },
      // From version 4 on -1 means the broker's default (KIP-464).
      minVersion: 4,
      errorOf: ({ topics }) => topics[0]?.errorCode ?? ErrorCode.NONE,
    },
  );
  const made = reply.topics[0];
  const errorCode = made?.errorCode ?? ErrorCode.UNKNOWN_SERVER_ERROR;
  if (errorCode === ErrorCode.TOPIC_ALREADY_EXISTS && options.ifNotExists === true) {
    const { topicId, partitions } = await describeTopic(cluster, name, options);
    const replicationFactor = partitions[0]?.replicas.length ?? -1;
    return { name, topicId, partitions: partitions.length, replicationFactor };
  }
  if (made === undefined || errorCode !== ErrorCode.NONE)
    throw brokerError(errorCode, `creating topic ${quoted(name)}`, made?.errorMessage);
  return {
    name,
    topicId: made.topicId === zeroUuid ? null : made.topicId,
    partitions: made.numPartitions,
    replicationFactor: made.replicationFactor,
  };
}

/** By name. */
export async function listTopics(
  cluster: Cluster,
  options: AdminOptions & { readonly internal?: boolean | undefined } = {},
): Promise<TopicInfo[]> {
  const topics = await cluster.allTopics({ signal: options.signal });
  return topics
    .filter(({ isInternal }) => options.internal === true || !isInternal)
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** As it is now. Throws UNKNOWN_TOPIC_OR_PARTITION. */
export async function describeTopic(
  cluster: Cluster,
  name: string,
  options: AdminOptions = {},
): Promise<TopicInfo> {
  cluster.metadata.forget(name);
  return await cluster.topic(name, options);
}

/** With all its records. Throws UNKNOWN_TOPIC_OR_PARTITION. */
export async function deleteTopic(
  cluster: Cluster,
  name: string,
  options: AdminOptions = {},
): Promise<void> {
  const { signal, timeoutMs = cluster.timeoutMs } = options;
  const reply = await cluster.request(
    'controller',
    'DeleteTopics',
    (version) =>
      version >= 6 ? { topics: [{ name }], timeoutMs } : { topicNames: [name], timeoutMs },
    {
      ...{ signal, timeoutMs, isRepeatable: false },
      errorOf: ({ responses }) => {
        const code = responses[0]?.errorCode ?? ErrorCode.NONE;
        // Retriable for producers: the topic may be on its way. Who deletes it knows that it was there.
        return code === ErrorCode.UNKNOWN_TOPIC_OR_PARTITION ? ErrorCode.NONE : code;
      },
    },
  );
  const { errorCode = ErrorCode.UNKNOWN_SERVER_ERROR, errorMessage } = reply.responses[0] ?? {};
  if (errorCode !== ErrorCode.NONE)
    throw brokerError(errorCode, `deleting topic ${quoted(name)}`, errorMessage, {
      isRetriable: false,
    });
  cluster.metadata.forget(name);
}

/** @param total how many the topic is to have, with those that it has. Throws INVALID_PARTITIONS, … */
export async function addPartitions(
  cluster: Cluster,
  name: string,
  total: number,
  options: AdminOptions & { readonly validateOnly?: boolean | undefined } = {},
): Promise<void> {
  const { signal, timeoutMs = cluster.timeoutMs, validateOnly = false } = options;
  const reply = await cluster.request(
    'controller',
    'CreatePartitions',
    { topics: [{ name, count: total, assignments: null }], timeoutMs, validateOnly },
    {
      ...{ signal, timeoutMs, isRepeatable: false },
      errorOf: ({ results }) => {
        const code = results[0]?.errorCode ?? ErrorCode.NONE;
        return code === ErrorCode.UNKNOWN_TOPIC_OR_PARTITION ? ErrorCode.NONE : code;
      },
    },
  );
  const { errorCode = ErrorCode.UNKNOWN_SERVER_ERROR, errorMessage } = reply.results[0] ?? {};
  if (errorCode !== ErrorCode.NONE)
    throw brokerError(errorCode, `adding partitions to ${quoted(name)}`, errorMessage, {
      isRetriable: false,
    });
  if (!validateOnly) cluster.metadata.forget(name);
}

/**
 * Deletes the records below an offset; 'latest' deletes all that are there. Returns where the partition begins then.
 * Throws OFFSET_OUT_OF_RANGE, POLICY_VIOLATION (a compacted topic), …
 */
export async function deleteRecords(
  cluster: Cluster,
  topic: string,
  partition: number,
  before: number | 'latest',
  options: AdminOptions = {},
): Promise<number> {
  const { signal, timeoutMs = cluster.timeoutMs } = options;
  const offset = BigInt(before === 'latest' ? -1 : before);
  const reply = await cluster.request(
    { topic, partition },
    'DeleteRecords',
    {
      topics: [{ name: topic, partitions: [{ partitionIndex: partition, offset }] }],
      timeoutMs,
    },
    {
      ...{ signal, timeoutMs },
      errorOf: ({ topics }) => topics[0]?.partitions[0]?.errorCode ?? ErrorCode.NONE,
    },
  );
  const result = reply.topics[0]?.partitions[0];
  const errorCode = result?.errorCode ?? ErrorCode.UNKNOWN_SERVER_ERROR;
  if (result === undefined || errorCode !== ErrorCode.NONE)
    throw brokerError(errorCode, `deleting records of ${topic}-${partition}`);
  return Number(result.lowWatermark);
}
