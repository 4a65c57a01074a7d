/**
 * Whole groups of members against the broker's own coordinator, with seeded delays, losses, crashes and restarts. No
 * partition may have two owners while nobody's session has run out, and in the end each has one.
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import type { GroupReply } from '../../../../engine/groups/group_api.ts';
import type { Strategy } from '../../../../net/client/consumer/assignors.ts';
import { ClassicMember } from '../../../../net/client/consumer/classic_member.ts';
import { ConsumerMember } from '../../../../net/client/consumer/consumer_member.ts';
import type {
  MemberAnswer,
  MemberEffect,
  MemberEvent,
  MemberRequest,
  Membership,
} from '../../../../net/client/consumer/membership.ts';
import { keyOf, type TopicPartition } from '../../../../net/client/consumer/topic_partition.ts';
import {
  type Asked,
  CoordinatorDriver,
  groupId,
} from '../../../engine/groups/coordinator_driver.ts';
import { type Random, splitMix } from '../../../harness/split_mix.ts';

const test = suite('members of groups');

interface Kind {
  readonly strategies: readonly Strategy[];
  readonly isConsumer: boolean;
}

interface Faults {
  /** One of so many requests, and of so many answers, is lost; 0: none. */
  readonly losesOneOf: number;
  readonly crashes: boolean;
}

class SimMember {
  readonly name: string;
  readonly machine: Membership;
  readonly has = new Map<string, TopicPartition>();
  readonly world: GroupWorld;
  isAlive: boolean = true;
  hasLeft: boolean = false;
  failure: string | null = null;
  /** Names of what it was told, in order. */
  readonly told: string[] = [];

  constructor(name: string, machine: Membership, world: GroupWorld) {
    this.name = name;
    this.machine = machine;
    this.world = world;
  }

  step(event: MemberEvent): void {
    if (!this.isAlive) return;
    for (const effect of this.machine.step(event, this.world.nowMs)) this.#do(effect);
  }

  #do(effect: MemberEffect): void {
    const { world } = this;
    switch (effect.type) {
      case 'send':
        world.carry(this, effect.token, effect.request);
        return;
      case 'countPartitions':
        world.later(() => this.step({ type: 'counts', counts: world.counts }));
        return;
      case 'nameTopics':
        world.later(() => this.step({ type: 'names', names: world.names }));
        return;
      case 'revoke':
        this.told.push(`${effect.isLost ? 'lost' : 'revoked'} ${effect.partitions.map(keyOf)}`);
        if (effect.isLost) for (const one of effect.partitions) this.has.delete(keyOf(one));
        world.later(() => {
          for (const one of effect.partitions) this.has.delete(keyOf(one));
          this.step({ type: 'released' });
        });
        return;
      case 'assign':
        this.told.push(`assigned ${effect.partitions.map(keyOf)}`);
        for (const one of effect.partitions) {
          assert(!this.has.has(keyOf(one)), `${this.name} got ${keyOf(one)} twice`);
          this.has.set(keyOf(one), one);
        }
        return;
      case 'fail':
        this.failure = `${effect.code} ${effect.message}`;
        return;
      case 'left':
        this.hasLeft = true;
    }
  }
}

class GroupWorld {
  readonly driver = new CoordinatorDriver({ initialRebalanceDelayMs: 200 });
  readonly members: SimMember[] = [];
  readonly counts = new Map<string, number>();
  readonly names = new Map<string, string>();
  readonly #random: Random;
  readonly #kind: Kind;
  readonly #faults: Faults;
  #queue: { readonly atMs: number; readonly run: () => void }[] = [];
  #waiting: { readonly asked: Asked<never>; readonly done: (reply: GroupReply) => void }[] = [];
  isCalm: boolean = false;

  constructor(seed: number, kind: Kind, faults: Faults) {
    this.#random = splitMix(seed);
    this.#kind = kind;
    this.#faults = faults;
    for (const [topic, count] of [
      ['t', 6],
      ['u', 3],
    ] as const)
      this.setTopic(topic, count);
  }

  get nowMs(): number {
    return this.driver.nowMs;
  }

  setTopic(topic: string, count: number): void {
    const topicId = `${topic}-id`;
    this.counts.set(topic, count);
    this.names.set(topicId, topic);
    this.driver.topics.set(topic, { topicId, partitionCount: count });
    this.driver.step({ type: 'topics_changed', changed: [topic], deleted: [] });
    for (const member of this.members)
      this.later(() => member.step({ type: 'counts', counts: this.counts }));
  }

  join(name: string, instanceId: string | null = null): SimMember {
    const random = (): number => this.#random(1_000) / 1_000;
    const shared = { groupId, instanceId, topics: ['t', 'u'], rebalanceTimeoutMs: 60_000, random };
    const { strategies, isConsumer } = this.#kind;
    const machine = isConsumer
      ? new ConsumerMember({
          ...shared,
          memberId: `${name}-${this.#random(1 << 30)}`,
          serverAssignor: null,
          takeOverMs: 100_000,
        })
      : new ClassicMember({
          ...shared,
          strategies,
          sessionTimeoutMs: 10_000,
          heartbeatIntervalMs: 1_000,
        });
    const member = new SimMember(name, machine, this);
    this.members.push(member);
    member.step({ type: 'join' });
    return member;
  }

  later(run: () => void): void {
    this.#queue.push({ atMs: this.nowMs + 1 + this.#random(300), run });
  }

  #isLost(): boolean {
    const { losesOneOf } = this.#faults;
    return !this.isCalm && losesOneOf > 0 && this.#random(losesOneOf) === 0;
  }

  /** There and back, unless it is lost. */
  carry(member: SimMember, token: number, { api, body }: MemberRequest): void {
    const fail = (): void => {
      this.#queue.push({
        atMs: this.nowMs + 2_000,
        run: () => member.step({ type: 'failed', token }),
      });
    };
    if (this.#isLost()) {
      fail();
      return;
    }
    this.later(() => {
      const asked = this.driver.ask(api as never, { ...defaults[api], ...body } as never);
      this.#waiting.push({
        asked: asked as Asked<never>,
        done: (reply) => {
          if (this.#isLost()) {
            fail();
            return;
          }
          const answer = { api, body: { errorMessage: null, ...reply.body } } as unknown;
          this.later(() =>
            member.step({ type: 'answered', token, answer: answer as MemberAnswer }),
          );
        },
      });
    });
  }

  /** Lets time pass, all that is due on the way done, in its order. */
  run(durationMs: number): void {
    const untilMs = this.nowMs + durationMs;
    while (this.nowMs < untilMs) {
      const wakes = this.members
        .filter(({ isAlive }) => isAlive)
        .map((one) => one.machine.wakeAtMs);
      const dues = this.#queue.map(({ atMs }) => atMs);
      const nextMs = Math.ceil(
        Math.min(untilMs, this.driver.coordinator.nextDeadlineMs, ...wakes, ...dues),
      );
      this.driver.advance(Math.max(0, nextMs - this.nowMs));
      this.#answers();
      const due = this.#queue.filter(({ atMs }) => atMs <= this.nowMs);
      this.#queue = this.#queue.filter(({ atMs }) => atMs > this.nowMs);
      for (const { run } of due) run();
      this.#answers();
      for (const member of this.members)
        if (member.machine.wakeAtMs <= this.nowMs) member.step({ type: 'time' });
      if (this.#faults.losesOneOf === 0 && !this.#faults.crashes) this.assertOneOwner();
    }
  }

  #answers(): void {
    const answered = this.#waiting.filter(({ asked }) => asked.isAnswered);
    this.#waiting = this.#waiting.filter(({ asked }) => !asked.isAnswered);
    for (const { asked, done } of answered) done((asked as unknown as { reply: GroupReply }).reply);
  }

  get alive(): SimMember[] {
    return this.members.filter(({ isAlive, hasLeft }) => isAlive && !hasLeft);
  }

  assertOneOwner(): void {
    const owners = new Map<string, string>();
    for (const { name, has } of this.members.filter(({ isAlive }) => isAlive))
      for (const key of has.keys()) {
        const other = owners.get(key);
        assert(other === undefined, `${key} is with ${other} and with ${name}`);
        owners.set(key, name);
      }
  }

  assertSettled(): void {
    for (const { name, failure } of this.alive) assert.equal(failure, null, name);
    this.assertOneOwner();
    let total = 0;
    for (const count of this.counts.values()) total += count;
    const sizes = this.alive.map(({ has }) => has.size);
    const told = (): string =>
      this.alive.map((one) => `${one.name}: ${one.told.join('; ')}`).join('\n');
    assert.equal(
      sizes.reduce((a, b) => a + b, 0),
      total,
      told(),
    );
    assert(Math.max(...sizes) - Math.min(...sizes) <= 2, `${sizes}`);
  }
}

/** What the engine's requests have besides the fields of the wire that a member sets. */
const defaults: Readonly<Record<MemberRequest['api'], object>> = {
  JoinGroup: { reason: null, requireKnownMemberId: true, supportSkippingAssignment: true },
  SyncGroup: {},
  Heartbeat: {},
  LeaveGroup: {},
  ConsumerGroupHeartbeat: {
    apiVersion: 1,
    rackId: null,
    instanceId: null,
    rebalanceTimeoutMs: -1,
    subscribedTopicNames: null,
    subscribedTopicRegex: null,
    serverAssignor: null,
    topicPartitions: null,
  },
};

const range: Kind = { strategies: ['range'], isConsumer: false };
const cooperative: Kind = { strategies: ['cooperative-sticky'], isConsumer: false };
const consumer: Kind = { strategies: [], isConsumer: true };

const kinds: Readonly<Record<string, Kind>> = {
  range,
  sticky: { strategies: ['sticky'], isConsumer: false },
  'cooperative-sticky': cooperative,
  'consumer protocol': consumer,
};

function forSeeds(count: number, run: (seed: number) => void): void {
  for (let seed = 1; seed <= count; seed += 1) {
    try {
      run(seed);
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
    }
  }
}

for (const [name, kind] of Object.entries(kinds)) {
  test(`${name}: members join, leave, go away and come back, and no partition has two owners`, () => {
    forSeeds(40, (seed) => {
      const random = splitMix(seed + 1_000);
      const world = new GroupWorld(seed, kind, { losesOneOf: 0, crashes: false });
      world.join('first');
      for (let turn = 0; turn < 12; turn += 1) {
        world.run(random(8_000));
        const one = world.alive[random(Math.max(1, world.alive.length))];
        const what = random(5);
        if (what < 2 || one === undefined) world.join(`m${turn}`);
        else if (what === 2 && world.alive.length > 1) one.step({ type: 'leave' });
        else if (what === 3) {
          one.step({ type: 'absent' });
          world.run(random(5_000));
          one.step({ type: 'join' });
        } else world.setTopic('u', 3 + turn);
      }
      world.run(60_000);
      world.assertSettled();
    });
  });

  test(`${name}: requests and answers are lost, members crash, and all comes right in the end`, () => {
    forSeeds(40, (seed) => {
      const random = splitMix(seed + 2_000);
      const world = new GroupWorld(seed, kind, { losesOneOf: 8, crashes: true });
      world.join('first');
      for (let turn = 0; turn < 12; turn += 1) {
        world.run(random(15_000));
        const one = world.alive[random(Math.max(1, world.alive.length))];
        const what = random(4);
        if (what < 2 || one === undefined) world.join(`m${turn}`);
        else if (what === 2 && world.alive.length > 1) one.isAlive = false;
        else if (world.alive.length > 1) one.step({ type: 'leave' });
      }
      world.isCalm = true;
      world.run(200_000);
      world.assertSettled();
    });
  });
}

test('cooperative: who keeps a partition is never told anything about it', () => {
  forSeeds(20, (seed) => {
    for (const kind of [cooperative, consumer]) {
      const world = new GroupWorld(seed, kind, { losesOneOf: 0, crashes: false });
      const first = world.join('first');
      world.run(20_000);
      const before = new Set(first.has.keys());
      const seen = first.told.length;
      world.join('second');
      world.run(30_000);
      world.assertSettled();
      const kept = [...first.has.keys()].filter((key) => before.has(key));
      assert(kept.length >= 4, `${kept}`);
      const told = first.told.slice(seen).join(' ').split(/[ ,]/);
      for (const key of kept) assert(!told.includes(key), `${key}: ${first.told}`);
    }
  });
});

test('a static member that comes back has what it had, and nobody else hears of it', () => {
  forSeeds(20, (seed) => {
    for (const kind of [range, cooperative, consumer]) {
      const world = new GroupWorld(seed, kind, { losesOneOf: 0, crashes: false });
      const stays = world.join('stays', 'a');
      const goes = world.join('goes', 'b');
      world.run(30_000);
      world.assertSettled();
      const had = new Set(goes.has.keys());
      const seen = stays.told.length;
      goes.step({ type: 'leave' });
      world.run(2_000);
      assert(goes.hasLeft);
      const back = world.join('back', 'b');
      world.run(20_000);
      world.assertSettled();
      assert.deepEqual(new Set(back.has.keys()), had);
      assert.deepEqual(
        stays.told.slice(seen).filter((one) => one !== 'assigned '),
        [],
      );
    }
  });
});

test.run();
