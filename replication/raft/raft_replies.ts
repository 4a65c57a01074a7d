/**
 * What a node makes of the answers to its requests, and of answers that do not come.
 *
 * Part of the Raft core: no IO, no clock.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { RaftFailure, RaftReply } from './messages.ts';
import type { RaftFollower } from './raft_follower.ts';
import type { RaftNode } from './raft_node.ts';
import type { RaftEvent } from './raft_types.ts';

/** Codes of a fetch that say: this node does not lead in the follower's term. */
const notLeaderCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ErrorCode.NOT_LEADER_OR_FOLLOWER,
  ErrorCode.FENCED_LEADER_EPOCH,
  ErrorCode.UNKNOWN_LEADER_EPOCH,
]);

export function takeReply(
  node: RaftNode,
  { from, token, reply }: RaftEvent & { type: 'reply' },
  nowMs: number,
): void {
  if (reply.type !== 'failure' && reply.errorCode !== ErrorCode.INCONSISTENT_CLUSTER_ID) {
    node.hearOf(reply.leaderId, reply.leaderEpoch, nowMs);
    if (reply.type === 'formation') {
      if (node.clusterId === '' && !reply.isEmpty) node.adoptCluster(reply.clusterId);
      node.formation.answered(reply);
    }
  }
  const { follower, election } = node;
  if (follower?.isAnswered(token)) answeredFollower(node, follower, reply, nowMs);
  if (election?.token === token) election.answered(from, reply.type === 'vote' ? reply : null);
}

function answeredFollower(
  node: RaftNode,
  follower: RaftFollower,
  reply: RaftReply | RaftFailure,
  nowMs: number,
): void {
  if (reply.type === 'failure' && reply.reason === 'refused') node.leaderGone(nowMs);
  else if (reply.type !== 'fetch' && reply.type !== 'fetchSnapshot') follower.retry(nowMs);
  else if (notLeaderCodes.has(reply.errorCode)) node.leaderGone(nowMs);
  else if (reply.type === 'fetchSnapshot') {
    if (reply.errorCode === ErrorCode.NONE) node.patience.succeeded();
    follower.receivedSnapshot(reply, nowMs);
  } else if (reply.errorCode !== ErrorCode.NONE) follower.retry(nowMs);
  else {
    node.patience.succeeded();
    follower.received(reply, nowMs);
    node.commitAsFollower(follower);
  }
}
