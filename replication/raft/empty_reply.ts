/** Replies of the quorum that carry nothing but an error code and who leads. */
import type { ErrorCode } from '../../engine/error_code.gen.ts';
import type { FetchReply, RaftReply, RaftRequest, VoteReply } from './messages.ts';
import type { RaftContext } from './raft_types.ts';

const noBytes = new Uint8Array(0);

interface Leadership {
  /** -1 while unknown. */
  readonly leaderId: number;
  readonly epoch: number;
}

export function emptyReply(
  request: RaftRequest,
  errorCode: ErrorCode,
  { leaderId, epoch }: Leadership,
  { config, clusterId, log }: RaftContext,
): RaftReply {
  const news = { errorCode, leaderId, leaderEpoch: epoch };
  switch (request.type) {
    case 'vote':
      return voteReply(errorCode, { leaderId, epoch }, false);
    case 'beginQuorumEpoch':
    case 'endQuorumEpoch':
      return { type: request.type, ...news };
    case 'fetch':
      return fetchReply(errorCode, { leaderId, epoch }, -1);
    case 'fetchSnapshot':
      return {
        type: 'fetchSnapshot',
        ...news,
        snapshotId: request.snapshotId,
        size: 0,
        position: request.position,
        unalignedRecords: noBytes,
      };
    case 'formation':
      return {
        type: 'formation',
        ...news,
        replicaId: config.self.id,
        replicaDirectoryId: config.self.directoryId,
        clusterId,
        voterIds: config.configuredVoters.map(({ voterId }) => voterId),
        isEmpty: log.endOffset === 0,
      };
  }
}

export function voteReply(
  errorCode: ErrorCode,
  { leaderId, epoch }: Leadership,
  voteGranted: boolean,
): VoteReply {
  return { type: 'vote', errorCode, leaderId, leaderEpoch: epoch, voteGranted };
}

/** Without records. */
export function fetchReply(
  errorCode: ErrorCode,
  { leaderId, epoch }: Leadership,
  highWatermark: number,
): FetchReply {
  return {
    type: 'fetch',
    errorCode,
    leaderId,
    leaderEpoch: epoch,
    highWatermark,
    logStartOffset: 0,
    divergingEpoch: null,
    snapshotId: null,
    records: noBytes,
  };
}
