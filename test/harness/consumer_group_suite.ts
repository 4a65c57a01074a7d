/**
 * Groups of the client's consumers, with messages coming all the while: members that join, leave and crash. Everything is
 * processed, each partition has one owner once the group has settled, and commits never go back.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import type { ConsumerOptions } from '../../net/client/client.ts';
import { BrokerProcess, type Launcher } from './broker_process.ts';
import { Client as RawClient, record } from './client.ts';
import { ClientMember } from './client_member.ts';
import { createLedTopic } from './led_partitions.ts';

type Kind = Pick<ConsumerOptions, 'protocol' | 'strategy'>;

const partitionCount = 6;
const settleMs = 60_000;
const all = Array.from({ length: partitionCount }, (_, partition) => partition);

class Run {
  readonly broker: BrokerProcess;
  readonly topic: string;
  readonly raw: RawClient;
  readonly members: ClientMember[] = [];
  readonly #kind: Kind;
  readonly #written: number[] = all.map(() => 0);
  #writing: Promise<void> = Promise.resolve();
  #isOver: boolean = false;
  /** The highest commit seen of each partition. */
  readonly #committed = new Map<number, number>();

  constructor(broker: BrokerProcess, raw: RawClient, topic: string, kind: Kind) {
    this.broker = broker;
    this.raw = raw;
    this.topic = topic;
    this.#kind = kind;
  }

  async start(): Promise<void> {
    await createLedTopic(this.raw, this.topic, partitionCount);
    this.#writing = this.#write();
  }

  async #write(): Promise<void> {
    for (let count = 0; !this.#isOver; count += 1) {
      const partition = count % partitionCount;
      await this.raw.produceOne(this.topic, partition, [record(`${count}`)]);
      this.#written[partition] = (this.#written[partition] ?? 0) + 1;
      if (count % 20 === 0) await this.#checkCommits();
      await sleep(4);
    }
  }

  async #checkCommits(): Promise<void> {
    for (const [partition, offset] of await this.#commits()) {
      const before = this.#committed.get(partition) ?? -1;
      assert.ok(offset >= before, `partition ${partition}: ${offset} after ${before}`);
      this.#committed.set(partition, offset);
    }
  }

  async #commits(): Promise<Map<number, number>> {
    const { groups } = await this.raw.request('OffsetFetch', {
      groups: [{ groupId: this.topic, topics: null }],
    });
    const partitions = groups[0]?.topics.flatMap((topic) => topic.partitions) ?? [];
    return new Map(partitions.map((one) => [one.partitionIndex, Number(one.committedOffset)]));
  }

  join(name: string, instanceId?: string): ClientMember {
    const { bootstrap } = this.broker;
    const { topic } = this;
    const own = instanceId === undefined ? {} : { instanceId };
    const member = new ClientMember(name, {
      bootstrap,
      topic,
      group: topic,
      ...this.#kind,
      ...own,
    });
    this.members.push(member);
    return member;
  }

  async settled(...members: ClientMember[]): Promise<void> {
    const share = partitionCount / members.length;
    await this.until(() => {
      const owned = members.map((one) => one.assigned);
      return (
        owned.every(({ length }) => length === share) &&
        new Set(owned.flat()).size === partitionCount
      );
    });
  }

  async until(condition: () => boolean): Promise<void> {
    const deadline = Date.now() + settleMs;
    while (!condition()) {
      for (const { name, failure } of this.members)
        if (failure !== null) throw new Error(`${name}: ${failure}`, { cause: failure });
      const state = (): string => this.members.map((one) => one.state).join('\n');
      if (Date.now() > deadline) throw new Error(`not so after ${settleMs} ms:\n${state()}`);
      await sleep(20);
    }
  }

  /** No more messages come; waits until all have been processed. */
  async finish(): Promise<void> {
    this.#isOver = true;
    await this.#writing;
    const missing = (): string[] => {
      const processed = new Set(this.members.flatMap((one) => one.processed));
      return this.#written
        .flatMap((count, partition) =>
          Array.from({ length: count }, (_, offset) => `${partition} ${offset}`),
        )
        .filter((one) => !processed.has(one));
    };
    await this.until(() => missing().length === 0);
  }

  async checkCommitted(): Promise<void> {
    const commits = await this.#commits();
    assert.deepEqual(
      all.map((partition) => commits.get(partition)),
      this.#written,
    );
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await this.#writing.catch(() => undefined);
    for (const member of this.members) await member.close();
  }
}

async function threeMembers(run: Run, isIncremental: boolean): Promise<void> {
  const first = run.join('first');
  await run.settled(first);
  const second = run.join('second');
  await run.settled(first, second);
  const before = new Set(first.assigned);
  const seen = first.changes.length;
  const third = run.join('third');
  await run.settled(first, second, third);
  if (isIncremental) {
    const touched = first.changes.slice(seen).map((change) => Number(change.slice(1)));
    const kept = first.assigned.filter((partition) => before.has(partition));
    assert.ok(kept.length > 0);
    for (const partition of kept) assert.ok(!touched.includes(partition), `${first.changes}`);
  }
  await second.leave();
  await run.settled(first, third);
  await first.crash();
  await run.settled(third);
  await run.finish();
  await third.leave();
  await run.checkCommitted();
}

/** It comes back within its session, gets what it had, and nobody else notices. */
async function staticMembers(run: Run): Promise<void> {
  const stays = run.join('stays', 'a');
  await run.settled(stays);
  const goes = run.join('goes', 'b');
  await run.settled(stays, goes);
  const had = new Set(goes.assigned);
  const seen = stays.changes.length;
  await goes.leave();
  const back = run.join('comes back', 'b');
  await run.until(() => back.assigned.length > 0);
  assert.deepEqual(new Set(back.assigned), had);
  assert.deepEqual(stays.changes.slice(seen), []);
  await run.finish();
  await stays.leave();
  await back.leave();
  await run.checkCommitted();
}

interface Case extends Kind {
  readonly topic: string;
  readonly body: (run: Run) => Promise<void>;
}

const classic = (strategy: NonNullable<Kind['strategy']>): Kind => ({ strategy });
const consumer: Kind = { protocol: 'consumer' };

const cases: Readonly<Record<string, Case>> = {
  'three members join, leave and crash: range': {
    ...{ topic: 'range', ...classic('range') },
    body: (run) => threeMembers(run, false),
  },
  'the same with cooperative-sticky: what stays is not touched': {
    ...{ topic: 'cooperative', ...classic('cooperative-sticky') },
    body: (run) => threeMembers(run, true),
  },
  'the same in the consumer protocol': {
    ...{ topic: 'consumer', ...consumer },
    body: (run) => threeMembers(run, true),
  },
  'a static member comes back unnoticed': {
    ...{ topic: 'static', ...classic('cooperative-sticky') },
    body: staticMembers,
  },
  'a static member of the consumer protocol': {
    ...{ topic: 'static-consumer', ...consumer },
    body: staticMembers,
  },
};

/** Registers the suite for one kind of broker, and runs it. */
export function runConsumerGroupSuite(name: string, launcher: Launcher | undefined): void {
  const test = suite<{ broker?: BrokerProcess; raw?: RawClient }>(`groups of consumers, ${name}`);
  test.before(async (context) => {
    const settings = {
      'group.initial.rebalance.delay.ms': 100,
      'group.consumer.session.timeout.ms': 6_000,
      'group.consumer.min.session.timeout.ms': 6_000,
      'group.consumer.heartbeat.interval.ms': 500,
      'group.consumer.min.heartbeat.interval.ms': 500,
    };
    const own = launcher === undefined ? {} : { launcher };
    context.broker = await BrokerProcess.start({ ...own, settings });
    context.raw = await RawClient.connect(context.broker);
  });
  test.after(async ({ broker, raw }) => {
    raw?.close();
    await broker?.dispose();
  });
  for (const [title, { topic, body, ...kind }] of Object.entries(cases))
    test(title, async ({ broker, raw }) => {
      const run = new Run(broker as BrokerProcess, raw as RawClient, topic, kind);
      try {
        await run.start();
        await body(run);
      } finally {
        await run.close();
      }
    });
  test.run();
}
