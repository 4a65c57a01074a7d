/**
 * The consumer: reads partitions that it is given, or that its group gives it. A loop over it gets messages; everything
 * else goes on behind it.
 *
 * Delivery: of each partition messages come in order, none twice and none left out, for as long as this consumer has the
 * partition. A message counts as processed when the loop comes back for the next one; that is what is committed, so that
 * after a crash or a rebalance messages may come again, and none is lost (at least once).
 *
 * Presence: heartbeats go on while a message is processed, however long that takes, up to `maxPollIntervalMs`. A reader
 * that has not come back by then leaves the group, loses its partitions, and is a member again when it comes.
 *
 * Thread: the client's.
 */
import { Readable } from 'node:stream';
import type { ReadableStream as WebStream } from 'node:stream/web';
import type { Cluster } from '../cluster.ts';
import { ClientCode, MillraceError } from '../errors.ts';
import { abortable } from '../retry.ts';
import type { CommittedOffset, CommittedOffsets, OffsetToCommit } from './committed_offsets.ts';
import { ConsumerCore } from './consumer_core.ts';
import { type ConsumerOptions, settingsOf } from './consumer_options.ts';
import { lagOf, type PartitionLag } from './lag.ts';
import type { Message } from './message.ts';
import { earliestTimestamp, latestTimestamp, type PartitionCursor } from './partition_cursor.ts';
import { Reading } from './reading.ts';
import { keyOf, type TopicPartition } from './topic_partition.ts';

/** Some messages of one partition, in their order; never none. */
export interface ConsumedBatch<K, V> extends TopicPartition {
  readonly messages: readonly Message<K, V>[];
}

/** Since the consumer was made. */
export interface ConsumerMetrics {
  readonly messages: number;
  /** Of records, as they were received. */
  readonly bytes: number;
  readonly fetches: number;
  readonly rebalances: number;
  /** Fetched and not read, now. */
  readonly bufferedBytes: number;
}

interface Signalled {
  readonly signal?: AbortSignal | undefined;
}

const batchMessagesMax = 1_000;

export class Consumer<K = Buffer, V = Buffer>
  implements AsyncDisposable, AsyncIterable<Message<K, V>>
{
  readonly #core: ConsumerCore<K, V>;
  #loop: Reading<unknown> | null = null;

  /** Made by `Client.consumer`. Throws INVALID_ARGUMENT. */
  constructor(cluster: Cluster, options: ConsumerOptions<K, V>) {
    this.#core = new ConsumerCore(cluster, settingsOf(options));
  }

  /** What it has now. */
  get assignment(): TopicPartition[] {
    return this.#core.consumption.cursors
      .filter(({ isStopped }) => !isStopped)
      .map(({ topic, partition }) => ({ topic, partition }));
  }

  get paused(): TopicPartition[] {
    return this.#core.consumption.cursors
      .filter(({ isPaused }) => isPaused)
      .map(({ topic, partition }) => ({ topic, partition }));
  }

  get metrics(): ConsumerMetrics {
    const { consumption, rebalances } = this.#core;
    const { fetches, bytes } = consumption.fetcher;
    const bufferedBytes = consumption.cursors.reduce((sum, one) => sum + one.bufferedBytes, 0);
    return { messages: consumption.messages, bytes, fetches, rebalances, bufferedBytes };
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<Message<K, V>, undefined> {
    return this.messages();
  }

  /** One message after the other, until the consumer is closed or the loop is left. The next loop goes on behind it. */
  messages(options: Signalled = {}): AsyncIterableIterator<Message<K, V>, undefined> {
    return this.#read(() => this.#core.consumption.take(), options.signal);
  }

  /** The same in arrays, each of one partition and of what has been fetched of it. */
  batches(
    options: Signalled & { readonly maxMessages?: number } = {},
  ): AsyncIterableIterator<ConsumedBatch<K, V>, undefined> {
    const { maxMessages = batchMessagesMax, signal } = options;
    return this.#read(() => {
      const messages = this.#core.consumption.takeBatch(maxMessages);
      const first = messages[0];
      if (first === undefined) return null;
      return { topic: first.topic, partition: first.partition, messages };
    }, signal);
  }

  /** A stream of Node. It reads ahead, so that nobody knows what has been processed: only without automatic commits. */
  readable(options: Signalled = {}): Readable {
    this.#checkStream();
    return Readable.from(this.messages(options), { highWaterMark: 64 });
  }

  /** A web stream. As `readable`. */
  readableStream(options: Signalled = {}): WebStream<Message<K, V>> {
    this.#checkStream();
    return ReadableStream.from(this.messages(options)) as WebStream<Message<K, V>>;
  }

  /** Begins to read, and resolves when partitions are assigned, if only none. Loops do this by themselves. */
  async ready({ signal }: Signalled = {}): Promise<void> {
    await abortable(this.#core.begin(), signal);
    await abortable(this.#core.assigned, signal);
  }

  /** Reads these topics from now on. With a group that makes it rebalance. Throws UNKNOWN_TOPIC_OR_PARTITION. */
  async subscribe(topics: readonly string[]): Promise<void> {
    await this.#core.subscribe(topics);
  }

  /** Reads exactly these partitions from now on. Not for members of a group that share topics. */
  assign(partitions: readonly (TopicPartition & { readonly offset?: number })[]): void {
    const { group, topics } = this.#core.settings;
    if (group !== null && topics.length > 0)
      throw new MillraceError(ClientCode.INVALID_ARGUMENT, 'the group assigns the partitions', {
        remedy: 'Leave `topics` out, or `group`.',
      });
    this.#core.assign(partitions);
  }

  /** Nothing of these comes until `resume`; default all. What has been fetched is kept. */
  pause(partitions: readonly TopicPartition[] = this.assignment): void {
    for (const cursor of this.#cursors(partitions)) cursor.isPaused = true;
  }

  resume(partitions: readonly TopicPartition[] = this.paused): void {
    for (const cursor of this.#cursors(partitions)) {
      cursor.isPaused = false;
      this.#core.consumption.touch(cursor);
    }
  }

  /** The next message of this partition is the one at `offset`. */
  seek({ topic, partition, offset }: TopicPartition & { readonly offset: number }): void {
    for (const cursor of this.#cursors([{ topic, partition }])) {
      this.#core.committed?.forget(cursor);
      cursor.seek(offset);
      this.#core.consumption.touch(cursor);
    }
  }

  /** To the first message that is as young as this or younger, or to the end where there is none. Default: all partitions. */
  async seekToTime(time: Date | number, partitions?: readonly TopicPartition[]): Promise<void> {
    await this.#seekBy(typeof time === 'number' ? time : time.getTime(), partitions);
  }

  async seekToBeginning(partitions?: readonly TopicPartition[]): Promise<void> {
    await this.#seekBy(earliestTimestamp, partitions);
  }

  async seekToEnd(partitions?: readonly TopicPartition[]): Promise<void> {
    await this.#seekBy(latestTimestamp, partitions);
  }

  /** The offset that comes next; null while it is not known. */
  position(partition: TopicPartition): number | null {
    return this.#core.consumption.cursor(partition)?.whereNext?.offset ?? null;
  }

  /**
   * Commits: up to and with this message; or these offsets, each the next to be read; or all that has been handed out. It is
   * durable when this resolves. Nothing is sent for what is behind the last commit. Throws a MillraceError.
   */
  async commit(
    what?: Message<K, V> | ConsumedBatch<K, V> | readonly OffsetToCommit[],
  ): Promise<void> {
    await this.#committed().commit(this.#offsetsOf(what));
  }

  /** What the group has committed; without a commit a partition is left out. Default: of the assignment. */
  async committed(
    partitions: readonly TopicPartition[] = this.assignment,
    { signal }: Signalled = {},
  ): Promise<CommittedOffset[]> {
    const nobody = { memberId: '', instanceId: null, generationId: -1, isEpoch: false };
    return [...(await this.#committed().fetch(partitions, nobody, signal)).values()];
  }

  /** How far it is behind in what it has. */
  lag({ signal }: Signalled = {}): Promise<PartitionLag[]> {
    return lagOf(this.#core.consumption, Date.now(), signal);
  }

  /** Ends loops, commits what has been processed if that is automatic, leaves the group. Never rejects. */
  async close(): Promise<void> {
    await this.#core.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #read<T>(take: () => T | null, signal: AbortSignal | undefined): Reading<T> {
    if (this.#loop !== null)
      throw new MillraceError(ClientCode.INVALID_ARGUMENT, 'another loop reads this consumer', {
        remedy: 'Leave that one first; for more at a time take `batches`, or several consumers.',
      });
    const core = this.#core;
    const { consumption } = core;
    const loop: Reading<T> = new Reading(
      {
        take,
        get isPresent() {
          return core.isPresent;
        },
        isClosed: () => {
          core.settings.signal?.throwIfAborted();
          return core.isClosed;
        },
        begin: () => core.begin(),
        change: () => consumption.change(),
        onWaiting: (isWaiting) => {
          core.isWaiting = isWaiting;
        },
        onLoopEnd: () => {
          if (this.#loop === loop) this.#loop = null;
          consumption.letGo();
        },
      },
      signal,
    );
    this.#loop = loop;
    return loop;
  }

  #checkStream(): void {
    if (this.#core.settings.autoCommitMs === null) return;
    throw new MillraceError(
      ClientCode.INVALID_ARGUMENT,
      'a stream reads ahead, so that automatic commits would commit what nobody has processed',
      { remedy: 'Set `autoCommit: false` and call `commit(message)`.' },
    );
  }

  async #seekBy(timestamp: number, partitions?: readonly TopicPartition[]): Promise<void> {
    await this.ready();
    for (const cursor of this.#cursors(partitions ?? this.assignment)) {
      this.#core.committed?.forget(cursor);
      cursor.seekByTime(timestamp);
    }
    const { consumption } = this.#core;
    await consumption.locator.run();
    consumption.fetcher.poke();
  }

  #cursors(partitions: readonly TopicPartition[]): PartitionCursor<K, V>[] {
    return partitions.map((one) => {
      const cursor = this.#core.consumption.cursor(one);
      if (cursor !== undefined) return cursor;
      const what = `this consumer does not have ${keyOf(one)}`;
      throw new MillraceError(ClientCode.INVALID_ARGUMENT, what, {
        remedy: 'See `assignment`; before the first message call `ready()`.',
      });
    });
  }

  #committed(): CommittedOffsets {
    const { committed } = this.#core;
    if (committed !== null) return committed;
    throw new MillraceError(ClientCode.INVALID_ARGUMENT, 'commits belong to a group', {
      remedy: 'Set `group`.',
    });
  }

  #offsetsOf(
    what: Message<K, V> | ConsumedBatch<K, V> | readonly OffsetToCommit[] | undefined,
  ): readonly OffsetToCommit[] {
    if (what === undefined)
      return this.#core.consumption.cursors.flatMap((cursor) => {
        const { topic, partition, whereNext } = cursor;
        return whereNext === null ? [] : [{ topic, partition, ...whereNext }];
      });
    if (Array.isArray(what)) return what as readonly OffsetToCommit[];
    const last =
      'messages' in what
        ? what.messages.at(-1)
        : (what as Exclude<typeof what, readonly unknown[]>);
    if (last === undefined) return [];
    const { topic, partition, offset, leaderEpoch } = last as Message<K, V>;
    return [{ topic, partition, offset: offset + 1, leaderEpoch }];
  }
}
