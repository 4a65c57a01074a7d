/**
 * What a simulated broker fetches from the leaders of the partitions that it follows: the bookkeeping of production code
 * (`ReplicaFetch`), with a simulated connection to each leader in place of a real one.
 */
import type { ErrorCode } from '../../../engine/error_code.gen.ts';
import type {
  FetchPosition,
  LeaderAnswer,
  ReplicaFetchRequest,
  ReplicaFetchResponse,
} from '../../../replication/partition/fetch_exchange.ts';
import type { FollowedPartition } from '../../../replication/partition/followed_partition.ts';
import { ReplicaFetch } from '../../../replication/partition/replica_fetch.ts';
import { type Connection, isFailure, type Network } from './network.ts';
import type { SimProcess } from './sim_process.ts';

/** The replicas of this broker that follow. */
export interface FollowerOwner {
  /** Calls `done` when it can say where the partition's log ends. */
  position(
    topicId: string,
    partition: number,
    done: (error: ErrorCode, position: FetchPosition | null) => void,
  ): void;
  /** Takes what a leader has answered, and then says where the log ends. */
  receive(
    followed: FollowedPartition,
    answer: LeaderAnswer,
    done: (error: ErrorCode, position: FetchPosition | null) => void,
  ): void;
}

export interface NodeFetcherOptions {
  readonly process: SimProcess;
  readonly network: Network;
  readonly leaderId: number;
  readonly owner: FollowerOwner;
  readonly maxWaitMs: number;
  readonly now: () => number;
  readonly brokerEpoch: () => number;
  /** The leader's process is gone. */
  readonly onRefused: (leaderId: number) => void;
}

/** How a fetch travels; `brokerEpoch` is the follower's (KIP-903). */
export interface FetchMessage {
  readonly type: 'replicaFetch';
  readonly brokerId: number;
  readonly brokerEpoch: number;
  readonly request: ReplicaFetchRequest;
}

const timeoutMs = 3_000;
const reconnectMs = 30;

export class NodeFetcher {
  readonly #options: NodeFetcherOptions;
  readonly #fetch: ReplicaFetch;
  #connection: Connection | null = null;
  #cancelWake: () => void = () => {};
  #isPumping: boolean = false;
  /** Nothing is sent before. */
  #notBeforeMs = 0;

  constructor(options: NodeFetcherOptions) {
    this.#options = options;
    this.#fetch = new ReplicaFetch({
      maxWaitMs: options.maxWaitMs,
      minBytes: 1,
      maxBytes: 1 << 20,
      partitionMaxBytes: 1 << 16,
      backoffMs: 200,
    });
  }

  follow(topicId: string, partition: number, leaderEpoch: number): void {
    this.#fetch.follow(topicId, partition, leaderEpoch);
    this.pump();
  }

  unfollow(topicId: string, partition: number): void {
    this.#fetch.unfollow(topicId, partition);
  }

  /** Does whatever can be done now, and sees to it that the rest is done when it is time. */
  pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    const { owner, now } = this.#options;
    for (const followed of this.#fetch.takeUnknown(now())) {
      owner.position(followed.topicId, followed.partition, (error, position) =>
        this.#settled(followed, error, position),
      );
    }
    if (now() >= this.#notBeforeMs)
      for (;;) {
        const request = this.#fetch.next(now());
        if (request === null) break;
        this.#send(request);
      }
    this.#isPumping = false;
    this.#wakeAt(this.#fetch.wakeAtMs());
  }

  #wakeAt(atMs: number): void {
    const { process, now } = this.#options;
    this.#cancelWake();
    if (atMs === Number.POSITIVE_INFINITY) return;
    const delayMs = Math.max(1, Math.max(atMs, this.#notBeforeMs) - now());
    this.#cancelWake = process.after(delayMs, () => this.pump());
  }

  #settled(followed: FollowedPartition, error: ErrorCode, position: FetchPosition | null): void {
    this.#fetch.settled(followed, error, position, this.#options.now());
    this.pump();
  }

  #send(request: ReplicaFetchRequest): void {
    const { process, network, leaderId, brokerEpoch } = this.#options;
    let connection = this.#connection;
    if (connection === null || connection.isClosed) {
      connection = network.connect(process, leaderId);
      this.#connection = connection;
    }
    const message: FetchMessage = {
      type: 'replicaFetch',
      brokerId: process.machineId,
      brokerEpoch: brokerEpoch(),
      request,
    };
    const used = connection;
    connection.request(message, timeoutMs, (answer) => {
      if (this.#connection !== used) return;
      if (isFailure(answer)) this.#failed(answer.reason === 'refused');
      else this.#answered(answer as ReplicaFetchResponse);
    });
  }

  #answered(response: ReplicaFetchResponse): void {
    const { owner, now } = this.#options;
    this.#isPumping = true;
    for (const { followed, answer, isAwaited } of this.#fetch.answered(response, now()))
      owner.receive(followed, answer, (error, position) => {
        if (isAwaited) this.#settled(followed, error, position);
      });
    this.#isPumping = false;
    this.pump();
  }

  #failed(isRefused: boolean): void {
    const { process, now, leaderId, onRefused } = this.#options;
    this.#connection = null;
    this.#fetch.disconnected();
    this.#notBeforeMs = now() + reconnectMs;
    process.after(reconnectMs, () => this.pump());
    if (isRefused) onRefused(leaderId);
  }
}
