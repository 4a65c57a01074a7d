/**
 * What every client's consumer groups must come through: members that join, leave and crash, with records coming all the
 * while. Every record is processed by somebody, every partition has one owner once the group has settled, and in the
 * end all is committed.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite, type Test } from 'uvu';
import type { BrokerProcess } from '../harness/broker_process.ts';
import { Client } from '../harness/client.ts';
import { startBroker } from './exchange.ts';
import { GroupMember, type MemberOptions } from './group_member.ts';
import { type GroupProgram, groupPrograms } from './peers/program_peer.ts';

export interface GroupFeatures {
  /** The client has a cooperative assignor. */
  readonly cooperative?: boolean;
  /** It knows static members. */
  readonly statics?: boolean;
  /** It knows the consumer protocol (KIP-848). */
  readonly consumer?: boolean;
}

const partitionCount = 6;
/** A session lasts 6 s, and a busy machine takes its time. */
const settleMs = 60_000;
const all = Array.from({ length: partitionCount }, (_, partition) => partition);

type GroupKind = Pick<MemberOptions, 'strategy' | 'protocol'>;

class GroupRun {
  readonly topic: string;
  readonly members: GroupMember[] = [];
  readonly #broker: BrokerProcess;
  readonly #client: Client;
  readonly #start: GroupProgram;
  readonly #kind: GroupKind;
  /** Records written to each partition. */
  readonly #written: number[] = all.map(() => 0);
  #writing: Promise<void> = Promise.resolve();
  #isOver: boolean = false;

  private constructor(
    broker: BrokerProcess,
    client: Client,
    start: GroupProgram,
    topic: string,
    kind: GroupKind,
  ) {
    this.#broker = broker;
    this.#client = client;
    this.#start = start;
    this.topic = topic;
    this.#kind = kind;
  }

  static async start(
    broker: BrokerProcess,
    start: GroupProgram,
    topic: string,
    kind: GroupKind,
  ): Promise<GroupRun> {
    const client = await Client.connect(broker);
    await client.createTopic(topic, partitionCount, {});
    const run = new GroupRun(broker, client, start, topic, kind);
    run.#writing = run.#write();
    return run;
  }

  /** One record after the other, to each partition in turn. */
  async #write(): Promise<void> {
    for (let count = 0; !this.#isOver; count += 1) {
      const partition = count % partitionCount;
      const value = Buffer.from(`record ${count}`);
      const batch = [{ key: null, value, timestamp: BigInt(Date.now()) }];
      await this.#client.produceOne(this.topic, partition, batch);
      this.#written[partition] = (this.#written[partition] ?? 0) + 1;
      await sleep(15);
    }
  }

  async join(name: string, instance: string | null = null): Promise<GroupMember> {
    const program = await groupPrograms[this.#start]();
    const { bootstrap } = this.#broker;
    const { topic } = this;
    const options = { bootstrap, topic, group: topic, instance, ...this.#kind };
    const member = new GroupMember(name, program, options);
    this.members.push(member);
    return member;
  }

  /** Waits until these members share all partitions evenly. */
  async settled(...members: GroupMember[]): Promise<void> {
    const share = partitionCount / members.length;
    const isSettled = (): boolean => {
      const owned = members.map(({ assigned }) => assigned);
      return (
        owned.every(({ length }) => length === share) &&
        new Set(owned.flat()).size === partitionCount
      );
    };
    await this.until(isSettled, () => members.map(({ state }) => state).join('\n'));
  }

  async until(condition: () => boolean, state: () => string): Promise<void> {
    const deadline = Date.now() + settleMs;
    while (!condition()) {
      if (Date.now() > deadline) throw new Error(`not so after ${settleMs} ms:\n${state()}`);
      await sleep(50);
    }
  }

  /** No more records come; waits until all of them have been processed, and returns how many there were. */
  async finish(): Promise<number> {
    this.#isOver = true;
    await this.#writing;
    const written = this.#written.flatMap((count, partition) =>
      Array.from({ length: count }, (_, offset) => `${partition} ${offset}`),
    );
    let missing: string[] = [];
    const isDone = (): boolean => {
      const processed = new Set(this.members.flatMap((member) => member.processed));
      missing = written.filter((record) => !processed.has(record));
      return missing.length === 0;
    };
    await this.until(isDone, () => `nobody has processed ${missing.slice(0, 20).join(', ')}`);
    return written.length;
  }

  /** After all have left: everything is committed. */
  async checkCommitted(): Promise<void> {
    const { groups } = await this.#client.request('OffsetFetch', {
      groups: [{ groupId: this.topic, topics: null }],
    });
    assert.equal(groups[0]?.errorCode, 0);
    const partitions = groups[0].topics.flatMap((topic) => topic.partitions);
    const committed = all.map((partition) =>
      Number(partitions.find((one) => one.partitionIndex === partition)?.committedOffset ?? -1),
    );
    assert.deepEqual(committed, this.#written);
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await this.#writing.catch(() => {});
    for (const member of this.members) await member.close();
    this.#client.close();
  }
}

/** Partitions that a member keeps over a rebalance stay with it all the while. */
function assertKept(member: GroupMember, before: readonly number[], seen: number): void {
  const kept = before.filter((partition) => member.assigned.includes(partition));
  for (const assigned of member.assignments.slice(seen))
    for (const partition of kept)
      assert(
        assigned.includes(partition),
        `${member.name} lost partition ${partition} for a while: ${JSON.stringify(member.assignments)}`,
      );
}

async function threeMembers(run: GroupRun, kind: GroupKind): Promise<void> {
  const isIncremental = kind.strategy === 'cooperative' || kind.protocol === 'consumer';
  const first = await run.join('first');
  await run.settled(first);
  const second = await run.join('second');
  await run.settled(first, second);
  const [before, seen] = [first.assigned, first.assignments.length];
  const third = await run.join('third');
  await run.settled(first, second, third);
  if (isIncremental) assertKept(first, before, seen);
  await second.leave();
  await run.settled(first, third);
  await first.crash();
  await run.settled(third);
  const count = await run.finish();
  assert(count > 100, `${count} records`);
  await third.leave();
  await run.checkCommitted();
}

/** A static member that comes back within its session gets what it had, and nobody else notices. */
async function staticMember(run: GroupRun): Promise<void> {
  const stays = await run.join('stays', 'a');
  await run.settled(stays);
  const goes = await run.join('goes', 'b');
  await run.settled(stays, goes);
  const had = goes.assigned;
  const seen = stays.assignments.length;
  await goes.crash();
  const back = await run.join('comes back', 'b');
  await run.until(
    () => back.assigned.length > 0,
    () => JSON.stringify(back.events),
  );
  assert.deepEqual(back.assigned, had);
  await run.until(
    () => back.processed.length > 0,
    () => JSON.stringify(back.events),
  );
  assert.deepEqual(stays.assignments.slice(seen), [], 'a rebalance that was not needed');
  await run.finish();
  await stays.leave();
  await back.leave();
  await run.checkCommitted();
}

/** The tests of a client's groups. The caller runs them. */
export function groupSuite(name: GroupProgram, features: GroupFeatures = {}): Test {
  const test = suite(`groups of ${name}`);
  let broker: BrokerProcess | null = null;
  test.before(async () => {
    broker = await startBroker({ settings: { 'group.initial.rebalance.delay.ms': 300 } });
  });
  test.after(async () => {
    await broker?.dispose();
  });
  const add = (
    title: string,
    topic: string,
    kind: GroupKind,
    body: (run: GroupRun) => Promise<void>,
  ): void => {
    test(title, async () => {
      assert(broker !== null);
      const run = await GroupRun.start(broker, name, topic, kind);
      try {
        await body(run);
      } finally {
        await run.close();
      }
    });
  };
  const eager: GroupKind = { strategy: 'eager', protocol: 'classic' };
  const cooperative: GroupKind = { strategy: 'cooperative', protocol: 'classic' };
  const consumer: GroupKind = { strategy: 'cooperative', protocol: 'consumer' };
  add('three members join, leave and crash', 'eager', eager, (run) => threeMembers(run, eager));
  if (features.cooperative === true)
    add('the same with a cooperative assignor', 'cooperative', cooperative, (run) =>
      threeMembers(run, cooperative),
    );
  if (features.statics === true)
    add('a static member comes back unnoticed', 'static', eager, staticMember);
  if (features.consumer === true)
    add('three members of the consumer protocol', 'consumer', consumer, (run) =>
      threeMembers(run, consumer),
    );
  return test;
}
