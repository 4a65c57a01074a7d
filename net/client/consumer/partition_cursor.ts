/**
 * Where a consumer is in one partition: what has been fetched, what has been handed out, and where that goes on. It knows
 * no sockets and no clock.
 *
 * Invariant: `position` <= `fetchOffset`; what lies between them is in the buffered answers. Offsets are handed out in
 * their order, each once, until somebody seeks or the log itself is cut.
 *
 * Thread: the client's. Memory: the buffered answers, until they are read.
 *
 * Legal transitions of the state:
 *   committed --offset found--> reading; --none--> listing
 *   listing --offset found--> reading
 *   reading --out of range, policy--> listing; any --seek--> reading or listing
 */
import type { FetchResponsePartitionData } from '../../protocol/messages.gen.ts';
import { ClientCode, MillraceError } from '../errors.ts';
import { classifyFetch, type FetchTrouble } from './fetch_answer.ts';
import type { Message } from './message.ts';
import { measureBatches, type ReaderOptions, RecordReader } from './record_reader.ts';
import type { TopicPartition } from './topic_partition.ts';

/** Where to begin without a committed offset, and where its offset is gone: in milliseconds since 1970 for a time. */
export type ResetPolicy = 'earliest' | 'latest' | 'fail' | { readonly timeMs: number };

/** In ListOffsets, in place of a timestamp. */
export const latestTimestamp = -1;
export const earliestTimestamp = -2;

/** A position with the epoch of the record before it, -1 if that is not known (KIP-320). */
export interface Position {
  readonly offset: number;
  readonly leaderEpoch: number;
}

export class PartitionCursor<K, V> implements TopicPartition {
  readonly topic: string;
  readonly partition: number;
  readonly #options: ReaderOptions<K, V>;
  readonly #policy: ResetPolicy;
  /** `held`: its owner is still told that it has it. */
  state: 'held' | 'committed' | 'listing' | 'reading' | 'revoked' = 'held';
  /** What `listing` looks for. */
  timestamp: number = latestTimestamp;
  isPaused: boolean = false;
  /** About to be given up: nothing of it is handed out any more. */
  isStopped: boolean = false;
  /** Changes when what is on its way is not wanted any more. */
  version = 0;
  /** The offset that is handed out next. */
  position = -1;
  #positionEpoch = -1;
  fetchOffset = -1;
  fetchEpoch = -1;
  /** For the reader, once. */
  failure: MillraceError | null = null;
  /** Not to be fetched before, by the fetcher's clock. */
  notBeforeMs = 0;
  failures = 0;
  /** As the last answer said; -1 before. `endOffset` is what this consumer may read up to. */
  endOffset = -1;
  #readers: RecordReader<K, V>[] = [];

  constructor(where: TopicPartition, policy: ResetPolicy, options: ReaderOptions<K, V>) {
    this.topic = where.topic;
    this.partition = where.partition;
    this.#policy = policy;
    this.#options = options;
  }

  get name(): string {
    return `${this.topic}-${this.partition}`;
  }

  /** Null before there is one. */
  get whereNext(): Position | null {
    if (this.state !== 'reading') return null;
    const lastEpoch = this.#readers[0]?.lastEpoch ?? -1;
    return {
      offset: this.position,
      leaderEpoch: lastEpoch >= 0 ? lastEpoch : this.#positionEpoch,
    };
  }

  /** Bytes that have been fetched and not begun to be read. */
  get bufferedBytes(): number {
    let bytes = 0;
    for (const reader of this.#readers) bytes += reader.bytesLeft;
    return bytes;
  }

  /** Of the answer that is being read; changes from batch to batch. */
  get bytesLeft(): number {
    return this.#readers[0]?.bytesLeft ?? 0;
  }

  get isReady(): boolean {
    if (this.isStopped) return false;
    return this.failure !== null || (this.#readers.length > 0 && !this.isPaused);
  }

  /** Of the batch that the next message is in; null while that is not known. */
  get nextTimestampMs(): number | null {
    return this.#readers[0]?.batchTimestampMs ?? null;
  }

  /** Reading goes on from here. What was fetched is dropped. */
  seek(offset: number, leaderEpoch = -1): void {
    this.#drop();
    this.state = 'reading';
    this.position = offset;
    this.#positionEpoch = leaderEpoch;
    this.fetchOffset = offset;
    this.fetchEpoch = leaderEpoch;
  }

  /** The position is to be looked up by time. */
  seekByTime(timestamp: number): void {
    this.#drop();
    this.state = 'listing';
    this.timestamp = timestamp;
  }

  /** Goes where the policy says. */
  reset(): void {
    const policy = this.#policy;
    if (policy === 'fail') {
      this.#drop();
      this.failure = new MillraceError(
        'NO_OFFSET_FOR_PARTITION',
        `${this.name} has no committed offset to begin at`,
        { remedy: "Seek to where reading is to begin, or set `from` to 'earliest' or 'latest'." },
      );
      return;
    }
    if (policy === 'earliest') this.seekByTime(earliestTimestamp);
    else if (policy === 'latest') this.seekByTime(latestTimestamp);
    else this.seekByTime(policy.timeMs);
  }

  /** Nobody reads it any more. */
  revoke(): void {
    this.#drop();
    this.state = 'revoked';
  }

  /** What was fetched and not handed out is fetched again. */
  fetchAgain(): void {
    const where = this.whereNext;
    if (where !== null) this.seek(where.offset, where.leaderEpoch);
  }

  /**
   * Takes what a broker said about this partition, when it was asked at `version`. Returns what is wrong, null if
   * nothing is.
   */
  onFetched(data: FetchResponsePartitionData, version: number): FetchTrouble | null {
    if (version !== this.version || this.state !== 'reading') return null;
    const trouble = classifyFetch(data, this.name, this.fetchOffset);
    if (trouble !== null) {
      this.#onTrouble(trouble);
      return trouble;
    }
    this.failures = 0;
    const { records, lastStableOffset, highWatermark } = data;
    const isStable = this.#options.isCommitted && lastStableOffset >= 0n;
    this.endOffset = Number(isStable ? lastStableOffset : highWatermark);
    if (records === null || records.byteLength === 0) return null;
    const { length, nextOffset, lastEpoch } = measureBatches(records, this.fetchOffset);
    if (length === 0) return null;
    const bytes = records.subarray(0, length);
    const { abortedTransactions } = data;
    this.#readers.push(
      new RecordReader(this, bytes, this.fetchOffset, abortedTransactions, this.#options),
    );
    this.fetchOffset = nextOffset;
    this.fetchEpoch = lastEpoch;
    return null;
  }

  /**
   * The next message of the answer that is being read, null at its end; then the next call goes on with the next answer.
   * Throws what it cannot hand out; that is fetched again then.
   */
  next(): Message<K, V> | null {
    const { failure } = this;
    if (failure !== null) {
      this.failure = null;
      throw failure;
    }
    const reader = this.#readers[0];
    if (reader === undefined) return null;
    try {
      const message = reader.next();
      this.position = reader.nextOffset;
      if (message !== null) return message;
    } catch (error) {
      this.position = reader.nextOffset;
      this.fetchAgain();
      throw error;
    }
    this.#positionEpoch = reader.lastEpoch;
    this.#readers.shift();
    return null;
  }

  #onTrouble(trouble: FetchTrouble): void {
    if (trouble.kind === 'truncated') this.#onCut(trouble.offset, trouble.leaderEpoch);
    // What is buffered comes first: the log may have been cut behind it.
    else if (trouble.kind === 'range' && this.position !== this.fetchOffset) this.failures += 1;
    else if (trouble.kind === 'range' && this.#policy !== 'fail') this.reset();
    else if (trouble.kind === 'range' || trouble.kind === 'fail') this.failure = trouble.error;
    else this.failures += 1;
  }

  /** Histories part at `offset`: what was fetched behind it is not in the log any more (KIP-320, KIP-595). */
  #onCut(offset: number, leaderEpoch: number): void {
    const { position } = this;
    if (offset >= position) {
      // Nothing that was handed out is gone. The leader must not be asked again for an epoch that it does not have.
      this.seek(position, Math.min(this.whereNext?.leaderEpoch ?? -1, leaderEpoch));
    } else if (this.#policy !== 'fail') this.seek(offset, leaderEpoch);
    else {
      this.fetchAgain();
      const what = `${this.name} was cut at offset ${offset}, and has been read up to ${position}`;
      this.failure = new MillraceError(ClientCode.LOG_TRUNCATED, what, {
        remedy: "Seek to where reading is to go on, or set `from` to have that done: 'earliest'.",
      });
    }
  }

  #drop(): void {
    this.version += 1;
    this.#readers = [];
    this.failure = null;
    this.notBeforeMs = 0;
  }
}
