/**
 * Follows the partitions that one other broker leads: a connection to it, a fetch session over that, and the way of what
 * comes to the partitions' owners and back.
 *
 * Thread: the replication thread. Memory: responses lie in the thread's slabs until the owners have answered; while too
 * much does, no further request is sent. Durable: a request tells offsets that owners have reported, which are flushed.
 *
 * A connection that breaks is made again at once. One that is refused is news, reported and tried again after a pause.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { SlabAllocator } from '../../engine/thread/slab.ts';
import { remedyFor } from '../../replication/partition/fetch_errors.ts';
import type { ReplicaFetchResponse } from '../../replication/partition/fetch_exchange.ts';
import type { FollowedPartition } from '../../replication/partition/followed_partition.ts';
import type { Handover, ReplicaFetch } from '../../replication/partition/replica_fetch.ts';
import type { Placements } from '../fabric/placements.ts';
import type { RemoteFollowers } from '../fabric/remote_followers.ts';
import type { Logger } from '../logger.ts';
import { ProtocolError, type Reader } from '../protocol/reader.ts';
import { decodeFetch, encodeFetch, type ReplicaIdentity } from './fetch_wire.ts';
import { type ConnectionEnd, LeaderConnection } from './leader_connection.ts';
import type { ResponseFrame } from './response_frame.ts';

/** What all fetchers of the thread share. */
export interface FetcherContext {
  readonly clusterId: string;
  /** This broker, under its registration of now. */
  readonly identity: () => ReplicaIdentity;
  readonly placements: Placements;
  readonly followers: Pick<RemoteFollowers, 'state' | 'replicate'>;
  readonly slabs: SlabAllocator;
  /** For reads, and for reading responses. */
  readonly shared: Buffer;
  readonly reader: Reader;
  readonly frameBytesMax: number;
  readonly socketTimeoutMs: number;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
  readonly logger: Logger;
  /** Nobody listens at the broker's address. */
  readonly onRefused: (brokerId: number) => void;
}

export interface LeaderEndpoint {
  readonly host: string;
  readonly port: number;
}

const limits = {
  /**
   * Responses that owners have not answered for yet, of all leaders; from here on no request is sent. Their flushes are
   * what the disk has in line before those of others: with 2 MiB a broker has caught up at 158 MiB/s, and p99 beside it
   * rose from 9 to 32 ms; with 11 to 20 MiB it rose from 48 to 305 ms (measured, 200 records a second).
   */
  heldBytesMax: 4 * 1024 * 1024,
  /** Between attempts to connect: doubled from the first to the second. */
  retryFirstMs: 20,
  retryMostMs: 1_000,
  /** Between two log lines of one kind. */
  logIntervalMs: 10_000,
} as const;

export class LeaderFetcher {
  readonly leaderId: number;
  readonly fetch: ReplicaFetch;
  readonly #context: FetcherContext;
  #endpoint: LeaderEndpoint | null = null;
  #connection: LeaderConnection | null = null;
  /** Attempts to connect that failed in a row. */
  #failures = 0;
  #retryAtMs = 0;
  /** The connection has brought an answer. */
  #hasAnswered: boolean = false;
  /** When the connection was begun, or a request was last sent or answered. */
  #progressMs = 0;
  /** Of requests under way, oldest first. */
  #correlationIds: number[] = [];
  #nextCorrelationId = 1;
  #timer: NodeJS.Timeout | null = null;
  #timerAtMs: number = Number.POSITIVE_INFINITY;
  #isClosed: boolean = false;

  constructor(leaderId: number, fetch: ReplicaFetch, context: FetcherContext) {
    this.leaderId = leaderId;
    this.fetch = fetch;
    this.#context = context;
  }

  /** Where the broker is now; null: it has no listener for brokers, or is not registered. Connects at once. */
  moveTo(endpoint: LeaderEndpoint | null): void {
    const before = this.#endpoint;
    const isSame = before?.host === endpoint?.host && before?.port === endpoint?.port;
    this.#endpoint = endpoint;
    if (!isSame) this.#disconnect();
    this.#failures = 0;
    this.#retryAtMs = 0;
  }

  /** Does what can be done now; to be called after whatever may have changed that. */
  pump(): void {
    if (this.#isClosed) return;
    const { nowMs, slabs } = this.#context;
    const now = nowMs();
    for (const followed of this.fetch.takeUnknown(now)) this.#askOwner(followed);
    const connection = this.#connection;
    if (connection === null) this.#connect(now);
    else if (connection.isOpen)
      while (slabs.usedBytes < limits.heldBytesMax && this.#sendNext(connection, now));
    this.#schedule(now);
  }

  /** Once a second: ends a connection on which nothing moves although something should. */
  tick(): void {
    const { nowMs, socketTimeoutMs } = this.#context;
    const isOwed = this.#correlationIds.length > 0 || this.#connection?.isOpen === false;
    if (!isOwed || nowMs() - this.#progressMs < socketTimeoutMs) return;
    this.#onEnd('broken', `no answer for ${socketTimeoutMs} ms`);
  }

  /** Stops following. What owners have been given they go on with. */
  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#disconnect();
  }

  #connect(now: number): void {
    if (this.#endpoint === null || now < this.#retryAtMs) return;
    const { slabs, shared, frameBytesMax } = this.#context;
    this.#progressMs = now;
    this.#hasAnswered = false;
    const connection = new LeaderConnection({
      ...this.#endpoint,
      slabs,
      shared,
      frameBytesMax,
      onOpen: () => {
        this.#progressMs = this.#context.nowMs();
        this.pump();
      },
      onResponse: (frame) => this.#onResponse(frame),
      onEnd: (end, reason) => this.#onEnd(end, reason),
    });
    this.#connection = connection;
  }

  #disconnect(): void {
    this.#connection?.close();
    this.#connection = null;
    this.#correlationIds = [];
    this.fetch.disconnected();
  }

  #onEnd(end: ConnectionEnd, reason: string): void {
    const { nowMs, logger, onRefused } = this.#context;
    this.#disconnect();
    // What worked until now is tried again at once: when the process is gone, that is how to know.
    if (!this.#hasAnswered) {
      const pauseMs = limits.retryFirstMs * 2 ** Math.min(this.#failures, 10);
      this.#failures += 1;
      this.#retryAtMs = nowMs() + Math.min(limits.retryMostMs, pauseMs);
    }
    const { host, port } = this.#endpoint ?? { host: '', port: 0 };
    logger.logLimited(
      `leader ${this.leaderId} ${end}`,
      limits.logIntervalMs,
      'warn',
      { broker: this.leaderId, address: `${host}:${port}`, reason },
      'no connection to a broker that this one follows; trying again',
    );
    if (end === 'refused') onRefused(this.leaderId);
    this.pump();
  }

  /** False: there is nothing to be sent now. */
  #sendNext(connection: LeaderConnection, now: number): boolean {
    const request = this.fetch.next(now);
    if (request === null) return false;
    const { identity, clusterId } = this.#context;
    const correlationId = this.#nextCorrelationId;
    this.#nextCorrelationId = (correlationId + 1) & 0x7fffffff;
    this.#correlationIds.push(correlationId);
    this.#progressMs = now;
    connection.send(encodeFetch(request, identity(), clusterId, correlationId));
    return true;
  }

  #onResponse(frame: ResponseFrame): void {
    const { nowMs } = this.#context;
    const now = nowMs();
    this.#progressMs = now;
    const response = this.#decode(frame);
    if (response !== null) {
      this.#hasAnswered = true;
      this.#failures = 0;
      this.#noteErrors(response);
      for (const handover of this.fetch.answered(response, now)) this.#handOver(handover, frame);
    }
    frame.release();
    this.pump();
  }

  #decode(frame: ResponseFrame): ReplicaFetchResponse | null {
    const { reader } = this.#context;
    reader.reset(frame.bytes, frame.offset, frame.end);
    try {
      const { correlationId, response } = decodeFetch(reader);
      const expected = this.#correlationIds.shift();
      if (correlationId === expected) return response;
      this.#onEnd('broken', `an answer to request ${correlationId}, not to ${expected}`);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#onEnd('broken', `a malformed answer: ${error.message}`);
    }
    return null;
  }

  #handOver({ followed, answer, isAwaited }: Handover, frame: ResponseFrame): void {
    const { placements, followers } = this.#context;
    const { topicId, partition, leaderEpoch } = followed;
    const placed = placements.find(topicId, partition);
    if (placed === undefined) {
      this.#settle(followed, ErrorCode.UNKNOWN_TOPIC_ID, null);
    } else if (!isAwaited) {
      followers.replicate(placed, leaderEpoch, answer, -1, null);
    } else {
      frame.retain();
      followers.replicate(placed, leaderEpoch, answer, frame.slabId, (error, position) => {
        frame.release();
        this.#settle(followed, error, position);
      });
    }
  }

  #askOwner(followed: FollowedPartition): void {
    const { placements, followers } = this.#context;
    const { topicId, partition, leaderEpoch } = followed;
    const placed = placements.find(topicId, partition);
    if (placed === undefined) this.#settle(followed, ErrorCode.UNKNOWN_TOPIC_ID, null);
    else
      followers.state(placed, leaderEpoch, (error, position) =>
        this.#settle(followed, error, position),
      );
  }

  #settle(
    followed: FollowedPartition,
    error: ErrorCode,
    position: Parameters<ReplicaFetch['settled']>[2],
  ): void {
    const { nowMs, logger } = this.#context;
    if (error !== ErrorCode.NONE && remedyFor(error) === 'late')
      logger.logLimited(
        `replica ${error}`,
        limits.logIntervalMs,
        'warn',
        { topicId: followed.topicId, partition: followed.partition, leader: this.leaderId, error },
        'what a leader has sent could not be taken into a partition; trying again',
      );
    this.fetch.settled(followed, error, position, nowMs());
  }

  #noteErrors({ errorCode, partitions }: ReplicaFetchResponse): void {
    const { logger } = this.#context;
    const failed = partitions.find(
      (one) => one.errorCode !== ErrorCode.NONE && remedyFor(one.errorCode) === 'late',
    );
    const error = failed?.errorCode ?? errorCode;
    if (error === ErrorCode.NONE || remedyFor(error) !== 'late') return;
    logger.logLimited(
      `leader ${this.leaderId} error ${error}`,
      limits.logIntervalMs,
      'warn',
      { broker: this.leaderId, topicId: failed?.topicId, partition: failed?.partition, error },
      'a broker refuses to be followed; trying again',
    );
  }

  #wakeAtMs(): number {
    if (this.#connection === null)
      return this.#endpoint === null ? Number.POSITIVE_INFINITY : this.#retryAtMs;
    // A connection that opens, and memory that is given back, pump by themselves.
    const canSend = this.#connection.isOpen && this.#context.slabs.usedBytes < limits.heldBytesMax;
    return canSend ? this.fetch.wakeAtMs() : Number.POSITIVE_INFINITY;
  }

  /** Wakes up for what time alone brings. */
  #schedule(now: number): void {
    const atMs = this.#wakeAtMs();
    if (this.#timer !== null && this.#timerAtMs <= atMs) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#timerAtMs = atMs;
    if (atMs === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        this.pump();
      },
      Math.max(1, Math.ceil(atMs - now)),
    );
  }
}
