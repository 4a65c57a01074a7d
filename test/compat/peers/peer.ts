/** What every peer client can do, whatever it is written in. */

/** Bytes as lower-case hexadecimal, or null. */
export type Hex = string | null;

/** A record as it is handed to a producer; the timestamp in milliseconds. */
export interface PeerRecord {
  readonly key: Hex;
  readonly value: Hex;
  readonly headers: readonly (readonly [name: string, value: Hex])[];
  readonly timestamp: number;
}

/** A record as a consumer got it. */
export interface ReadRecord extends PeerRecord {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
}

export const codecs = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const;
export type Codec = (typeof codecs)[number];

/** How records are produced. */
export interface Mode {
  readonly codec: Codec;
  readonly acks: '0' | '1' | 'all';
  readonly idempotent: boolean;
}

/**
 * Every codec with every promise that a producer can ask for: 20 modes. Those without an answer come last in each group:
 * they would go unheard if the topic were not ready yet.
 */
export const modes: readonly Mode[] = codecs.flatMap((codec) => [
  { codec, acks: 'all' as const, idempotent: true },
  { codec, acks: 'all' as const, idempotent: false },
  { codec, acks: '1' as const, idempotent: false },
  { codec, acks: '0' as const, idempotent: false },
]);

export function modeName({ codec, acks, idempotent }: Mode): string {
  return `${codec}, acks=${acks}${idempotent ? ', idempotent' : ''}`;
}

/** What a consumer is to read: so many records of a partition, from its beginning. */
export type Wanted = readonly [topic: string, partition: number, count: number];

/** What a client cannot do; the data set keeps to it. */
export interface Limits {
  /** Records get the time of sending, not one of ours. */
  readonly stampsItself?: true;
  /** Keys, values and headers are lines of text. */
  readonly textOnly?: true;
  /** Headers are given once for all records of a run. */
  readonly headersPerRun?: true;
  /** The client chooses the partition: a topic must have just one. */
  readonly onePartition?: true;
  /** There is no idempotent producer. */
  readonly notIdempotent?: true;
  /** The value of a header cannot be null. */
  readonly noNullHeaders?: true;
  /** Key and value cannot both be null. */
  readonly noNullRecords?: true;
  /** Its consumer shows empty keys, values and headers as null. */
  readonly readsEmptyAsNull?: true;
  /** Its consumer shows the null value of a header as an empty one. */
  readonly readsNullHeadersAsEmpty?: true;
}

export interface Peer {
  readonly name: string;
  readonly limits: Limits;
  /** Creates a topic with replication factor 1. Throws what the client reports. */
  create(topic: string, partitions: number): Promise<void>;
  /** Sends records in order and resolves once all are delivered (acks=0: sent). */
  produce(
    topic: string,
    partition: number,
    mode: Mode,
    records: readonly PeerRecord[],
  ): Promise<void>;
  /** Reads by partition assignment until it has all that is wanted, in the order in which it came. */
  consume(wanted: readonly Wanted[]): Promise<ReadRecord[]>;
  close(): Promise<void>;
}

/** How long a consumer waits for what it wants, in milliseconds. */
export const CONSUME_TIMEOUT_MS = 60_000;

/**
 * How long a producer's connection stays open after acks=0, in milliseconds: nothing tells it when the broker has read
 * everything, and closing a connection can take away what was not read.
 */
export const UNANSWERED_MS = 500;
