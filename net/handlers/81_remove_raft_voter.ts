/**
 * RemoveRaftVoter (key 81, KIP-853): takes a voter out of the metadata quorum, as one does with a host that will not come
 * back. Any broker takes it and hands it on to the leader.
 */
import { type Handler, rpc } from '../server/registry.ts';
import type { ShardContext } from '../shard_context.ts';
import { foreignCluster, type VoterChangeAnswer, voterChangeAnswer } from './voter_changes.ts';

/** The request has no time-out of its own. */
const timeoutMs = 30_000;

export function removeRaftVoterHandler(shard: ShardContext): Handler {
  return rpc('RemoveRaftVoter', 0, 0, async (request): Promise<VoterChangeAnswer> => {
    const { clusterId, voterId, voterDirectoryId } = request;
    if (clusterId !== null && clusterId !== shard.clusterId) return foreignCluster(shard);
    const reply = await shard.quorum.removeVoter({ voterId, voterDirectoryId, timeoutMs });
    return voterChangeAnswer(reply);
  });
}
