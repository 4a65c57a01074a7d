/**
 * What the two machines of a group's member have in common: both are told of events and say what to do.
 * `classic_member.ts` is a member of a classic group, `consumer_member.ts` one of KIP-848. Neither knows sockets or clocks.
 */
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { MessageInputs, MessageTypes } from '../../protocol/messages.gen.ts';
import type { TopicPartition } from './topic_partition.ts';

export type MemberApi =
  | 'JoinGroup'
  | 'SyncGroup'
  | 'Heartbeat'
  | 'LeaveGroup'
  | 'ConsumerGroupHeartbeat';

/** A request to the group's coordinator. Exactly one `answered` or `failed` with its token is due, unless another request
 *  of the same API is sent before that. */
export type MemberRequest = {
  [A in MemberApi]: { readonly api: A; readonly body: MessageInputs[`${A}Request`] };
}[MemberApi];

export type MemberAnswer = {
  [A in MemberApi]: { readonly api: A; readonly body: MessageTypes[`${A}Response`] };
}[MemberApi];

export type MemberEvent =
  /** Be a member, or come back after `absent`. */
  | { readonly type: 'join' }
  /** Other topics from now on. */
  | { readonly type: 'subscribe'; readonly topics: readonly string[] }
  /** How many partitions topics have; those that do not exist are left out. */
  | { readonly type: 'counts'; readonly counts: ReadonlyMap<string, number> }
  /** Topics by id, as far as they are known (KIP-848). */
  | { readonly type: 'names'; readonly names: ReadonlyMap<string, string> }
  | { readonly type: 'answered'; readonly token: number; readonly answer: MemberAnswer }
  /** No answer: the coordinator was not reached within its time. */
  | { readonly type: 'failed'; readonly token: number }
  /** The owner has given up what the last `revoke` named. */
  | { readonly type: 'released' }
  /** The owner takes no records any more: leave the group until `join`. */
  | { readonly type: 'absent' }
  | { readonly type: 'leave' }
  /** `wakeAtMs` has come. */
  | { readonly type: 'time' };

export type MemberEffect =
  | { readonly type: 'send'; readonly token: number; readonly request: MemberRequest }
  /** Answer with `counts` of at least these topics. */
  | { readonly type: 'countPartitions'; readonly topics: readonly string[] }
  /** Answer with `names` of at least these ids, once they are known. */
  | { readonly type: 'nameTopics'; readonly topicIds: readonly string[] }
  /** Stop reading these; then `released`. `isLost`: somebody else may have them already, so nothing can be committed. */
  | {
      readonly type: 'revoke';
      readonly partitions: readonly TopicPartition[];
      readonly isLost: boolean;
    }
  /** Read these, too. An empty list says that a rebalance has ended and brought nothing. */
  | { readonly type: 'assign'; readonly partitions: readonly TopicPartition[] }
  /** The group cannot be joined; nothing more is done. `code` is Kafka's. */
  | { readonly type: 'fail'; readonly code: number; readonly message: string | null }
  /** It is not a member any more, as `leave` wanted. */
  | { readonly type: 'left' };

/** With what offsets are committed and read. */
export interface MemberIdentity {
  readonly memberId: string;
  readonly instanceId: string | null;
  /** Of a classic group; the member's epoch under KIP-848. -1: not a member. */
  readonly generationId: number;
  /** Offsets are to be read as this member (KIP-848): what others commit meanwhile is refused. */
  readonly isEpoch: boolean;
}

export interface Membership {
  /** When to send `time`, by the clock of `nowMs`; infinite for never. */
  readonly wakeAtMs: number;
  readonly identity: MemberIdentity;
  step(event: MemberEvent, nowMs: number): MemberEffect[];
}

const retryMinMs = 100;
const retryMaxMs = 2_000;

/** Until the next attempt after `failures` ones; `random` is from 0 up to 1. */
export function retryAfterMs(failures: number, random: number): number {
  const base = Math.min(retryMaxMs, retryMinMs * 2 ** Math.min(failures - 1, 10));
  return base * (0.8 + random * 0.4);
}

/** After these the same request may succeed later. */
const passing: ReadonlySet<number> = new Set([
  ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
  ErrorCode.COORDINATOR_NOT_AVAILABLE,
  ErrorCode.NOT_COORDINATOR,
  ErrorCode.REQUEST_TIMED_OUT,
  ErrorCode.NETWORK_EXCEPTION,
]);

export function isPassing(code: number): boolean {
  return passing.has(code);
}
