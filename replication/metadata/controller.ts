/**
 * The cluster's controller as a state machine: turns requests into records of the metadata log and answers.
 *
 * Thread: that of the quorum. Concurrency: none, `step` runs to its end. Durability: a `reply` effect may be sent only
 * once everything up to its `afterOffset` is committed; then what it promises cannot be lost.
 *
 * Legal transitions:
 *   following --elected--> leading     with a copy of what the log holds, all of which the new term commits
 *   leading --resigned--> following    the copy is dropped, with what was not committed
 * While leading, the image runs ahead of the log's committed end by this controller's own appends, so that each request
 * sees those before it. While following, requests get NOT_CONTROLLER.
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { planRegistration } from './broker_registration.ts';
import { type ConfigRules, planAlteration } from './config_alteration.ts';
import type {
  AllocateProducerIdsRequest,
  AlterConfigsRequest,
  AlterConfigsResult,
  AnyControllerReply,
  ControllerReply,
  ControllerRequest,
  CreatePartitionsRequest,
  CreateTopicResult,
  CreateTopicsRequest,
  DeleteTopicResult,
  DeleteTopicsRequest,
  NewTopic,
  RegisterBrokerRequest,
  TopicToDelete,
} from './controller_api.ts';
import type { MetadataImage } from './image.ts';
import { planGrowths } from './partition_creation.ts';
import { type MetadataRecord, uuidZero } from './records.ts';
import {
  partitionsPerRequestMax,
  planTopic,
  refuseTopic,
  type TopicCreationOptions,
} from './topic_creation.ts';
import { CollidingNames, isReservedTopic, topicNameProblem } from './topic_name.ts';

/** As Kafka's `ProducerIdsBlock`. */
const producerIdBlockLength = 1000;

export interface ControllerOptions extends TopicCreationOptions, ConfigRules {
  readonly nodeId: number;
  /** `delete.topic.enable`. */
  readonly deleteTopicEnable: boolean;
  /** Written when the cluster forms, `metadata.version` among them; a later start never raises a level by itself. */
  readonly formationFeatures: readonly { readonly name: string; readonly level: number }[];
}

export type ControllerEvent =
  | {
      readonly type: 'elected';
      readonly epoch: number;
      /** Offset of the record that is appended next. */
      readonly nextOffset: number;
      /** The state up to the log's end. */
      readonly image: MetadataImage;
    }
  | { readonly type: 'resigned' }
  | { readonly type: 'request'; readonly requestId: number; readonly request: ControllerRequest };

export type ControllerEffect =
  /** To be appended as one batch; it takes exactly the next offsets. */
  | { readonly type: 'append'; readonly records: readonly MetadataRecord[] }
  | {
      readonly type: 'reply';
      readonly requestId: number;
      readonly reply: AnyControllerReply;
      readonly afterOffset: number;
    };

export class Controller {
  readonly #options: ControllerOptions;
  /** Null while following. */
  #image: MetadataImage | null = null;
  #names = new CollidingNames();
  #epoch = 0;
  /** Invariant while leading: offset of the next record, as the log counts. */
  #nextOffset = 0;
  #effects: ControllerEffect[] = [];

  constructor(options: ControllerOptions) {
    this.#options = options;
  }

  /** Its own view while leading: what is committed, plus what it has appended. */
  get image(): MetadataImage {
    assert(this.#image !== null, 'a controller that does not lead has no image');
    return this.#image;
  }

  /** Takes one event and returns what the caller must do, in order. */
  step(event: ControllerEvent): ControllerEffect[] {
    this.#effects = [];
    switch (event.type) {
      case 'elected':
        this.#elected(event.epoch, event.nextOffset, event.image);
        break;
      case 'resigned':
        this.#image = null;
        break;
      case 'request':
        this.#request(event.requestId, event.request);
        break;
    }
    return this.#effects;
  }

  #elected(epoch: number, nextOffset: number, image: MetadataImage): void {
    assert(this.#image === null, `elected in term ${epoch} while leading in term ${this.#epoch}`);
    assert(nextOffset > image.offset, `elected at offset ${nextOffset}, behind ${image.offset}`);
    this.#image = image.copy();
    this.#epoch = epoch;
    this.#nextOffset = nextOffset;
    this.#names = new CollidingNames();
    for (const name of image.topics.keys()) this.#names.add(name);
    if (image.features.has('metadata.version')) return;
    const features = this.#options.formationFeatures;
    assert(features.length > 0, 'a cluster needs at least the feature metadata.version to form');
    this.#append(
      features.map(({ name, level }) => ({
        type: 'FeatureLevelRecord',
        name,
        featureLevel: level,
      })),
    );
  }

  #request(requestId: number, request: ControllerRequest): void {
    const reply = this.#image !== null ? this.#handle(request) : notController;
    this.#effects.push({ type: 'reply', requestId, reply, afterOffset: this.#nextOffset - 1 });
  }

  #handle(request: ControllerRequest): AnyControllerReply {
    switch (request.type) {
      case 'createTopics':
        return this.#createTopics(request);
      case 'deleteTopics':
        return this.#deleteTopics(request);
      case 'createPartitions':
        return this.#createPartitions(request);
      case 'alterConfigs':
        return this.#alterConfigs(request);
      case 'allocateProducerIds':
        return this.#allocateProducerIds(request);
      case 'registerBroker':
        return this.#registerBroker(request);
    }
  }

  #createTopics(request: CreateTopicsRequest): AnyControllerReply {
    const asked = request.topics.reduce((sum, topic) => sum + this.#partitionsAsked(topic), 0);
    if (asked > partitionsPerRequestMax)
      return refused(
        ErrorCode.POLICY_VIOLATION,
        `The request asks for ${asked} partitions; one request may create ${partitionsPerRequestMax}.`,
      );
    const byName = new Map<string, NewTopic>();
    const repeated = new Set<string>();
    for (const topic of request.topics) {
      if (byName.has(topic.name)) repeated.add(topic.name);
      byName.set(topic.name, topic);
    }
    const topics: CreateTopicResult[] = [];
    for (const topic of byName.values())
      topics.push(
        repeated.has(topic.name)
          ? refuseTopic(topic.name, {
              errorCode: ErrorCode.INVALID_REQUEST,
              errorMessage: 'Duplicate topic name.',
            })
          : this.#createTopic(topic, request.validateOnly),
      );
    return { errorCode: 0, result: { topics } };
  }

  #partitionsAsked(topic: NewTopic): number {
    if (topic.assignments.length > 0) return topic.assignments.length;
    return topic.numPartitions === -1
      ? this.#options.defaultPartitions
      : Math.max(0, topic.numPartitions);
  }

  #createTopic(topic: NewTopic, validateOnly: boolean): CreateTopicResult {
    const nameProblem = topicNameProblem(topic.name);
    if (nameProblem !== null)
      return refuseTopic(topic.name, {
        errorCode: ErrorCode.INVALID_TOPIC_EXCEPTION,
        errorMessage: nameProblem,
      });
    if (isReservedTopic(topic.name))
      return refuseTopic(topic.name, {
        errorCode: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        errorMessage: `${topic.name} is the cluster's own log and cannot be created as a topic.`,
      });
    if (this.image.topic(topic.name) !== undefined)
      return refuseTopic(topic.name, {
        errorCode: ErrorCode.TOPIC_ALREADY_EXISTS,
        errorMessage: `Topic '${topic.name}' already exists.`,
      });
    const colliding = this.#names.colliding(topic.name);
    if (colliding !== undefined)
      return refuseTopic(topic.name, {
        errorCode: ErrorCode.INVALID_TOPIC_EXCEPTION,
        errorMessage: `Topic '${topic.name}' collides with existing topic: ${colliding} ('.' and '_' count as one).`,
      });
    const plan = planTopic(this.image, topic, this.#options);
    if (validateOnly) return { ...plan.result, topicId: uuidZero };
    if (plan.records.length > 0) {
      this.#append(plan.records);
      this.#names.add(topic.name);
    }
    return plan.result;
  }

  #deleteTopics(request: DeleteTopicsRequest): AnyControllerReply {
    const topics: DeleteTopicResult[] = [];
    for (const topic of request.topics) topics.push(this.#deleteTopic(topic));
    return { errorCode: 0, result: { topics } };
  }

  #deleteTopic({ name, topicId }: TopicToDelete): DeleteTopicResult {
    if (!this.#options.deleteTopicEnable)
      return {
        name,
        topicId: topicId ?? uuidZero,
        errorCode: ErrorCode.TOPIC_DELETION_DISABLED,
        errorMessage: 'Topic deletion is disabled (delete.topic.enable=false).',
      };
    const topic =
      name === null ? this.image.topicById(topicId ?? uuidZero) : this.image.topic(name);
    if (topic === undefined)
      return name === null
        ? {
            name,
            topicId: topicId ?? uuidZero,
            errorCode: ErrorCode.UNKNOWN_TOPIC_ID,
            errorMessage: 'This cluster has no topic with this id.',
          }
        : {
            name,
            topicId: uuidZero,
            errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            errorMessage: 'This cluster has no topic with this name.',
          };
    this.#append([{ type: 'RemoveTopicRecord', topicId: topic.id }]);
    this.#names.delete(topic.name);
    return { name: topic.name, topicId: topic.id, errorCode: ErrorCode.NONE, errorMessage: null };
  }

  #createPartitions({ topics, validateOnly }: CreatePartitionsRequest): AnyControllerReply {
    const plans = planGrowths(this.image, topics, this.#options.random);
    for (const { records } of plans) if (records.length > 0 && !validateOnly) this.#append(records);
    return { errorCode: 0, result: { topics: plans.map(({ result }) => result) } };
  }

  #alterConfigs({ resources, validateOnly }: AlterConfigsRequest): AnyControllerReply {
    const results: AlterConfigsResult['resources'][number][] = [];
    for (const asked of resources) {
      const { result, records } = planAlteration(this.image, asked, this.#options);
      if (records.length > 0 && !validateOnly) this.#append(records);
      results.push(result);
    }
    return { errorCode: 0, result: { resources: results } };
  }

  #allocateProducerIds(request: AllocateProducerIdsRequest): AnyControllerReply {
    const broker = this.image.broker(request.brokerId);
    if (broker === undefined)
      return refused(
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        `Broker ${request.brokerId} is not registered.`,
      );
    if (broker.epoch !== request.brokerEpoch)
      return refused(
        ErrorCode.STALE_BROKER_EPOCH,
        `Broker ${request.brokerId} is registered with epoch ${broker.epoch}, not ${request.brokerEpoch}.`,
      );
    const firstProducerId = this.image.nextProducerId;
    const nextProducerId = firstProducerId + producerIdBlockLength;
    assert(Number.isSafeInteger(nextProducerId), `producer ids are used up at ${firstProducerId}`);
    const { brokerId, brokerEpoch } = request;
    this.#append([{ type: 'ProducerIdsRecord', brokerId, brokerEpoch, nextProducerId }]);
    return { errorCode: 0, result: { firstProducerId, length: producerIdBlockLength } };
  }

  #registerBroker(request: RegisterBrokerRequest): AnyControllerReply {
    const brokerEpoch = this.#nextOffset;
    for (const records of planRegistration(this.image, request, brokerEpoch)) this.#append(records);
    return { errorCode: 0, result: { brokerEpoch } };
  }

  /** The only place where the log grows, so that the image and the next offset cannot be forgotten. */
  #append(records: readonly MetadataRecord[]): void {
    const firstOffset = this.#nextOffset;
    this.#nextOffset += records.length;
    this.image.follow({
      snapshot: false,
      firstOffset,
      lastOffset: this.#nextOffset - 1,
      epoch: this.#epoch,
      leaderId: this.#options.nodeId,
      records,
    });
    this.#effects.push({ type: 'append', records });
  }
}

function refused(errorCode: Exclude<ErrorCode, 0>, errorMessage: string): ControllerReply<never> {
  return { errorCode, errorMessage, result: null };
}

const notController = refused(
  ErrorCode.NOT_CONTROLLER,
  'This node does not lead the metadata quorum at the moment.',
);
