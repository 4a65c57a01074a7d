/**
 * Produce: appends record batches and answers as `acks` asks.
 *
 *   v3   transactional id, message format 2 (KIP-98)        v8   errors by record, error message (KIP-467)
 *   v4   KAFKA_STORAGE_ERROR                                v9   flexible
 *   v5   log start offset in the answer                     v10  current leader in the answer (KIP-951)
 *   v6   throttling after the answer (KIP-219)              v11  as v10 for transactions (KIP-890)
 *   v7   zstd (KIP-110)                                     v12  the same, v13 topic ids (KIP-516)
 *
 * v0-2 are advertised, because old librdkafka switches features off without them, and refused (KIP-896).
 *
 * Thread: the connection's shard, which checks the batches; partitions of other shards take them through the fabric.
 * The batches stay where the socket put them: the frame is retained until they are in the page cache. Durable: acks=all
 * is answered once all its batches are below the high watermark.
 */
import { newBatchInfo } from '../../engine/batch/rules.ts';
import { validateProduceBatch } from '../../engine/batch/validate.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { newAppendResult } from '../../engine/log/append_result.ts';
import type { AppendWaiter } from '../../replication/partition/leader.ts';
import { type CurrentLeader, CurrentLeaders } from '../current_leaders.ts';
import type { RemoteAppendWaiter } from '../fabric/remote_partitions.ts';
import { ApiKey } from '../protocol/api_key.gen.ts';
import { codecFor } from '../protocol/codec.ts';
import { errorMessage } from '../protocol/errors.ts';
import type {
  ProduceRequest,
  ProduceRequestPartitionProduceData,
  ProduceResponsePartitionProduceResponseInput,
} from '../protocol/messages.gen.ts';
import { isHere, type Place } from '../routes.ts';
import type { Parkable, Parked } from '../server/purgatory.ts';
import type { Handler } from '../server/registry.ts';
import type { RequestContext } from '../server/request_context.ts';
import type { ShardServices } from '../shard_services.ts';
import { refuseOldProduce } from './produce_before_v3.ts';

/** Produce requests name topics by id from this version on. */
const topicIdsSince = 13;
/** Older clients take KAFKA_STORAGE_ERROR for a fatal one: this one makes them try again. */
const storageErrorSince = 4;
/** Answers say who leads instead from this version on (KIP-951). */
const leadersSince = 10;

export function produceHandler(services: ShardServices): Handler {
  return {
    apiKey: ApiKey.Produce,
    minVersion: 3,
    maxVersion: 13,
    overlaps: true,
    retainsFrame: true,
    handle: (ctx) => {
      const request = codecFor('ProduceRequest', ctx.apiVersion).decode(ctx.reader);
      new ProduceRun(services, ctx, request).start();
    },
    unsupportedVersion: refuseOldProduce,
  };
}

const noRecordErrors: PartitionRun['recordErrors'] = [];

/** Reused for every batch of the thread: nothing of them is kept beyond the append. */
const info = newBatchInfo();
const result = newAppendResult();

/** One request from its first batch to its answer. */
class ProduceRun implements Parkable {
  readonly #services: ShardServices;
  readonly #ctx: RequestContext;
  readonly #request: ProduceRequest;
  readonly #topics: readonly TopicRun[];
  /** Batches that are not in the page cache yet: while there are any, the frame is kept. */
  #writing = 0;
  /** Batches whose acknowledgement is still due. */
  #due = 0;
  #parked: Parked<never> | null = null;
  #started: boolean = false;
  #failed: boolean = false;
  /** Null: nobody has asked the wrong broker. */
  #leaders: CurrentLeaders | null = null;

  constructor(services: ShardServices, ctx: RequestContext, request: ProduceRequest) {
    this.#services = services;
    this.#ctx = ctx;
    this.#request = request;
    this.#topics = request.topicData.map(({ name, topicId, partitionData }) => {
      const topic: TopicRun = { name, topicId, partitionResponses: [] };
      for (const data of partitionData)
        topic.partitionResponses.push(new PartitionRun(this, topic, data));
      return topic;
    });
  }

  start(): void {
    const nowMs = this.#services.clock.wallMs();
    for (const { partitionResponses } of this.#topics)
      for (const run of partitionResponses) this.#append(run, nowMs);
    this.#started = true;
    if (this.#writing > 0) this.#ctx.frame.retain();
    this.#answerWhenDone();
    if (!this.#ctx.answered && this.#request.acks === -1)
      this.#parked = this.#services.produceTimeouts.park(this, [], this.#request.timeoutMs);
  }

  /** The batch left the frame, or never will: called by its run, perhaps before `start` has ended. */
  onWritten(run: PartitionRun, error: ErrorCode, message: string | null = null): void {
    this.#writing -= 1;
    if (this.#started && this.#writing === 0) this.#ctx.frame.release();
    if (error !== ErrorCode.NONE || this.#request.acks !== -1)
      this.onAcknowledged(run, error, message);
  }

  onAcknowledged(run: PartitionRun, error: ErrorCode, message: string | null = null): void {
    if (!run.isDue) return;
    run.isDue = false;
    this.#due -= 1;
    if (error !== ErrorCode.NONE) this.#refuse(run, error, message);
    if (this.#started) this.#answerWhenDone();
  }

  /** Nothing wakes a produce request but its own appends. */
  tryComplete(): boolean {
    return false;
  }

  /** The time that the producer gave is over. What is not acknowledged may still be, so the producer must retry. */
  expire(): void {
    for (const { partitionResponses } of this.#topics)
      for (const run of partitionResponses) this.onAcknowledged(run, ErrorCode.REQUEST_TIMED_OUT);
  }

  #append(run: PartitionRun, nowMs: number): void {
    const { records } = run.data;
    const place = this.#find(run);
    const { acks } = this.#request;
    if (typeof place === 'number') this.#refuse(run, place, null);
    else if (acks < -1 || acks > 1) this.#refuse(run, ErrorCode.INVALID_REQUIRED_ACKS, null);
    else if (!(records instanceof Uint8Array) || records.length === 0)
      this.#refuse(run, ErrorCode.INVALID_RECORD, 'The request holds no batch here.');
    else this.#appendBatch(place, records, run, nowMs);
  }

  #appendBatch(place: Place, records: Uint8Array, run: PartitionRun, nowMs: number): void {
    const rules = isHere(place) ? place.batchRules : this.#services.topicRules.of(place.topicId);
    if (rules.isInternal) {
      this.#refuse(run, ErrorCode.INVALID_TOPIC_EXCEPTION, 'Only brokers write to this topic.');
      return;
    }
    rules.nowMs = nowMs;
    const invalid = validateProduceBatch(records, 0, records.length, rules, info);
    if (invalid !== ErrorCode.NONE) {
      this.#refuse(run, invalid, info.errorMessage);
      if (info.recordErrors !== null)
        run.recordErrors = info.recordErrors.map(({ index, message }) => ({
          batchIndex: index,
          batchIndexErrorMessage: message,
        }));
      return;
    }
    if (info.isTransactional) {
      this.#refuse(run, ErrorCode.INVALID_TXN_STATE, 'Transactions are not supported yet.');
      return;
    }
    run.isDue = true;
    this.#due += 1;
    this.#writing += 1;
    const all = this.#request.acks === -1;
    if (!isHere(place)) {
      const { slabId } = this.#ctx.frame;
      this.#services.remote.append(place, slabId, records, info, all, nowMs, run);
      return;
    }
    const error = place.append(records, 0, records.length, info, all, nowMs, run, result);
    if (error !== ErrorCode.NONE) run.onRefused(error, result.errorMessage);
    else run.onAppended(result.baseOffset, result.logAppendTimeMs, place.log.logStartOffset);
  }

  /** Where the partition is, or why there is none. */
  #find({ topic, index }: PartitionRun): Place | ErrorCode {
    const { routes } = this.#services;
    return this.#ctx.apiVersion >= topicIdsSince
      ? routes.byId(topic.topicId, index)
      : routes.byName(topic.name, index);
  }

  #refuse(run: PartitionRun, error: ErrorCode, message: string | null): void {
    this.#failed = true;
    const isKnown =
      error !== ErrorCode.KAFKA_STORAGE_ERROR || this.#ctx.apiVersion >= storageErrorSince;
    run.errorCode = isKnown ? error : ErrorCode.NOT_LEADER_OR_FOLLOWER;
    run.errorMessage = message ?? errorMessage(error);
    run.onAppended(-1, -1n, -1);
    if (error === ErrorCode.NOT_LEADER_OR_FOLLOWER) this.#nameLeader(run);
  }

  #nameLeader(run: PartitionRun): void {
    const { image } = this.#services;
    const { apiVersion, connection } = this.#ctx;
    if (apiVersion < leadersSince) return;
    const { name, topicId } = run.topic;
    const topic = apiVersion >= topicIdsSince ? image.topicById(topicId) : image.topic(name);
    this.#leaders ??= new CurrentLeaders(image, connection.listener);
    run.currentLeader = this.#leaders.name(topic, run.index);
  }

  #answerWhenDone(): void {
    if (this.#due > 0 || this.#ctx.answered) return;
    if (this.#parked !== null) this.#services.produceTimeouts.cancel(this.#parked);
    if (this.#request.acks !== 0)
      this.#ctx.respond<'Produce'>('ProduceResponse', {
        responses: this.#topics,
        nodeEndpoints: this.#leaders?.nodeEndpoints,
      });
    else if (this.#failed) this.#ctx.fail(this.#failureText());
    else this.#ctx.respondNothing();
  }

  /** With acks=0 there is no answer to carry an error: closing the connection makes the producer look again. */
  #failureText(): string {
    const texts = this.#topics.flatMap(({ name, partitionResponses }) =>
      partitionResponses
        .filter(({ errorCode }) => errorCode !== ErrorCode.NONE)
        .map((run) => `${name}-${run.index}: ${run.errorMessage ?? ''}`),
    );
    return `produce with acks=0 failed: ${texts.join('; ')}`;
  }
}

/** One topic of a request, and of its answer. */
interface TopicRun {
  readonly name: string;
  readonly topicId: string;
  readonly partitionResponses: PartitionRun[];
}

/** One partition of a request: its batch on the way to the disk, and at the same time what the answer says of it. */
class PartitionRun
  implements AppendWaiter, RemoteAppendWaiter, ProduceResponsePartitionProduceResponseInput
{
  readonly index: number;
  errorCode: ErrorCode = ErrorCode.NONE;
  baseOffset = -1;
  logAppendTimeMs = -1n;
  logStartOffset = -1;
  recordErrors: { batchIndex: number; batchIndexErrorMessage: string }[] = noRecordErrors;
  errorMessage: string | null = null;
  currentLeader: CurrentLeader | undefined = undefined;
  endOffset = 0;
  /** The acknowledgement is still due. */
  isDue: boolean = false;
  readonly topic: TopicRun;
  readonly data: ProduceRequestPartitionProduceData;
  readonly #run: ProduceRun;

  constructor(run: ProduceRun, topic: TopicRun, data: ProduceRequestPartitionProduceData) {
    this.#run = run;
    this.topic = topic;
    this.data = data;
    this.index = data.index;
  }

  onRefused(error: ErrorCode, message: string | null): void {
    this.#run.onWritten(this, error, message);
  }

  onAppended(baseOffset: number, logAppendTimeMs: bigint, logStartOffset: number): void {
    this.baseOffset = baseOffset;
    this.logAppendTimeMs = logAppendTimeMs;
    this.logStartOffset = logStartOffset;
  }

  onWritten(error: ErrorCode): void {
    this.#run.onWritten(this, error);
  }

  onCommitted(error: ErrorCode): void {
    this.#run.onAcknowledged(this, error);
  }
}
