/**
 * What a node answers to the others' requests, and what it makes of them.
 *
 * Part of the Raft core: no IO, no clock. Each request is answered once, a leader's answer to a fetch perhaps later.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { emptyReply, voteReply } from './empty_reply.ts';
import type {
  BeginQuorumEpochRequest,
  EndQuorumEpochRequest,
  FetchRequest,
  FetchSnapshotRequest,
  RaftRequest,
  VoteRequest,
} from './messages.ts';
import type { RaftNode } from './raft_node.ts';
import { rankPauseMs } from './raft_patience.ts';

export function serveRequest(
  node: RaftNode,
  requestId: number,
  request: RaftRequest,
  nowMs: number,
): void {
  const { clusterId } = node;
  const isForeign = request.clusterId !== '' && clusterId !== '' && request.clusterId !== clusterId;
  if (isForeign) answer(node, requestId, request, ErrorCode.INCONSISTENT_CLUSTER_ID);
  else if (request.type === 'vote') serveVote(node, requestId, request, nowMs);
  else if (request.type === 'fetch' || request.type === 'fetchSnapshot')
    serveFetch(node, requestId, request, nowMs);
  else if (request.type === 'beginQuorumEpoch')
    answer(node, requestId, request, beginEpoch(node, request, nowMs));
  else if (request.type === 'endQuorumEpoch')
    answer(node, requestId, request, endEpoch(node, request, nowMs));
  else answer(node, requestId, request, ErrorCode.NONE);
}

function serveVote(node: RaftNode, requestId: number, request: VoteRequest, nowMs: number): void {
  const { self } = node.config;
  const { replicaEpoch, voterId, voterDirectoryId, preVote } = request;
  let code: ErrorCode = ErrorCode.NONE;
  if (voterId !== self.id || voterDirectoryId !== self.directoryId)
    code = ErrorCode.INVALID_VOTER_KEY;
  else if (replicaEpoch < node.epoch) code = ErrorCode.FENCED_LEADER_EPOCH;
  else if (replicaEpoch > node.epoch) node.enterEpoch(replicaEpoch, -1, nowMs);
  const isGranted =
    code === ErrorCode.NONE &&
    (preVote ? wouldVoteFor(node, request, nowMs) : mayVoteFor(node, request));
  if (isGranted && !preVote) {
    if (!node.term.hasVoted) node.term.voteFor(request);
    if (node.leader === null && node.follower === null)
      node.wait(nowMs + node.patience.othersTurnMs());
  }
  // A leader that this node knows by hearsay alone may be the one that the candidate has just found gone.
  const leaderId = hearsLeader(node, nowMs) ? node.leaderId : -1;
  const reply = voteReply(code, { leaderId, epoch: node.epoch }, isGranted);
  node.emit({ type: 'reply', requestId, reply });
}

/** A pre-vote (KIP-996): not while the leader is there, as far as this node can tell. */
function wouldVoteFor(node: RaftNode, request: VoteRequest, nowMs: number): boolean {
  return !hearsLeader(node, nowMs) && isUpToDate(node, request);
}

function hearsLeader({ leader, follower, config }: RaftNode, nowMs: number): boolean {
  const { fetchTimeoutMs } = config.timeouts;
  return leader !== null || (follower !== null && nowMs - follower.heardAtMs < fetchTimeoutMs);
}

function mayVoteFor(node: RaftNode, request: VoteRequest): boolean {
  if (node.term.hasVoted) return node.term.hasVotedFor(request);
  return node.leader === null && node.follower === null && isUpToDate(node, request);
}

/** Whether the candidate's log has everything that this one has, committed or not. */
function isUpToDate({ log }: RaftNode, { lastOffsetEpoch, lastOffset }: VoteRequest): boolean {
  if (lastOffsetEpoch !== log.lastEpoch) return lastOffsetEpoch > log.lastEpoch;
  return lastOffset >= log.endOffset;
}

function beginEpoch(node: RaftNode, request: BeginQuorumEpochRequest, nowMs: number): ErrorCode {
  const { leaderId, leaderEpoch, voterDirectoryId, clusterId } = request;
  if (voterDirectoryId !== node.config.self.directoryId) return ErrorCode.INVALID_VOTER_KEY;
  if (leaderEpoch < node.epoch) return ErrorCode.FENCED_LEADER_EPOCH;
  if (node.clusterId === '' && clusterId !== '') node.adoptCluster(clusterId);
  node.hearOf(leaderId, leaderEpoch, nowMs);
  return ErrorCode.NONE;
}

/** The leader steps down: those who have most of the log stand at once, the others later. */
function endEpoch(node: RaftNode, request: EndQuorumEpochRequest, nowMs: number): ErrorCode {
  const { leaderEpoch, leaderId, preferredCandidates } = request;
  if (leaderEpoch < node.epoch) return ErrorCode.FENCED_LEADER_EPOCH;
  if (leaderEpoch > node.epoch) node.enterEpoch(leaderEpoch, -1, nowMs);
  if (node.follower?.leaderId === leaderId || node.isUnattached) {
    const { id } = node.config.self;
    const rank = preferredCandidates.findIndex(({ candidateId }) => candidateId === id);
    const { patience } = node;
    node.wait(nowMs + (rank === -1 ? patience.othersTurnMs() : rank * rankPauseMs));
    node.setLeader(-1);
  }
  return ErrorCode.NONE;
}

function serveFetch(
  node: RaftNode,
  requestId: number,
  request: FetchRequest | FetchSnapshotRequest,
  nowMs: number,
): void {
  const { currentLeaderEpoch } = request;
  if (currentLeaderEpoch < node.epoch)
    answer(node, requestId, request, ErrorCode.FENCED_LEADER_EPOCH);
  else if (currentLeaderEpoch > node.epoch)
    answer(node, requestId, request, ErrorCode.UNKNOWN_LEADER_EPOCH);
  else if (node.leader !== null && request.type === 'fetch')
    node.leader.fetched(requestId, request, nowMs);
  else if (node.leader !== null && request.type === 'fetchSnapshot' && node.log.snapshotId === null)
    answer(node, requestId, request, ErrorCode.SNAPSHOT_NOT_FOUND);
  else if (node.leader !== null && request.type === 'fetchSnapshot')
    node.leader.fetchedSnapshot(requestId, request, nowMs);
  else answer(node, requestId, request, ErrorCode.NOT_LEADER_OR_FOLLOWER);
}

function answer(node: RaftNode, requestId: number, request: RaftRequest, code: ErrorCode): void {
  node.emit({ type: 'reply', requestId, reply: emptyReply(request, code, node, node) });
}
