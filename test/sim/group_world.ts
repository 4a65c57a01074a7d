/**
 * A group coordinator in a simulated world: its partition's log, the network to its clients, and its death and return.
 *
 * The log keeps what is committed and loses, when the coordinator dies, a tail of what is not. Invariants are looked at
 * where the coordinator's effects come out, whatever the clients make of them later.
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type {
  CoordinatorEffect,
  CoordinatorEvent,
  TopicDescription,
} from '../../engine/groups/coordinator_events.ts';
import type { Rule } from '../../engine/groups/coordinator_runtime.ts';
import type {
  GroupApi,
  GroupCalls,
  GroupReply,
  GroupRequest,
} from '../../engine/groups/group_api.ts';
import { GroupCoordinator } from '../../engine/groups/group_coordinator.ts';
import type { GroupOptions } from '../../engine/groups/group_options.ts';
import type { GroupRecord } from '../../engine/groups/group_records.ts';
import { EventQueue } from './event_queue.ts';
import { GroupInvariants } from './group_invariants.ts';
import { SeededRandom } from './seeded_random.ts';

export type ReplyTo<Api extends GroupApi> = GroupCalls[Api]['reply'];

interface Waiting {
  readonly request: GroupRequest;
  /** Null: the connection broke. */
  readonly onReply: (reply: GroupReply | null) => void;
}

export class GroupWorld {
  readonly random: SeededRandom;
  readonly faults: SeededRandom;
  readonly counts: Record<string, number> = {};
  readonly invariants: GroupInvariants = new GroupInvariants();
  readonly topics: Map<string, TopicDescription> = new Map();
  nowMs = 0;
  /** Steps of the coordinator. */
  events = 0;
  /** Off in the liveness phase: nothing fails any more. */
  isFaulty: boolean = true;
  readonly #options: GroupOptions;
  readonly #without: readonly Rule[];
  readonly #queue = new EventQueue();
  /** How long the log takes to commit, at most, and how often it fails. */
  readonly #commitDelayMs: number;
  readonly #failureChance: number;
  readonly #waiting = new Map<number, Waiting>();
  #coordinator: GroupCoordinator;
  /** Grows with each restart. */
  #incarnation = 0;
  #isUp: boolean = false;
  #log: GroupRecord[] = [];
  #appends: { readonly appendId: number; readonly records: readonly GroupRecord[] }[] = [];
  #token = 0;

  constructor(seed: number, options: GroupOptions, without: readonly Rule[]) {
    this.random = new SeededRandom(seed * 2);
    this.faults = new SeededRandom(seed * 2 + 1);
    this.#options = options;
    this.#commitDelayMs = [2, 20, 500][this.faults.below(3)] ?? 0;
    this.#failureChance = [0, 0.003, 0.03][this.faults.below(3)] ?? 0;
    this.#without = without;
    this.#coordinator = this.#newCoordinator();
    this.#load();
  }

  count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  after(delayMs: number, run: () => void): void {
    this.#queue.add(this.nowMs + delayMs, run);
  }

  /** Runs until the coordinator has taken so many steps, or virtual time has come this far. */
  run(events: number, untilMs: number): void {
    while (this.events < events) {
      const deadlineMs = this.#isUp ? this.#coordinator.nextDeadlineMs : Infinity;
      const nextMs = Math.min(this.#queue.nextMs, deadlineMs);
      if (nextMs > untilMs) {
        if (untilMs < Infinity) this.nowMs = untilMs;
        return;
      }
      this.nowMs = Math.max(this.nowMs, nextMs);
      if (this.#queue.nextMs <= deadlineMs) this.#queue.take()();
      else this.tick();
    }
  }

  /** Has the coordinator do what is due. */
  tick(): void {
    this.events += 1;
    this.#perform(this.#coordinator.tick(this.#instant()));
  }

  /** Sends a request; the answer comes with a delay, or null when the connection breaks. */
  send(request: GroupRequest, onReply: (reply: GroupReply | null) => void): void {
    const incarnation = this.#incarnation;
    // Now and then something is on its way for long.
    const isSlow = this.isFaulty && this.faults.chance(0.01);
    this.after(isSlow ? this.faults.below(20_000) : 1 + this.random.below(20), () => {
      if (incarnation !== this.#incarnation || !this.#isUp) {
        this.after(this.random.below(20), () => onReply(null));
        return;
      }
      this.ask(request, onReply);
    });
  }

  /** Puts a request to the coordinator this very moment. */
  ask(request: GroupRequest, onReply: (reply: GroupReply | null) => void): void {
    this.#token += 1;
    this.#waiting.set(this.#token, { request, onReply });
    const client = { clientId: 'c', clientHost: '/127.0.0.1' };
    this.#step({ type: 'request', token: this.#token, client, request });
  }

  topicsChanged(changed: readonly string[], deleted: readonly string[]): void {
    if (this.#isUp) this.#step({ type: 'topics_changed', changed, deleted });
  }

  /** The coordinator dies, and comes back after a while. */
  restart(): void {
    if (!this.#isUp) return;
    this.count('restarts');
    this.#isUp = false;
    this.#incarnation += 1;
    const kept = this.faults.below(this.#appends.length + 1);
    if (kept < this.#appends.length) this.count('restarts that lose records');
    for (const { records } of this.#appends.slice(0, kept)) this.#store(records);
    this.#appends = [];
    for (const { onReply } of this.#waiting.values())
      this.after(this.random.below(50), () => onReply(null));
    this.#waiting.clear();
    this.#coordinator = this.#newCoordinator();
    this.after(this.faults.below(3_000), () => this.#load());
  }

  get isUp(): boolean {
    return this.#isUp && !this.#coordinator.isLoading;
  }

  #newCoordinator(): GroupCoordinator {
    let id = 0;
    return new GroupCoordinator({
      options: this.#options,
      without: this.#without,
      newUuid: () => {
        id += 1;
        return `${this.#incarnation}.${id}`;
      },
      topics: {
        byName: (name) => this.topics.get(name),
        nameOf: (topicId) => {
          for (const [name, topic] of this.topics) if (topic.topicId === topicId) return name;
          return undefined;
        },
      },
    });
  }

  #load(): void {
    this.#isUp = true;
    if (this.faults.chance(0.5)) this.#compact();
    const incarnation = this.#incarnation;
    const size = 1 + this.faults.below(100);
    let at = 0;
    const next = (): void => {
      if (incarnation !== this.#incarnation) return;
      if (at >= this.#log.length) {
        this.#step({ type: 'loaded' });
        return;
      }
      this.#step({ type: 'load', records: this.#log.slice(at, at + size) });
      at += size;
      this.after(this.faults.below(20), next);
    };
    next();
  }

  /** Keeps the last record of each key, as the log cleaner does. */
  #compact(): void {
    const last = new Map<string, number>();
    for (const [index, record] of this.#log.entries())
      last.set(`${record.type}${JSON.stringify(record.key)}`, index);
    const kept = new Set(last.values());
    this.#log = this.#log.filter((_, index) => kept.has(index));
  }

  #instant(): { readonly monotonicMs: number; readonly wallMs: number } {
    return { monotonicMs: this.nowMs, wallMs: 1_700_000_000_000 + this.nowMs };
  }

  #step(event: CoordinatorEvent): void {
    this.events += 1;
    this.#perform(this.#coordinator.step(event, this.#instant()));
  }

  #perform(effects: readonly CoordinatorEffect[]): void {
    let isDropping = false;
    for (const effect of effects) {
      if (effect.type === 'reply') this.#reply(effect.token, effect.reply);
      else if (effect.type === 'append' && !isDropping) {
        this.#appends.push(effect);
        isDropping = this.isFaulty && this.faults.chance(this.#failureChance);
        if (isDropping) this.#fail(effect.appendId);
        else this.#scheduleCommit(effect.appendId);
      }
    }
  }

  #scheduleCommit(appendId: number): void {
    const incarnation = this.#incarnation;
    const isSlow = this.isFaulty && this.faults.chance(0.01);
    this.after(isSlow ? this.faults.below(4_000) : this.random.below(this.#commitDelayMs), () => {
      if (incarnation !== this.#incarnation) return;
      if (!this.#appends.some((append) => append.appendId === appendId)) return;
      if (this.isFaulty && this.faults.chance(this.#failureChance)) {
        this.#fail(appendId);
        return;
      }
      while (this.#appends.length > 0 && (this.#appends[0]?.appendId ?? 0) <= appendId)
        this.#store(this.#appends.shift()?.records ?? []);
      this.#step({ type: 'committed', appendId });
    });
  }

  #fail(appendId: number): void {
    this.count('failed appends');
    this.#appends = this.#appends.filter((append) => append.appendId < appendId);
    this.#step({ type: 'append_failed', appendId, error: ErrorCode.KAFKA_STORAGE_ERROR });
  }

  #store(records: readonly GroupRecord[]): void {
    for (const record of records) {
      this.#log.push(record);
      this.invariants.stored(record);
    }
  }

  #reply(token: number, reply: GroupReply): void {
    const waiting = this.#waiting.get(token);
    assert(waiting !== undefined, `nobody asked with token ${token}`);
    this.#waiting.delete(token);
    this.invariants.answered(waiting.request, reply);
    const isSlow = this.isFaulty && this.faults.chance(0.01);
    this.after(isSlow ? this.faults.below(10_000) : 1 + this.random.below(20), () =>
      waiting.onReply(reply),
    );
  }
}
