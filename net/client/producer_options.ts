/** What a producer can be told, checked, with the defaults filled in. */
import { Codec } from '../../engine/batch/header.ts';
import { ClientCode, MillraceError } from './errors.ts';
import type { Partitioner } from './partitioner.ts';
import type { Serializer } from './serializers.ts';

export type Compression = 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd';

export interface ProducerOptions<K, V> {
  /** How long a batch waits for more records. Default 0: until the end of the event loop's turn. */
  readonly lingerMs?: number;
  /** Size of a batch, before compression. Default 128 KiB. */
  readonly batchBytes?: number;
  /** Of batches. Default 'none'. */
  readonly compression?: Compression;
  /** Whose word a delivery rests on: all replicas in sync, the leader, or nobody. Default 'all'. */
  readonly acks?: 'all' | 1 | 0;
  /** Lets the broker drop what it has already, and keeps the order over retries. Default: with acks 'all'. */
  readonly idempotent?: boolean;
  /** From `send` on; then a message has failed. Default 2 minutes. */
  readonly deliveryTimeoutMs?: number;
  /** How long one answer is waited for. Default the client's. */
  readonly requestTimeoutMs?: number;
  /** Messages that are not delivered yet; `send` waits for room. Default 32 MiB. */
  readonly bufferBytes?: number;
  /** Size of a request, and of a message. Default 1 MiB. */
  readonly maxRequestBytes?: number;
  /** Default: by the key, as Kafka's Java client does it. */
  readonly partitioner?: Partitioner;
  /** Lets the broker create topics that do not exist, where it may. Default false. */
  readonly autoCreateTopics?: boolean;
  /** Default: keys are text (UTF-8), bytes or null. */
  readonly key?: Serializer<K>;
  /** Default: values are text (UTF-8), bytes or null. */
  readonly value?: Serializer<V>;
}

/** `ProducerOptions` that are not the business of the message's type. */
export interface ProducerSettings {
  readonly lingerMs: number;
  readonly batchBytes: number;
  readonly codec: Codec;
  readonly acks: -1 | 0 | 1;
  readonly isIdempotent: boolean;
  readonly deliveryTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly bufferBytes: number;
  readonly maxRequestBytes: number;
  readonly partitioner: Partitioner | null;
  readonly autoCreateTopics: boolean;
}

/** Throws INVALID_ARGUMENT. */
export function readProducerOptions<K, V>(
  options: ProducerOptions<K, V>,
  requestTimeoutMs: number,
): ProducerSettings {
  const { compression = 'none', acks = 'all' } = options;
  if (!Object.hasOwn(Codec, compression))
    throw invalid('compression', `none, gzip, snappy, lz4 or zstd, not ${String(compression)}`);
  if (acks !== 'all' && acks !== 1 && acks !== 0)
    throw invalid('acks', `'all', 1 or 0, not ${String(acks)}`);
  const { idempotent = acks === 'all' } = options;
  if (idempotent && acks !== 'all')
    throw invalid('idempotent', "false with acks 0 or 1: it needs the word of all, acks: 'all'");
  const number = (
    name: string,
    value: number | undefined,
    fallback: number,
    min: number,
  ): number => {
    if (value === undefined) return fallback;
    if (Number.isFinite(value) && value >= min) return value;
    throw invalid(name, `a number of at least ${min}, not ${String(value)}`);
  };
  return {
    lingerMs: number('lingerMs', options.lingerMs, 0, 0),
    batchBytes: number('batchBytes', options.batchBytes, 128 * 1024, 1),
    codec: Codec[compression],
    acks: acks === 'all' ? -1 : acks,
    isIdempotent: idempotent,
    deliveryTimeoutMs: number('deliveryTimeoutMs', options.deliveryTimeoutMs, 120_000, 1),
    requestTimeoutMs: number('requestTimeoutMs', options.requestTimeoutMs, requestTimeoutMs, 1),
    bufferBytes: number('bufferBytes', options.bufferBytes, 32 << 20, 1),
    maxRequestBytes: number('maxRequestBytes', options.maxRequestBytes, 1 << 20, 256),
    partitioner: options.partitioner ?? null,
    autoCreateTopics: options.autoCreateTopics ?? false,
  };
}

function invalid(name: string, what: string): MillraceError {
  return new MillraceError(ClientCode.INVALID_ARGUMENT, `producer: ${name} must be ${what}`);
}
