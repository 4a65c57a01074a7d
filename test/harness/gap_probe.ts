/**
 * How long a partition takes no records while its cluster changes: a raw client with one record in flight, acks=all,
 * that retries at once, at whoever leads by then. Notes when each acknowledgement came.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { errorName, isRetriable } from '../../net/protocol/errors.ts';
import { type Client, record } from './client.ts';
import type { Cluster } from './cluster.ts';
import { ClusterView } from './cluster_view.ts';
import { ConnectionLostError } from './connection.ts';
import type { Target } from './load.ts';

const pauseMs = 2;
/** After so long without an answer it asks who leads, again and again, and goes there. */
const patienceMs = 50;

export class GapProbe {
  readonly target: Target;
  readonly #view: ClusterView;
  readonly #run: Promise<void>;
  #acks: number[] = [];
  #lastOffset = -1;
  #stopped: boolean = false;
  #failure: Error | null = null;

  constructor(cluster: Cluster, target: Target) {
    this.target = target;
    this.#view = new ClusterView(cluster, [target.topic], 'probe');
    this.#run = this.#work().catch((error: unknown) => {
      this.#failure = error instanceof Error ? error : new Error(String(error));
    });
  }

  get leaderId(): number {
    return this.#view.partition(this.target)?.leaderId ?? -1;
  }

  assertHealthy(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  /** Resolves when `count` records have been acknowledged from now on. */
  async acknowledged(count: number, withinMs: number): Promise<void> {
    const goal = this.#acks.length + count;
    const deadline = performance.now() + withinMs;
    while (this.#acks.length < goal) {
      this.assertHealthy();
      const { topic, partition } = this.target;
      assert(performance.now() < deadline, `${topic}-${partition}: nothing in ${withinMs} ms`);
      await sleep(pauseMs);
    }
  }

  /** The longest time between two acknowledgements from the last one before `sinceMs` on, and forgets them. */
  gapSince(sinceMs: number): number {
    const first = this.#acks.findLastIndex((at) => at <= sinceMs);
    const acks = this.#acks.slice(Math.max(0, first));
    this.#acks = this.#acks.slice(-1);
    let gap = 0;
    for (const [k, at] of acks.entries()) gap = Math.max(gap, at - (acks[k - 1] ?? at));
    return gap;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#view.close();
    await this.#run;
  }

  async #work(): Promise<void> {
    while (!this.#stopped) {
      if (await this.#send()) continue;
      await this.#view.refresh();
      await sleep(pauseMs);
    }
  }

  /** One record. Returns whether it was acknowledged. */
  async #send(): Promise<boolean> {
    const { leaderId } = this;
    const client = leaderId === -1 ? null : await this.#view.client(leaderId);
    if (client === null) return false;
    const produced = this.#produce(client);
    for (;;) {
      const done = await Promise.race([produced, sleep(patienceMs, null)]);
      if (done !== null) return done;
      await this.#view.refresh();
      if (this.#stopped || this.leaderId !== leaderId) return false;
    }
  }

  async #produce(client: Client): Promise<boolean> {
    const { topic, partition } = this.target;
    try {
      const batch = [record('probe')];
      const [answer] = await client.produce([{ topic, partition, batch }]);
      const code = answer?.errorCode ?? ErrorCode.NONE;
      if (code !== ErrorCode.NONE) {
        assert(isRetriable(code), `${topic}-${partition}: ${errorName(code)}`);
        return false;
      }
      const offset = Number(answer?.baseOffset);
      // An answer of a leader that was given up may come behind one of the next leader.
      if (this.#view.open(this.leaderId) === client) {
        assert(offset > this.#lastOffset, `acknowledged at ${offset} after ${this.#lastOffset}`);
        this.#lastOffset = offset;
        this.#acks.push(performance.now());
      }
      return true;
    } catch (error) {
      if (error instanceof ConnectionLostError) return false;
      throw error;
    }
  }
}
