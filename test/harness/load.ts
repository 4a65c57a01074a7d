/**
 * Load for tests that pull the rug from under a broker: an idempotent producer that keeps several batches in flight
 * to each of its partitions and, whatever happens, sends every batch until it is acknowledged, with the same sequence
 * numbers, as Kafka's own producers do. So a batch that the broker had stored before it was killed is a duplicate
 * when it comes again, and has to be found out as one.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeBatch } from '../../engine/batch/encode.ts';
import { Codec } from '../../engine/batch/header.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { errorName, isRetriable } from '../../net/protocol/errors.ts';
import { Client, type PartitionAnswer, type ProducerIdentity } from './client.ts';
import { ConnectionLostError, type Endpoint } from './connection.ts';
import { type History, valueFor } from './history.ts';
import type { Random } from './split_mix.ts';

/** As many as brokers keep of a producer, and so as Kafka's producers send. */
export const batchesInFlightMax = 5;
const retryPauseMs = 30;
const drainTimeoutMs = 120_000;
const largeRecordBytes = 1_000_000;

export interface Target {
  readonly topic: string;
  readonly partition: number;
}

export interface LoadOptions {
  /** Unique among the producers of a history. */
  readonly name: string;
  /** Asked before each connection attempt. */
  readonly endpoint: () => Endpoint;
  readonly targets: readonly Target[];
  readonly history: History;
  readonly random: Random;
  /** Pause between two requests, at most. */
  readonly pauseMsMax: number;
  /** One batch in so many is a single record of 1 MB; 0: none. */
  readonly oneLargeIn: number;
  /** The point in time of an acknowledgement, for `History.check`. */
  readonly now?: () => number;
}

export interface MadeBatch {
  readonly bytes: Uint8Array;
  readonly ids: readonly string[];
}

interface Batch extends MadeBatch {
  readonly lane: Lane;
}

/** What a producer counts in each of its partitions. */
export interface LaneCounters extends Target {
  nextSequence: number;
  nextId: number;
}

interface Lane extends LaneCounters {
  /** Made and not acknowledged, oldest first; all of them were sent at least once. */
  unacked: Batch[];
  /** Requests with a batch of this lane that wait for their answer. */
  outstanding: number;
  /** A batch was refused for now: nothing new goes out before all have been sent again. */
  stalled: boolean;
}

const codecs: readonly Codec[] = Object.values(Codec);

export function laneName({ topic, partition }: Target): string {
  return `${topic}-${partition}`;
}

/** The next batch of a lane: one to twenty records, or a single large one. The history hears of them. */
export function newBatch(
  lane: LaneCounters,
  identity: ProducerIdentity,
  options: Pick<LoadOptions, 'name' | 'random' | 'oneLargeIn' | 'history'>,
): MadeBatch {
  const { random, oneLargeIn, history, name } = options;
  const large = oneLargeIn > 0 && random(oneLargeIn) === 0;
  const ids: string[] = [];
  for (let left = large ? 1 : 1 + random(20); left > 0; left -= 1) {
    ids.push(`${name}.${laneName(lane)}.${lane.nextId}`);
    lane.nextId += 1;
  }
  const timestamp = BigInt(Date.now());
  const bytes = encodeBatch({
    ...identity,
    baseSequence: lane.nextSequence,
    codec: large && random(2) === 0 ? Codec.none : (codecs[random(codecs.length)] as Codec),
    records: ids.map((id) => ({
      value: valueFor(id, large ? largeRecordBytes : random(400)),
      key: random(2) === 0 ? Buffer.from(id) : null,
      timestamp,
    })),
  });
  lane.nextSequence += ids.length;
  for (const id of ids) history.sent(id, laneName(lane), name);
  return { bytes, ids };
}

export class Load {
  readonly #options: LoadOptions;
  readonly #lanes: readonly Lane[];
  readonly #run: Promise<void>;
  #identity: ProducerIdentity | null = null;
  #client: Client | null = null;
  #mode: 'sending' | 'draining' | 'stopped' = 'sending';
  #failure: Error | null = null;
  /** Batches that were sent again after their connection broke. */
  resent = 0;
  /** Requests answered with an error that allows another try, by name. */
  readonly refusals: Map<string, number> = new Map();

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#lanes = options.targets.map((target) => ({
      ...target,
      nextSequence: 0,
      nextId: 0,
      unacked: [],
      outstanding: 0,
      stalled: false,
    }));
    this.#run = this.#work().catch((error: unknown) => {
      this.#failure = error instanceof Error ? error : new Error(String(error));
    });
  }

  /** Throws what went wrong, if anything did: an answer that no correct broker gives. */
  assertHealthy(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  /** Stops making batches and resolves when all are acknowledged. Throws when that takes two minutes. */
  async drain(): Promise<void> {
    this.#mode = 'draining';
    const deadline = performance.now() + drainTimeoutMs;
    while (this.#lanes.some(({ unacked }) => unacked.length > 0)) {
      this.assertHealthy();
      assert(
        performance.now() < deadline,
        `${this.#options.name}: not acknowledged after ${drainTimeoutMs / 1000} s: ${this.#pendingText()}`,
      );
      await sleep(10);
    }
    this.assertHealthy();
  }

  /** Goes on after `drain`. */
  resume(): void {
    if (this.#mode === 'draining') this.#mode = 'sending';
  }

  /** Ends without waiting for acknowledgements. */
  async stop(): Promise<void> {
    this.#mode = 'stopped';
    this.#client?.close();
    await this.#run;
  }

  async #work(): Promise<void> {
    while (this.#mode !== 'stopped') {
      try {
        await this.#session();
      } catch (error) {
        if (!(error instanceof ConnectionLostError)) throw error;
      }
      this.#client?.close();
      this.#client = null;
      await sleep(retryPauseMs);
    }
  }

  /** One connection, from its start until it breaks. */
  async #session(): Promise<void> {
    const { name, endpoint, random, pauseMsMax } = this.#options;
    const client = await Client.connect(endpoint(), name);
    this.#client = client;
    this.#identity ??= await client.initProducerId();
    await client.metadata([...new Set(this.#lanes.map(({ topic }) => topic))]);
    for (const lane of this.#lanes) {
      lane.outstanding = 0;
      lane.stalled = lane.unacked.length > 0;
      this.resent += lane.unacked.length;
    }
    while (client.connection.isOpen && this.#mode !== 'stopped') {
      if (this.#failure !== null) throw this.#failure;
      const again = this.#lanes.filter((lane) => lane.stalled && lane.outstanding === 0);
      if (again.length > 0) this.#sendAgain(client, again);
      else if (this.#mode === 'sending') this.#sendNew(client);
      await sleep(random(pauseMsMax + 1));
    }
  }

  /** All unacknowledged batches of some lanes, the n-th of each lane in the n-th request. */
  #sendAgain(client: Client, lanes: readonly Lane[]): void {
    const rounds = Math.max(...lanes.map(({ unacked }) => unacked.length));
    for (const lane of lanes) lane.stalled = false;
    for (let round = 0; round < rounds; round += 1)
      this.#send(
        client,
        lanes.flatMap(({ unacked }) => unacked[round] ?? []),
      );
  }

  /** One batch for each of some lanes, chosen by lot among those that may send. */
  #sendNew(client: Client): void {
    const { random } = this.#options;
    const free = this.#lanes.filter(
      (lane) => !lane.stalled && lane.unacked.length < batchesInFlightMax && random(2) === 0,
    );
    const identity = this.#identity as ProducerIdentity;
    const batches = free.map((lane) => ({ lane, ...newBatch(lane, identity, this.#options) }));
    for (const batch of batches) batch.lane.unacked.push(batch);
    if (batches.length > 0) this.#send(client, batches);
  }

  #send(client: Client, batches: readonly Batch[]): void {
    const parts = batches.map(({ lane, bytes }) => ({
      topic: lane.topic,
      partition: lane.partition,
      batch: bytes,
    }));
    for (const { lane } of batches) lane.outstanding += 1;
    void client.produce(parts).then(
      (answers) => {
        // A client that was given up has its batches in a later request, too.
        if (client !== this.#client) return;
        try {
          for (const [index, batch] of batches.entries())
            this.#answered(batch, answers[index] as PartitionAnswer);
        } catch (error) {
          this.#failure ??= error as Error;
        }
      },
      (error: unknown) => {
        if (!(error instanceof ConnectionLostError)) this.#failure ??= error as Error;
      },
    );
  }

  #answered({ lane, ids, bytes }: Batch, answer: PartitionAnswer): void {
    lane.outstanding -= 1;
    const { errorCode, errorMessage } = answer;
    const isHead = lane.unacked[0]?.bytes === bytes;
    if (errorCode === ErrorCode.NONE) {
      assert(
        isHead,
        `${laneName(lane)}: ${ids[0]} was acknowledged before what was sent before it`,
      );
      lane.unacked.shift();
      const at = this.#options.now?.() ?? 0;
      const baseOffset = Number(answer.baseOffset);
      for (const [index, id] of ids.entries())
        this.#options.history.acked(id, baseOffset + index, at);
      return;
    }
    // Behind a batch that was refused for now, the sequence has a hole until that one is there.
    const isFollower = errorCode === ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER && !isHead;
    const error = errorName(errorCode);
    assert(
      isFollower ||
        (isRetriable(errorCode) && errorCode !== ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
      `${laneName(lane)}: ${ids[0]}, ${isHead ? 'the oldest' : 'not the oldest'} in flight, got ${error} (${errorMessage})`,
    );
    this.refusals.set(error, (this.refusals.get(error) ?? 0) + 1);
    lane.stalled = true;
  }

  #pendingText(): string {
    const refusals = JSON.stringify(Object.fromEntries(this.refusals));
    const lanes = this.#lanes.map((lane) => `${laneName(lane)} ${lane.unacked.length}`).join(', ');
    return `${lanes}; refusals so far ${refusals}`;
  }
}
