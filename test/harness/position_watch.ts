/**
 * Looks at the positions of a group while its members live, their coordinators die and come back: what is committed never
 * goes back, and nobody begins anew below it (I6).
 *
 * A member notes a record before it commits it. Where one begins after a look at the committed offsets is therefore either
 * above them or something that is read again for nothing. A member that the group has given up may go on for a while with
 * what it has fetched; that is where it goes on, not where it begins.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from './cluster.ts';
import { ConnectionLostError } from './connection.ts';
import { GroupSession, type GroupSessionOptions, RejoinError } from './group_session.ts';

/** `assigned`: all partitions that it has after a rebalance. The others are messages, before they are committed. */
export type MemberEvent =
  | { readonly assigned: readonly number[] }
  | { readonly partition: number; readonly offset: number };

/** A member of the group, whoever's client it is. */
export interface WatchedMember {
  readonly name: string;
  /** Grows; each message is noted before it is committed. */
  readonly events: readonly MemberEvent[];
  readonly state: string;
}

const lookEachMs = 700;
const tryAgainMs = 50;

export class PositionWatch {
  readonly #cluster: Cluster;
  readonly #options: GroupSessionOptions;
  readonly #members: readonly WatchedMember[];
  readonly #seen: number[];
  /** The last offset that each of them has read, by partition. */
  readonly #last: readonly Map<number, number>[];
  readonly #run: Promise<void>;
  #committed: ReadonlyMap<number, number> = new Map();
  #turn = 0;
  #isOver: boolean = false;
  #failure: Error | null = null;
  looks = 0;

  constructor(cluster: Cluster, group: string, topic: string, members: readonly WatchedMember[]) {
    this.#cluster = cluster;
    this.#members = members;
    this.#seen = members.map(() => 0);
    this.#last = members.map(() => new Map());
    this.#options = {
      group,
      topic,
      partitions: 0,
      instance: null,
      sessionTimeoutMs: 0,
      rebalanceTimeoutMs: 0,
    };
    this.#run = this.#work().catch((error: unknown) => {
      this.#failure = error instanceof Error ? error : new Error(String(error));
    });
  }

  assertHealthy(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#run;
  }

  /** What the group has committed, by partition. */
  async committed(): Promise<ReadonlyMap<number, number>> {
    for (;;) {
      this.#turn += 1;
      const up = this.#cluster.ids.filter((id) => this.#cluster.isUp(id));
      const broker = this.#cluster.broker(up[this.#turn % up.length] ?? 1);
      let session: GroupSession | null = null;
      try {
        session = await GroupSession.connect(broker, this.#options);
        return await session.committed();
      } catch (error) {
        if (!(error instanceof ConnectionLostError || error instanceof RejoinError)) throw error;
      } finally {
        session?.close();
      }
      await sleep(tryAgainMs);
    }
  }

  async #work(): Promise<void> {
    while (!this.#isOver) {
      const committed = await this.committed();
      for (const [partition, offset] of this.#committed)
        assert(
          (committed.get(partition) ?? -1) >= offset,
          `${this.#options.group}: ${committed.get(partition)} is committed for partition ${partition}, it was ${offset} before`,
        );
      for (const [at, member] of this.#members.entries()) this.#checkNew(at, member);
      this.#committed = committed;
      this.looks += 1;
      await sleep(lookEachMs);
    }
  }

  #checkNew(at: number, member: WatchedMember): void {
    const events = member.events;
    const last = this.#last[at]!;
    for (const event of events.slice(this.#seen[at])) {
      if (!('partition' in event)) continue;
      const { partition, offset } = event;
      const goesOn = offset === (last.get(partition) ?? -1) + 1 && offset > 0;
      last.set(partition, offset);
      const position = this.#committed.get(partition) ?? 0;
      if (offset < position && !goesOn)
        assert.fail(
          `${member.name} begins partition ${partition} at ${offset}, where ${position} was committed: ${member.state}`,
        );
    }
    this.#seen[at] = events.length;
  }
}
