/** What a member of a classic group says to the coordinator. */
import type { Strategy } from './assignors.ts';
import { encodeSubscription, type Subscription } from './member_protocol.ts';
import type { MemberRequest } from './membership.ts';

export interface ClassicMemberOptions {
  readonly groupId: string;
  readonly instanceId: string | null;
  /** In order of preference. */
  readonly strategies: readonly Strategy[];
  readonly topics: readonly string[];
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
  readonly heartbeatIntervalMs: number;
  /** From 0 up to 1. */
  readonly random: () => number;
}

const protocolType = 'consumer';

export function joinRequest(
  options: ClassicMemberOptions,
  memberId: string,
  subscription: Subscription,
): MemberRequest {
  const { groupId, instanceId, sessionTimeoutMs, rebalanceTimeoutMs, strategies } = options;
  const protocols = strategies.map((name) => ({
    name,
    metadata: encodeSubscription(name, subscription),
  }));
  return {
    api: 'JoinGroup',
    body: {
      ...{ groupId, sessionTimeoutMs, rebalanceTimeoutMs, memberId, protocolType, protocols },
      groupInstanceId: instanceId,
    },
  };
}

export function syncRequest(
  { groupId, instanceId }: ClassicMemberOptions,
  memberId: string,
  generationId: number,
  strategy: Strategy,
  assignments: { memberId: string; assignment: Uint8Array }[],
): MemberRequest {
  return {
    api: 'SyncGroup',
    body: {
      ...{ groupId, generationId, memberId, protocolType, assignments },
      groupInstanceId: instanceId,
      protocolName: strategy,
    },
  };
}

export function heartbeatRequest(
  { groupId, instanceId }: ClassicMemberOptions,
  memberId: string,
  generationId: number,
): MemberRequest {
  return {
    api: 'Heartbeat',
    body: { groupId, generationId, memberId, groupInstanceId: instanceId },
  };
}

export function leaveRequest(
  { groupId, instanceId }: ClassicMemberOptions,
  memberId: string,
): MemberRequest {
  return {
    api: 'LeaveGroup',
    body: { groupId, members: [{ memberId, groupInstanceId: instanceId }] },
  };
}
