/**
 * An idempotent producer with acks=all against a cluster that falls to pieces: it keeps several batches in flight to each
 * of its partitions, follows their leaders, and sends every batch with the same sequence number until it is acknowledged,
 * as Kafka's own producers do.
 *
 * An acknowledgement that comes after it has turned to another leader counts too: it is a promise, whoever gave it.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { errorName, isRetriable } from '../../net/protocol/errors.ts';
import { BrokerError, type Client, type PartitionAnswer, type ProducerIdentity } from './client.ts';
import type { Cluster } from './cluster.ts';
import { ClusterView } from './cluster_view.ts';
import { ConnectionLostError } from './connection.ts';
import {
  batchesInFlightMax,
  type LaneCounters,
  type LoadOptions,
  laneName,
  type MadeBatch,
  newBatch,
} from './load.ts';

const drainTimeoutMs = 120_000;
const refreshMs = 300;
const refreshSoonMs = 20;

export type ClusterLoadOptions = Omit<LoadOptions, 'endpoint' | 'now'>;

interface Lane extends LaneCounters {
  /** Made and not acknowledged, oldest first; all of them were sent at least once. */
  unacked: MadeBatch[];
  /** Requests to the present leader that wait for their answer. */
  outstanding: number;
  /** A batch was refused or lost: nothing new goes out before all have been sent again. */
  stalled: boolean;
  leaderId: number;
  /** Grows when it turns to another leader; requests of earlier turns are not waited for. */
  turn: number;
  acked: number;
}

interface Sent {
  readonly lane: Lane;
  readonly turn: number;
  readonly batch: MadeBatch;
}

export class ClusterLoad {
  readonly #options: ClusterLoadOptions;
  readonly #view: ClusterView;
  readonly #lanes: readonly Lane[];
  readonly #run: Promise<void>;
  #identity: ProducerIdentity | null = null;
  #mode: 'sending' | 'draining' | 'stopped' = 'sending';
  #failure: Error | null = null;
  #isRefreshing: boolean = false;
  #refreshAtMs = 0;
  /** Batches that were sent again. */
  resent = 0;
  /** Acknowledgements by a leader that the producer had turned from. */
  late = 0;
  readonly refusals: Map<string, number> = new Map();

  constructor(cluster: Cluster, options: ClusterLoadOptions) {
    this.#options = options;
    const topics = [...new Set(options.targets.map(({ topic }) => topic))];
    this.#view = new ClusterView(cluster, topics, options.name);
    this.#lanes = options.targets.map((target) => ({
      ...target,
      nextSequence: 0,
      nextId: 0,
      unacked: [],
      outstanding: 0,
      stalled: false,
      leaderId: -1,
      turn: 0,
      acked: 0,
    }));
    this.#run = this.#work().catch((error: unknown) => this.#fail(error));
  }

  /** Throws what went wrong, if anything did: an answer that no correct broker gives. */
  assertHealthy(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  /** Batches acknowledged so far, by lane. */
  get acked(): number[] {
    return this.#lanes.map(({ acked }) => acked);
  }

  /** Resolves when every lane has got an acknowledgement for a batch from now on. */
  async progressed(timeoutMs: number): Promise<void> {
    const before = this.acked;
    const goal = (): boolean => this.#lanes.every((lane, k) => lane.acked > before[k]!);
    await this.#until(goal, timeoutMs, 'no acknowledgement for each partition');
  }

  /** Stops making batches and resolves when all are acknowledged. Throws when that takes two minutes. */
  async drain(): Promise<void> {
    this.#mode = 'draining';
    const goal = (): boolean => this.#lanes.every(({ unacked }) => unacked.length === 0);
    await this.#until(goal, drainTimeoutMs, 'not all acknowledged');
  }

  /** Goes on after `drain`. */
  resume(): void {
    if (this.#mode === 'draining') this.#mode = 'sending';
  }

  /** Ends without waiting for acknowledgements. */
  async stop(): Promise<void> {
    this.#mode = 'stopped';
    this.#view.close();
    await this.#run;
  }

  async #until(goal: () => boolean, timeoutMs: number, what: string): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (!goal()) {
      this.assertHealthy();
      const text = `${this.#options.name}: ${what} in ${timeoutMs / 1000} s`;
      assert(performance.now() < deadline, `${text}: ${this.#stateText()}`);
      await sleep(10);
    }
    this.assertHealthy();
  }

  async #work(): Promise<void> {
    const { random, pauseMsMax } = this.#options;
    while (this.#mode !== 'stopped') {
      this.#refresh();
      if (this.#identity !== null) {
        for (const lane of this.#lanes) this.#turn(lane);
        this.#sendAgain();
        if (this.#mode === 'sending') this.#sendNew();
      }
      await sleep(random(pauseMsMax + 1));
    }
  }

  /** Asks for news now and then, and soon after a refusal. */
  #refresh(): void {
    if (this.#isRefreshing || performance.now() < this.#refreshAtMs) return;
    this.#isRefreshing = true;
    this.#refreshAtMs = performance.now() + refreshMs;
    const run = async (): Promise<void> => {
      if (!(await this.#view.refresh())) this.#refreshSoon();
      if (this.#identity === null) await this.#identify();
    };
    run()
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#isRefreshing = false;
      });
  }

  #refreshSoon(): void {
    this.#refreshAtMs = Math.min(this.#refreshAtMs, performance.now() + refreshSoonMs);
  }

  async #identify(): Promise<void> {
    const client = this.#view.open(this.#lanes[0]!.leaderId) ?? (await this.#view.client(1));
    try {
      this.#identity = (await client?.initProducerId()) ?? null;
    } catch (error) {
      const passes =
        error instanceof ConnectionLostError ||
        (error instanceof BrokerError && isRetriable(error.code));
      if (!passes) throw error;
    }
  }

  /** Follows the partition to its leader. What the one before has not answered may never come. */
  #turn(lane: Lane): void {
    const leaderId = this.#view.partition(lane)?.leaderId ?? -1;
    if (leaderId === lane.leaderId) return;
    lane.leaderId = leaderId;
    lane.turn += 1;
    lane.outstanding = 0;
    lane.stalled = lane.unacked.length > 0;
  }

  #clientOf(lane: Lane): Client | null {
    if (lane.leaderId === -1) {
      this.#refreshSoon();
      return null;
    }
    const open = this.#view.open(lane.leaderId);
    if (open !== null) return open;
    this.#view.client(lane.leaderId).then(
      (client) => {
        if (client === null) this.#refreshSoon();
      },
      (error: unknown) => this.#fail(error),
    );
    return null;
  }

  /** All unacknowledged batches of the lanes that stalled, the n-th of each lane in the n-th request. */
  #sendAgain(): void {
    const lanes = this.#lanes.filter(
      (lane) => lane.stalled && lane.outstanding === 0 && this.#clientOf(lane) !== null,
    );
    const rounds = Math.max(0, ...lanes.map(({ unacked }) => unacked.length));
    for (const lane of lanes) {
      lane.stalled = false;
      this.resent += lane.unacked.length;
    }
    for (let round = 0; round < rounds; round += 1)
      this.#send(
        lanes.flatMap((lane) => {
          const batch = lane.unacked[round];
          return batch === undefined ? [] : [{ lane, turn: lane.turn, batch }];
        }),
      );
  }

  /** One batch for each of some lanes, chosen by lot among those that may send. */
  #sendNew(): void {
    const { random } = this.#options;
    const free = this.#lanes.filter(
      (lane) =>
        !lane.stalled &&
        lane.unacked.length < batchesInFlightMax &&
        random(2) === 0 &&
        this.#clientOf(lane) !== null,
    );
    const identity = this.#identity as ProducerIdentity;
    this.#send(
      free.map((lane) => {
        const batch = newBatch(lane, identity, this.#options);
        lane.unacked.push(batch);
        return { lane, turn: lane.turn, batch };
      }),
    );
  }

  /** One request to each leader. */
  #send(all: readonly Sent[]): void {
    const byLeader = Map.groupBy(all, ({ lane }) => lane.leaderId);
    for (const [leaderId, sent] of byLeader) {
      const client = this.#view.open(leaderId);
      assert(client !== null);
      const parts = sent.map(({ lane: { topic, partition }, batch }) => ({
        topic,
        partition,
        batch: batch.bytes,
      }));
      for (const { lane } of sent) lane.outstanding += 1;
      client
        .produce(parts)
        .then(
          (answers) => {
            for (const [index, one] of sent.entries())
              this.#answered(one, answers[index] as PartitionAnswer);
          },
          (error: unknown) => {
            if (!(error instanceof ConnectionLostError)) throw error;
            for (const one of sent) this.#refused(one, 'connection lost');
          },
        )
        .catch((error: unknown) => this.#fail(error));
    }
  }

  #answered(sent: Sent, answer: PartitionAnswer): void {
    const { lane, turn, batch } = sent;
    const { errorCode, errorMessage } = answer;
    const isLate = turn !== lane.turn;
    const isHead = lane.unacked[0] === batch;
    if (errorCode === ErrorCode.NONE) {
      const baseOffset = Number(answer.baseOffset);
      for (const [index, id] of batch.ids.entries())
        this.#options.history.acked(id, baseOffset + index);
      if (isLate) {
        this.late += 1;
        return;
      }
      // A batch that is in the log from an earlier try may be refused for now (NOT_ENOUGH_REPLICAS), and what stands
      // behind it in the log be taken or found there right afterwards.
      const at = lane.unacked.indexOf(batch);
      assert(
        isHead || (at > 0 && lane.stalled),
        `${batch.ids[0]} was acknowledged before what was sent before it`,
      );
      lane.outstanding -= 1;
      lane.unacked.splice(at, 1);
      lane.acked += 1;
      return;
    }
    // Behind a batch that was refused for now, the sequence has a hole until that one is there.
    const isHole = errorCode === ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER;
    const error = errorName(errorCode);
    assert(
      isLate || (isHole ? !isHead : isRetriable(errorCode)),
      `${laneName(lane)}: ${batch.ids[0]}, ${isHead ? 'the oldest' : 'not the oldest'} in flight, got ${error} (${errorMessage}) of ${lane.leaderId}`,
    );
    this.#refused(sent, error);
  }

  #refused({ lane, turn }: Sent, why: string): void {
    this.refusals.set(why, (this.refusals.get(why) ?? 0) + 1);
    this.#refreshSoon();
    if (turn !== lane.turn) return;
    lane.outstanding -= 1;
    lane.stalled = true;
  }

  #fail(error: unknown): void {
    if (this.#mode === 'stopped') return;
    this.#failure ??= error instanceof Error ? error : new Error(String(error));
  }

  #stateText(): string {
    const refusals = JSON.stringify(Object.fromEntries(this.refusals));
    const lanes = this.#lanes
      .map((lane) => `${laneName(lane)} ${lane.unacked.length} at ${lane.leaderId}`)
      .join(', ');
    return `${lanes}; refusals so far ${refusals}`;
  }
}
