/**
 * The cluster as the client sees it: where to send what, and sending it again where that may help. Producer, consumer and
 * admin share one, with its connections and its metadata.
 *
 * Thread: the client's. Metadata are asked for when somebody needs a topic that is not known, when a broker says that what
 * is known is old, and every few minutes; one refresh at a time, which all join that want one.
 */
import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { errorInfo } from '../protocol/errors.ts';
import type { ApiName, MessageTypes } from '../protocol/messages.gen.ts';
import { BrokerLinks, mainLane, parseBootstrap } from './broker_links.ts';
import type { RequestBody } from './call.ts';
import type { BrokerConnection } from './connection.ts';
import { Coordinators } from './coordinators.ts';
import { asksForMetadata, brokerError, ClientCode, MillraceError } from './errors.ts';
import { MetadataCache, type TopicInfo } from './metadata.ts';
import { abortable, Backoff, sleep } from './retry.ts';

export interface ClusterOptions {
  /** `host:port` of one broker or several: where to ask first. */
  readonly bootstrap: string | readonly string[];
  /** What the brokers' logs call this client. Default `millrace`. */
  readonly clientId?: string;
  /** How long a call tries, all attempts together. Default 60 s. */
  readonly timeoutMs?: number;
  /** How long one answer is waited for. Default 30 s. */
  readonly requestTimeoutMs?: number;
  /** How long to try to reach a first broker, and to connect to each one. Default 10 s. */
  readonly connectTimeoutMs?: number;
  /** Metadata are asked for again after this time, although nothing demands it. Default 5 minutes. */
  readonly metadataMaxAgeMs?: number;
  /** Connects over TLS; an object is what `tls.connect` takes. Default: plain text. */
  readonly tls?: boolean | TlsOptions;
}

/** A broker by its id, any one, the controller, the leader of a partition, or the coordinator of a group. */
export type Target =
  | number
  | 'any'
  | 'controller'
  | { readonly topic: string; readonly partition: number }
  | { readonly group: string };

export interface RequestOptions<N extends ApiName> {
  readonly signal?: AbortSignal | undefined;
  /** All attempts together; default the client's `timeoutMs`. */
  readonly timeoutMs?: number | undefined;
  /** One attempt; default the client's `requestTimeoutMs`. More for what waits at the broker, such as JoinGroup. */
  readonly attemptTimeoutMs?: number | undefined;
  /** A connection of its own for what waits at the broker. Default: the main one; for a group's coordinator, `group`. */
  readonly lane?: string | undefined;
  readonly minVersion?: number | undefined;
  readonly maxVersion?: number | undefined;
  /**
   * The error code that decides whether the request is sent again: a retriable one is, until time is over, and then thrown;
   * any other one is returned to the caller with the reply. Without this function replies are returned as they are.
   */
  readonly errorOf?: ((reply: MessageTypes[`${N}Response`]) => number) | undefined;
  /** False for what must not be done twice: it is not sent again once it may have arrived. Default true. */
  readonly isRepeatable?: boolean | undefined;
}

export interface TopicOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  /** Lets the broker create the topic if it does not exist and the broker may (auto.create.topics.enable). Default false. */
  readonly autoCreate?: boolean | undefined;
}

const defaults = {
  timeoutMs: 60_000,
  requestTimeoutMs: 30_000,
  connectTimeoutMs: 10_000,
  metadataMaxAgeMs: 300_000,
} as const;
/** A topic that was created a moment ago may not be known everywhere yet; after this it does not exist. */
const unknownTopicMs = 3_000;
/** Between two refreshes: many partitions that move at once make one. */
const refreshIntervalMs = 100;
/** Version 4 can keep the broker from creating topics. */
const metadataVersionMin = 4;

interface Gathering {
  readonly names: Set<string>;
  readonly result: Promise<Map<string, number>>;
}

export class Cluster {
  readonly clientId: string;
  readonly timeoutMs: number;
  readonly requestTimeoutMs: number;
  /** What is known, without asking. */
  readonly metadata: MetadataCache = new MetadataCache();
  readonly #links: BrokerLinks;
  readonly #coordinators: Coordinators;
  readonly #connectTimeoutMs: number;
  readonly #closing: AbortController = new AbortController();
  readonly #listeners = new Set<() => void>();
  readonly #metadataMaxAgeMs: number;
  /** Topics to be asked for with the next request, by whether they may be created. */
  readonly #gathering = new Map<boolean, Gathering>();
  #refreshing: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;

  /** Connects to nothing yet. Throws INVALID_ARGUMENT. */
  constructor(options: ClusterOptions) {
    this.clientId = options.clientId ?? 'millrace';
    this.timeoutMs = options.timeoutMs ?? defaults.timeoutMs;
    this.requestTimeoutMs = options.requestTimeoutMs ?? defaults.requestTimeoutMs;
    this.#connectTimeoutMs = options.connectTimeoutMs ?? defaults.connectTimeoutMs;
    this.#metadataMaxAgeMs = options.metadataMaxAgeMs ?? defaults.metadataMaxAgeMs;
    const { tls = false } = options;
    const connectionOptions = {
      clientId: this.clientId,
      connectTimeoutMs: this.#connectTimeoutMs,
      tls: tls === true ? {} : tls === false ? null : tls,
    };
    const endpoints = parseBootstrap(options.bootstrap);
    this.#links = new BrokerLinks(endpoints, connectionOptions, this.metadata);
    this.#coordinators = new Coordinators(this);
  }

  /** Aborted when the client is closed. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  /**
   * Sends a request to where it belongs and returns the answer; again, with back-off and a fresh look at the metadata, while
   * that may help and time is left. Throws a MillraceError, or the signal's reason.
   */
  async request<N extends ApiName>(
    target: Target,
    api: N,
    body: RequestBody<N>,
    options: RequestOptions<N> = {},
  ): Promise<MessageTypes[`${N}Response`]> {
    const { signal, errorOf, isRepeatable = true } = options;
    const lane = options.lane ?? (isGroup(target) ? 'group' : mainLane);
    const begunMs = performance.now();
    const deadlineMs = begunMs + (options.timeoutMs ?? this.timeoutMs);
    const backoff = new Backoff();
    for (;;) {
      let error: MillraceError;
      let errorCode: number = ErrorCode.NONE;
      try {
        const connection = await this.#route(target, lane, deadlineMs, signal);
        const leftMs = Math.max(1, deadlineMs - performance.now());
        const reply = await connection.request(api, body, {
          timeoutMs: Math.min(options.attemptTimeoutMs ?? this.requestTimeoutMs, leftMs),
          ...{ signal, minVersion: options.minVersion, maxVersion: options.maxVersion },
        });
        errorCode = errorOf?.(reply) ?? ErrorCode.NONE;
        if (errorCode === ErrorCode.NONE || !errorInfo(errorCode).retriable) return reply;
        error = brokerError(errorCode, `${api} to ${nameOf(target)}`);
      } catch (caught) {
        error = this.#retriable(caught, isRepeatable);
      }
      const waitMs = backoff.next();
      if (performance.now() + waitMs > this.#deadline(begunMs, deadlineMs))
        throw exhausted(error, backoff.failures, performance.now() - begunMs);
      await this.#makeAnew(target, errorCode, signal);
      await sleep(waitMs, signal);
    }
  }

  /**
   * A topic with its partitions, from what is known or from a broker. Throws UNKNOWN_TOPIC_OR_PARTITION once it is certain
   * that there is none.
   */
  async topic(name: string, options: TopicOptions = {}): Promise<TopicInfo> {
    const { signal, autoCreate = false, timeoutMs = this.timeoutMs } = options;
    const begunMs = performance.now();
    const backoff = new Backoff();
    for (;;) {
      const known = this.metadata.topic(name);
      if (known !== undefined) return known;
      const leftMs = begunMs + timeoutMs - performance.now();
      const errors = await abortable(this.#gather(name, autoCreate, Math.max(1, leftMs)), signal);
      if (this.metadata.topic(name) !== undefined) continue;
      const code = errors.get(name) ?? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
      const waitMs = backoff.next();
      const isUnknown = code === ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
      const maxMs = isUnknown ? Math.min(unknownTopicMs, timeoutMs) : timeoutMs;
      if (!errorInfo(code).retriable || performance.now() + waitMs - begunMs > maxMs) {
        const message = isUnknown ? 'the cluster has no such topic' : null;
        throw brokerError(code, `topic ${JSON.stringify(name)}`, message, {
          ...(isUnknown ? { isRetriable: false } : {}),
        });
      }
      await sleep(waitMs, signal);
    }
  }

  /** All topics of the cluster as they are now. They are known from then on. */
  async allTopics(options: { signal?: AbortSignal | undefined } = {}): Promise<TopicInfo[]> {
    const askedAtMs = performance.now();
    const asked = this.#askMetadata(null, false, this.timeoutMs);
    await abortable(asked, options.signal);
    return [...this.metadata.topics()].filter((topic) => topic.askedAtMs >= askedAtMs);
  }

  /** Asks for everything that is known anew; joins a refresh that runs. Throws when no broker can be reached in time. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  /** Calls `listener` after each change of the metadata, until the returned function is called. */
  onMetadata(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The connection to a broker, if it stands: for who cannot wait. */
  openConnection(brokerId: number, lane: string = mainLane): BrokerConnection | null {
    return this.#links.openTo(brokerId, lane);
  }

  /** The connection to a broker, after one attempt if need be. Throws a MillraceError, or the signal's reason. */
  connection(
    brokerId: number,
    lane: string = mainLane,
    signal?: AbortSignal,
  ): Promise<BrokerConnection> {
    return this.#links.to(brokerId, lane, signal);
  }

  /** The broker that coordinates a group. */
  coordinator(group: string, signal?: AbortSignal): Promise<number> {
    return this.#coordinators.find(group, performance.now() + this.timeoutMs, signal);
  }

  /** Ends all connections; calls that wait are told CLOSED. */
  close(): void {
    if (this.#closing.signal.aborted) return;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#closing.abort(new MillraceError(ClientCode.CLOSED, 'the client was closed'));
    this.#listeners.clear();
    this.#links.close();
  }

  async #route(
    target: Target,
    lane: string,
    deadlineMs: number,
    signal: AbortSignal | undefined,
  ): Promise<BrokerConnection> {
    signal?.throwIfAborted();
    this.#closing.signal.throwIfAborted();
    if (typeof target === 'number') {
      if (!this.metadata.brokers.has(target)) await abortable(this.refresh(), signal);
      return this.#links.to(target, lane, signal);
    }
    if (target === 'any') return this.#links.any(signal);
    if (target === 'controller') {
      if (this.metadata.controllerId < 0) await abortable(this.refresh(), signal);
      const { controllerId } = this.metadata;
      // Brokers pass on what is the controller's (KIP-590).
      return controllerId < 0
        ? this.#links.any(signal)
        : this.#links.to(controllerId, lane, signal);
    }
    if (isGroup(target)) {
      const brokerId = await this.#coordinators.find(target.group, deadlineMs, signal);
      return this.#links.to(brokerId, lane, signal);
    }
    const leaderId = await this.#leaderOf(target.topic, target.partition, deadlineMs, signal);
    return this.#links.to(leaderId, lane, signal);
  }

  async #leaderOf(
    name: string,
    partition: number,
    deadlineMs: number,
    signal: AbortSignal | undefined,
  ): Promise<number> {
    const timeoutMs = Math.max(1, deadlineMs - performance.now());
    const topic = await this.topic(name, { signal, timeoutMs });
    const found = topic.partitions[partition];
    const what = `partition ${partition} of ${JSON.stringify(name)}`;
    if (found === undefined)
      throw brokerError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        what,
        `the topic has partitions 0 to ${topic.partitions.length - 1}`,
        { isRetriable: false, remedy: 'Add partitions, or choose one that there is.' },
      );
    if (found.leaderId < 0) throw brokerError(ErrorCode.LEADER_NOT_AVAILABLE, what);
    return found.leaderId;
  }

  /** What may be tried again; throws all else. */
  #retriable(caught: unknown, isRepeatable: boolean): MillraceError {
    if (!(caught instanceof MillraceError) || !caught.isRetriable) throw caught;
    const mayHaveArrived =
      caught.code === ClientCode.CONNECTION_LOST || caught.code === ClientCode.TIMED_OUT;
    if (mayHaveArrived && !isRepeatable) throw caught;
    return caught;
  }

  /** A broker that nobody has ever reached is rather a wrong address than one that will be back soon. */
  #deadline(begunMs: number, deadlineMs: number): number {
    return this.#links.hasReached
      ? deadlineMs
      : Math.min(deadlineMs, begunMs + this.#connectTimeoutMs);
  }

  /** After a failure: what the next attempt goes by is found out again. `errorCode` is NONE when no answer came. */
  async #makeAnew(
    target: Target,
    errorCode: number,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    if (target === 'any') return;
    if (isGroup(target)) {
      if (errorCode !== ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        this.#coordinators.forget(target.group);
      return;
    }
    const isMoved = errorCode === ErrorCode.NONE || errorCode === ErrorCode.NOT_CONTROLLER;
    if (!isMoved && !asksForMetadata(errorCode)) return;
    try {
      await abortable(this.refresh(), signal);
    } catch (error) {
      // The attempt that follows will find out by itself.
      signal?.throwIfAborted();
      this.#retriable(error, true);
    }
  }

  /** Topics that are wanted in the same turn are asked for together. */
  #gather(name: string, autoCreate: boolean, timeoutMs: number): Promise<Map<string, number>> {
    let gathering = this.#gathering.get(autoCreate);
    if (gathering === undefined) {
      const names = new Set<string>();
      const result = Promise.resolve().then(() => {
        this.#gathering.delete(autoCreate);
        return this.#askMetadata([...names], autoCreate, timeoutMs);
      });
      gathering = { names, result };
      this.#gathering.set(autoCreate, gathering);
    }
    gathering.names.add(name);
    return gathering.result;
  }

  async #refresh(): Promise<void> {
    const dueMs = this.metadata.updatedAtMs + refreshIntervalMs - performance.now();
    if (dueMs > 0) await sleep(dueMs, this.#closing.signal);
    const names = [...this.metadata.topics()].map((topic) => topic.name);
    await this.#askMetadata(names, false, this.timeoutMs);
  }

  /** Returns the error codes of the topics that have one. */
  async #askMetadata(
    names: readonly string[] | null,
    allowAutoTopicCreation: boolean,
    timeoutMs: number,
  ): Promise<Map<string, number>> {
    const askedAtMs = performance.now();
    const topics = names === null ? null : names.map((name) => ({ name }));
    const answer = await this.request(
      'any',
      'Metadata',
      { topics, allowAutoTopicCreation },
      { timeoutMs, minVersion: metadataVersionMin, signal: this.#closing.signal },
    );
    const errors = this.metadata.update(answer, askedAtMs);
    this.#timer ??= setInterval(() => {
      this.refresh().catch(() => undefined);
    }, this.#metadataMaxAgeMs).unref();
    for (const listener of [...this.#listeners]) listener();
    return errors;
  }
}

function isGroup(target: Target): target is { readonly group: string } {
  return typeof target === 'object' && 'group' in target;
}

function nameOf(target: Target): string {
  if (typeof target === 'number') return `broker ${target}`;
  if (target === 'any') return 'a broker';
  if (target === 'controller') return 'the controller';
  return isGroup(target)
    ? `the coordinator of group ${JSON.stringify(target.group)}`
    : `the leader of ${target.topic}-${target.partition}`;
}

function exhausted(error: MillraceError, attempts: number, elapsedMs: number): MillraceError {
  if (attempts < 2) return error;
  const tried = `tried ${attempts} times in ${(elapsedMs / 1_000).toFixed(1)} s`;
  return new MillraceError(error.code, `${error.message} (${tried})`, {
    ...{ isRetriable: error.isRetriable, remedy: error.remedy, cause: error.cause },
  });
}
