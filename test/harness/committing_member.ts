/**
 * A member of a group that counts: for each partition that it owns it takes the committed offset, and commits one more,
 * again and again, as fast as the broker answers. It goes on after every broken connection and rebalance.
 *
 * The ledger of a group holds what all its members have seen: offsets may only grow.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConnectionLostError, type Endpoint } from './connection.ts';
import {
  type Generation,
  GroupSession,
  type GroupSessionOptions,
  RejoinError,
} from './group_session.ts';

const retryPauseMs = 20;
const heartbeatMs = 200;

/** By partition: the largest offset that a commit was tried for, and that one was acknowledged for. */
export class CommitLedger {
  readonly tried: Map<number, number> = new Map<number, number>();
  readonly acked: Map<number, number> = new Map<number, number>();
  commits = 0;

  try(offsets: ReadonlyMap<number, number>): void {
    raise(this.tried, offsets);
  }

  ack(offsets: ReadonlyMap<number, number>): void {
    raise(this.acked, offsets);
    this.commits += 1;
  }

  /** What was read after `ackedBefore` were acknowledged: nothing is lost, nothing moved back, nothing made up. */
  check(
    what: string,
    read: ReadonlyMap<number, number>,
    ackedBefore: ReadonlyMap<number, number>,
  ): void {
    for (const [partition, offset] of ackedBefore) {
      const found = read.get(partition) ?? -1;
      assert(
        found >= offset,
        `${what} partition ${partition}: ${found}, but ${offset} was acknowledged`,
      );
    }
    for (const [partition, offset] of read) {
      const most = this.tried.get(partition) ?? -1;
      assert(offset <= most, `${what} partition ${partition}: ${offset}, but nobody committed it`);
    }
  }
}

function raise(into: Map<number, number>, offsets: ReadonlyMap<number, number>): void {
  for (const [partition, offset] of offsets)
    into.set(partition, Math.max(into.get(partition) ?? 0, offset));
}

export class CommittingMember {
  readonly #endpoint: () => Endpoint;
  readonly #options: GroupSessionOptions;
  readonly #ledger: CommitLedger;
  readonly #run: Promise<void>;
  #session: GroupSession | null = null;
  #memberId = '';
  #isStopped: boolean = false;
  #failure: Error | null = null;
  /** What it owns, while it is in a generation that it knows of. */
  generation: Generation | null = null;

  constructor(endpoint: () => Endpoint, options: GroupSessionOptions, ledger: CommitLedger) {
    this.#endpoint = endpoint;
    this.#options = options;
    this.#ledger = ledger;
    this.#run = this.#work().catch((error: unknown) => {
      this.#failure = error instanceof Error ? error : new Error(String(error));
    });
  }

  assertHealthy(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  /** Ends: with a word to the group, or as a process that dies. */
  async stop(how: 'leave' | 'crash'): Promise<void> {
    this.#isStopped = true;
    const session = this.#session;
    if (how === 'leave' && session !== null && this.#memberId !== '')
      await session.leave(this.#memberId).catch(() => {});
    session?.close();
    await this.#run;
    this.assertHealthy();
  }

  async #work(): Promise<void> {
    while (!this.#isStopped) {
      try {
        this.#session = await GroupSession.connect(this.#endpoint(), this.#options);
        while (!this.#isStopped) await this.#live(this.#session);
      } catch (error) {
        if (!(error instanceof ConnectionLostError)) throw error;
      }
      this.generation = null;
      this.#session?.close();
      if (!this.#isStopped) await sleep(retryPauseMs);
    }
  }

  /** One generation. */
  async #live(session: GroupSession): Promise<void> {
    try {
      const generation = await session.join(this.#memberId);
      this.#memberId = generation.memberId;
      const ackedBefore = new Map(this.#ledger.acked);
      const committed = await session.committed();
      this.#ledger.check(this.#options.group, committed, ackedBefore);
      const next = new Map(
        generation.partitions.map((partition) => [partition, committed.get(partition) ?? 0]),
      );
      this.generation = generation;
      await this.#count(session, generation, next);
    } catch (error) {
      if (!(error instanceof RejoinError)) throw error;
      if (error.isForgotten) this.#memberId = '';
    } finally {
      this.generation = null;
    }
  }

  async #count(session: GroupSession, generation: Generation, next: Map<number, number>) {
    let beatMs = performance.now();
    while (!this.#isStopped) {
      if (next.size > 0) {
        for (const [partition, offset] of next) next.set(partition, offset + 1);
        this.#ledger.try(next);
        await session.commit(generation, next);
        this.#ledger.ack(next);
      } else await sleep(heartbeatMs / 4);
      if (performance.now() - beatMs < heartbeatMs) continue;
      beatMs = performance.now();
      await session.heartbeat(generation);
    }
  }
}
