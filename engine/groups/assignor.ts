/** What a server-side assignor is given and what it gives back (KIP-848). */
import type { ConsumerAssignorName } from './group_options.ts';
import type { TopicPartitions } from './group_records.ts';
import { assignRange } from './range_assignor.ts';
import { assignUniform } from './uniform_assignor.ts';

export interface AssignorMember {
  readonly memberId: string;
  readonly instanceId: string | null;
  /** Ids of topics that exist, without repetition. */
  readonly topicIds: readonly string[];
  /** What it was to own until now. */
  readonly target: readonly TopicPartitions[];
}

export interface AssignorInput {
  readonly members: readonly AssignorMember[];
  /** Of all topics that somebody is subscribed to. */
  readonly partitionCounts: ReadonlyMap<string, number>;
  /** True if all members are subscribed to the same topics. */
  readonly isHomogeneous: boolean;
}

/** By member id, for every member. */
export type Assignment = ReadonlyMap<string, readonly TopicPartitions[]>;

export const assignors: Readonly<
  Record<ConsumerAssignorName, (input: AssignorInput) => Assignment>
> = { uniform: assignUniform, range: assignRange };
