/**
 * Looks at the positions of a group while its members live, their coordinators die and come back, and holds what it sees
 * to the rule for them (I6).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from './cluster.ts';
import { ConnectionLostError } from './connection.ts';
import { GroupSession, type GroupSessionOptions, RejoinError } from './group_session.ts';
import { type MemberEvent, PositionRule } from './position_rule.ts';

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
  readonly #rule: PositionRule = new PositionRule();
  readonly #run: Promise<void>;
  #turn = 0;
  #isOver: boolean = false;
  #failure: Error | null = null;
  looks = 0;

  constructor(cluster: Cluster, group: string, topic: string, members: readonly WatchedMember[]) {
    this.#cluster = cluster;
    this.#members = members;
    this.#seen = members.map(() => 0);
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
      try {
        this.#rule.look(committed, this.#newOfLives());
      } catch (error) {
        const states = this.#members.map(({ state }) => state).join('\n');
        throw new Error(`${this.#options.group}: ${(error as Error).message}:\n${states}`);
      }
      this.looks += 1;
      await sleep(lookEachMs);
    }
  }

  /** What each member has noted since the look before. */
  #newOfLives(): ReadonlyMap<string, readonly MemberEvent[]> {
    const lives = new Map<string, readonly MemberEvent[]>();
    for (const [at, { name, events }] of this.#members.entries()) {
      lives.set(name, events.slice(this.#seen[at]));
      this.#seen[at] = events.length;
    }
    return lives;
  }
}
