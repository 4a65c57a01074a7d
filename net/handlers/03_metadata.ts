/**
 * Metadata (key 3): brokers, and topics with their partitions and leaders.
 *
 * v0 an empty list of topics means all · v1 null means all, an empty list none; controller, rack, internal flag ·
 * v2 cluster id · v3 throttle time · v4 allow_auto_topic_creation (KIP-204) · v5 offline replicas (KIP-112) ·
 * v6 as v5 · v7 leader epoch (KIP-320) · v8 authorised operations (KIP-430) · v9 flexible (KIP-482) ·
 * v10 topic ids in the answer (KIP-516) · v11 no cluster operations any more (KIP-700) · v12 topics by id ·
 * v13 top-level error code (KIP-1102).
 *
 * Auto-creation: Kafka answers UNKNOWN_TOPIC_OR_PARTITION at first and creates meanwhile. Here the answer waits for the
 * creation, which takes one flush, so that the client's first attempt succeeds; only a creation that takes longer than
 * `autoCreateWaitMs` is answered with LEADER_NOT_AVAILABLE, upon which every client asks again.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { CreateTopicResult, NewTopic } from '../../replication/metadata/controller_api.ts';
import type { TopicImage } from '../../replication/metadata/image.ts';
import { uuidZero } from '../../replication/metadata/records.ts';
import { partitionsPerRequestMax } from '../../replication/metadata/topic_creation.ts';
import {
  isInternalTopic,
  isReservedTopic,
  topicNameProblem,
} from '../../replication/metadata/topic_name.ts';
import {
  brokersOf,
  type Caller,
  clusterOperations,
  operationsNotAsked,
  partitionView,
  topicOperations,
} from '../cluster_view.ts';
import type {
  MetadataRequest,
  MetadataResponseInput,
  MetadataResponseMetadataResponseTopicInput,
} from '../protocol/messages.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardContext } from '../shard_context.ts';

/** Clients give metadata requests some seconds; older ones wait for other answers behind this one. */
const autoCreateWaitMs = 1_000;

/** Some milliseconds of work. */
const topicsPerSlice = 2_000;

type AskedTopic = NonNullable<MetadataRequest['topics']>[number];
type TopicAnswer = MetadataResponseMetadataResponseTopicInput;

export function metadataHandler(shard: ShardContext): Handler {
  return rpc('Metadata', 0, 13, (request, ctx) => answerMetadata(shard, request, ctx));
}

/** The answer itself. Never rejects. */
export function answerMetadata(
  shard: ShardContext,
  request: MetadataRequest,
  caller: Caller,
): MetadataResponseInput | Promise<MetadataResponseInput> {
  const version = caller.apiVersion;
  const asked = request.topics;
  if (asked === null || (version === 0 && asked.length === 0))
    return response(
      shard,
      request,
      caller,
      [...shard.image.topics.values()].map((topic) => known(shard, request, caller, topic)),
    );
  if (version < 12 && asked.some((topic) => topic.name === null || topic.topicId !== uuidZero))
    return refusedTopicIds(asked);
  if (asked.length > topicsPerSlice) return answerInSlices(shard, request, caller, asked);
  const missing = new Set<string>();
  addMissing(shard, request, asked, missing);
  const topics = new AskedTopics(shard, request, caller);
  if (missing.size === 0) return topics.answer(asked, noFailures).response();
  return createMissing(shard, [...missing]).then((failures) =>
    topics.answer(asked, failures).response(),
  );
}

const noFailures: ReadonlyMap<string, ErrorCode> = new Map();

/** Half a million names fit into a frame: between slices of them other connections get their turns. */
async function answerInSlices(
  shard: ShardContext,
  request: MetadataRequest,
  caller: Caller,
  asked: readonly AskedTopic[],
): Promise<MetadataResponseInput> {
  const missing = new Set<string>();
  for (const slice of slicesOf(asked)) {
    addMissing(shard, request, slice, missing);
    await nextTurn();
  }
  const failures = missing.size === 0 ? noFailures : await createMissing(shard, [...missing]);
  const topics = new AskedTopics(shard, request, caller);
  for (const slice of slicesOf(asked)) {
    topics.answer(slice, failures);
    await nextTurn();
  }
  return topics.response();
}

function* slicesOf(asked: readonly AskedTopic[]): Iterable<readonly AskedTopic[]> {
  for (let from = 0; from < asked.length; from += topicsPerSlice)
    yield asked.slice(from, from + topicsPerSlice);
}

/** v10 and v11 have the field for topic ids in the request, but no semantics for it. */
function refusedTopicIds(asked: readonly AskedTopic[]): MetadataResponseInput {
  const topics = asked.map(({ name, topicId }) => ({
    errorCode: ErrorCode.INVALID_REQUEST,
    name: name ?? '',
    topicId,
    partitions: [],
  }));
  return { brokers: [], topics, errorCode: ErrorCode.INVALID_REQUEST };
}

/** The topics of one request, each once. Lives until its answer is there. */
class AskedTopics {
  readonly #shard: ShardContext;
  readonly #request: MetadataRequest;
  readonly #caller: Caller;
  readonly #topics: TopicAnswer[] = [];
  readonly #names = new Set<string | null>();
  readonly #ids = new Set<string>();

  constructor(shard: ShardContext, request: MetadataRequest, caller: Caller) {
    this.#shard = shard;
    this.#request = request;
    this.#caller = caller;
  }

  /** @param failures why a topic that was to be created does not stand */
  answer(asked: readonly AskedTopic[], failures: ReadonlyMap<string, ErrorCode>): this {
    for (const { name, topicId } of asked) {
      const isNamed = topicId === uuidZero;
      if (isNamed ? this.#names.has(name) : this.#ids.has(topicId)) continue;
      if (isNamed) this.#names.add(name);
      else this.#ids.add(topicId);
      this.#topics.push(
        answerTopic(this.#shard, this.#request, this.#caller, name, topicId, failures),
      );
    }
    return this;
  }

  response(): MetadataResponseInput {
    return response(this.#shard, this.#request, this.#caller, this.#topics);
  }
}

function answerTopic(
  shard: ShardContext,
  request: MetadataRequest,
  caller: Caller,
  name: string | null,
  topicId: string,
  failures: ReadonlyMap<string, ErrorCode>,
): TopicAnswer {
  if (topicId !== uuidZero) {
    const topic = shard.image.topicById(topicId);
    if (topic !== undefined) return known(shard, request, caller, topic);
    return { errorCode: ErrorCode.UNKNOWN_TOPIC_ID, name: null, topicId, partitions: [] };
  }
  const topic = shard.image.topic(name ?? '');
  if (topic !== undefined) return known(shard, request, caller, topic);
  const invalid = topicNameProblem(name ?? '') !== null;
  const errorCode = invalid
    ? ErrorCode.INVALID_TOPIC_EXCEPTION
    : (failures.get(name ?? '') ?? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  return { errorCode, name: name ?? '', isInternal: isInternalTopic(name ?? ''), partitions: [] };
}

function known(
  shard: ShardContext,
  request: MetadataRequest,
  caller: Caller,
  topic: TopicImage,
): TopicAnswer {
  const { image } = shard;
  const { listener } = caller.connection;
  return {
    errorCode: ErrorCode.NONE,
    name: topic.name,
    topicId: topic.id,
    isInternal: isInternalTopic(topic.name),
    topicAuthorizedOperations: request.includeTopicAuthorizedOperations
      ? topicOperations
      : operationsNotAsked,
    partitions: topic.partitions.map((partition) =>
      partitionView(image, partition, listener, caller.apiVersion >= 6),
    ),
  };
}

function response(
  shard: ShardContext,
  request: MetadataRequest,
  caller: Caller,
  topics: TopicAnswer[],
): MetadataResponseInput {
  const { image } = shard;
  return {
    brokers: brokersOf(image, caller.connection.listener, false).map(({ broker, host, port }) => ({
      nodeId: broker.id,
      host,
      port,
      rack: broker.rack,
    })),
    clusterId: shard.clusterId,
    controllerId: image.controllerId,
    topics,
    clusterAuthorizedOperations: request.includeClusterAuthorizedOperations
      ? clusterOperations
      : operationsNotAsked,
  };
}

/**
 * Adds names that do not exist and that asking may create. Internal topics come from those who need them, with settings of
 * their own.
 */
function addMissing(
  { image, settings }: ShardContext,
  request: MetadataRequest,
  asked: readonly AskedTopic[],
  missing: Set<string>,
): void {
  if (!request.allowAutoTopicCreation || !settings.autoCreateTopicsEnable) return;
  for (const { name, topicId } of asked) {
    if (missing.size >= partitionsPerRequestMax) return;
    if (name === null || topicId !== uuidZero) continue;
    if (image.topic(name) !== undefined || topicNameProblem(name) !== null) continue;
    if (!isInternalTopic(name) && !isReservedTopic(name)) missing.add(name);
  }
}

/** Creates topics with the defaults; returns the error of each that does not stand now. */
async function createMissing(
  shard: ShardContext,
  names: readonly string[],
): Promise<ReadonlyMap<string, ErrorCode>> {
  const topics: NewTopic[] = names.map((name) => ({
    name,
    numPartitions: -1,
    replicationFactor: -1,
    assignments: [],
    configs: [],
  }));
  const reply = await shard.quorum.createTopics({ topics, validateOnly: false }, autoCreateWaitMs);
  const failures = new Map<string, ErrorCode>();
  if (reply.errorCode !== ErrorCode.NONE) {
    for (const name of names) failures.set(name, ErrorCode.LEADER_NOT_AVAILABLE);
    return failures;
  }
  for (const result of reply.result.topics) {
    if (result.errorCode === ErrorCode.NONE) continue;
    failures.set(result.name, autoCreateError(result));
    if (result.errorCode !== ErrorCode.TOPIC_ALREADY_EXISTS)
      shard.logger.warn(
        { topic: result.name, error: result.errorCode, reason: result.errorMessage },
        'a topic could not be created automatically',
      );
  }
  return failures;
}

/** Somebody else may have been faster; then the topic stands, or its deletion has overtaken it. */
function autoCreateError(result: CreateTopicResult): ErrorCode {
  return result.errorCode === ErrorCode.TOPIC_ALREADY_EXISTS
    ? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    : result.errorCode;
}
