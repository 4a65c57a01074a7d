/**
 * What all groups of a coordinator share: the effects of the running step, the clocks, the time-outs, and the appends
 * that are not yet committed with what depends on them.
 *
 * Thread and concurrency: as `GroupCoordinator`, which owns it. Durability: see `append`.
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../error_code.gen.ts';
import type { CoordinatorEffect, Instant, TopicDirectory } from './coordinator_events.ts';
import type { GroupReply } from './group_api.ts';
import type { GroupOptions } from './group_options.ts';
import type { GroupRecord } from './group_records.ts';
import { type Timer, TimerQueue } from './timers.ts';

/** Rules that a test may switch off, to prove that it would notice if they were missing. */
export type Rule =
  | 'generation check'
  | 'session expiry'
  | 'commits from members only'
  | 'load order'
  | 'answers wait for the log'
  | 'revocation first';

/** What a coordinator needs from outside. */
export interface CoordinatorEnvironment {
  readonly options: GroupOptions;
  readonly topics: TopicDirectory;
  /** A new random id, in Kafka's base64 form for uuids. Part of members' ids. */
  readonly newUuid: () => string;
  /** For tests alone. */
  readonly without?: readonly Rule[];
}

/** What happens once an append is decided; one of the two is called, once. */
export interface Outcome {
  committed(): void;
  /** Undoes what the records stand for. `error` is for clients. */
  failed(error: ErrorCode): void;
}

interface Undecided {
  readonly appendId: number;
  readonly outcome: Outcome;
}

/** What a failed append means to a client, as Kafka translates it. */
function clientError(error: ErrorCode): ErrorCode {
  switch (error) {
    case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
    case ErrorCode.NOT_ENOUGH_REPLICAS:
    case ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
    case ErrorCode.REQUEST_TIMED_OUT:
      return ErrorCode.COORDINATOR_NOT_AVAILABLE;
    case ErrorCode.NOT_LEADER_OR_FOLLOWER:
    case ErrorCode.KAFKA_STORAGE_ERROR:
      return ErrorCode.NOT_COORDINATOR;
    case ErrorCode.MESSAGE_TOO_LARGE:
    case ErrorCode.RECORD_LIST_TOO_LARGE:
    case ErrorCode.INVALID_FETCH_SIZE:
      return ErrorCode.UNKNOWN_SERVER_ERROR;
    default:
      return error;
  }
}

export class CoordinatorRuntime {
  readonly options: GroupOptions;
  readonly topics: TopicDirectory;
  readonly newUuid: () => string;
  readonly #without: readonly Rule[];
  readonly #timers = new TimerQueue();
  #now: Instant = { monotonicMs: 0, wallMs: 0 };
  #effects: CoordinatorEffect[] = [];
  #lastAppendId = 0;
  /** In the order of their ids. */
  readonly #undecided: Undecided[] = [];

  constructor(environment: CoordinatorEnvironment) {
    this.options = environment.options;
    this.topics = environment.topics;
    this.newUuid = environment.newUuid;
    this.#without = environment.without ?? [];
  }

  /** False only where a test has switched the rule off. */
  keeps(rule: Rule): boolean {
    return !this.#without.includes(rule);
  }

  get nowMs(): number {
    return this.#now.monotonicMs;
  }

  get wallMs(): number {
    return this.#now.wallMs;
  }

  get nextDeadlineMs(): number {
    return this.#timers.nextDeadlineMs;
  }

  begin(now: Instant): void {
    assert(
      now.monotonicMs >= this.#now.monotonicMs,
      `the monotonic clock went back from ${this.#now.monotonicMs} to ${now.monotonicMs}`,
    );
    this.#now = now;
    this.#effects = [];
  }

  takeEffects(): CoordinatorEffect[] {
    return this.#effects;
  }

  reply(token: number, reply: GroupReply): void {
    this.#effects.push({ type: 'reply', token, reply });
  }

  log(level: 'info' | 'warn', message: string): void {
    this.#effects.push({ type: 'log', level, message });
  }

  /**
   * Hands records out, to be stored as one batch. What clients are told because of them is told in `outcome.committed`;
   * memory may run ahead of the log as long as `outcome.failed` brings it back.
   */
  append(records: readonly GroupRecord[], outcome: Outcome): void {
    assert(records.length > 0, 'an append without records');
    this.#lastAppendId += 1;
    this.#effects.push({ type: 'append', appendId: this.#lastAppendId, records });
    if (this.keeps('answers wait for the log'))
      this.#undecided.push({ appendId: this.#lastAppendId, outcome });
    else outcome.committed();
  }

  committed(appendId: number): void {
    assert(
      appendId <= this.#lastAppendId,
      `append ${appendId} is said to be committed, but the last one is ${this.#lastAppendId}`,
    );
    const open = this.#undecided;
    let count = 0;
    while (count < open.length && (open[count] as Undecided).appendId <= appendId) count += 1;
    for (const { outcome } of open.splice(0, count)) outcome.committed();
  }

  /** Undoes the append and all later ones, the last one first. */
  failed(appendId: number, error: ErrorCode): void {
    const first = this.#undecided.findIndex((append) => append.appendId === appendId);
    if (!this.keeps('answers wait for the log')) return;
    assert(first >= 0, `append ${appendId} is said to have failed, but is not undecided`);
    const failed = this.#undecided.splice(first);
    for (const { outcome } of failed.reverse()) outcome.failed(clientError(error));
  }

  startTimer(timer: Timer, delayMs: number): void {
    this.#timers.set(timer, this.nowMs + delayMs);
  }

  stopTimer(timer: Timer): void {
    this.#timers.clear(timer);
  }

  /** Fires all timers that are due. */
  fireTimers(): void {
    for (let timer = this.#timers.takeDue(this.nowMs); timer !== null; ) {
      timer.fire();
      timer = this.#timers.takeDue(this.nowMs);
    }
  }
}
