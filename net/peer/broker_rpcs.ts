/** What brokers ask of the controller for themselves. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { code, failure, type QuorumRpc, quorumRpc } from './quorum_rpc.ts';

const registration = quorumRpc('registerBroker', 'BrokerRegistration', {
  version: 4,
  toRequest: (request, { clusterId }) => ({
    brokerId: request.brokerId,
    clusterId,
    incarnationId: request.incarnationId,
    listeners: request.endPoints,
    features: request.features,
    rack: request.rack,
    logDirs: request.logDirs,
    previousBrokerEpoch: request.previousBrokerEpoch,
    damagedReplicas: request.damagedReplicas,
  }),
  fromRequest: (message) => ({
    type: 'registerBroker',
    brokerId: message.brokerId,
    incarnationId: message.incarnationId,
    endPoints: message.listeners,
    features: message.features,
    rack: message.rack,
    logDirs: message.logDirs,
    previousBrokerEpoch: Number(message.previousBrokerEpoch),
    damagedReplicas: message.damagedReplicas,
  }),
  toReply: ({ errorCode, result }) => ({
    throttleTimeMs: 0,
    errorCode,
    brokerEpoch: result?.brokerEpoch ?? -1,
  }),
  fromReply: ({ errorCode, brokerEpoch }) =>
    errorCode === ErrorCode.NONE
      ? { errorCode, result: { brokerEpoch: Number(brokerEpoch) } }
      : failure(errorCode),
  clusterOf: ({ clusterId }) => clusterId,
});

const heartbeat = quorumRpc('brokerHeartbeat', 'BrokerHeartbeat', {
  version: 1,
  toRequest: (request) => ({
    brokerId: request.brokerId,
    brokerEpoch: request.brokerEpoch,
    currentMetadataOffset: request.currentMetadataOffset,
    wantFence: request.wantFence,
    wantShutDown: request.wantShutDown,
    offlineLogDirs: request.offlineLogDirs,
  }),
  fromRequest: (message) => ({
    type: 'brokerHeartbeat',
    brokerId: message.brokerId,
    brokerEpoch: Number(message.brokerEpoch),
    currentMetadataOffset: Number(message.currentMetadataOffset),
    wantFence: message.wantFence,
    wantShutDown: message.wantShutDown,
    offlineLogDirs: message.offlineLogDirs,
  }),
  toReply: ({ errorCode, result }) => ({
    throttleTimeMs: 0,
    errorCode,
    isCaughtUp: result?.isCaughtUp ?? false,
    isFenced: result?.isFenced ?? true,
    shouldShutDown: result?.shouldShutDown ?? false,
  }),
  fromReply: ({ errorCode, isCaughtUp, isFenced, shouldShutDown }) =>
    errorCode === ErrorCode.NONE
      ? { errorCode, result: { isCaughtUp, isFenced, shouldShutDown } }
      : failure(errorCode),
});

const alterPartition = quorumRpc('alterPartition', 'AlterPartition', {
  version: 3,
  toRequest: ({ brokerId, brokerEpoch, topics }) => ({
    brokerId,
    brokerEpoch,
    topics: topics.map(({ topicId, partitions }) => ({
      topicId,
      partitions: partitions.map(({ newIsr, ...partition }) => ({
        ...partition,
        newIsrWithEpochs: newIsr,
      })),
    })),
  }),
  fromRequest: ({ brokerId, brokerEpoch, topics }) => ({
    type: 'alterPartition',
    brokerId,
    brokerEpoch: Number(brokerEpoch),
    topics: topics.map(({ topicId, partitions }) => ({
      topicId,
      partitions: partitions.map((partition) => ({
        partitionIndex: partition.partitionIndex,
        leaderEpoch: partition.leaderEpoch,
        newIsr: partition.newIsrWithEpochs.map((member) => ({
          brokerId: member.brokerId,
          brokerEpoch: Number(member.brokerEpoch),
        })),
        leaderRecoveryState: partition.leaderRecoveryState,
        partitionEpoch: partition.partitionEpoch,
      })),
    })),
  }),
  toReply: ({ errorCode, result }) => ({
    throttleTimeMs: 0,
    errorCode,
    topics: result?.topics ?? [],
  }),
  fromReply: ({ errorCode, topics }) =>
    errorCode === ErrorCode.NONE
      ? {
          errorCode,
          result: {
            topics: topics.map(({ topicId, partitions }) => ({
              topicId,
              partitions: partitions.map((partition) => ({
                ...partition,
                errorCode: code(partition.errorCode),
              })),
            })),
          },
        }
      : failure(errorCode),
});

const allocateProducerIds = quorumRpc('allocateProducerIds', 'AllocateProducerIds', {
  version: 0,
  toRequest: ({ brokerId, brokerEpoch }) => ({ brokerId, brokerEpoch }),
  fromRequest: ({ brokerId, brokerEpoch }) => ({
    type: 'allocateProducerIds',
    brokerId,
    brokerEpoch: Number(brokerEpoch),
  }),
  toReply: ({ errorCode, result }) => ({
    throttleTimeMs: 0,
    errorCode,
    producerIdStart: result?.firstProducerId ?? -1,
    producerIdLen: result?.length ?? 0,
  }),
  fromReply: ({ errorCode, producerIdStart, producerIdLen }) =>
    errorCode === ErrorCode.NONE
      ? { errorCode, result: { firstProducerId: Number(producerIdStart), length: producerIdLen } }
      : failure(errorCode),
});

export const brokerRpcs: readonly QuorumRpc[] = [
  registration,
  heartbeat,
  alterPartition,
  allocateProducerIds,
];
