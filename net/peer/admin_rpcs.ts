/** What people and clients ask of the controller, forwarded by the broker that they asked. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { TopicOutcomes } from '../../replication/metadata/controller_api.ts';
import { uuidZero } from '../../replication/metadata/records.ts';
import type { QuorumReplyOf, QuorumRequestOf } from '../quorum_api.ts';
import {
  code,
  failure,
  outcomeFromReply,
  outcomeToReply,
  type QuorumRpc,
  quorumRpc,
  wholeFailure,
} from './quorum_rpc.ts';

const createTopics = quorumRpc('createTopics', 'CreateTopics', {
  version: 7,
  toRequest: ({ topics, validateOnly }, { timeoutMs }) => ({ topics, validateOnly, timeoutMs }),
  fromRequest: ({ topics, validateOnly }) => ({ type: 'createTopics', topics, validateOnly }),
  toReply: ({ errorCode, result, ...failed }, request) => {
    if (result !== null) return { topics: result.topics };
    const names = new Set(request.topics.map(({ name }) => name));
    return { topics: [...names].map((name) => ({ name, errorCode, ...failed })) };
  },
  fromReply: ({ topics }) =>
    wholeFailure(topics) ?? {
      errorCode: ErrorCode.NONE,
      result: {
        topics: topics.map((topic) => ({
          name: topic.name,
          topicId: topic.topicId,
          errorCode: code(topic.errorCode),
          errorMessage: topic.errorMessage,
          numPartitions: topic.numPartitions,
          replicationFactor: topic.replicationFactor,
        })),
      },
    },
});

const deleteTopics = quorumRpc('deleteTopics', 'DeleteTopics', {
  version: 6,
  toRequest: ({ topics }, { timeoutMs }) => ({
    topics: topics.map(({ name, topicId }) => ({ name, topicId: topicId ?? uuidZero })),
    timeoutMs,
  }),
  fromRequest: ({ topics }) => ({
    type: 'deleteTopics',
    topics: topics.map(({ name, topicId }) => ({
      name,
      topicId: topicId === uuidZero ? null : topicId,
    })),
  }),
  toReply: ({ errorCode, result, ...failed }, request) => {
    if (result !== null) return { responses: result.topics };
    return {
      responses: request.topics.map(({ name, topicId }) => ({
        name,
        topicId: topicId ?? uuidZero,
        errorCode,
        ...failed,
      })),
    };
  },
  fromReply: ({ responses }) =>
    wholeFailure(responses) ?? {
      errorCode: ErrorCode.NONE,
      result: {
        topics: responses.map((topic) => ({ ...topic, errorCode: code(topic.errorCode) })),
      },
    },
});

const createPartitions = quorumRpc('createPartitions', 'CreatePartitions', {
  version: 3,
  toRequest: ({ topics, validateOnly }, { timeoutMs }) => ({
    topics: topics.map(({ name, count, assignments }) => ({
      name,
      count,
      assignments: assignments?.map((brokerIds) => ({ brokerIds })) ?? null,
    })),
    validateOnly,
    timeoutMs,
  }),
  fromRequest: ({ topics, validateOnly }) => ({
    type: 'createPartitions',
    topics: topics.map(({ name, count, assignments }) => ({
      name,
      count,
      assignments: assignments?.map(({ brokerIds }) => brokerIds) ?? null,
    })),
    validateOnly,
  }),
  toReply: ({ errorCode, result, ...failed }, request) => {
    if (result !== null) return { throttleTimeMs: 0, results: result.topics };
    const names = new Set(request.topics.map(({ name }) => name));
    return {
      throttleTimeMs: 0,
      results: [...names].map((name) => ({ name, errorCode, ...failed })),
    };
  },
  fromReply: ({ results }) =>
    wholeFailure(results) ?? {
      errorCode: ErrorCode.NONE,
      result: { topics: results.map((topic) => ({ ...topic, errorCode: code(topic.errorCode) })) },
    },
});

type AlterConfigsRequest = QuorumRequestOf<'alterConfigs'>;
type AlterConfigsReply = QuorumReplyOf<'alterConfigs'>;

interface AlteredResource {
  readonly resourceType: number;
  readonly resourceName: string;
  readonly errorCode: number;
  readonly errorMessage: string | null;
}

function alteredToReply(
  { errorCode, result, ...failed }: AlterConfigsReply,
  { resources }: AlterConfigsRequest,
): { throttleTimeMs: number; responses: readonly AlteredResource[] } {
  if (result !== null) return { throttleTimeMs: 0, responses: result.resources };
  return {
    throttleTimeMs: 0,
    responses: resources.map(({ resourceType, resourceName }) => ({
      resourceType,
      resourceName,
      errorCode,
      errorMessage: null,
      ...failed,
    })),
  };
}

function alteredFromReply(message: {
  readonly responses: readonly AlteredResource[];
}): AlterConfigsReply {
  return (
    wholeFailure(message.responses) ?? {
      errorCode: ErrorCode.NONE,
      result: {
        resources: message.responses.map((one) => ({ ...one, errorCode: code(one.errorCode) })),
      },
    }
  );
}

/** `AlterConfigOp.OpType.SET`, all that AlterConfigs knows. */
const setOperation = 0;

/** Settings as a whole. */
export const alterConfigs: QuorumRpc = quorumRpc('alterConfigs', 'AlterConfigs', {
  version: 2,
  toRequest: ({ resources, validateOnly }) => ({
    resources: resources.map(({ resourceType, resourceName, changes }) => ({
      resourceType,
      resourceName,
      configs: changes.map(({ name, value }) => ({ name, value })),
    })),
    validateOnly,
  }),
  fromRequest: ({ resources, validateOnly }) => ({
    type: 'alterConfigs',
    resources: resources.map(({ resourceType, resourceName, configs }) => ({
      resourceType,
      resourceName,
      replacesAll: true,
      changes: configs.map(({ name, value }) => ({ name, value, operation: setOperation })),
    })),
    validateOnly,
  }),
  toReply: alteredToReply,
  fromReply: alteredFromReply,
});

/** Single settings. */
export const incrementalAlterConfigs: QuorumRpc = quorumRpc(
  'alterConfigs',
  'IncrementalAlterConfigs',
  {
    version: 1,
    toRequest: ({ resources, validateOnly }) => ({
      resources: resources.map(({ resourceType, resourceName, changes }) => ({
        resourceType,
        resourceName,
        configs: changes.map(({ name, value, operation }) => ({
          name,
          value,
          configOperation: operation,
        })),
      })),
      validateOnly,
    }),
    fromRequest: ({ resources, validateOnly }) => ({
      type: 'alterConfigs',
      resources: resources.map(({ resourceType, resourceName, configs }) => ({
        resourceType,
        resourceName,
        replacesAll: false,
        changes: configs.map(({ name, value, configOperation }) => ({
          name,
          value,
          operation: configOperation,
        })),
      })),
      validateOnly,
    }),
    toReply: alteredToReply,
    fromReply: alteredFromReply,
  },
);

const electLeaders = quorumRpc('electLeaders', 'ElectLeaders', {
  version: 2,
  toRequest: ({ electionType, topics }, { timeoutMs }) => ({
    electionType,
    topicPartitions: topics?.map(({ name, partitions }) => ({ topic: name, partitions })) ?? null,
    timeoutMs,
  }),
  fromRequest: ({ electionType, topicPartitions }) => ({
    type: 'electLeaders',
    electionType,
    topics: topicPartitions?.map(({ topic, partitions }) => ({ name: topic, partitions })) ?? null,
  }),
  toReply: ({ errorCode, result }) => ({
    throttleTimeMs: 0,
    errorCode,
    replicaElectionResults: (result?.topics ?? []).map(({ name, partitions }) => ({
      topic: name,
      partitionResult: partitions.map(({ partitionIndex, ...outcome }) => ({
        partitionId: partitionIndex,
        ...outcome,
      })),
    })),
  }),
  fromReply: ({ errorCode, replicaElectionResults }) =>
    errorCode === ErrorCode.NONE
      ? {
          errorCode,
          result: {
            topics: replicaElectionResults.map(({ topic, partitionResult }) => ({
              name: topic,
              partitions: partitionResult.map((one) => ({
                partitionIndex: one.partitionId,
                errorCode: code(one.errorCode),
                errorMessage: one.errorMessage,
              })),
            })),
          },
        }
      : failure(errorCode),
});

const alterPartitionReassignments = quorumRpc(
  'alterPartitionReassignments',
  'AlterPartitionReassignments',
  {
    version: 1,
    toRequest: ({ allowReplicationFactorChange, topics }, { timeoutMs }) => ({
      timeoutMs,
      allowReplicationFactorChange,
      topics,
    }),
    fromRequest: ({ allowReplicationFactorChange, topics }) => ({
      type: 'alterPartitionReassignments',
      allowReplicationFactorChange,
      topics,
    }),
    toReply: (reply, { allowReplicationFactorChange }) => ({
      throttleTimeMs: 0,
      allowReplicationFactorChange,
      errorCode: reply.errorCode,
      errorMessage: reply.result === null ? reply.errorMessage : null,
      responses: reply.result?.topics ?? [],
    }),
    fromReply: ({ errorCode, errorMessage, responses }) => {
      if (errorCode !== ErrorCode.NONE) return failure(errorCode, errorMessage);
      const topics = responses.map(
        ({ name, partitions }): TopicOutcomes => ({
          name,
          partitions: partitions.map((one) => ({ ...one, errorCode: code(one.errorCode) })),
        }),
      );
      return { errorCode, result: { topics } };
    },
  },
);

const unregisterBroker = quorumRpc('unregisterBroker', 'UnregisterBroker', {
  version: 0,
  toRequest: ({ brokerId }) => ({ brokerId }),
  fromRequest: ({ brokerId }) => ({ type: 'unregisterBroker', brokerId }),
  toReply: outcomeToReply,
  fromReply: outcomeFromReply,
});

export const adminRpcs: readonly QuorumRpc[] = [
  createTopics,
  deleteTopics,
  createPartitions,
  electLeaders,
  alterPartitionReassignments,
  unregisterBroker,
];
