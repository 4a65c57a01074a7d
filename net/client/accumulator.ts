/**
 * Where messages become batches: finds the partition, adds to its open batch, and lets wait, in order, what has no room or
 * whose topic is not known yet.
 *
 * Thread: the client's. Memory: all batches together hold at most `bufferBytes`, or one message that alone is larger.
 */
import { batchHeaderBytes } from '../../engine/batch/header.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { BufferPool } from './buffer_pool.ts';
import type { Cluster } from './cluster.ts';
import { brokerError, type MillraceError } from './errors.ts';
import type { TopicInfo } from './metadata.ts';
import { PartitionQueue } from './partition_queue.ts';
import { murmur2, StickyPartition } from './partitioner.ts';
import type { ProducerSettings } from './producer_options.ts';
import { type Field, RecordBatch, type RecordMetadata, type Settle } from './record_batch.ts';
import { Sender, type SenderOwner } from './sender.ts';

/** A message as it goes into a batch. */
export interface EncodedMessage {
  readonly key: Field;
  /** Bytes; -1 for null. */
  readonly keyLength: number;
  readonly value: Field;
  readonly valueLength: number;
  readonly headers: Uint8Array;
  /** -1 to have it chosen. */
  readonly partition: number;
  readonly timestampMs: number;
}

interface Waiting {
  readonly message: EncodedMessage;
  readonly settle: Settle;
  /** Called when it waits no longer. */
  onPlaced: (() => void) | null;
}

/** What is known of a topic that messages are sent to. */
class Topic {
  readonly name: string;
  readonly sticky: StickyPartition;
  readonly queues: PartitionQueue[] = [];
  /** 0 while the topic is not known. */
  partitionCount = 0;
  /** Partitions with a leader. */
  available: readonly number[] = [];
  waiting: Waiting[] = [];
  isResolving: boolean = false;

  constructor(name: string, batchBytes: number) {
    this.name = name;
    this.sticky = new StickyPartition(batchBytes);
  }

  update(info: TopicInfo | undefined): void {
    const partitions = info?.partitions ?? [];
    this.partitionCount = partitions.length;
    this.available = partitions.filter((one) => one.leaderId >= 0).map((one) => one.partition);
    for (let partition = this.queues.length; partition < partitions.length; partition += 1)
      this.queues.push(new PartitionQueue(this.name, partition));
  }
}

/** Of a record beside key, value and headers, at most: four varints, one varlong, the attributes. */
const recordOverheadBytes = 31;
const firstBatchBytes = 1024;
/** Keys that are text are hashed as UTF-8, in this memory. */
let scratch = Buffer.allocUnsafeSlow(1024);

/** The promise of the record that has just been added: one executor for all, so that none needs a closure of its own. */
let addedTo: Settle[] = [];
const execute = (resolve: Settle): void => {
  addedTo.push(resolve);
};

export class Accumulator implements SenderOwner {
  readonly sender: Sender;
  readonly #cluster: Cluster;
  readonly #settings: ProducerSettings;
  readonly #pool: BufferPool;
  readonly #topics = new Map<string, Topic>();
  /** Topics whose messages wait for room. */
  readonly #starved = new Set<Topic>();
  readonly #forgetListener: () => void;
  #bufferedBytes = 0;
  #flushes = 0;

  constructor(cluster: Cluster, settings: ProducerSettings) {
    this.#cluster = cluster;
    this.#settings = settings;
    this.#pool = new BufferPool(settings.bufferBytes);
    this.sender = new Sender(cluster, settings, this);
    this.#forgetListener = cluster.onMetadata(() => {
      for (const topic of this.#topics.values()) topic.update(cluster.metadata.topic(topic.name));
      this.sender.wake();
    });
  }

  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  get waiting(): number {
    let count = 0;
    for (const topic of this.#topics.values()) count += topic.waiting.length;
    return count;
  }

  get isHurried(): boolean {
    return this.#flushes > 0 || this.#starved.size > 0;
  }

  /** Adds a message at once. Null when it has to wait, for which `wait` is there. */
  add(name: string, message: EncodedMessage): Promise<RecordMetadata> | null {
    const topic = this.#topics.get(name);
    if (topic === undefined || topic.partitionCount === 0 || topic.waiting.length > 0) return null;
    if (!this.#hasRoom(message)) return null;
    addedTo = this.#place(topic, message).settles;
    return new Promise(execute);
  }

  /** Adds a message when there is room and its topic is known. */
  wait(
    name: string,
    message: EncodedMessage,
    signal: AbortSignal | undefined,
  ): Promise<RecordMetadata> {
    let topic = this.#topics.get(name);
    if (topic === undefined) {
      topic = new Topic(name, this.#settings.batchBytes);
      this.#topics.set(name, topic);
    }
    const { waiting } = topic;
    return new Promise((resolve, reject) => {
      const entry: Waiting = { message, settle: resolve as Settle, onPlaced: null };
      signal?.addEventListener(
        'abort',
        () => {
          reject(signal.reason);
          const index = waiting.indexOf(entry);
          if (index < 0) return;
          waiting.splice(index, 1);
          entry.onPlaced?.();
        },
        { once: true },
      );
      waiting.push(entry);
      this.#drain(topic);
    });
  }

  /** Resolves when all that was added or waited before has been delivered or has failed. */
  async flush(): Promise<void> {
    this.#flushes += 1;
    try {
      const last = [...this.#topics.values()].flatMap((topic) => topic.waiting.at(-1) ?? []);
      this.sender.wake();
      await Promise.all(
        last.map((entry) =>
          settled((done) => {
            const then = entry.onPlaced;
            entry.onPlaced = () => {
              then?.();
              done();
            };
          }),
        ),
      );
      const batches = [...this.sender.active].flatMap((queue) => queue.batches);
      this.sender.wake();
      await Promise.all(
        batches.map((batch) =>
          settled((done) => {
            batch.onDone ??= [];
            batch.onDone.push(done);
          }),
        ),
      );
    } finally {
      this.#flushes -= 1;
    }
  }

  /** Fails all that is not delivered. */
  stop(error: MillraceError): void {
    this.#forgetListener();
    this.sender.stop(error);
    for (const topic of this.#topics.values()) this.#failWaiting(topic, error);
    this.#topics.clear();
  }

  onSettled(batch: RecordBatch): void {
    this.#bufferedBytes -= batch.byteLength;
    if (this.#starved.size === 0) return;
    for (const topic of [...this.#starved]) {
      this.#starved.delete(topic);
      this.#drain(topic);
    }
  }

  #hasRoom({ keyLength, valueLength, headers }: EncodedMessage): boolean {
    const { bufferBytes } = this.#settings;
    const bytes = keyLength + valueLength + headers.length + recordOverheadBytes;
    return this.#bufferedBytes === 0 || this.#bufferedBytes + bytes <= bufferBytes;
  }

  /** Adds what has waited, as far as there is room. */
  #drain(topic: Topic): void {
    if (topic.partitionCount === 0) {
      this.#resolve(topic);
      return;
    }
    const { waiting } = topic;
    let placed = 0;
    for (const { message, settle } of waiting) {
      if (!this.#hasRoom(message)) {
        this.#starved.add(topic);
        this.sender.wake();
        break;
      }
      placed += 1;
      const error = this.check(topic.name, message);
      if (error === null) this.#place(topic, message).settles.push(settle);
      else settle(Promise.reject(error));
    }
    for (const { onPlaced } of waiting.splice(0, placed)) onPlaced?.();
  }

  /** What is wrong with the partition that a message names, as far as the topic is known. */
  check(name: string, { partition }: EncodedMessage): MillraceError | null {
    const count = this.#topics.get(name)?.partitionCount ?? 0;
    if (partition < 0 || count === 0 || partition < count) return null;
    return brokerError(
      ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
      `partition ${partition} of ${JSON.stringify(name)}`,
      `the topic has partitions 0 to ${count - 1}`,
      { isRetriable: false, remedy: 'Choose one that there is, or add partitions to the topic.' },
    );
  }

  #resolve(topic: Topic): void {
    if (topic.isResolving) return;
    topic.isResolving = true;
    const { signal } = this.#cluster;
    const { autoCreateTopics: autoCreate, deliveryTimeoutMs } = this.#settings;
    const timeoutMs = Math.min(this.#cluster.timeoutMs, deliveryTimeoutMs);
    this.#cluster.topic(topic.name, { autoCreate, signal, timeoutMs }).then(
      (info) => {
        topic.isResolving = false;
        topic.update(info);
        this.#drain(topic);
      },
      (error: unknown) => {
        topic.isResolving = false;
        this.#failWaiting(topic, error);
      },
    );
  }

  #failWaiting(topic: Topic, error: unknown): void {
    for (const { settle, onPlaced } of topic.waiting.splice(0)) {
      settle(Promise.reject(error));
      onPlaced?.();
    }
  }

  /** Returns the batch, whose `settles` are to be given the record's next. */
  #place(topic: Topic, message: EncodedMessage): RecordBatch {
    const { key, keyLength, value, valueLength, headers, timestampMs } = message;
    const queue = topic.queues[this.#partitionOf(topic, message)] as PartitionQueue;
    let batch = queue.batches.at(-1);
    if (batch === undefined || batch.isClosed) batch = this.#begin(queue);
    let bytes = batch.append(timestampMs, key, keyLength, value, valueLength, headers);
    if (bytes === 0) {
      batch.isClosed = true;
      batch = this.#begin(queue);
      bytes = batch.append(timestampMs, key, keyLength, value, valueLength, headers);
    }
    this.#bufferedBytes += bytes;
    return batch;
  }

  #begin(queue: PartitionQueue): RecordBatch {
    const { batchBytes } = this.#settings;
    const expected = Math.max(queue.bytesExpected, firstBatchBytes);
    const batch = new RecordBatch(this.#pool, batchBytes, expected, performance.now());
    queue.batches.push(batch);
    this.#bufferedBytes += batchHeaderBytes;
    this.sender.onBatch(queue, batch);
    return batch;
  }

  #partitionOf(topic: Topic, message: EncodedMessage): number {
    if (message.partition >= 0) return message.partition;
    const { partitionCount } = topic;
    const { partitioner } = this.#settings;
    if (partitioner !== null) {
      const key = typeof message.key === 'string' ? Buffer.from(message.key) : message.key;
      const chosen = partitioner({ topic: topic.name, key }, partitionCount);
      if (chosen !== null && chosen >= 0 && chosen < partitionCount) return Math.trunc(chosen);
    }
    if (message.key !== null && partitionCount > 1)
      return (hashOf(message.key, message.keyLength) & 0x7fffffff) % partitionCount;
    const bytes = message.valueLength + recordOverheadBytes;
    return topic.sticky.next(bytes, partitionCount, topic.available);
  }
}

function hashOf(key: string | Uint8Array, length: number): number {
  if (typeof key !== 'string') return murmur2(key, length);
  if (length > scratch.length) scratch = Buffer.allocUnsafeSlow(length * 2);
  if (length === key.length && length < 64)
    for (let at = 0; at < length; at += 1) scratch[at] = key.charCodeAt(at);
  else scratch.write(key, 0, length, 'utf8');
  return murmur2(scratch, length);
}

function settled(watch: (done: () => void) => void): Promise<void> {
  return new Promise(watch);
}
