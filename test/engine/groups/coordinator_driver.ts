/** Drives a group coordinator by hand: virtual time, appends that are committed when the test says so. */
import assert from 'node:assert/strict';
import type { ErrorCode } from '../../../engine/error_code.gen.ts';
import type {
  CoordinatorEffect,
  CoordinatorEvent,
  TopicDescription,
} from '../../../engine/groups/coordinator_events.ts';
import type {
  GroupApi,
  GroupCalls,
  GroupReply,
  GroupRequest,
  JoinGroupRequest,
  OffsetCommitRequest,
  OffsetFetchReply,
} from '../../../engine/groups/group_api.ts';
import { GroupCoordinator } from '../../../engine/groups/group_coordinator.ts';
import { defaultGroupOptions, type GroupOptions } from '../../../engine/groups/group_options.ts';
import type { GroupRecord } from '../../../engine/groups/group_records.ts';

export const groupId = 'group';
const startMs = 1_700_000_000_000;

/** A request that has been put; `body` is there once it is answered. */
export class Asked<Api extends GroupApi> {
  reply: GroupReply | null = null;

  get isAnswered(): boolean {
    return this.reply !== null;
  }

  get body(): GroupCalls[Api]['reply'] {
    assert(this.reply !== null, 'not answered yet');
    return this.reply.body as GroupCalls[Api]['reply'];
  }
}

export class CoordinatorDriver {
  readonly topics: Map<string, TopicDescription> = new Map();
  /** What is committed. */
  readonly log: GroupRecord[] = [];
  readonly options: GroupOptions;
  coordinator: GroupCoordinator;
  nowMs = 0;
  /** Off: appends wait for `commit` or `fail`. */
  commitsAtOnce: boolean = true;
  #appends: (CoordinatorEffect & { type: 'append' })[] = [];
  readonly #asked = new Map<number, Asked<GroupApi>>();
  #ids = 0;

  constructor(options: Partial<GroupOptions> = {}, log: readonly GroupRecord[] = []) {
    this.options = { ...defaultGroupOptions, initialRebalanceDelayMs: 0, ...options };
    this.log.push(...log);
    this.coordinator = this.#start();
  }

  /** A new coordinator, from what is committed; what waits is not answered any more. */
  restart(): void {
    this.#appends = [];
    this.#asked.clear();
    this.coordinator = this.#start();
  }

  #start(): GroupCoordinator {
    const coordinator = new GroupCoordinator({
      options: this.options,
      newUuid: () => {
        this.#ids += 1;
        return `uuid${this.#ids}`;
      },
      topics: {
        byName: (name) => this.topics.get(name),
        nameOf: (topicId) => [...this.topics].find(([, topic]) => topic.topicId === topicId)?.[0],
      },
    });
    this.coordinator = coordinator;
    this.step({ type: 'load', records: this.log });
    this.step({ type: 'loaded' });
    return coordinator;
  }

  get appends(): readonly (CoordinatorEffect & { type: 'append' })[] {
    return this.#appends;
  }

  get #now(): { readonly monotonicMs: number; readonly wallMs: number } {
    return { monotonicMs: this.nowMs, wallMs: startMs + this.nowMs };
  }

  step(event: CoordinatorEvent): void {
    this.#perform(this.coordinator.step(event, this.#now));
  }

  ask<Api extends GroupApi>(api: Api, body: GroupCalls[Api]['request']): Asked<Api> {
    const asked = new Asked<Api>();
    const token = this.#asked.size + 1;
    this.#asked.set(token, asked as Asked<GroupApi>);
    const client = { clientId: 'client', clientHost: '/host' };
    this.step({ type: 'request', token, client, request: { api, body } as GroupRequest });
    return asked;
  }

  commit(): void {
    for (let append = this.#appends.shift(); append !== undefined; ) {
      this.log.push(...append.records);
      this.step({ type: 'committed', appendId: append.appendId });
      append = this.#appends.shift();
    }
  }

  /** The first append that waits, and with it all others, fail. */
  fail(error: ErrorCode): void {
    const first = this.#appends[0];
    assert(first);
    this.#appends = [];
    this.step({ type: 'append_failed', appendId: first.appendId, error });
  }

  /** Lets time pass, with every deadline on the way met. */
  advance(delayMs: number): void {
    const untilMs = this.nowMs + delayMs;
    while (this.coordinator.nextDeadlineMs <= untilMs) {
      this.nowMs = Math.max(this.nowMs, this.coordinator.nextDeadlineMs);
      this.#perform(this.coordinator.tick(this.#now));
    }
    this.nowMs = untilMs;
  }

  #perform(effects: readonly CoordinatorEffect[]): void {
    for (const effect of effects) {
      if (effect.type === 'append') this.#appends.push(effect);
      if (effect.type !== 'reply') continue;
      const asked = this.#asked.get(effect.token);
      assert(asked !== undefined && !asked.isAnswered, `token ${effect.token}`);
      asked.reply = effect.reply;
    }
    if (this.commitsAtOnce && this.#appends.length > 0) this.commit();
  }

  join(more: Partial<JoinGroupRequest> = {}): Asked<'JoinGroup'> {
    return this.ask('JoinGroup', {
      groupId,
      sessionTimeoutMs: 10_000,
      rebalanceTimeoutMs: 30_000,
      memberId: '',
      groupInstanceId: null,
      protocolType: 'consumer',
      protocols: [{ name: 'range', metadata: subscription('t') }],
      reason: null,
      requireKnownMemberId: false,
      supportSkippingAssignment: true,
      ...more,
    });
  }

  sync(
    memberId: string,
    generationId: number,
    assignments: Readonly<Record<string, string>> = {},
    groupInstanceId: string | null = null,
  ): Asked<'SyncGroup'> {
    return this.ask('SyncGroup', {
      groupId,
      generationId,
      memberId,
      groupInstanceId,
      protocolType: null,
      protocolName: null,
      assignments: Object.entries(assignments).map(([member, assignment]) => ({
        memberId: member,
        assignment: Buffer.from(assignment),
      })),
    });
  }

  heartbeat(
    memberId: string,
    generationId: number,
    groupInstanceId: string | null = null,
  ): ErrorCode {
    const body = { groupId, generationId, memberId, groupInstanceId };
    return this.ask('Heartbeat', body).body.errorCode;
  }

  /** A stable group of one dynamic member. */
  alone(more: Partial<JoinGroupRequest> = {}): {
    readonly memberId: string;
    readonly generationId: number;
  } {
    const joining = this.join(more);
    this.advance(this.options.initialRebalanceDelayMs);
    const { memberId, generationId } = joining.body;
    this.sync(memberId, generationId, { [memberId]: 'all' }, more.groupInstanceId ?? null);
    return { memberId, generationId };
  }

  commitOffset(
    offset: bigint,
    more: Partial<OffsetCommitRequest> & { readonly partition?: number } = {},
  ): Asked<'OffsetCommit'> {
    const { partition: partitionIndex = 0, ...request } = more;
    const partition = {
      partitionIndex,
      committedOffset: offset,
      committedLeaderEpoch: -1,
      committedMetadata: '',
    };
    return this.ask('OffsetCommit', {
      groupId,
      apiVersion: 9,
      generationIdOrMemberEpoch: -1,
      memberId: '',
      groupInstanceId: null,
      retentionTimeMs: -1n,
      topics: [{ name: 't', topicId: 'T', partitions: [partition] }],
      ...request,
    });
  }

  /** All that is committed, as "topic-partition" → offset. */
  offsets(id: string = groupId): Record<string, bigint> {
    const body = { groupId: id, memberId: null, memberEpoch: -1, topics: null };
    const reply: OffsetFetchReply = this.ask('OffsetFetch', body).body;
    const found: Record<string, bigint> = {};
    for (const { name, partitions } of reply.topics)
      for (const { partitionIndex, committedOffset } of partitions)
        found[`${name}-${partitionIndex}`] = committedOffset;
    return found;
  }

  state(id: string = groupId): string {
    return this.ask('DescribeGroups', { groupId: id }).body.groupState;
  }
}

/** `ConsumerProtocolSubscription` of version 0. */
export function subscription(...topics: readonly string[]): Uint8Array {
  const bytes = Buffer.alloc(6 + topics.reduce((sum, { length }) => sum + 2 + length, 0));
  bytes.writeInt32BE(topics.length, 2);
  let at = 6;
  for (const topic of topics) {
    at = bytes.writeInt16BE(topic.length, at);
    at += bytes.write(topic, at);
  }
  return bytes;
}

export function commitError(asked: Asked<'OffsetCommit'>): ErrorCode | undefined {
  return asked.body.topics[0]?.partitions[0]?.errorCode;
}
