/** A member of a consumer group (KIP-848): what it told of itself, what it is to own, and how far it has come. */
import type { ConsumerGroupMemberMetadataValue, TopicPartitions } from './group_records.ts';
import { noPartitions, type PartitionEpochs } from './partition_epochs.ts';
import type { Timer } from './timers.ts';

/**
 * How far a member is, as Kafka stores it. Legal transitions, all through the reconciliation:
 *   stable --new target takes partitions away--> unrevokedPartitions
 *   stable, unrevokedPartitions, unreleasedPartitions --all it is to own is free--> stable
 *   stable, unrevokedPartitions, unreleasedPartitions --others still own some of it--> unreleasedPartitions
 *   unreleasedPartitions --new target takes partitions away--> unrevokedPartitions
 */
export const MemberState = {
  stable: 0,
  unrevokedPartitions: 1,
  unreleasedPartitions: 2,
} as const;
export type MemberState = (typeof MemberState)[keyof typeof MemberState];

/** A member's epoch while a static member is away, and in the heartbeat that says so. */
export const staticLeaveEpoch = -2;

export interface ConsumerMember {
  readonly memberId: string;
  metadata: ConsumerGroupMemberMetadataValue;
  /** Of the last assignment that it was told; 0 before. */
  epoch: number;
  previousEpoch: number;
  state: MemberState;
  assigned: PartitionEpochs;
  /** Taken from it, but not yet known to be given up. Invariant: empty unless `unrevokedPartitions`. */
  pendingRevocation: PartitionEpochs;
  target: readonly TopicPartitions[];
  readonly session: Timer;
  /** How long it may take to give partitions up. Runs in `unrevokedPartitions` only. */
  readonly revocation: Timer;
}

export function newConsumerMember(
  memberId: string,
  metadata: ConsumerGroupMemberMetadataValue,
  session: Timer,
  revocation: Timer,
): ConsumerMember {
  return {
    memberId,
    metadata,
    epoch: 0,
    previousEpoch: 0,
    state: MemberState.stable,
    assigned: noPartitions,
    pendingRevocation: noPartitions,
    target: [],
    session,
    revocation,
  };
}
