/**
 * AddRaftVoter (key 80, KIP-853): makes a node that follows the metadata quorum as an observer one of its voters. Any
 * broker takes it and hands it on to the leader. The answer comes when the change is committed, whatever
 * `ackWhenCommitted` (v1) says.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardContext } from '../shard_context.ts';
import { foreignCluster, type VoterChangeAnswer, voterChangeAnswer } from './voter_changes.ts';

export function addRaftVoterHandler(shard: ShardContext): Handler {
  return rpc('AddRaftVoter', 0, 1, async (request): Promise<VoterChangeAnswer> => {
    const { clusterId, timeoutMs, voterId, voterDirectoryId, listeners } = request;
    if (clusterId !== null && clusterId !== shard.clusterId) return foreignCluster(shard);
    if (listeners.length === 0)
      return {
        throttleTimeMs: 0,
        errorCode: ErrorCode.INVALID_REQUEST,
        errorMessage: 'A voter needs a listener where the others find it.',
      };
    const voter = { voterId, voterDirectoryId, endpoints: listeners };
    return voterChangeAnswer(await shard.quorum.addVoter({ voter, timeoutMs }));
  });
}
