/**
 * An idempotent producer with acks=all, as Kafka's clients are one: a sequence of batches for each partition, several in
 * flight, and each sent again, in order, until it is acknowledged.
 */
import assert from 'node:assert/strict';
import { encodeBatch } from '../../../engine/batch/encode.ts';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { Client, type ClientWorld } from './client.ts';
import type { ProduceAnswer } from './client_api.ts';
import type { CommittedLog } from './committed_log.ts';
import { isFailure } from './network.ts';

export interface ProducerOptions {
  readonly id: number;
  readonly seed: number;
  readonly everyMs: number;
  readonly inFlightMax: number;
  readonly recordsMax: number;
  readonly valueBytesMax: number;
}

interface Batch {
  readonly sequence: number;
  /** Its place among the lane's batches. */
  readonly ordinal: number;
  readonly bytes: Uint8Array;
  isInFlight: boolean;
  /** Another copy of it may be on its way, or stored. */
  attempts: number;
}

/** The producer's batches of one partition. */
class Lane {
  readonly partition: number;
  /** In the order of their sequences. */
  batches: Batch[] = [];
  nextSequence = 0;
  nextOrdinal = 0;
  /** Its first batch is acknowledged. */
  isKnown: boolean = false;
  /** Nothing is sent before. */
  notBeforeMs = 0;

  constructor(partition: number) {
    this.partition = partition;
  }
}

/** What a client never sees unless something is broken. */
const fatalErrors: readonly ErrorCode[] = [
  ErrorCode.CORRUPT_MESSAGE,
  ErrorCode.INVALID_PRODUCER_EPOCH,
  ErrorCode.INVALID_RECORD,
  ErrorCode.INVALID_REQUEST,
  ErrorCode.UNKNOWN_SERVER_ERROR,
];

export class Producer {
  readonly #options: ProducerOptions;
  readonly #client: Client;
  readonly #lanes: Lane[];
  /** Sends what it has and makes no more. */
  isEnding: boolean = false;

  constructor(world: ClientWorld, options: ProducerOptions) {
    this.#options = options;
    this.#client = new Client(world, `producer${options.id}`, 1000 + options.id, options.seed);
    this.#lanes = world.committed.map((_, partition) => new Lane(partition));
  }

  get machineId(): number {
    return this.#client.process.machineId;
  }

  /** Batches that wait for their acknowledgement. */
  get waiting(): number {
    return this.#lanes.reduce((sum, lane) => sum + lane.batches.length, 0);
  }

  start(): void {
    const { random, process } = this.#client;
    process.after(1 + random.below(this.#options.everyMs), () => {
      if (this.isEnding) return;
      this.#produce(this.#lanes[random.below(this.#lanes.length)] as Lane);
      this.start();
    });
  }

  #produce(lane: Lane): void {
    const { inFlightMax, recordsMax } = this.#options;
    // A leader knows the last five. The answer to one may be long in coming from a leader that has gone, while the next leader
    // takes those behind it: what counts is how far they are behind, and not how many wait.
    const oldest = lane.batches[0]?.ordinal ?? lane.nextOrdinal;
    if (lane.nextOrdinal - oldest >= inFlightMax) return;
    const count = 1 + this.#client.random.below(recordsMax);
    lane.batches.push({
      sequence: lane.nextSequence,
      ordinal: lane.nextOrdinal,
      bytes: this.#encode(lane, count),
      isInFlight: false,
      attempts: 0,
    });
    lane.nextSequence += count;
    lane.nextOrdinal += 1;
    this.#pump(lane);
  }

  #encode(lane: Lane, count: number): Uint8Array {
    const { id, valueBytesMax } = this.#options;
    const { random, world } = this.#client;
    const timestamp = BigInt(1_700_000_000_000 + Math.floor(world.timeline.nowMs));
    const records = Array.from({ length: count }, (_, index) => {
      const text = `${id}/${lane.partition}/${lane.nextSequence + index}`;
      const value = Buffer.alloc(text.length + random.below(valueBytesMax), text);
      return { value, timestamp };
    });
    return encodeBatch({
      records,
      producerId: id,
      producerEpoch: 0,
      baseSequence: lane.nextSequence,
    });
  }

  #pump(lane: Lane): void {
    const { process, world } = this.#client;
    const { nowMs } = world.timeline;
    if (nowMs < lane.notBeforeMs) return;
    const { leader } = this.#client.leaderOf(lane.partition);
    if (leader === -1) {
      this.#backOff(lane);
      return;
    }
    // A leader that knows nothing of a producer takes any sequence as its first, as Kafka's do: the first batch has to be in
    // before others may be on their way.
    const sendable = lane.isKnown ? lane.batches : lane.batches.slice(0, 1);
    for (const batch of sendable) {
      if (batch.isInFlight) continue;
      batch.isInFlight = true;
      batch.attempts += 1;
      if (batch.attempts === 2) world.count('22 produce requests sent again');
      const { partition } = lane;
      const request = { type: 'produce', partition, acks: -1, batch: batch.bytes.slice() } as const;
      this.#client.ask(leader, request, (answer) => {
        batch.isInFlight = false;
        this.#answered(lane, batch, answer);
        if (lane.batches.length > 0) process.run(() => this.#pump(lane));
      });
    }
  }

  #backOff(lane: Lane): void {
    const { process, random, world } = this.#client;
    const delayMs = 5 + random.below(40);
    lane.notBeforeMs = world.timeline.nowMs + delayMs;
    process.after(delayMs, () => this.#pump(lane));
  }

  #answered(lane: Lane, batch: Batch, answer: unknown): void {
    const { world, name } = this.#client;
    if (isFailure(answer)) {
      world.count(`produce ${answer.reason}`);
      this.#client.refresh();
      this.#backOff(lane);
      return;
    }
    const { errorCode, baseOffset, isDuplicate } = answer as ProduceAnswer;
    const isStored =
      errorCode === ErrorCode.NONE || errorCode === ErrorCode.DUPLICATE_SEQUENCE_NUMBER;
    if (isStored) {
      if (isDuplicate || errorCode !== ErrorCode.NONE) world.count('22 duplicates');
      // The first copy's answer may have come before.
      if (!lane.batches.includes(batch)) return;
      lane.batches = lane.batches.filter((other) => other !== batch);
      lane.isKnown = true;
      world.count('acknowledged');
      world.trace.add(name, () => `p${lane.partition} s${batch.sequence} is at ${baseOffset}`);
      (world.committed[lane.partition] as CommittedLog).acknowledge(
        this.#options.id,
        batch.sequence,
        baseOffset,
      );
      return;
    }
    assert(
      !fatalErrors.includes(errorCode),
      `${name}: sequence ${batch.sequence} of partition ${lane.partition} is refused with ${errorCode}`,
    );
    world.count(`produce error ${errorCode}`);
    world.trace.add(name, () => `p${lane.partition} s${batch.sequence} is refused: ${errorCode}`);
    this.#client.refresh();
    this.#backOff(lane);
  }
}
