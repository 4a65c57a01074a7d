/**
 * Takes batches to the leaders of their partitions: at most five requests on the way to each broker, each with one batch a
 * partition, in order; again after failures that may pass, until a message's delivery time-out.
 *
 * Thread: the client's. It looks for work at the end of a turn in which there was news (records, answers, connections,
 * metadata), and by one timer for all that waits for time to pass.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { errorInfo } from '../protocol/errors.ts';
import type { ProduceResponse } from '../protocol/messages.gen.ts';
import type { Cluster } from './cluster.ts';
import { type SenderCounters, tellBatch } from './diagnostics.ts';
import { asksForMetadata, brokerError, ClientCode, MillraceError } from './errors.ts';
import { type PartitionQueue, rememberedBatches } from './partition_queue.ts';
import { type Part, ProduceRequest } from './produce_request.ts';
import { IdentitySource } from './producer_identity.ts';
import type { ProducerSettings } from './producer_options.ts';
import type { RecordBatch } from './record_batch.ts';
import { sleep } from './retry.ts';
import { splitBatch } from './split_batch.ts';

export interface SenderOwner {
  /** A batch is delivered or has failed: its memory is free. */
  onSettled(batch: RecordBatch): void;
  /** Whether open batches are to go out now: somebody waits for all of them, or for their memory. */
  readonly isHurried: boolean;
}

/** Requests at a broker; each has one batch of a partition. */
const inFlightMax = rememberedBatches;
/** After a refresh that failed. */
const retryMs = 100;

interface Node {
  inFlight: number;
  isConnecting: boolean;
}

export class Sender {
  readonly counters: SenderCounters = {
    ...{ requests: 0, batches: 0, records: 0, bytes: 0, retries: 0, failedRecords: 0 },
  };
  readonly #cluster: Cluster;
  readonly #settings: ProducerSettings;
  readonly #owner: SenderOwner;
  /** Partitions with batches; those that have just been served are at the end. */
  readonly #active = new Set<PartitionQueue>();
  readonly #identities: IdentitySource;
  readonly #nodes = new Map<number, Node>();
  #isRefreshing: boolean = false;
  #isScheduled: boolean = false;
  #timer: NodeJS.Timeout | null = null;
  #timerDueMs = Number.POSITIVE_INFINITY;
  #nowMs = 0;
  #failure: MillraceError | null = null;

  constructor(cluster: Cluster, settings: ProducerSettings, owner: SenderOwner) {
    this.#cluster = cluster;
    this.#settings = settings;
    this.#owner = owner;
    this.#identities = new IdentitySource(cluster);
  }

  /** Partitions with batches that are not settled. */
  get active(): Iterable<PartitionQueue> {
    return this.#active;
  }

  /** A batch was begun, which may also mean that the one before it is full. */
  onBatch(queue: PartitionQueue, batch: RecordBatch): void {
    this.#active.add(queue);
    const { lingerMs } = this.#settings;
    if (lingerMs === 0 || queue.batches.length > 1) this.wake();
    else this.#wakeAt(batch.createdMs + lingerMs);
  }

  /** There may be something to do at the end of this turn. */
  wake(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#dispatch());
  }

  /** Fails all that is not delivered. Nothing is sent from now on. */
  stop(error: MillraceError): void {
    if (this.#failure !== null) return;
    this.#failure = error;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    for (const queue of this.#active)
      for (const batch of [...queue.batches]) this.#fail(queue, batch, error);
    this.#active.clear();
  }

  #dispatch(): void {
    this.#isScheduled = false;
    if (this.#failure !== null) return;
    this.#nowMs = performance.now();
    const requests = new Map<number, ProduceRequest[]>();
    const served: PartitionQueue[] = [];
    for (const queue of this.#active) {
      this.#expire(queue);
      if (queue.batches.length === 0) this.#active.delete(queue);
      else if (this.#collect(queue, requests)) served.push(queue);
    }
    for (const queue of served) {
      this.#active.delete(queue);
      this.#active.add(queue);
    }
    for (const [brokerId, list] of requests)
      for (const request of list) this.#send(brokerId, request);
  }

  /** Puts what this partition may send into requests. Returns whether there was anything. */
  #collect(queue: PartitionQueue, requests: Map<number, ProduceRequest[]>): boolean {
    if (queue.notBeforeMs > this.#nowMs) {
      this.#wakeAt(queue.notBeforeMs);
      return false;
    }
    const { isIdempotent, codec, maxRequestBytes } = this.#settings;
    if (isIdempotent && queue.needsIdentity && !this.#identify(queue)) return false;
    const leaderId = this.#cluster.metadata.partition(queue.topic, queue.partition)?.leaderId ?? -1;
    if (leaderId < 0) {
      this.#postpone(queue);
      if (this.#cluster.metadata.topic(queue.topic) === undefined) this.#findTopic(queue);
      else this.#refresh();
      return false;
    }
    const node = this.#node(leaderId);
    if (this.#cluster.openConnection(leaderId) === null) {
      this.#connect(leaderId, node);
      return false;
    }
    let list = requests.get(leaderId);
    let place = 0;
    while (isIdempotent || queue.inFlight === 0) {
      const batch = queue.next(this.#mayTake);
      if (batch === null) break;
      const isRoom = node.inFlight + (list?.length ?? 0) < inFlightMax;
      const bytesMax = maxRequestBytes - batch.byteLength;
      while (list !== undefined && place < list.length && list[place]!.byteLength > bytesMax)
        place += 1;
      if (list === undefined || place >= list.length) {
        if (!isRoom) break;
        list ??= [];
        list.push(new ProduceRequest());
        requests.set(leaderId, list);
        place = list.length - 1;
      }
      queue.begin(batch, isIdempotent);
      const { producerId, epoch } = queue.identity;
      const records = batch.seal(codec, producerId, epoch);
      (list[place] as ProduceRequest).add({ queue, batch, records });
      place += 1;
    }
    return place > 0;
  }

  readonly #mayTake = (batch: RecordBatch): boolean => {
    const dueMs = batch.createdMs + this.#settings.lingerMs;
    if (dueMs <= this.#nowMs || this.#owner.isHurried) return true;
    this.#wakeAt(dueMs);
    return false;
  };

  #send(brokerId: number, request: ProduceRequest): void {
    const node = this.#node(brokerId);
    const { acks, requestTimeoutMs, deliveryTimeoutMs } = this.#settings;
    const { counters } = this;
    counters.requests += 1;
    counters.bytes += request.byteLength;
    let oldestMs = this.#nowMs;
    for (const { batch } of request.parts) {
      counters.batches += 1;
      if (batch.attempts > 1) counters.retries += 1;
      oldestMs = Math.min(oldestMs, batch.createdMs);
    }
    const leftMs = Math.max(1, oldestMs + deliveryTimeoutMs - this.#nowMs);
    const timeoutMs = Math.ceil(Math.min(requestTimeoutMs, leftMs));
    node.inFlight += 1;
    const done = (error: MillraceError | null, reply: ProduceResponse | null): void => {
      node.inFlight -= 1;
      for (const { queue, batch } of request.parts) queue.end(batch);
      if (this.#failure !== null) return;
      if (error !== null) this.#onFailure(request, error);
      else this.#onReply(request, reply);
      this.wake();
    };
    const connection = this.#cluster.openConnection(brokerId);
    if (connection === null)
      done(new MillraceError(ClientCode.BROKER_UNREACHABLE, `broker ${brokerId} has gone`), null);
    else request.send(connection, this.#cluster.metadata, acks, timeoutMs, done);
  }

  /** No answer: whether the broker has the batches is not known. */
  #onFailure(request: ProduceRequest, error: MillraceError): void {
    for (const { queue, batch } of request.parts) {
      if (error.isRetriable) this.#retry(queue, batch, error);
      else this.#fail(queue, batch, error);
    }
    this.#refresh();
  }

  #onReply(request: ProduceRequest, reply: ProduceResponse | null): void {
    if (reply === null) {
      // With acks 0 there is no answer.
      for (const part of request.parts) this.#deliver(part, -1, -1);
      return;
    }
    const { metadata } = this.#cluster;
    metadata.setBrokers(
      reply.nodeEndpoints.map(({ nodeId, host, port, rack }) => ({ id: nodeId, host, port, rack })),
    );
    for (const part of request.parts) {
      const answer = request.answerTo(part, reply, metadata);
      if (answer === null) {
        const what = `produce to ${part.queue.name}: the broker did not answer`;
        this.#retry(part.queue, part.batch, new MillraceError(ClientCode.CONNECTION_LOST, what));
      } else if (answer.errorCode === ErrorCode.NONE) {
        this.#deliver(part, Number(answer.baseOffset), Number(answer.logAppendTimeMs));
      } else {
        const { leaderId, leaderEpoch } = answer.currentLeader;
        metadata.setLeader(part.queue.topic, part.queue.partition, leaderId, leaderEpoch);
        const [refused] = answer.recordErrors;
        const text = refused?.batchIndexErrorMessage ?? answer.errorMessage;
        this.#onError(part, answer.errorCode, text);
      }
    }
  }

  #onError({ queue, batch }: Part, errorCode: number, message: string | null): void {
    const error = brokerError(errorCode, `produce to ${queue.name}`, message);
    switch (errorCode) {
      case ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
        // Stored so long ago that the broker has forgotten where.
        this.#deliver({ queue, batch }, -1, -1);
        return;
      case ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
      case ErrorCode.UNKNOWN_PRODUCER_ID:
      case ErrorCode.INVALID_PRODUCER_EPOCH:
        queue.refuse(batch);
        this.#retry(queue, batch, error);
        return;
      case ErrorCode.MESSAGE_TOO_LARGE:
        if (batch.count > 1) queue.replace(batch, splitBatch(batch));
        else this.#fail(queue, batch, error);
        return;
      default:
        if (!errorInfo(errorCode).retriable) {
          this.#fail(queue, batch, error);
          return;
        }
        this.#retry(queue, batch, error);
        if (asksForMetadata(errorCode)) this.#refresh();
    }
  }

  #deliver({ queue, batch }: Pick<Part, 'queue' | 'batch'>, offset: number, timeMs: number): void {
    this.counters.records += batch.count;
    queue.backoff.reset();
    queue.settle(batch);
    tellBatch(queue, batch, null);
    batch.deliver(queue.topic, queue.partition, offset, timeMs);
    this.#owner.onSettled(batch);
  }

  #fail(queue: PartitionQueue, batch: RecordBatch, error: unknown): void {
    this.counters.failedRecords += batch.count;
    queue.abandon(batch);
    tellBatch(queue, batch, error);
    batch.fail(error);
    this.#owner.onSettled(batch);
  }

  #retry(queue: PartitionQueue, batch: RecordBatch, error: MillraceError): void {
    queue.lastError = error;
    // The batches behind this one fail with it, and wait no longer for that.
    if (queue.batches[0] === batch) this.#postpone(queue);
  }

  #postpone(queue: PartitionQueue): void {
    queue.notBeforeMs = performance.now() + queue.backoff.next();
  }

  /** Fails what has waited for too long and is not on its way. */
  #expire(queue: PartitionQueue): void {
    const { deliveryTimeoutMs } = this.#settings;
    for (let batch = queue.batches[0]; batch !== undefined; batch = queue.batches[0]) {
      const dueMs = batch.createdMs + deliveryTimeoutMs;
      if (batch.isSent || dueMs > this.#nowMs) {
        this.#wakeAt(Math.max(dueMs, this.#nowMs + 1_000));
        return;
      }
      const { lastError } = queue;
      const why = lastError === null ? '' : `: ${lastError.message}`;
      const what = `not delivered to ${queue.name} within ${deliveryTimeoutMs} ms${why}`;
      const error = new MillraceError(ClientCode.TIMED_OUT, what, {
        ...{ cause: lastError ?? undefined, remedy: lastError?.remedy ?? null },
      });
      this.#fail(queue, batch, error);
    }
  }

  /** Whether the partition has a producer id now; else one is asked for. */
  #identify(queue: PartitionQueue): boolean {
    const identity = this.#identities.take(queue.used, (error) => this.#onIdentity(error));
    if (identity === null) return false;
    queue.setIdentity(identity);
    return true;
  }

  #onIdentity(error: unknown): void {
    this.wake();
    if (error === null || this.#failure !== null) return;
    for (const queue of this.#active) {
      if (error instanceof MillraceError) queue.lastError = error;
      if (error instanceof MillraceError && error.isRetriable) continue;
      if (!queue.needsIdentity) continue;
      for (const batch of [...queue.batches]) this.#fail(queue, batch, error);
    }
  }

  #node(brokerId: number): Node {
    let node = this.#nodes.get(brokerId);
    if (node === undefined) {
      node = { inFlight: 0, isConnecting: false };
      this.#nodes.set(brokerId, node);
    }
    return node;
  }

  #connect(brokerId: number, node: Node): void {
    if (node.isConnecting) return;
    node.isConnecting = true;
    const settle = (): void => {
      node.isConnecting = false;
      this.wake();
    };
    this.#cluster.connection(brokerId).then(settle, async (error: unknown) => {
      for (const queue of this.#active) {
        const partition = this.#cluster.metadata.partition(queue.topic, queue.partition);
        if (partition?.leaderId === brokerId && error instanceof MillraceError)
          queue.lastError = error;
      }
      await this.#cluster.refresh().catch(() => undefined);
      settle();
    });
  }

  /** The topic has been there. If it is not any more, its messages have failed. */
  #findTopic(queue: PartitionQueue): void {
    const { signal } = this.#cluster;
    this.#cluster.topic(queue.topic, { signal }).then(
      () => this.wake(),
      (error: unknown) => {
        const isGone = error instanceof MillraceError && !error.isRetriable;
        if (this.#failure !== null) return;
        if (isGone) for (const batch of [...queue.batches]) this.#fail(queue, batch, error);
        this.wake();
      },
    );
  }

  /** Who leads what is found out again; partitions look at it when their back-off is over. */
  #refresh(): void {
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    this.#cluster
      .refresh()
      .catch(() => sleep(retryMs))
      .finally(() => {
        this.#isRefreshing = false;
        this.wake();
      });
  }

  #wakeAt(dueMs: number): void {
    if (dueMs >= this.#timerDueMs) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timerDueMs = dueMs;
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        this.#timerDueMs = Number.POSITIVE_INFINITY;
        this.wake();
      },
      Math.max(1, dueMs - performance.now()),
    );
  }
}
