/**
 * A member of a classic group as a state machine: joins, plans as the leader, syncs, heartbeats, gives up and takes
 * partitions, and comes back after whatever the coordinator says (KIP-62, 345, 394, 429, 814).
 *
 * Eager strategies give everything up before they join. The cooperative one joins with what it has, gives up what the new
 * assignment takes from it, and joins once more so that others get that.
 *
 * Thread and concurrency: none of its own; `step` runs to its end.
 *
 * Legal transitions:
 *   away --join--> joining --answered--> planning (leader) or syncing
 *   planning --counts--> syncing --answered--> member
 *   member --rebalance, other topics, lost generation--> joining, once what has to be released is
 *   joining, planning, syncing --error--> pausing --time--> joining
 *   any --absent--> away; any --leave--> leaving --released, answered or failed--> over; any --fatal error--> over
 */
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { MessageTypes } from '../../protocol/messages.gen.ts';
import { ProtocolError } from '../../protocol/reader.ts';
import type { Strategy } from './assignors.ts';
import {
  type ClassicMemberOptions,
  heartbeatRequest,
  joinRequest,
  leaveRequest,
  syncRequest,
} from './classic_requests.ts';
import { GroupPlan } from './group_plan.ts';
import { decodeAssignment } from './member_protocol.ts';
import {
  isPassing,
  type MemberAnswer,
  type MemberEffect,
  type MemberEvent,
  type MemberIdentity,
  type MemberRequest,
  type Membership,
  retryAfterMs,
} from './membership.ts';
import { type TopicPartition, without } from './topic_partition.ts';

type State =
  | 'away'
  | 'joining'
  | 'planning'
  | 'syncing'
  | 'member'
  | 'pausing'
  | 'leaving'
  | 'over';

type Next = 'join' | 'take' | 'leave' | 'away';

type Joined = MessageTypes['JoinGroupResponse'];

const noGeneration = -1;
const never: number = Number.POSITIVE_INFINITY;

export class ClassicMember implements Membership {
  readonly #options: ClassicMemberOptions;
  readonly #isCooperative: boolean;
  #topics: readonly string[];
  #state: State = 'away';
  #memberId = '';
  #generationId: number = noGeneration;
  #owned: readonly TopicPartition[] = [];
  /** For the `sticky` assignor: what it had in its last generation, though it has given it up since. */
  #previous: readonly TopicPartition[] = [];
  #previousGeneration: number = noGeneration;
  /** Comes when what is to be released is: null while nothing is. */
  #afterRelease: Next | null = null;
  #added: readonly TopicPartition[] = [];
  #wantsJoin: boolean = false;
  /** Of the leader. */
  #plan: GroupPlan | null = null;
  #strategy: Strategy;
  #nextToken = 1;
  /** Of the request that is waited for besides heartbeats, and of the heartbeat; 0 for none. */
  #awaited = 0;
  #heartbeat = 0;
  #failures = 0;
  #retryAtMs = never;
  #heartbeatAtMs = never;
  #effects: MemberEffect[] = [];
  #nowMs = 0;

  constructor(options: ClassicMemberOptions) {
    this.#options = options;
    this.#topics = options.topics;
    this.#strategy = options.strategies[0] ?? 'range';
    this.#isCooperative = options.strategies.every((one) => one === 'cooperative-sticky');
  }

  get wakeAtMs(): number {
    return Math.min(this.#retryAtMs, this.#heartbeatAtMs);
  }

  get identity(): MemberIdentity {
    const generationId = this.#generationId;
    const memberId = generationId < 0 ? '' : this.#memberId;
    return { memberId, instanceId: this.#options.instanceId, generationId, isEpoch: false };
  }

  step(event: MemberEvent, nowMs: number): MemberEffect[] {
    this.#nowMs = nowMs;
    this.#effects = [];
    if (this.#state !== 'over') this.#on(event);
    return this.#effects;
  }

  #on(event: MemberEvent): void {
    const state = this.#state;
    if (event.type === 'subscribe') this.#topics = event.topics;
    if (event.type === 'subscribe' && state === 'member') this.#rejoin();
    else if (event.type === 'join' && state === 'away') this.#rejoin();
    else if (event.type === 'absent' && state !== 'leaving' && state !== 'away') this.#goAway();
    else if (event.type === 'leave' && state !== 'leaving') this.#leave();
    else if (event.type === 'counts') this.#onCounts(event.counts);
    else if (event.type === 'answered') this.#onAnswer(event.token, event.answer);
    else if (event.type === 'failed') this.#onFailure(event.token);
    else if (event.type === 'released') this.#onReleased();
    else if (event.type === 'time') this.#onTime();
  }

  #onTime(): void {
    if (this.#nowMs >= this.#retryAtMs) {
      this.#retryAtMs = never;
      if (this.#state === 'pausing') this.#rejoin();
    }
    if (this.#nowMs >= this.#heartbeatAtMs && this.#state === 'member') this.#sendHeartbeat();
  }

  /** Joins as soon as what must be given up before is given up. */
  #rejoin(): void {
    if (this.#afterRelease !== null) {
      this.#wantsJoin = true;
      return;
    }
    this.#wantsJoin = false;
    const isLost = this.#generationId < 0;
    const goes =
      this.#isCooperative && !isLost
        ? this.#owned.filter(({ topic }) => !this.#topics.includes(topic))
        : this.#owned;
    if (goes.length > 0) this.#revoke(goes, isLost, 'join');
    else this.#join();
  }

  #revoke(partitions: readonly TopicPartition[], isLost: boolean, then: Next): void {
    this.#owned = without(this.#owned, partitions);
    this.#afterRelease = then;
    this.#effects.push({ type: 'revoke', partitions, isLost });
  }

  #onReleased(): void {
    const then = this.#afterRelease;
    this.#afterRelease = null;
    if (then === 'leave') this.#sendLeave();
    else if (then === 'take') this.#take();
    if (then === 'join' || then === 'take' || (then === 'away' && this.#wantsJoin)) this.#rejoin();
  }

  #send(request: MemberRequest): number {
    const token = this.#nextToken;
    this.#nextToken += 1;
    this.#effects.push({ type: 'send', token, request });
    return token;
  }

  #join(): void {
    this.#state = 'joining';
    this.#plan = null;
    this.#heartbeat = 0;
    this.#heartbeatAtMs = never;
    this.#retryAtMs = never;
    const subscription = {
      topics: this.#topics,
      owned: this.#owned,
      previous: this.#previous,
      generationId: this.#previousGeneration,
    };
    this.#awaited = this.#send(joinRequest(this.#options, this.#memberId, subscription));
  }

  #onAnswer(token: number, answer: MemberAnswer): void {
    if (token === this.#heartbeat && answer.api === 'Heartbeat') {
      this.#heartbeat = 0;
      this.#onError(answer.body.errorCode);
      return;
    }
    if (token !== this.#awaited) return;
    this.#awaited = 0;
    if (answer.api === 'JoinGroup') this.#onJoined(answer.body);
    else if (answer.api === 'SyncGroup') this.#onSynced(answer.body);
    else if (answer.api === 'LeaveGroup') this.#end();
  }

  #onJoined(joined: Joined): void {
    if (joined.errorCode === ErrorCode.MEMBER_ID_REQUIRED) {
      this.#memberId = joined.memberId;
      this.#join();
      return;
    }
    if (joined.errorCode !== ErrorCode.NONE) {
      this.#onError(joined.errorCode);
      return;
    }
    const strategy = this.#options.strategies.find((one) => one === joined.protocolName);
    if (strategy === undefined) {
      this.#fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
      return;
    }
    this.#strategy = strategy;
    this.#memberId = joined.memberId;
    this.#generationId = joined.generationId;
    if (joined.leader === joined.memberId && !joined.skipAssignment) this.#startPlan(joined);
    else this.#sync([]);
  }

  #startPlan(joined: Joined): void {
    try {
      this.#plan = new GroupPlan(joined, this.#strategy);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, error.message);
      return;
    }
    this.#state = 'planning';
    this.#effects.push({ type: 'countPartitions', topics: this.#plan.topics });
  }

  #onCounts(counts: ReadonlyMap<string, number>): void {
    if (this.#plan === null) return;
    if (this.#state === 'planning') this.#sync(this.#plan.make(counts));
    // Only who has made the plan knows when it does not fit any more.
    else if (this.#state === 'member' && this.#plan.isOutdatedBy(counts)) this.#rejoin();
  }

  #sync(assignments: { memberId: string; assignment: Uint8Array }[]): void {
    this.#state = 'syncing';
    this.#awaited = this.#send(
      syncRequest(this.#options, this.#memberId, this.#generationId, this.#strategy, assignments),
    );
  }

  #onSynced({ errorCode, assignment }: MessageTypes['SyncGroupResponse']): void {
    if (errorCode !== ErrorCode.NONE) {
      this.#onError(errorCode);
      return;
    }
    let target: readonly TopicPartition[];
    try {
      target = decodeAssignment(assignment);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, error.message);
      return;
    }
    this.#state = 'member';
    this.#failures = 0;
    this.#previous = target;
    this.#previousGeneration = this.#generationId;
    this.#heartbeatAtMs = this.#nowMs + this.#options.heartbeatIntervalMs;
    this.#added = without(target, this.#owned);
    const goes = without(this.#owned, target);
    if (goes.length > 0) this.#revoke(goes, false, 'take');
    else this.#take();
  }

  #take(): void {
    this.#owned = [...this.#owned, ...this.#added];
    this.#effects.push({ type: 'assign', partitions: this.#added });
    this.#added = [];
  }

  #sendHeartbeat(): void {
    this.#heartbeatAtMs = this.#nowMs + this.#options.heartbeatIntervalMs;
    // One that has no answer yet goes on waiting for it.
    if (this.#heartbeat !== 0) return;
    const request = heartbeatRequest(this.#options, this.#memberId, this.#generationId);
    this.#heartbeat = this.#send(request);
  }

  /** What any answer's error means for the membership. */
  #onError(code: number): void {
    switch (code) {
      case ErrorCode.NONE:
        return;
      case ErrorCode.REBALANCE_IN_PROGRESS:
        this.#rejoin();
        return;
      case ErrorCode.UNKNOWN_MEMBER_ID:
        this.#memberId = '';
        this.#loseGeneration();
        return;
      case ErrorCode.ILLEGAL_GENERATION:
        this.#loseGeneration();
        return;
      default:
        if (isPassing(code)) this.#pause();
        else this.#fail(code);
    }
  }

  #loseGeneration(): void {
    this.#generationId = noGeneration;
    this.#added = [];
    this.#rejoin();
  }

  /** A member's heartbeats come again by themselves. */
  #pause(): void {
    if (this.#state === 'member') return;
    this.#failures += 1;
    this.#state = 'pausing';
    this.#retryAtMs = this.#nowMs + retryAfterMs(this.#failures, this.#options.random());
  }

  #onFailure(token: number): void {
    if (token === this.#heartbeat) {
      this.#heartbeat = 0;
      return;
    }
    if (token !== this.#awaited) return;
    this.#awaited = 0;
    if (this.#state === 'leaving') this.#end();
    else this.#pause();
  }

  /** Out of the group while its owner takes nothing; a static member's place is kept for its session. */
  #goAway(): void {
    const isMember = this.#memberId !== '';
    if (isMember && this.#options.instanceId === null)
      this.#send(leaveRequest(this.#options, this.#memberId));
    this.#reset('away');
    if (this.#owned.length > 0) this.#revoke(this.#owned, true, 'away');
  }

  #leave(): void {
    this.#state = 'leaving';
    this.#awaited = 0;
    this.#retryAtMs = never;
    this.#heartbeatAtMs = never;
    if (this.#afterRelease !== null) this.#afterRelease = 'leave';
    else this.#sendLeave();
  }

  #sendLeave(): void {
    // What came while something else was being released goes now.
    if (this.#owned.length > 0) {
      this.#revoke(this.#owned, this.#generationId < 0, 'leave');
      return;
    }
    if (this.#memberId === '' || this.#options.instanceId !== null) this.#end();
    else this.#awaited = this.#send(leaveRequest(this.#options, this.#memberId));
  }

  #end(): void {
    this.#reset('over');
    this.#effects.push({ type: 'left' });
  }

  #fail(code: number, message: string | null = null): void {
    const owned = this.#owned;
    this.#reset('over');
    this.#owned = [];
    if (owned.length > 0) this.#effects.push({ type: 'revoke', partitions: owned, isLost: true });
    this.#effects.push({ type: 'fail', code, message });
  }

  #reset(state: State): void {
    this.#state = state;
    if (this.#options.instanceId === null) this.#memberId = '';
    this.#generationId = noGeneration;
    this.#added = [];
    this.#plan = null;
    this.#awaited = 0;
    this.#heartbeat = 0;
    this.#wantsJoin = false;
    this.#retryAtMs = never;
    this.#heartbeatAtMs = never;
  }
}
