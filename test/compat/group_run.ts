/**
 * A group under way: records coming all the while, members of any client that join and leave, and what is to be seen of
 * it. Every record is processed by somebody, and in the end all is committed.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BrokerProcess } from '../harness/broker_process.ts';
import { Client } from '../harness/client.ts';
import { ClientMember } from '../harness/client_member.ts';
import type { GroupParticipant } from '../harness/watched_group.ts';
import { GroupMember, type MemberOptions } from './group_member.ts';
import { type GroupProgram, groupPrograms } from './peers/program_peer.ts';

export type GroupKind = Pick<MemberOptions, 'strategy' | 'protocol'>;

const partitionCount = 6;
/** A session lasts 6 s, and a busy machine takes its time. */
const settleMs = 60_000;
const all = Array.from({ length: partitionCount }, (_, partition) => partition);

/** What the project's own client calls them. */
const ownStrategies = { eager: 'range', cooperative: 'cooperative-sticky' } as const;

/** A member, whoever's client it is. */
export interface RunMember extends GroupParticipant {
  /** The partitions that it has. */
  readonly assigned: readonly number[];
  /** `partition offset` of each record that it has processed. */
  readonly processed: readonly string[];
}

/** Of another people's client. */
interface ProgramJoin {
  readonly name: string;
  readonly program: GroupProgram;
  readonly kind: GroupKind;
  /** Of a static member. */
  readonly instance?: string | null;
}

/** A topic with records coming all the while, and the group of its name. */
export class GroupRun {
  readonly topic: string;
  readonly members: RunMember[] = [];
  readonly #broker: BrokerProcess;
  readonly #client: Client;
  /** Records written to each partition. */
  readonly #written: number[] = all.map(() => 0);
  #writing: Promise<void> = Promise.resolve();
  #isOver: boolean = false;

  private constructor(broker: BrokerProcess, client: Client, topic: string) {
    this.#broker = broker;
    this.#client = client;
    this.topic = topic;
  }

  static async start(broker: BrokerProcess, topic: string): Promise<GroupRun> {
    const client = await Client.connect(broker);
    await client.createTopic(topic, partitionCount, {});
    const run = new GroupRun(broker, client, topic);
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

  async join({ name, program, kind, instance = null }: ProgramJoin): Promise<GroupMember> {
    const { bootstrap } = this.#broker;
    const { topic } = this;
    const options = { bootstrap, topic, group: topic, instance, ...kind };
    const member = new GroupMember(name, await groupPrograms[program](), options);
    this.members.push(member);
    return member;
  }

  /** A member of the project's own client. */
  joinOwn(name: string, { protocol, strategy }: GroupKind): ClientMember {
    const { bootstrap } = this.#broker;
    const { topic } = this;
    const member = new ClientMember(name, {
      ...{ bootstrap, topic, group: topic },
      ...(protocol === 'consumer' ? { protocol } : { strategy: ownStrategies[strategy] }),
    });
    this.members.push(member);
    return member;
  }

  /** Waits until these members share all partitions evenly. */
  async settled(...members: readonly RunMember[]): Promise<void> {
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
