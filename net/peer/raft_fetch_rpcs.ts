/** The two requests of the metadata quorum that carry parts of its log. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { metadataTopicName, uuidMetadataTopic } from '../../replication/metadata/records.ts';
import { code, only, type RaftRpc, rpc, whole } from './raft_rpc.ts';

const noBytes = new Uint8Array(0);

export const fetch: RaftRpc = rpc('fetch', 'Fetch', {
  version: 18,
  toRequest: (request) => ({
    clusterId: request.clusterId,
    replicaState: { replicaId: request.replicaId },
    maxWaitMs: request.maxWaitMs,
    minBytes: 1,
    maxBytes: request.maxBytes,
    topics: [
      {
        topicId: uuidMetadataTopic,
        partitions: [
          {
            partition: 0,
            currentLeaderEpoch: request.currentLeaderEpoch,
            fetchOffset: request.fetchOffset,
            lastFetchedEpoch: request.lastFetchedEpoch,
            partitionMaxBytes: request.maxBytes,
            replicaDirectoryId: request.replicaDirectoryId,
            highWatermark: request.highWatermark,
          },
        ],
      },
    ],
  }),
  fromRequest: ({ clusterId, replicaState, maxWaitMs, maxBytes, topics }) => {
    const partition = only(topics);
    if (partition === null || topics[0]?.topicId !== uuidMetadataTopic) return null;
    return {
      type: 'fetch',
      clusterId: clusterId ?? '',
      replicaId: replicaState.replicaId,
      replicaDirectoryId: partition.replicaDirectoryId,
      currentLeaderEpoch: partition.currentLeaderEpoch,
      fetchOffset: Number(partition.fetchOffset),
      lastFetchedEpoch: partition.lastFetchedEpoch,
      highWatermark: Number(partition.highWatermark),
      maxWaitMs,
      maxBytes,
    };
  },
  toReply: (reply) => ({
    responses: [
      {
        topicId: uuidMetadataTopic,
        partitions: [
          {
            partitionIndex: 0,
            errorCode: reply.errorCode,
            highWatermark: reply.highWatermark,
            lastStableOffset: reply.highWatermark,
            logStartOffset: reply.logStartOffset,
            ...(reply.divergingEpoch === null ? {} : { divergingEpoch: reply.divergingEpoch }),
            currentLeader: { leaderId: reply.leaderId, leaderEpoch: reply.leaderEpoch },
            ...(reply.snapshotId === null ? {} : { snapshotId: reply.snapshotId }),
            records: reply.records,
          },
        ],
      },
    ],
  }),
  fromReply: ({ errorCode, responses }) => {
    const partition = only(responses);
    if (partition === null)
      return {
        ...whole(errorCode),
        type: 'fetch',
        highWatermark: -1,
        logStartOffset: -1,
        divergingEpoch: null,
        snapshotId: null,
        records: noBytes,
      };
    const { divergingEpoch, snapshotId, currentLeader } = partition;
    return {
      type: 'fetch',
      errorCode: code(partition.errorCode),
      leaderId: currentLeader.leaderId,
      leaderEpoch: currentLeader.leaderEpoch,
      highWatermark: Number(partition.highWatermark),
      logStartOffset: Number(partition.logStartOffset),
      divergingEpoch:
        divergingEpoch.endOffset < 0
          ? null
          : { epoch: divergingEpoch.epoch, endOffset: Number(divergingEpoch.endOffset) },
      snapshotId:
        snapshotId.endOffset < 0
          ? null
          : { endOffset: Number(snapshotId.endOffset), epoch: snapshotId.epoch },
      records: partition.records ?? noBytes,
    };
  },
});

export const fetchSnapshot: RaftRpc = rpc('fetchSnapshot', 'FetchSnapshot', {
  version: 1,
  toRequest: (request) => ({
    clusterId: request.clusterId,
    replicaId: request.replicaId,
    maxBytes: request.maxBytes,
    topics: [
      {
        name: metadataTopicName,
        partitions: [
          {
            partition: 0,
            currentLeaderEpoch: request.currentLeaderEpoch,
            snapshotId: request.snapshotId,
            position: request.position,
            replicaDirectoryId: request.replicaDirectoryId,
          },
        ],
      },
    ],
  }),
  fromRequest: ({ clusterId, replicaId, maxBytes, topics }) => {
    const partition = only(topics);
    if (partition === null || topics[0]?.name !== metadataTopicName) return null;
    return {
      type: 'fetchSnapshot',
      clusterId: clusterId ?? '',
      replicaId,
      replicaDirectoryId: partition.replicaDirectoryId,
      currentLeaderEpoch: partition.currentLeaderEpoch,
      snapshotId: {
        endOffset: Number(partition.snapshotId.endOffset),
        epoch: partition.snapshotId.epoch,
      },
      position: Number(partition.position),
      maxBytes,
    };
  },
  toReply: (reply) => ({
    errorCode: ErrorCode.NONE,
    topics: [
      {
        name: metadataTopicName,
        partitions: [
          {
            index: 0,
            errorCode: reply.errorCode,
            snapshotId: reply.snapshotId,
            currentLeader: { leaderId: reply.leaderId, leaderEpoch: reply.leaderEpoch },
            size: reply.size,
            position: reply.position,
            unalignedRecords: reply.unalignedRecords,
          },
        ],
      },
    ],
  }),
  fromReply: ({ errorCode, topics }) => {
    const partition = only(topics);
    if (partition === null)
      return {
        ...whole(errorCode),
        type: 'fetchSnapshot',
        snapshotId: { endOffset: -1, epoch: -1 },
        size: -1,
        position: -1,
        unalignedRecords: noBytes,
      };
    return {
      type: 'fetchSnapshot',
      errorCode: code(partition.errorCode),
      leaderId: partition.currentLeader.leaderId,
      leaderEpoch: partition.currentLeader.leaderEpoch,
      snapshotId: {
        endOffset: Number(partition.snapshotId.endOffset),
        epoch: partition.snapshotId.epoch,
      },
      size: Number(partition.size),
      position: Number(partition.position),
      unalignedRecords: partition.unalignedRecords ?? noBytes,
    };
  },
});
