/** A member of a classic group: what it told when it joined, and which of its requests wait. */
import type { Client, JoinGroupRequest } from './group_api.ts';
import type { GroupMetadataMember } from './group_records.ts';
import type { Timer } from './timers.ts';

export interface ClassicProtocol {
  readonly name: string;
  readonly metadata: Uint8Array;
}

export interface ClassicMember {
  readonly memberId: string;
  readonly groupInstanceId: string | null;
  readonly clientId: string;
  readonly clientHost: string;
  rebalanceTimeoutMs: number;
  sessionTimeoutMs: number;
  /** In order of preference. After a reload only the one that was chosen. */
  protocols: readonly ClassicProtocol[];
  assignment: Uint8Array;
  /** Token of the JoinGroup that waits. */
  joinToken: number | null;
  /** Token of the SyncGroup that waits. */
  syncToken: number | null;
  /** True until its first JoinGroup is answered: it does not know its id and cannot heartbeat. */
  isNew: boolean;
  readonly session: Timer;
}

export const noAssignment: Uint8Array = new Uint8Array(0);

export function newMember(
  memberId: string,
  client: Client,
  request: JoinGroupRequest,
  session: Timer,
): ClassicMember {
  return {
    memberId,
    groupInstanceId: request.groupInstanceId,
    clientId: client.clientId,
    clientHost: client.clientHost,
    rebalanceTimeoutMs: request.rebalanceTimeoutMs,
    sessionTimeoutMs: request.sessionTimeoutMs,
    protocols: request.protocols,
    assignment: noAssignment,
    joinToken: null,
    syncToken: null,
    isNew: true,
    session,
  };
}

/** A member as a record tells of it. */
export function loadedMember(
  record: GroupMetadataMember,
  protocol: string,
  session: Timer,
): ClassicMember {
  return {
    memberId: record.memberId,
    groupInstanceId: record.groupInstanceId,
    clientId: record.clientId,
    clientHost: record.clientHost,
    // Records of version 0 have no rebalance time-out.
    rebalanceTimeoutMs:
      record.rebalanceTimeout < 0 ? record.sessionTimeout : record.rebalanceTimeout,
    sessionTimeoutMs: record.sessionTimeout,
    protocols: [{ name: protocol, metadata: record.subscription }],
    assignment: record.assignment,
    joinToken: null,
    syncToken: null,
    isNew: false,
    session,
  };
}

export function metadataFor(member: ClassicMember, protocol: string | null): Uint8Array {
  return member.protocols.find(({ name }) => name === protocol)?.metadata ?? noAssignment;
}

/** Whether a member that joins again says what it said before; Kafka's `matches`. */
export function sameProtocols(
  known: readonly ClassicProtocol[],
  joined: readonly ClassicProtocol[],
): boolean {
  return (
    known.length === joined.length &&
    known.every(({ name, metadata }, index) => {
      const other = joined[index];
      return (
        other !== undefined && name === other.name && Buffer.compare(metadata, other.metadata) === 0
      );
    })
  );
}
