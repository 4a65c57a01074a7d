/**
 * Topics of a cluster as its controller makes and removes them.
 *
 * Thread and owner: those of the controller. Concurrency: none. Durability: none of its own, it appends records.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type {
  ControllerReply,
  CreatePartitionsRequest,
  CreatePartitionsResult,
  CreateTopicResult,
  CreateTopicsRequest,
  CreateTopicsResult,
  DeleteTopicResult,
  DeleteTopicsRequest,
  DeleteTopicsResult,
  NewTopic,
  TopicToDelete,
} from './controller_api.ts';
import { done, refused } from './controller_reply.ts';
import type { Leadership } from './leadership.ts';
import { planGrowths } from './partition_creation.ts';
import { uuidZero } from './records.ts';
import {
  partitionsPerRequestMax,
  planTopic,
  refuseTopic,
  type TopicCreationOptions,
} from './topic_creation.ts';
import { CollidingNames, isReservedTopic, topicNameProblem } from './topic_name.ts';

export interface TopicControlOptions extends TopicCreationOptions {
  /** `delete.topic.enable`. */
  readonly deleteTopicEnable: boolean;
}

export class TopicControl {
  readonly #state: Leadership;
  readonly #options: TopicControlOptions;
  readonly #names = new CollidingNames();

  constructor(state: Leadership, options: TopicControlOptions) {
    this.#state = state;
    this.#options = options;
    for (const name of state.image.topics.keys()) this.#names.add(name);
  }

  createTopics(request: CreateTopicsRequest): ControllerReply<CreateTopicsResult> {
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
    return done({ topics });
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
    if (this.#state.image.topic(topic.name) !== undefined)
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
    const plan = planTopic(this.#state.image, topic, this.#options);
    if (validateOnly) return { ...plan.result, topicId: uuidZero };
    if (plan.records.length > 0) {
      this.#state.append(plan.records);
      this.#names.add(topic.name);
    }
    return plan.result;
  }

  deleteTopics(request: DeleteTopicsRequest): ControllerReply<DeleteTopicsResult> {
    const topics: DeleteTopicResult[] = [];
    for (const topic of request.topics) topics.push(this.#deleteTopic(topic));
    return done({ topics });
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
      name === null
        ? this.#state.image.topicById(topicId ?? uuidZero)
        : this.#state.image.topic(name);
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
    this.#state.append([{ type: 'RemoveTopicRecord', topicId: topic.id }]);
    this.#names.delete(topic.name);
    return { name: topic.name, topicId: topic.id, errorCode: ErrorCode.NONE, errorMessage: null };
  }

  createPartitions({
    topics,
    validateOnly,
  }: CreatePartitionsRequest): ControllerReply<CreatePartitionsResult> {
    const plans = planGrowths(this.#state.image, topics, this.#options.random);
    for (const { records } of plans)
      if (records.length > 0 && !validateOnly) this.#state.append(records);
    return done({ topics: plans.map(({ result }) => result) });
  }
}
