/**
 * The coordinator of all groups of one partition of `__consumer_offsets`, as a state machine without IO or clocks.
 *
 * Thread: the one of the partition; nothing is shared. Concurrency: none, `step` and `tick` run to their end.
 * Durability: a `reply` effect may be sent at once, for it is held back here until the records that it depends on are
 * committed. Offsets are seen only once they are committed; what an append that failed had changed is undone.
 *
 * How to drive it:
 *   1. A new machine is loading. Give it the partition's records with `load`, in order, then `loaded`.
 *   2. Give it requests, and carry out the effects of every call in order. Append the records of an `append` effect as one
 *      batch; say `committed` when the high watermark has passed it, or `append_failed`, and in this case drop all appends
 *      handed out after it, those further on in the same list of effects, too.
 *   3. Call `tick` when the monotonic clock has reached `nextDeadlineMs`, which any call may have moved.
 *   4. Say `topics_changed` after each change of the `TopicDirectory`, and `resigned` when the partition goes elsewhere.
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../error_code.gen.ts';
import type { ClassicGroup } from './classic_group.ts';
import { checkJoin, joinGroup } from './classic_join.ts';
import { heartbeat, leaveGroup, syncGroup } from './classic_membership.ts';
import { groupTombstone } from './classic_records.ts';
import { checkConsumerCommit, checkConsumerFetch } from './consumer_commit.ts';
import { type ConsumerHeartbeat, heartbeatConsumer, newChange } from './consumer_heartbeat.ts';
import { checkHeartbeat } from './consumer_heartbeat_rules.ts';
import { leaveByInstance } from './consumer_leave.ts';
import { describeConsumer } from './consumer_views.ts';
import type { CoordinatorEffect, CoordinatorEvent, Instant } from './coordinator_events.ts';
import { CoordinatorLoader } from './coordinator_loader.ts';
import { type CoordinatorEnvironment, CoordinatorRuntime } from './coordinator_runtime.ts';
import type {
  Client,
  GroupRequest,
  JoinGroupRequest,
  OffsetCommitRequest,
  OffsetFetchRequest,
} from './group_api.ts';
import {
  checkRemovable,
  deleteOffsets,
  expire,
  removeGroup,
  removeTopic,
} from './group_removal.ts';
import { type Group, GroupTable, isDeadGroup, isEmptyGroup } from './group_table.ts';
import { groupTombstones } from './group_tombstones.ts';
import { describeClassic, listGroups } from './group_views.ts';
import { checkClassicCommit, storeCommit } from './offset_commit.ts';
import { fetchOffsets } from './offset_fetch.ts';
import { refusal } from './refusals.ts';
import { newTimer } from './timers.ts';

/** How many groups are looked at for what has expired at a time, and how long until the next ones are. */
const groupsPerCheck = 100;
const checkPauseMs = 10;

export class GroupCoordinator {
  readonly #runtime: CoordinatorRuntime;
  readonly #table: GroupTable;
  readonly #retentionCheck = newTimer(() => this.#checkRetention());
  /** What the running check has not come to yet. */
  #unchecked: Group[] = [];
  /** Null once all is loaded. */
  #loader: CoordinatorLoader | null;
  /** Topics that went while it was loading. */
  #deletedTopics: string[] = [];
  #hasResigned: boolean = false;
  /** What has been asked and not been answered, so that nobody waits for a coordinator that has resigned. */
  readonly #unanswered = new Map<number, GroupRequest>();

  constructor(environment: CoordinatorEnvironment) {
    this.#runtime = new CoordinatorRuntime(environment);
    this.#table = new GroupTable(this.#runtime);
    this.#loader = new CoordinatorLoader(this.#runtime, this.#table);
  }

  /** Monotonic milliseconds at which `tick` has something to do, infinite for never. */
  get nextDeadlineMs(): number {
    return this.#hasResigned ? Infinity : this.#runtime.nextDeadlineMs;
  }

  get isLoading(): boolean {
    return this.#loader !== null;
  }

  /** Takes one event and returns what the caller must do, in order. */
  step(event: CoordinatorEvent, now: Instant): CoordinatorEffect[] {
    this.#runtime.begin(now);
    // What became of its last appends is of no interest any more: whoever loads the partition next will see.
    if (this.#hasResigned && event.type !== 'request') return [];
    switch (event.type) {
      case 'load':
        assert(this.#loader !== null, 'records to load after the end of loading');
        this.#loader.load(event.records);
        break;
      case 'loaded':
        this.#loaded();
        break;
      case 'request':
        this.#request(event.token, event.client, event.request);
        break;
      case 'committed':
        this.#runtime.committed(event.appendId);
        break;
      case 'append_failed':
        this.#runtime.failed(event.appendId, event.error);
        break;
      case 'topics_changed':
        this.#topicsChanged(event.changed, event.deleted);
        break;
      case 'resigned':
        this.#resign();
        break;
    }
    if (!this.#hasResigned) this.#runtime.fireTimers();
    return this.#effects();
  }

  /** Does what has come due: sessions, rebalances, retention. */
  tick(now: Instant): CoordinatorEffect[] {
    this.#runtime.begin(now);
    if (!this.#hasResigned) this.#runtime.fireTimers();
    return this.#effects();
  }

  #effects(): CoordinatorEffect[] {
    const effects = this.#runtime.takeEffects();
    for (const effect of effects)
      if (effect.type === 'reply')
        assert(this.#unanswered.delete(effect.token), `token ${effect.token} is answered twice`);
    return effects;
  }

  #loaded(): void {
    assert(this.#loader !== null, 'loaded twice');
    this.#loader.finish();
    this.#loader = null;
    this.#topicsChanged([], this.#deletedTopics);
    this.#deletedTopics = [];
    const { offsetsRetentionCheckIntervalMs } = this.#runtime.options;
    this.#runtime.startTimer(this.#retentionCheck, offsetsRetentionCheckIntervalMs);
  }

  #topicsChanged(changed: readonly string[], deleted: readonly string[]): void {
    if (this.#loader !== null) {
      this.#deletedTopics.push(...deleted);
      return;
    }
    for (const group of this.#table.all)
      if (group.type === 'consumer')
        for (const topic of [...changed, ...deleted])
          if (group.subscribers.has(topic)) group.hasStaleMetadata = true;
    for (const topic of deleted) removeTopic(this.#runtime, this.#table, topic);
  }

  /** Looks at some groups, each of which may cost an append, and goes on with the rest after others had their turn. */
  #checkRetention(): void {
    if (this.#unchecked.length === 0) this.#unchecked = [...this.#table.all];
    expire(this.#runtime, this.#table, this.#unchecked.splice(-groupsPerCheck));
    const { offsetsRetentionCheckIntervalMs } = this.#runtime.options;
    const pauseMs = this.#unchecked.length > 0 ? checkPauseMs : offsetsRetentionCheckIntervalMs;
    this.#runtime.startTimer(this.#retentionCheck, pauseMs);
  }

  #resign(): void {
    this.#hasResigned = true;
    for (const [token, request] of this.#unanswered)
      this.#runtime.reply(token, refusal(request, ErrorCode.NOT_COORDINATOR));
  }

  #request(token: number, client: Client, request: GroupRequest): void {
    assert(!this.#unanswered.has(token), `token ${token} is in use`);
    this.#unanswered.set(token, request);
    const runtime = this.#runtime;
    if (this.#hasResigned) {
      runtime.reply(token, refusal(request, ErrorCode.NOT_COORDINATOR));
      return;
    }
    if (this.#loader !== null) {
      runtime.reply(token, refusal(request, whileLoading(request)));
      return;
    }
    switch (request.api) {
      case 'JoinGroup':
        this.#join(token, client, request.body);
        break;
      case 'SyncGroup':
      case 'Heartbeat':
      case 'LeaveGroup':
        this.#member(token, request);
        break;
      case 'OffsetCommit':
        this.#commit(token, request.body);
        break;
      case 'OffsetFetch':
        this.#fetch(token, request.body);
        break;
      case 'OffsetDelete':
        deleteOffsets(runtime, this.#table, token, request.body);
        break;
      case 'ListGroups':
        runtime.reply(token, { api: 'ListGroups', body: listGroups(this.#table, request.body) });
        break;
      case 'DescribeGroups': {
        const { groupId } = request.body;
        const body = describeClassic(this.#table.get(groupId), groupId);
        runtime.reply(token, { api: 'DescribeGroups', body });
        break;
      }
      case 'DeleteGroups':
        this.#delete(token, request.body.groupId);
        break;
      case 'ConsumerGroupHeartbeat':
        this.#consumerHeartbeat({ token, client, request: request.body });
        break;
      case 'ConsumerGroupDescribe': {
        const { groupId } = request.body;
        const body = describeConsumer(runtime, this.#table.get(groupId), groupId);
        runtime.reply(token, { api: 'ConsumerGroupDescribe', body });
        break;
      }
    }
  }

  #join(token: number, client: Client, request: JoinGroupRequest): void {
    const runtime = this.#runtime;
    const refuse = (error: ErrorCode): void =>
      runtime.reply(token, refusal({ api: 'JoinGroup', body: request }, error));
    const error = checkJoin(runtime, request);
    if (error !== ErrorCode.NONE) {
      refuse(error);
      return;
    }
    const known = this.#table.get(request.groupId);
    if (known === undefined && request.memberId !== '') {
      refuse(ErrorCode.UNKNOWN_MEMBER_ID);
      return;
    }
    const group =
      known === undefined ? this.#table.newClassic(request.groupId) : this.#asClassic(known);
    if (typeof group === 'number') refuse(group);
    else joinGroup(runtime, group, { token, client, request });
  }

  /** The group, changed to the classic type if it is empty; or why it cannot be. */
  #asClassic(known: Group): ClassicGroup | ErrorCode {
    if (known.type === 'classic') return known;
    // That its last member has left may still prove untrue.
    if (known.isDead || known.hold !== null) return ErrorCode.COORDINATOR_NOT_AVAILABLE;
    if (!known.isEmpty) return ErrorCode.INCONSISTENT_GROUP_PROTOCOL;
    const { groupId } = known;
    const group = this.#table.newClassic(groupId);
    this.#runtime.append(groupTombstones(known), {
      committed: () => undefined,
      // The classic group has not been stored and goes on; its first record comes with its first generation.
      failed: (error) =>
        this.#runtime.log('warn', `group ${groupId}: its change of type was not stored: ${error}`),
    });
    return group;
  }

  #consumerHeartbeat(heartbeat: ConsumerHeartbeat): void {
    const runtime = this.#runtime;
    const { token, request } = heartbeat;
    const { groupId } = request;
    const refuse = (errorCode: ErrorCode, message: string): void =>
      runtime.reply(
        token,
        refusal({ api: 'ConsumerGroupHeartbeat', body: request }, errorCode, message),
      );
    const problem = checkHeartbeat(request, runtime.options);
    const known = this.#table.get(groupId);
    if (problem !== null) {
      refuse(problem.errorCode, problem.errorMessage);
    } else if (known?.type === 'consumer') {
      heartbeatConsumer(runtime, known, heartbeat, newChange(runtime, known));
    } else if (request.memberEpoch !== 0) {
      refuse(ErrorCode.GROUP_ID_NOT_FOUND, `Consumer group ${groupId} not found.`);
    } else if (known !== undefined && isDeadGroup(known)) {
      refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE, `Group ${groupId} is being deleted.`);
    } else if (known !== undefined && !isEmptyGroup(known)) {
      refuse(ErrorCode.GROUP_ID_NOT_FOUND, `Group ${groupId} is not a consumer group.`);
    } else {
      const group = this.#table.newConsumer(groupId);
      const change = newChange(runtime, group, () => {
        if (this.#table.get(groupId) === group) this.#table.restore(groupId, known);
      });
      if (known !== undefined) change.putBeside(groupTombstone(groupId));
      heartbeatConsumer(runtime, group, heartbeat, change);
    }
  }

  /** What only members of a group that exists can ask. */
  #member(
    token: number,
    request: GroupRequest & { api: 'SyncGroup' | 'Heartbeat' | 'LeaveGroup' },
  ): void {
    const runtime = this.#runtime;
    const { groupId } = request.body;
    const group = this.#table.get(groupId);
    if (groupId === '') {
      runtime.reply(token, refusal(request, ErrorCode.INVALID_GROUP_ID));
    } else if (request.api === 'LeaveGroup' && group?.type === 'consumer') {
      const change = newChange(runtime, group);
      const body = leaveByInstance(runtime, group, request.body, change);
      change.store({ token, request, reply: { api: 'LeaveGroup', body } });
    } else if (group?.type !== 'classic') {
      runtime.reply(token, refusal(request, ErrorCode.UNKNOWN_MEMBER_ID));
    } else if (request.api === 'SyncGroup') {
      syncGroup(runtime, group, token, request.body);
    } else if (request.api === 'Heartbeat') {
      const errorCode = heartbeat(runtime, group, request.body);
      runtime.reply(token, { api: 'Heartbeat', body: { errorCode } });
    } else {
      const body = leaveGroup(runtime, group, request.body);
      runtime.reply(token, { api: 'LeaveGroup', body });
    }
  }

  /** A group that does not exist is made for a commit that claims no generation: somebody keeps offsets here. */
  #commit(token: number, request: OffsetCommitRequest): void {
    const runtime = this.#runtime;
    const refuse = (error: ErrorCode): void =>
      runtime.reply(token, refusal({ api: 'OffsetCommit', body: request }, error));
    const known = this.#table.get(request.groupId);
    if (known === undefined && request.generationIdOrMemberEpoch >= 0) {
      const knowsGroupIdNotFound = request.apiVersion >= 9;
      refuse(knowsGroupIdNotFound ? ErrorCode.GROUP_ID_NOT_FOUND : ErrorCode.ILLEGAL_GENERATION);
      return;
    }
    const group = known ?? this.#table.newClassic(request.groupId);
    const check =
      group.type === 'classic'
        ? checkClassicCommit(runtime, group, request)
        : checkConsumerCommit(runtime, group, request);
    if (typeof check === 'number' && check !== ErrorCode.NONE) refuse(check);
    else
      storeCommit(
        runtime,
        this.#table.offsetsFor(request.groupId),
        token,
        request,
        typeof check === 'number' ? undefined : check,
      );
  }

  #fetch(token: number, request: OffsetFetchRequest): void {
    const group = this.#table.get(request.groupId);
    const error = group?.type === 'consumer' ? checkConsumerFetch(group, request) : ErrorCode.NONE;
    const reply =
      error === ErrorCode.NONE
        ? {
            api: 'OffsetFetch' as const,
            body: fetchOffsets(this.#table.offsetsOf(request.groupId), request),
          }
        : refusal({ api: 'OffsetFetch', body: request }, error);
    this.#runtime.reply(token, reply);
  }

  #delete(token: number, groupId: string): void {
    const runtime = this.#runtime;
    const reply = (errorCode: ErrorCode): void =>
      runtime.reply(token, { api: 'DeleteGroups', body: { errorCode } });
    const group = this.#table.get(groupId);
    const error = checkRemovable(group);
    if (group === undefined || error !== ErrorCode.NONE) {
      reply(error);
      return;
    }
    removeGroup(runtime, this.#table, group, {
      committed: () => reply(ErrorCode.NONE),
      failed: (failure) => reply(failure),
    });
  }
}

/**
 * What a coordinator that loads says. Heartbeats are taken on trust, as Kafka does: who knows no better gives up on an
 * error that it does not expect there (aiokafka), and sessions begin anew with the end of the loading anyway.
 */
function whileLoading({ api }: GroupRequest): ErrorCode {
  return api === 'Heartbeat' ? ErrorCode.NONE : ErrorCode.COORDINATOR_LOAD_IN_PROGRESS;
}
