/**
 * Fetches what a consumer's partitions are to read: from each leader one request at a time, on a connection of its own,
 * within a fetch session (KIP-227), while there is room for the answer.
 *
 * A leader is asked again when none of its partitions is full: if it were asked for the empty ones alone, it would keep the
 * request until they have something, and the full ones would run dry meanwhile. So what is buffered is bounded by
 * `bufferBytes` and one answer of each broker, however slow the reader is.
 *
 * Thread: the client's.
 */

import type { FetchResponse } from '../../protocol/messages.gen.ts';
import type { Cluster } from '../cluster.ts';
import type { BrokerConnection } from '../connection.ts';
import { MillraceError } from '../errors.ts';
import { FetchSession, type FetchTarget } from './fetch_session.ts';
import { retryAfterMs } from './membership.ts';
import type { PartitionCursor } from './partition_cursor.ts';

export interface FetchLimits {
  readonly minBytes: number;
  readonly maxWaitMs: number;
  /** Of one answer. */
  readonly maxBytes: number;
  /** Of one partition in an answer; also when it has enough. */
  readonly maxPartitionBytes: number;
  /** Of all that is fetched and not read. */
  readonly bufferBytes: number;
  readonly isCommitted: boolean;
}

type Cursor = PartitionCursor<unknown, unknown>;

export interface FetcherOwner {
  /** All that is to be fetched. */
  readonly cursors: Iterable<Cursor>;
  /** It has something for the reader. */
  onReady(cursor: Cursor): void;
  /** Its state says that it needs a position. */
  onLost(cursor: Cursor): void;
  /** Nothing can be fetched from a broker, for a reason that stays. */
  onFailed(error: MillraceError): void;
}

interface Asked {
  readonly cursor: Cursor;
  readonly version: number;
}

interface Broker {
  readonly id: number;
  readonly session: FetchSession;
  connection: BrokerConnection | null;
  isAsked: boolean;
  failures: number;
  notBeforeMs: number;
}

/** With the epoch of the last record (KIP-595), which tells of logs that were cut. Kafka 2.7 and later. */
const minVersion = 12;
/** Topics by id alone (KIP-516). */
const topicIdVersion = 13;
const lookAgainMs = 250;

export class Fetcher {
  readonly #cluster: Cluster;
  readonly #lane: string;
  readonly #limits: FetchLimits;
  readonly #owner: FetcherOwner;
  readonly #brokers = new Map<number, Broker>();
  /** Topics that nothing is known of. */
  readonly #asking = new Set<string>();
  readonly #closing: AbortController = new AbortController();
  readonly #stopListening: () => void;
  #timer: NodeJS.Timeout | null = null;
  #timerDueMs: number = Number.POSITIVE_INFINITY;
  /** Answers so far, and their records' bytes. */
  fetches = 0;
  bytes = 0;

  constructor(cluster: Cluster, lane: string, limits: FetchLimits, owner: FetcherOwner) {
    this.#cluster = cluster;
    this.#lane = lane;
    this.#limits = limits;
    this.#owner = owner;
    this.#stopListening = cluster.onMetadata(() => this.poke());
  }

  /** Asks whatever broker may be asked. To be called when something has changed. */
  poke(): void {
    if (this.#closing.signal.aborted) return;
    const nowMs = performance.now();
    const wanted = new Map<number, Cursor[]>();
    let buffered = 0;
    for (const cursor of this.#owner.cursors) {
      buffered += cursor.bufferedBytes;
      // What its reader has not been told yet would only be said again.
      if (cursor.state !== 'reading' || cursor.isPaused || cursor.failure !== null) continue;
      if (cursor.notBeforeMs > nowMs) {
        this.#wake(cursor.notBeforeMs);
        continue;
      }
      const leaderId = this.#leaderOf(cursor);
      if (leaderId < 0) {
        this.#lookForLeader(cursor, nowMs);
        continue;
      }
      const known = wanted.get(leaderId);
      if (known === undefined) wanted.set(leaderId, [cursor]);
      else known.push(cursor);
    }
    for (const [id, cursors] of wanted) {
      const broker = this.#broker(id);
      if (broker.isAsked || this.#rests(broker, nowMs)) continue;
      if (buffered >= this.#limits.bufferBytes) continue;
      const { maxPartitionBytes } = this.#limits;
      if (cursors.some((cursor) => cursor.bufferedBytes >= maxPartitionBytes)) continue;
      this.#ask(broker, cursors, this.#limits.bufferBytes - buffered);
    }
  }

  /** The reader has used up a part of what `cursor` had. */
  onRead(cursor: Cursor): void {
    if (cursor.bufferedBytes >= this.#limits.maxPartitionBytes) return;
    const broker = this.#brokers.get(this.#leaderOf(cursor));
    if (broker?.isAsked !== true) this.poke();
  }

  /** Ends what is under way, and the connections; brokers let go of the sessions by themselves. */
  close(): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(new MillraceError('CLOSED', 'the consumer was closed'));
    this.#stopListening();
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const { connection } of this.#brokers.values()) connection?.close();
    this.#brokers.clear();
  }

  #broker(id: number): Broker {
    let broker = this.#brokers.get(id);
    if (broker === undefined) {
      const session = new FetchSession();
      broker = { id, session, connection: null, isAsked: false, failures: 0, notBeforeMs: 0 };
      this.#brokers.set(id, broker);
    }
    return broker;
  }

  #leaderOf({ topic, partition }: Cursor): number {
    return this.#cluster.metadata.partition(topic, partition)?.leaderId ?? -1;
  }

  #lookForLeader(cursor: Cursor, nowMs: number): void {
    cursor.failures += 1;
    cursor.notBeforeMs = nowMs + retryAfterMs(cursor.failures, Math.random());
    this.#wake(cursor.notBeforeMs);
    if (this.#cluster.metadata.topic(cursor.topic) !== undefined) this.#refresh();
    else this.#askForTopic(cursor);
  }

  #askForTopic(cursor: Cursor): void {
    if (this.#asking.has(cursor.topic)) return;
    this.#asking.add(cursor.topic);
    const { signal } = this.#closing;
    const done = (error: unknown): void => {
      this.#asking.delete(cursor.topic);
      if (!(error instanceof MillraceError) || error.isRetriable || signal.aborted) return;
      cursor.failure = error;
      this.#owner.onReady(cursor);
    };
    this.#cluster.topic(cursor.topic, { signal }).then(() => done(null), done);
  }

  #refresh(): void {
    // It tells its listeners; where it fails, the timer comes.
    this.#cluster.refresh().catch(() => this.#wake(performance.now() + lookAgainMs));
  }

  #rests(broker: Broker, nowMs: number): boolean {
    if (broker.notBeforeMs <= nowMs) return false;
    this.#wake(broker.notBeforeMs);
    return true;
  }

  #wake(atMs: number): void {
    if (atMs >= this.#timerDueMs) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timerDueMs = atMs;
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        this.#timerDueMs = Number.POSITIVE_INFINITY;
        this.poke();
      },
      Math.max(1, atMs - performance.now()),
    );
  }

  /** One request and its answer. Never rejects. */
  #ask(broker: Broker, cursors: readonly Cursor[], room: number): void {
    broker.isAsked = true;
    this.#exchange(broker, cursors, room).then(
      () => {
        broker.isAsked = false;
        broker.failures = 0;
        this.poke();
      },
      (error: unknown) => {
        broker.isAsked = false;
        this.#onFailure(broker, error);
      },
    );
  }

  async #exchange(broker: Broker, cursors: readonly Cursor[], room: number): Promise<void> {
    const { signal } = this.#closing;
    const { id, session } = broker;
    const connection =
      this.#cluster.openConnection(id, this.#lane) ??
      (await this.#cluster.connection(id, this.#lane, signal));
    if (broker.connection !== connection) session.forget();
    broker.connection = connection;
    const { metadata, requestTimeoutMs } = this.#cluster;
    const { maxWaitMs, minBytes, maxBytes, maxPartitionBytes, isCommitted } = this.#limits;
    const asked = new Map<string, Asked>();
    const targets: FetchTarget[] = [];
    let hasIds = true;
    for (const cursor of cursors) {
      // It may have changed while the connection was made.
      if (cursor.state !== 'reading') continue;
      const { topic, partition, fetchOffset: offset, fetchEpoch: lastEpoch } = cursor;
      const known = metadata.topic(topic);
      const topicId = known?.topicId ?? topic;
      hasIds &&= known !== undefined && known.topicId !== null;
      const leaderEpoch = known?.partitions[partition]?.leaderEpoch ?? -1;
      const where = { topic, topicId, partition };
      targets.push({ ...where, offset, leaderEpoch, lastEpoch, maxBytes: maxPartitionBytes });
      const one = { cursor, version: cursor.version };
      asked.set(`${topicId}-${partition}`, one).set(`${topic}-${partition}`, one);
    }
    if (targets.length === 0) return;
    const request = session.next(targets);
    const body = {
      ...request,
      ...{ maxWaitMs, minBytes, isolationLevel: isCommitted ? 1 : 0 },
      maxBytes: Math.max(1, Math.min(maxBytes, room)),
    };
    const nameless = request.topics.map(({ topic, partitions }) => ({ topic, partitions }));
    const unnamed = request.forgottenTopicsData.map(({ topic, partitions }) => ({
      topic: topic ?? '',
      partitions,
    }));
    const answer = await connection.request(
      'Fetch',
      hasIds ? body : { ...body, topics: nameless, forgottenTopicsData: unnamed },
      {
        timeoutMs: requestTimeoutMs + maxWaitMs,
        ...{ signal, minVersion },
        ...(hasIds ? {} : { maxVersion: topicIdVersion - 1 }),
      },
    );
    this.#onAnswer(broker, answer, asked);
  }

  #onAnswer(broker: Broker, answer: FetchResponse, asked: ReadonlyMap<string, Asked>): void {
    this.fetches += 1;
    const { metadata } = this.#cluster;
    metadata.setBrokers(
      answer.nodeEndpoints.map(({ nodeId: id, host, port, rack }) => ({ id, host, port, rack })),
    );
    if (!broker.session.onAnswer(answer.errorCode, answer.sessionId)) return;
    const nowMs = performance.now();
    let isMoved = false;
    for (const { topic, topicId, partitions } of answer.responses)
      for (const data of partitions) {
        const key = data.partitionIndex;
        const found = asked.get(`${topicId}-${key}`) ?? asked.get(`${topic}-${key}`);
        if (found === undefined) continue;
        const { cursor, version } = found;
        const { leaderId, leaderEpoch } = data.currentLeader;
        if (leaderId >= 0)
          metadata.setLeader(cursor.topic, cursor.partition, leaderId, leaderEpoch);
        this.bytes += data.records?.byteLength ?? 0;
        const trouble = this.#take(cursor, data, version);
        if (trouble !== null && trouble !== 'truncated')
          cursor.notBeforeMs = nowMs + retryAfterMs(Math.max(1, cursor.failures), Math.random());
        isMoved ||= trouble === 'moved';
      }
    if (isMoved) this.#refresh();
  }

  /** What is wrong, null if nothing is. */
  #take(
    cursor: Cursor,
    data: FetchResponse['responses'][number]['partitions'][number],
    version: number,
  ): string | null {
    let trouble: string | null;
    try {
      trouble = cursor.onFetched(data, version)?.kind ?? null;
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      cursor.failure = error;
      trouble = 'fail';
    }
    if (cursor.isReady) this.#owner.onReady(cursor);
    if (cursor.state === 'listing') this.#owner.onLost(cursor);
    return trouble;
  }

  #onFailure(broker: Broker, error: unknown): void {
    broker.session.forget();
    if (this.#closing.signal.aborted) return;
    if (!(error instanceof MillraceError) || !error.isRetriable) {
      const told =
        error instanceof MillraceError
          ? error
          : new MillraceError('UNKNOWN_SERVER_ERROR', `fetch: ${error}`, { cause: error });
      this.#owner.onFailed(told);
    }
    broker.failures += 1;
    broker.notBeforeMs = performance.now() + retryAfterMs(broker.failures, Math.random());
    this.#wake(broker.notBeforeMs);
    this.#refresh();
  }
}
