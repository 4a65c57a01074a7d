/**
 * Sends messages. A message is encoded into its partition's batch as `send` is called; what comes back is a promise of where
 * it is. Batches go out at the end of the turn, or after `lingerMs`, or as they are full, and while five requests are on
 * their way to a broker the next ones fill.
 *
 * Thread: the client's. Memory: bounded by `bufferBytes`; beyond that `send` waits, in order, for room.
 */
import { Writable } from 'node:stream';
import type { WritableStream } from 'node:stream/web';
import { batchHeaderBytes } from '../../engine/batch/header.ts';
import { Accumulator, type EncodedMessage } from './accumulator.ts';
import type { Cluster } from './cluster.ts';
import type { SenderCounters } from './diagnostics.ts';
import { ClientCode, MillraceError } from './errors.ts';
import {
  type ProducerOptions,
  type ProducerSettings,
  readProducerOptions,
} from './producer_options.ts';
import type { Field, RecordMetadata } from './record_batch.ts';
import { encodeHeaders, type Headers } from './record_headers.ts';
import { abortable } from './retry.ts';
import type { Serializer } from './serializers.ts';

/** What keys and values are without a serializer; text is written as UTF-8. */
export type Bytes = string | Uint8Array | null;

export interface ProducerMessage<K = Bytes, V = Bytes> {
  readonly topic: string;
  /** Messages with the same key go to the same partition, in order. */
  readonly key?: K | null | undefined;
  /** Null deletes the key from a compacted topic. Bytes must not change until the message is delivered. */
  readonly value: V | null;
  readonly headers?: Headers | undefined;
  /** Default: by the key. */
  readonly partition?: number | undefined;
  /** Milliseconds since 1970; default now. */
  readonly timestampMs?: number | undefined;
}

export interface SendOptions {
  /** Ends the waiting: a message that still waits for room is not sent; any other one may be delivered nevertheless. */
  readonly signal?: AbortSignal | undefined;
}

export interface ProducerMetrics extends Readonly<SenderCounters> {
  /** Bytes of messages that are not delivered yet. */
  readonly bufferedBytes: number;
  /** Calls of `send` that wait for room, or for their topic to be known. */
  readonly waitingSends: number;
}

/** Messages that a stream has written and that are not delivered yet; then it waits. */
const streamedMax = 4096;

export class Producer<K = Bytes, V = Bytes> implements AsyncDisposable {
  readonly #cluster: Cluster;
  readonly #settings: ProducerSettings;
  readonly #accumulator: Accumulator;
  readonly #key: Serializer<K> | null;
  readonly #value: Serializer<V> | null;
  #closing: Promise<void> | null = null;

  /** Throws INVALID_ARGUMENT. */
  constructor(cluster: Cluster, options: ProducerOptions<K, V> = {}) {
    this.#cluster = cluster;
    this.#settings = readProducerOptions(options, cluster.requestTimeoutMs);
    this.#accumulator = new Accumulator(cluster, this.#settings);
    this.#key = options.key ?? null;
    this.#value = options.value ?? null;
    cluster.signal.addEventListener('abort', () =>
      this.#accumulator.stop(cluster.signal.reason as MillraceError),
    );
  }

  /**
   * Sends a message; resolves when it is delivered as `acks` asks for. Rejects with a MillraceError: MESSAGE_TOO_LARGE,
   * UNKNOWN_TOPIC_OR_PARTITION, SERIALIZATION_FAILED, TIMED_OUT, CLOSED, or what the broker refused it for. Need not be
   * awaited one by one: messages of a turn share a batch.
   */
  send(message: ProducerMessage<K, V>, options?: SendOptions): Promise<RecordMetadata> {
    let encoded: EncodedMessage;
    try {
      encoded = this.#encode(message);
      options?.signal?.throwIfAborted();
    } catch (error) {
      return Promise.reject(error);
    }
    const accumulator = this.#accumulator;
    const error =
      this.#closing === null && !this.#cluster.signal.aborted
        ? encoded.partition >= 0
          ? accumulator.check(message.topic, encoded)
          : null
        : new MillraceError(ClientCode.CLOSED, 'the producer was closed');
    if (error !== null) return Promise.reject(error);
    const signal = options?.signal;
    const added = accumulator.add(message.topic, encoded);
    if (added === null) return accumulator.wait(message.topic, encoded, signal);
    return signal === undefined ? added : abortable(added, signal);
  }

  /** Sends what is waiting for more, and resolves when all that was sent before has been delivered or has failed. */
  flush(options: SendOptions = {}): Promise<void> {
    return abortable(this.#accumulator.flush(), options.signal);
  }

  get metrics(): ProducerMetrics {
    const { sender, bufferedBytes, waiting: waitingSends } = this.#accumulator;
    return { ...sender.counters, bufferedBytes, waitingSends };
  }

  /** Node's stream of messages: ends when all are delivered, and fails with the first that is not. */
  writable(): Writable {
    return writableOf((message: ProducerMessage<K, V>) => this.send(message));
  }

  /** The same as a web stream. */
  webWritable(): WritableStream<ProducerMessage<K, V>> {
    return Writable.toWeb(this.writable()) as WritableStream<ProducerMessage<K, V>>;
  }

  /** Delivers what has been sent, then ends; `send` rejects from now on. With a signal what is left then is given up. */
  close(options: SendOptions = {}): Promise<void> {
    const { signal } = options;
    this.#closing ??= abortable(this.#accumulator.flush(), signal).finally(() =>
      this.#accumulator.stop(new MillraceError(ClientCode.CLOSED, 'the producer was closed')),
    );
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #encode(message: ProducerMessage<K, V>): EncodedMessage {
    const key = serialize(this.#key, message.key, 'key');
    const value = serialize(this.#value, message.value, 'value');
    const headers = encodeHeaders(message.headers);
    const keyLength = lengthOf(key);
    const valueLength = lengthOf(value);
    const bytes = batchHeaderBytes + keyLength + valueLength + headers.length;
    const { maxRequestBytes } = this.#settings;
    if (bytes > maxRequestBytes)
      throw new MillraceError(
        'MESSAGE_TOO_LARGE',
        `a message of ${bytes} bytes to ${message.topic}; the producer's maxRequestBytes is ${maxRequestBytes}`,
      );
    return {
      ...{ key, keyLength, value, valueLength, headers },
      partition: message.partition ?? -1,
      timestampMs: message.timestampMs ?? Date.now(),
    };
  }
}

function serialize<T>(
  serializer: Serializer<T> | null,
  given: T | null | undefined,
  what: string,
): Field {
  if (given === null || given === undefined) return null;
  let bytes: unknown = given;
  if (serializer !== null) {
    try {
      bytes = serializer(given);
    } catch (cause) {
      if (cause instanceof MillraceError) throw cause;
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new MillraceError(ClientCode.SERIALIZATION_FAILED, `the ${what}: ${reason}`, { cause });
    }
  }
  if (typeof bytes === 'string' || bytes instanceof Uint8Array || bytes === null) return bytes;
  throw new MillraceError(
    ClientCode.INVALID_ARGUMENT,
    `the ${what} is neither text nor bytes but ${typeof bytes}`,
    { remedy: `Give the producer a serializer: { ${what}: jsonSerializer }.` },
  );
}

function lengthOf(field: Field): number {
  if (field === null) return -1;
  return typeof field === 'string' ? Buffer.byteLength(field) : field.length;
}

function writableOf<M>(send: (message: M) => Promise<unknown>): Writable {
  let pending = 0;
  let failure: Error | null = null;
  /** What goes on when a message has been delivered: a write that waits for room, or the end. */
  let next: (() => void) | null = null;
  const settle = (): void => {
    pending -= 1;
    next?.();
  };
  const stream = new Writable({
    objectMode: true,
    write(message: M, _encoding, callback): void {
      pending += 1;
      send(message).then(settle, (error: Error) => {
        failure ??= error;
        settle();
        stream.destroy(error);
      });
      const go = (): void => {
        if (pending >= streamedMax && failure === null) return;
        next = null;
        callback(failure);
      };
      next = go;
      go();
    },
    final(callback): void {
      const go = (): void => {
        if (pending > 0 && failure === null) return;
        next = null;
        callback(failure);
      };
      next = go;
      go();
    },
  });
  return stream;
}
