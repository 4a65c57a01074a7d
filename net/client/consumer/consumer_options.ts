/** A consumer's options: what may be left out, and what cannot be. */
import { ClientCode, MillraceError } from '../errors.ts';
import { bytesDeserializer, type Deserializer } from '../serializers.ts';
import type { Strategy } from './assignors.ts';
import type { FetchLimits } from './fetcher.ts';
import type { ResetPolicy } from './partition_cursor.ts';
import type { ReaderOptions } from './record_reader.ts';
import type { TopicPartition } from './topic_partition.ts';

/** `assigned`: before the first message of these; `revoked`: before others get them; `lost`: others may have them already. */
export interface RebalanceEvent {
  readonly type: 'assigned' | 'revoked' | 'lost';
  readonly partitions: readonly TopicPartition[];
}

export interface ConsumerOptions<K = Buffer, V = Buffer> {
  /** Read these: with a group what the group gives this member of them, without one all partitions. */
  readonly topics?: readonly string[];
  /** Read exactly these instead, from `offset` where it is given. */
  readonly partitions?: readonly (TopicPartition & { readonly offset?: number })[];
  /** Share the topics with the group's other members, and remember how far they have been read. */
  readonly group?: string;
  /** `classic`, or `consumer` for the protocol of KIP-848, where the broker assigns (Kafka 4). Default `classic`. */
  readonly protocol?: 'classic' | 'consumer';
  /**
   * Who gets what. Classic: one or several in order of preference, default `cooperative-sticky`. For `consumer`: `uniform`
   * or `range`, default the broker's.
   */
  readonly strategy?: Strategy | 'uniform' | readonly Strategy[];
  /** A static member: what it has waits for it while it restarts (KIP-345). Unique within the group. */
  readonly instanceId?: string;
  /**
   * Where there is no committed offset: default `latest`. `fail` throws instead. It also says what becomes of a position that
   * is not in the log any more: `fail` throws OFFSET_OUT_OF_RANGE or LOG_TRUNCATED, the others read on.
   */
  readonly from?: 'earliest' | 'latest' | 'fail' | Date;
  /** Commit what has been processed, every so often, at a rebalance and at the end. Default: with a group, every 5 s. */
  readonly autoCommit?: boolean | { readonly intervalMs: number };
  /** Default `read_committed`: messages of transactions that have not been committed are left out. */
  readonly isolation?: 'read_committed' | 'read_uncommitted';
  /** Called and awaited at each change of what this consumer has. What it throws is thrown to the reader. */
  readonly onRebalance?: (event: RebalanceEvent) => void | Promise<void>;
  /** Default: bytes. */
  readonly key?: Deserializer<K>;
  /** Default: bytes. */
  readonly value?: Deserializer<V>;
  /** Without a heartbeat for this long the member counts as gone. Default 45 s. Classic only. */
  readonly sessionTimeoutMs?: number;
  /** Default 3 s. Classic only: in the new protocol the broker says it. */
  readonly heartbeatIntervalMs?: number;
  /** Who takes no message for this long leaves the group until it takes one again; also how long a rebalance waits. Default 5 min. */
  readonly maxPollIntervalMs?: number;
  /** A broker answers a fetch when it has this much, default 1 byte, */
  readonly minBytes?: number;
  /** or after this time, default 500 ms. */
  readonly maxWaitMs?: number;
  /** Of one answer, default 16 MiB. */
  readonly maxBytes?: number;
  /** Of one partition in an answer, default 1 MiB. */
  readonly maxPartitionBytes?: number;
  /** Of what is fetched ahead of the reader, default 32 MiB: this, and one answer from each broker, is what it takes. */
  readonly bufferBytes?: number;
  /** Of one batch, default 64 MiB. */
  readonly maxDecompressedBytes?: number;
  /** Default true. */
  readonly checkCrcs?: boolean;
  /** Ends the consumer: loops throw its reason. */
  readonly signal?: AbortSignal;
}

/** The same with nothing left out. */
export interface ConsumerSettings<K, V> {
  readonly topics: readonly string[];
  readonly partitions: readonly (TopicPartition & { readonly offset?: number })[];
  readonly group: string | null;
  readonly protocol: 'classic' | 'consumer';
  readonly strategies: readonly Strategy[];
  readonly serverAssignor: string | null;
  readonly instanceId: string | null;
  readonly policy: ResetPolicy;
  /** Null for never. */
  readonly autoCommitMs: number | null;
  readonly onRebalance: (event: RebalanceEvent) => void | Promise<void>;
  readonly reader: ReaderOptions<K, V>;
  readonly limits: FetchLimits;
  readonly sessionTimeoutMs: number;
  readonly heartbeatIntervalMs: number;
  readonly maxPollIntervalMs: number;
  readonly signal: AbortSignal | undefined;
}

const mebibyte = 1 << 20;
const strategyNames: readonly string[] = ['range', 'roundrobin', 'sticky', 'cooperative-sticky'];
const serverNames: readonly string[] = ['uniform', 'range'];

/** Throws INVALID_ARGUMENT. */
export function settingsOf<K, V>(options: ConsumerOptions<K, V>): ConsumerSettings<K, V> {
  const { topics = [], partitions = [], group = null, protocol = 'classic' } = options;
  const { from = 'latest', isolation = 'read_committed' } = options;
  check(
    topics.length === 0 || partitions.length === 0,
    'topics and partitions',
    'cannot be combined',
    'Give `topics` to read all of them, or `partitions` for some.',
  );
  check(group !== '', 'group', 'is empty', 'Name the group, or leave `group` out.');
  if (group === null)
    for (const name of ['protocol', 'strategy', 'instanceId', 'autoCommit'] as const)
      check(
        options[name] === undefined || (name === 'autoCommit' && options[name] === false),
        name,
        'is for members of a group',
        'Set `group`, too, or leave it out.',
      );
  check(
    from !== undefined && !(from instanceof Date && Number.isNaN(from.getTime())),
    'from',
    'is not a time',
    "Give a valid Date, 'earliest', 'latest' or 'fail'.",
  );
  const isCommitted = isolation === 'read_committed';
  const sessionTimeoutMs = positive('sessionTimeoutMs', options.sessionTimeoutMs, 45_000);
  return {
    ...{ topics, partitions, group, protocol },
    ...strategiesOf(protocol, options.strategy),
    instanceId: options.instanceId ?? null,
    policy: from instanceof Date ? { timeMs: from.getTime() } : from,
    autoCommitMs: group === null ? null : autoCommitOf(options.autoCommit),
    onRebalance: options.onRebalance ?? (() => undefined),
    reader: {
      keys: options.key ?? (bytesDeserializer as unknown as Deserializer<K>),
      values: options.value ?? (bytesDeserializer as unknown as Deserializer<V>),
      checksCrc: options.checkCrcs ?? true,
      isCommitted,
      decompressedBytesMax: positive(
        'maxDecompressedBytes',
        options.maxDecompressedBytes,
        64 * mebibyte,
      ),
    },
    limits: limitsOf(options, isCommitted),
    sessionTimeoutMs,
    heartbeatIntervalMs: positive(
      'heartbeatIntervalMs',
      options.heartbeatIntervalMs,
      Math.min(3_000, Math.ceil(sessionTimeoutMs / 3)),
    ),
    maxPollIntervalMs: positive('maxPollIntervalMs', options.maxPollIntervalMs, 300_000),
    signal: options.signal,
  };
}

function limitsOf<K, V>(options: ConsumerOptions<K, V>, isCommitted: boolean): FetchLimits {
  return {
    minBytes: positive('minBytes', options.minBytes, 1),
    maxWaitMs: positive('maxWaitMs', options.maxWaitMs, 500),
    maxBytes: positive('maxBytes', options.maxBytes, 16 * mebibyte),
    maxPartitionBytes: positive('maxPartitionBytes', options.maxPartitionBytes, mebibyte),
    bufferBytes: positive('bufferBytes', options.bufferBytes, 32 * mebibyte),
    isCommitted,
  };
}

function strategiesOf(
  protocol: 'classic' | 'consumer',
  strategy: ConsumerOptions['strategy'],
): Pick<ConsumerSettings<unknown, unknown>, 'strategies' | 'serverAssignor'> {
  const list: readonly string[] = typeof strategy === 'string' ? [strategy] : (strategy ?? []);
  if (protocol === 'consumer') {
    const remedy = `For protocol 'consumer' it is one of ${serverNames.join(', ')}, or left out.`;
    check(
      list.length <= 1 && list.every((one) => serverNames.includes(one)),
      'strategy',
      `is ${list.join(', ')}`,
      remedy,
    );
    return { strategies: [], serverAssignor: list[0] ?? null };
  }
  const remedy = `It is one or several of ${strategyNames.join(', ')}.`;
  check(
    list.every((one) => strategyNames.includes(one)),
    'strategy',
    `is ${list.join(', ')}`,
    remedy,
  );
  const strategies = list.length === 0 ? ['cooperative-sticky'] : list;
  return { strategies: strategies as Strategy[], serverAssignor: null };
}

function autoCommitOf(autoCommit: ConsumerOptions['autoCommit'] = true): number | null {
  if (autoCommit === false) return null;
  return autoCommit === true
    ? 5_000
    : positive('autoCommit.intervalMs', autoCommit.intervalMs, 5_000);
}

function positive(name: string, value: number | undefined, fallback: number): number {
  if (value === undefined) return fallback;
  check(
    Number.isInteger(value) && value > 0 && value <= 0x7fffffff,
    name,
    `is ${value}`,
    'It is a whole number from 1 to 2147483647.',
  );
  return value;
}

function check(isFine: boolean, name: string, what: string, remedy: string): void {
  if (isFine) return;
  throw new MillraceError(ClientCode.INVALID_ARGUMENT, `consumer option ${name} ${what}`, {
    remedy,
  });
}
