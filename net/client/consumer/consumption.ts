/**
 * The partitions that a consumer has: where each is, who has what ready, and which message the reader has in hand.
 *
 * What the reader has in hand is processed when it comes back for the next one, and not before: only then does its offset
 * count as committable, and only then can its partition be given up.
 *
 * Thread: the client's. One reader at a time.
 */
import type { Cluster } from '../cluster.ts';
import type { MillraceError } from '../errors.ts';
import type { OffsetToCommit } from './committed_offsets.ts';
import { Fetcher, type FetchLimits } from './fetcher.ts';
import type { Message } from './message.ts';
import { type LocatorOwner, OffsetLocator } from './offset_locator.ts';
import { PartitionCursor, type ResetPolicy } from './partition_cursor.ts';
import type { ReaderOptions } from './record_reader.ts';
import { keyOf, type TopicPartition } from './topic_partition.ts';

export interface ConsumptionOptions<K, V> {
  readonly lane: string;
  readonly policy: ResetPolicy;
  readonly reader: ReaderOptions<K, V>;
  readonly limits: FetchLimits;
}

type AnyCursor = PartitionCursor<unknown, unknown>;

export class Consumption<K, V> {
  readonly #options: ConsumptionOptions<K, V>;
  readonly #cursors = new Map<string, PartitionCursor<K, V>>();
  readonly #closing: AbortController = new AbortController();
  readonly fetcher: Fetcher;
  readonly locator: OffsetLocator;
  /** Those that have something, the one that is being read first. */
  #ready: PartitionCursor<K, V>[] = [];
  /** Of the message or messages in hand, and the offset of the first; -1: it is the last one before the position. */
  #hand: PartitionCursor<K, V> | null = null;
  #handOffset = -1;
  /** The reader is at work on what it has in hand. */
  #isProcessing: boolean = false;
  #onHandFree: (() => void)[] = [];
  /** Wakes the reader. */
  #onChange: (() => void) | null = null;
  #failure: unknown = null;
  /** Messages handed out. */
  messages = 0;

  constructor(
    cluster: Cluster,
    options: ConsumptionOptions<K, V>,
    fetchCommitted: LocatorOwner['fetchCommitted'],
  ) {
    this.#options = options;
    const cursors = {
      [Symbol.iterator]: () => this.#cursors.values() as IterableIterator<AnyCursor>,
    };
    this.locator = new OffsetLocator(
      cluster,
      { cursors, fetchCommitted, onLocated: (located) => this.#onLocated(located) },
      options.reader.isCommitted,
      this.#closing.signal,
    );
    this.fetcher = new Fetcher(cluster, options.lane, options.limits, {
      cursors,
      onReady: (cursor) => this.#onReady(cursor as PartitionCursor<K, V>),
      onLost: () => this.locate(),
      onFailed: (error) => this.fail(error),
    });
  }

  get cursors(): PartitionCursor<K, V>[] {
    return [...this.#cursors.values()];
  }

  cursor(where: TopicPartition): PartitionCursor<K, V> | undefined {
    return this.#cursors.get(keyOf(where));
  }

  /** Held until `activate`. */
  add(partitions: readonly TopicPartition[], policy: ResetPolicy = this.#options.policy): void {
    for (const { topic, partition } of partitions) {
      const key = keyOf({ topic, partition });
      if (this.#cursors.has(key)) continue;
      const where = { topic, partition };
      this.#cursors.set(key, new PartitionCursor(where, policy, this.#options.reader));
    }
  }

  /** Those that are held begin: at the group's offset, or where the policy says. */
  activate(): void {
    for (const cursor of this.#cursors.values())
      if (cursor.state === 'held') cursor.state = 'committed';
    this.locate();
  }

  /** Nothing of these is handed out any more. */
  stop(partitions: readonly TopicPartition[]): void {
    for (const one of partitions) {
      const cursor = this.cursor(one);
      if (cursor !== undefined) cursor.isStopped = true;
    }
  }

  remove(partitions: readonly TopicPartition[]): void {
    for (const one of partitions) {
      const cursor = this.cursor(one);
      if (cursor === undefined) continue;
      cursor.revoke();
      this.#cursors.delete(keyOf(one));
      if (this.#hand === cursor) this.#hand = null;
    }
    this.#ready = this.#ready.filter(({ state }) => state !== 'revoked');
    this.fetcher.poke();
  }

  /** Finds what has no position yet, then fetches. */
  locate(): void {
    this.locator.run().then(
      () => this.fetcher.poke(),
      (error: unknown) => this.fail(error),
    );
  }

  /** Its state has changed from outside. */
  touch(cursor: PartitionCursor<K, V>): void {
    if (cursor.isReady) this.#onReady(cursor);
    if (cursor.state === 'listing') this.locate();
    else this.fetcher.poke();
  }

  /** The next message, null where there is none now. What is in hand counts as processed. Throws what the reader must know. */
  take(): Message<K, V> | null {
    this.#settle();
    for (let cursor = this.#ready[0]; cursor !== undefined; cursor = this.#ready[0]) {
      if (cursor.isReady) {
        const before = cursor.bytesLeft;
        const message = cursor.next();
        if (message !== null) {
          if (cursor.bytesLeft !== before) this.fetcher.onRead(cursor as AnyCursor);
          this.#hand = cursor;
          this.#isProcessing = true;
          this.messages += 1;
          return message;
        }
      }
      this.#turn(cursor);
    }
    this.#throwFailure();
    return null;
  }

  /** The next messages of one partition, at most `max`. */
  takeBatch(max: number): Message<K, V>[] {
    const first = this.take();
    if (first === null) return [];
    const cursor = this.#hand as PartitionCursor<K, V>;
    this.#handOffset = first.offset;
    const messages = [first];
    while (messages.length < max) {
      const message = cursor.next();
      if (message === null) break;
      messages.push(message);
    }
    this.messages += messages.length - 1;
    this.fetcher.onRead(cursor as AnyCursor);
    return messages;
  }

  /** Resolves when another `take` may find something. */
  change(): Promise<void> {
    return new Promise((resolve) => {
      this.#onChange = resolve;
    });
  }

  /** For the reader, at its next `take`. */
  fail(error: unknown): void {
    if (this.#closing.signal.aborted) return;
    this.#failure ??= error;
    this.wake();
  }

  wake(): void {
    const wake = this.#onChange;
    this.#onChange = null;
    wake?.();
  }

  /** The reader has gone without coming back: what it has in hand does not count as processed. */
  letGo(): void {
    this.#isProcessing = false;
    for (const free of this.#onHandFree.splice(0)) free();
  }

  /** Resolves when the reader is not at work on any of these. */
  handFree(partitions: readonly TopicPartition[]): Promise<void> {
    const hand = this.#hand;
    const isHeld = hand !== null && partitions.some((one) => keyOf(one) === keyOf(hand));
    if (!this.#isProcessing || !isHeld) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onHandFree.push(resolve);
    });
  }

  /** Up to where everything has been processed; those that have no position are left out. */
  processed(partitions?: readonly TopicPartition[]): OffsetToCommit[] {
    const cursors =
      partitions === undefined
        ? this.cursors
        : partitions.map((one) => this.cursor(one)).filter((one) => one !== undefined);
    const offsets: OffsetToCommit[] = [];
    for (const cursor of cursors) {
      const next = cursor.whereNext;
      if (next === null) continue;
      const { topic, partition } = cursor;
      const isHeld = cursor === this.#hand;
      const held = this.#handOffset >= 0 ? this.#handOffset : next.offset - 1;
      offsets.push({ topic, partition, ...next, offset: isHeld ? held : next.offset });
    }
    return offsets;
  }

  close(): void {
    this.#closing.abort(new Error('the consumer was closed'));
    this.fetcher.close();
    this.letGo();
    for (const cursor of this.#cursors.values()) cursor.revoke();
    this.#cursors.clear();
    this.#ready = [];
    this.wake();
  }

  #settle(): void {
    this.#hand = null;
    this.#handOffset = -1;
    this.#isProcessing = false;
    if (this.#onHandFree.length > 0) this.letGo();
  }

  /** It is the next one's turn; this one comes again when it has more. */
  #turn(cursor: PartitionCursor<K, V>): void {
    this.#ready.shift();
    if (cursor.isReady) this.#ready.push(cursor);
    this.fetcher.onRead(cursor as AnyCursor);
  }

  #throwFailure(): void {
    const failure = this.#failure;
    if (failure === null) return;
    // What stays wrong is said again; what may pass has been said once.
    if ((failure as Partial<MillraceError>).isRetriable === true) this.#failure = null;
    throw failure;
  }

  #onReady(cursor: PartitionCursor<K, V>): void {
    if (!this.#ready.includes(cursor)) this.#ready.push(cursor);
    this.wake();
  }

  #onLocated(cursors: readonly AnyCursor[]): void {
    for (const cursor of cursors)
      if (cursor.failure !== null) this.#onReady(cursor as PartitionCursor<K, V>);
    this.fetcher.poke();
  }
}
