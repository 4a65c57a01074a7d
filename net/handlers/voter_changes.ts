/** What AddRaftVoter and RemoveRaftVoter have in common. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { ControllerReply } from '../../replication/metadata/controller_api.ts';
import type { Done } from '../quorum_api.ts';
import type { ShardContext } from '../shard_context.ts';

export interface VoterChangeAnswer {
  readonly throttleTimeMs: number;
  readonly errorCode: ErrorCode;
  readonly errorMessage: string | null;
}

export function voterChangeAnswer(reply: ControllerReply<Done>): VoterChangeAnswer {
  const errorMessage = reply.result === null ? reply.errorMessage : null;
  return { throttleTimeMs: 0, errorCode: reply.errorCode, errorMessage };
}

export function foreignCluster({ clusterId }: ShardContext): VoterChangeAnswer {
  return {
    throttleTimeMs: 0,
    errorCode: ErrorCode.INCONSISTENT_CLUSTER_ID,
    errorMessage: `This broker belongs to cluster ${clusterId}.`,
  };
}
