/**
 * A member of a group of the new protocol (KIP-848) as a state machine: heartbeats bring the assignment, which the
 * coordinator computes, and tell what the member has given up and taken. What it keeps is never interrupted.
 *
 * A heartbeat says everything after a loss of any kind, and otherwise only what has changed.
 *
 * Thread and concurrency: none of its own; `step` runs to its end.
 *
 * Legal transitions:
 *   away --join--> joining --answered with an epoch--> member
 *   member --unknown or fenced--> joining, once all is released; any --absent--> away
 *   any --leave--> leaving --released, answered or failed--> over; any --fatal error--> over
 */
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { MessageTypes } from '../../protocol/messages.gen.ts';
import {
  isPassing,
  type MemberAnswer,
  type MemberEffect,
  type MemberEvent,
  type MemberIdentity,
  type Membership,
  retryAfterMs,
} from './membership.ts';
import { byTopic, keyOf, type TopicPartition, without } from './topic_partition.ts';

export interface ConsumerMemberOptions {
  readonly groupId: string;
  /** A fresh uuid: members of this protocol name themselves. */
  readonly memberId: string;
  readonly instanceId: string | null;
  /** `uniform` or `range`; null leaves it to the group. */
  readonly serverAssignor: string | null;
  readonly topics: readonly string[];
  readonly rebalanceTimeoutMs: number;
  /** How long to wait for a static member's place that a former one has not left yet. */
  readonly takeOverMs: number;
  /** From 0 up to 1. */
  readonly random: () => number;
}

type State = 'away' | 'joining' | 'member' | 'leaving' | 'over';
type Next = 'acknowledge' | 'join' | 'leave' | 'away';
type WireTopics = { topicId: string; partitions: number[] }[];

const joinEpoch = 0;
const leaveEpoch = -1;
const staticLeaveEpoch = -2;
const never: number = Number.POSITIVE_INFINITY;

export class ConsumerMember implements Membership {
  readonly #options: ConsumerMemberOptions;
  #topics: readonly string[];
  #state: State = 'away';
  #epoch: number = joinEpoch;
  #owned: readonly TopicPartition[] = [];
  /** What the coordinator wants it to have, by topic id; null before it has said so. */
  #target: WireTopics | null = null;
  readonly #names = new Map<string, string>();
  readonly #ids = new Map<string, string>();
  #afterRelease: Next | null = null;
  /** The next heartbeat says everything, or that what it has has changed. */
  #saysAll: boolean = true;
  #saysTopics: boolean = false;
  #saysOwned: boolean = false;
  #nextToken = 1;
  /** Of the heartbeat that is waited for; 0 for none. */
  #awaited = 0;
  #intervalMs = 1_000;
  #heartbeatAtMs: number = never;
  #failures = 0;
  /** Since when a former member holds the place of this one. */
  #heldSinceMs: number = never;
  #effects: MemberEffect[] = [];
  #nowMs = 0;

  constructor(options: ConsumerMemberOptions) {
    this.#options = options;
    this.#topics = options.topics;
  }

  get wakeAtMs(): number {
    return this.#heartbeatAtMs;
  }

  get identity(): MemberIdentity {
    const { memberId, instanceId } = this.#options;
    const isMember = this.#epoch > 0;
    return {
      memberId: isMember ? memberId : '',
      instanceId,
      generationId: isMember ? this.#epoch : -1,
      isEpoch: true,
    };
  }

  step(event: MemberEvent, nowMs: number): MemberEffect[] {
    this.#nowMs = nowMs;
    this.#effects = [];
    if (this.#state !== 'over') this.#on(event);
    return this.#effects;
  }

  #on(event: MemberEvent): void {
    const state = this.#state;
    if (event.type === 'join' && state === 'away') this.#join();
    else if (event.type === 'subscribe') this.#subscribe(event.topics);
    else if (event.type === 'names') this.#onNames(event.names);
    else if (event.type === 'answered') this.#onAnswer(event.token, event.answer);
    else if (event.type === 'failed') this.#onFailure(event.token);
    else if (event.type === 'released') this.#onReleased();
    else if (event.type === 'absent' && state !== 'leaving' && state !== 'away') this.#goAway();
    else if (event.type === 'leave' && state !== 'leaving') this.#leave();
    else if (event.type === 'time' && this.#nowMs >= this.#heartbeatAtMs) this.#heartbeat();
  }

  #join(): void {
    this.#state = 'joining';
    this.#epoch = joinEpoch;
    this.#target = null;
    this.#saysAll = true;
    // An answer that is still due would be about the former membership.
    this.#awaited = 0;
    this.#heartbeatAtMs = never;
    if (this.#owned.length > 0) this.#revoke(this.#owned, true, 'join');
    else if (this.#afterRelease === null) this.#heartbeat();
    else this.#afterRelease = 'join';
  }

  #subscribe(topics: readonly string[]): void {
    this.#topics = topics;
    this.#saysTopics = true;
    if (this.#state === 'member') this.#heartbeatAtMs = this.#nowMs;
  }

  #heartbeat(): void {
    this.#heartbeatAtMs = this.#nowMs + this.#intervalMs;
    if (this.#awaited !== 0) return;
    const { groupId, memberId, instanceId, serverAssignor, rebalanceTimeoutMs } = this.#options;
    const all = this.#saysAll;
    const body = {
      ...{ groupId, memberId, instanceId, memberEpoch: this.#epoch },
      ...(all ? { serverAssignor, rebalanceTimeoutMs } : {}),
      ...(all || this.#saysTopics ? { subscribedTopicNames: [...this.#topics] } : {}),
      ...(all || this.#saysOwned ? { topicPartitions: this.#wireOwned() } : {}),
    };
    this.#saysAll = false;
    this.#saysTopics = false;
    this.#saysOwned = false;
    this.#awaited = this.#send(body);
  }

  #send(body: Extract<MemberEffect, { type: 'send' }>['request']['body']): number {
    const token = this.#nextToken;
    this.#nextToken += 1;
    const request = { api: 'ConsumerGroupHeartbeat', body } as Extract<
      MemberEffect,
      { type: 'send' }
    >['request'];
    this.#effects.push({ type: 'send', token, request });
    return token;
  }

  #wireOwned(): WireTopics {
    return byTopic(this.#owned).map(({ topic, partitions }) => ({
      topicId: this.#ids.get(topic) ?? '',
      partitions: [...partitions],
    }));
  }

  #onAnswer(token: number, answer: MemberAnswer): void {
    if (token !== this.#awaited || answer.api !== 'ConsumerGroupHeartbeat') return;
    this.#awaited = 0;
    const { body } = answer;
    if (this.#state === 'leaving') {
      if (this.#afterRelease === null) this.#end();
    } else if (body.errorCode === ErrorCode.NONE) this.#onAccepted(body);
    else this.#onError(body.errorCode, body.errorMessage);
  }

  #onAccepted(body: MessageTypes['ConsumerGroupHeartbeatResponse']): void {
    this.#state = 'member';
    this.#failures = 0;
    this.#heldSinceMs = never;
    this.#epoch = body.memberEpoch;
    this.#intervalMs = Math.max(1, body.heartbeatIntervalMs);
    const says = this.#saysTopics || this.#saysOwned;
    this.#heartbeatAtMs = says ? this.#nowMs : this.#nowMs + this.#intervalMs;
    if (body.assignment === null) return;
    this.#target = body.assignment.topicPartitions;
    this.#reconcile();
  }

  /** Takes one step from what it has to what it is to have, unless one is under way. */
  #reconcile(): void {
    if (this.#target === null || this.#afterRelease !== null || this.#state !== 'member') return;
    const unknown = this.#target.filter(({ topicId }) => !this.#names.has(topicId));
    if (unknown.length > 0)
      this.#effects.push({ type: 'nameTopics', topicIds: unknown.map(({ topicId }) => topicId) });
    const target = this.#target.flatMap(({ topicId, partitions }) => {
      const topic = this.#names.get(topicId);
      return topic === undefined ? [] : partitions.map((partition) => ({ topic, partition }));
    });
    const goes = without(this.#owned, target);
    if (goes.length > 0) {
      this.#revoke(goes, false, 'acknowledge');
      return;
    }
    const added = without(target, this.#owned);
    const isDone = unknown.length === 0;
    if (added.length > 0) {
      this.#owned = [...this.#owned, ...added];
      this.#saysOwned = true;
    }
    if (isDone) this.#target = null;
    if (added.length > 0 || isDone) this.#effects.push({ type: 'assign', partitions: added });
    if (this.#saysOwned) this.#heartbeatAtMs = this.#nowMs;
  }

  #onNames(names: ReadonlyMap<string, string>): void {
    for (const [topicId, topic] of names) {
      this.#names.set(topicId, topic);
      this.#ids.set(topic, topicId);
    }
    this.#reconcile();
  }

  #revoke(partitions: readonly TopicPartition[], isLost: boolean, then: Next): void {
    const going = new Set(partitions.map(keyOf));
    this.#owned = this.#owned.filter((one) => !going.has(keyOf(one)));
    this.#afterRelease = then;
    this.#effects.push({ type: 'revoke', partitions, isLost });
  }

  #onReleased(): void {
    const then = this.#afterRelease;
    this.#afterRelease = null;
    if (then === 'acknowledge') {
      this.#saysOwned = true;
      this.#heartbeatAtMs = this.#nowMs;
      this.#reconcile();
    } else if (then === 'join') this.#heartbeat();
    else if (then === 'leave') this.#sendLeave();
  }

  #onError(code: number, message: string | null): void {
    const { takeOverMs, random } = this.#options;
    this.#saysAll = true;
    switch (code) {
      case ErrorCode.UNKNOWN_MEMBER_ID:
      case ErrorCode.FENCED_MEMBER_EPOCH:
        this.#join();
        return;
      case ErrorCode.UNRELEASED_INSTANCE_ID:
        // It has not said goodbye: its session has to end first.
        this.#heldSinceMs = Math.min(this.#heldSinceMs, this.#nowMs);
        if (this.#nowMs - this.#heldSinceMs > takeOverMs) this.#fail(code, message);
        else this.#heartbeatAtMs = this.#nowMs + this.#intervalMs * (0.5 + random());
        return;
      default:
        if (isPassing(code)) this.#retry();
        else this.#fail(code, message);
    }
  }

  #retry(): void {
    this.#failures += 1;
    this.#heartbeatAtMs = this.#nowMs + retryAfterMs(this.#failures, this.#options.random());
  }

  /** The coordinator may have taken the request in or not: say all again. */
  #onFailure(token: number): void {
    if (token !== this.#awaited) return;
    this.#awaited = 0;
    this.#saysAll = true;
    if (this.#state === 'leaving') {
      if (this.#afterRelease === null) this.#end();
    } else this.#retry();
  }

  #goAway(): void {
    const wasMember = this.#epoch > 0;
    this.#reset('away');
    if (wasMember) this.#send(this.#leaveBody());
    if (this.#owned.length > 0) this.#revoke(this.#owned, true, 'away');
  }

  #leave(): void {
    this.#state = 'leaving';
    this.#heartbeatAtMs = never;
    if (this.#afterRelease !== null) this.#afterRelease = 'leave';
    else this.#sendLeave();
  }

  #sendLeave(): void {
    if (this.#owned.length > 0) this.#revoke(this.#owned, this.#epoch <= 0, 'leave');
    else if (this.#epoch > 0) this.#awaited = this.#send(this.#leaveBody());
    else this.#end();
  }

  #leaveBody(): {
    groupId: string;
    memberId: string;
    instanceId: string | null;
    memberEpoch: number;
  } {
    const { groupId, memberId, instanceId } = this.#options;
    // A static member's place is kept for its session.
    const memberEpoch = instanceId === null ? leaveEpoch : staticLeaveEpoch;
    return { groupId, memberId, instanceId, memberEpoch };
  }

  #end(): void {
    this.#reset('over');
    this.#effects.push({ type: 'left' });
  }

  #fail(code: number, message: string | null): void {
    const owned = this.#owned;
    this.#reset('over');
    this.#owned = [];
    if (owned.length > 0) this.#effects.push({ type: 'revoke', partitions: owned, isLost: true });
    this.#effects.push({ type: 'fail', code, message });
  }

  #reset(state: State): void {
    this.#state = state;
    this.#epoch = joinEpoch;
    this.#target = null;
    this.#saysAll = true;
    this.#awaited = 0;
    this.#heartbeatAtMs = never;
  }
}
