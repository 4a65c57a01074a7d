/**
 * One fetch request from its first look at the logs to its answer.
 *
 * Thread: the connection's shard. A look pins the segments that it finds records in, since a look at the next partition
 * may close the files of others; it ends in an answer or lets go of them, so that a parked fetch holds nothing.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { LogSlice } from '../../engine/log/log_slice.ts';
import type { PartitionLeader } from '../../replication/partition/leader.ts';
import type {
  FetchRequest,
  FetchResponseFetchableTopicResponseInput,
  FetchResponsePartitionDataInput,
} from '../protocol/messages.gen.ts';
import {
  type FetchPartition,
  type FetchSession,
  type FetchSessionResult,
  moveToEnd,
} from '../server/fetch_sessions.ts';
import type { FileRange } from '../server/file_range.ts';
import type { Parkable, Parked } from '../server/purgatory.ts';
import type { RequestContext } from '../server/request_context.ts';
import type { ShardServices } from '../shard_services.ts';

const readCommitted = 1;
/** Fetch requests name topics by id from this version on. */
export const topicIdsSince = 13;
/** Older clients take KAFKA_STORAGE_ERROR for a fatal one: this one makes them try again. */
const storageErrorSince = 6;
const noBytes = new Uint8Array(0);

/** What one look at a partition found. */
interface Found {
  readonly asked: FetchPartition;
  readonly leader: PartitionLeader | null;
  errorCode: ErrorCode;
  /** Null: nothing to read. Pinned. */
  slice: LogSlice | null;
  /** What it counts towards `min_bytes`; Infinity: no use waiting for more of it. */
  bytes: number;
  /** Where the client's log leaves ours (KIP-595); null: it does not. */
  diverging: { epoch: number; endOffset: number } | null;
}

type Resolved = Extract<FetchSessionResult, { error: 0 }>;

export class FetchRun implements Parkable {
  readonly #services: ShardServices;
  readonly #ctx: RequestContext;
  readonly #request: FetchRequest;
  readonly #sessionId: number;
  readonly #session: FetchSession | null;
  readonly #incremental: boolean;
  readonly #partitions: readonly FetchPartition[];
  #parked: Parked<PartitionLeader> | null = null;

  constructor(
    services: ShardServices,
    ctx: RequestContext,
    request: FetchRequest,
    resolved: Resolved,
  ) {
    this.#services = services;
    this.#ctx = ctx;
    this.#request = request;
    this.#sessionId = resolved.sessionId;
    this.#session = resolved.session;
    this.#incremental = resolved.incremental;
    // A copy: answering moves partitions to the end of the session that it came from.
    this.#partitions = [...resolved.partitions];
  }

  start(): void {
    const found = this.#look();
    if (this.#partitions.length === 0 || this.#request.maxWaitMs <= 0 || this.#isEnough(found)) {
      this.#answer(found);
      return;
    }
    letGo(found);
    const leaders = found.flatMap(({ leader }) => (leader === null ? [] : [leader]));
    this.#parked = this.#services.purgatory.park(this, leaders, this.#request.maxWaitMs);
    this.#ctx.onAbort = () => {
      if (this.#parked !== null) this.#services.purgatory.cancel(this.#parked);
    };
  }

  tryComplete(): boolean {
    const found = this.#look();
    const isEnough = this.#isEnough(found);
    if (isEnough) this.#answer(found);
    else letGo(found);
    return isEnough;
  }

  expire(): void {
    this.#answer(this.#look());
  }

  get #maxBytes(): number {
    return Math.min(this.#request.maxBytes, this.#services.config.fetchMaxBytes);
  }

  /** Looks at every partition in turn. The first batch of all is found whatever its size, so that readers progress. */
  #look(): Found[] {
    let bytesLeft = this.#maxBytes;
    let first = true;
    return this.#partitions.map((asked) => {
      const found = this.#lookAt(asked, bytesLeft, first);
      if (found.slice !== null) {
        bytesLeft = Math.max(0, bytesLeft - found.slice.length);
        first = false;
      }
      return found;
    });
  }

  #lookAt(asked: FetchPartition, bytesLeft: number, first: boolean): Found {
    const leader = this.#find(asked);
    if (typeof leader === 'number') return newFound(asked, null, leader);
    const epochError = leader.checkEpoch(asked.currentLeaderEpoch);
    if (epochError !== ErrorCode.NONE) return newFound(asked, leader, epochError);
    const found = newFound(asked, leader, ErrorCode.NONE);
    const { log } = leader;
    const { fetchOffset } = asked;
    found.diverging = divergence(asked, leader);
    if (found.diverging?.epoch === -1)
      return newFound(asked, leader, ErrorCode.OFFSET_OUT_OF_RANGE);
    if (found.diverging !== null) return found;
    if (fetchOffset < log.logStartOffset || fetchOffset > log.logEndOffset)
      return newFound(asked, leader, ErrorCode.OFFSET_OUT_OF_RANGE);
    const end = this.#endFor(leader);
    if (fetchOffset >= end) return found;
    // There are records. What does not fit counts as what may be asked for of this partition, as in Kafka.
    found.bytes = Math.max(0, asked.maxBytes);
    const maxBytes = Math.min(bytesLeft, asked.maxBytes);
    if (maxBytes <= 0 && !first) return found;
    const slice = log.read(fetchOffset, maxBytes, end, first);
    if (typeof slice === 'object') take(found, slice);
    else found.errorCode = slice;
    return found;
  }

  /** The partition's leader here, or why there is none. */
  #find(asked: FetchPartition): PartitionLeader | ErrorCode {
    const { partitions, image } = this.#services;
    const byId = this.#ctx.apiVersion >= topicIdsSince;
    const replicaId =
      this.#ctx.apiVersion >= 15 ? this.#request.replicaState.replicaId : this.#request.replicaId;
    if (replicaId >= 0) return ErrorCode.REPLICA_NOT_AVAILABLE;
    const leader = byId
      ? partitions.byId(asked.topicId, asked.partition)
      : partitions.byName(asked.topic, asked.partition);
    if (leader !== undefined) return leader;
    const topic = byId ? image.topicById(asked.topicId) : image.topic(asked.topic);
    if (topic === undefined)
      return byId ? ErrorCode.UNKNOWN_TOPIC_ID : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
    return topic.partitions[asked.partition] === undefined
      ? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
      : ErrorCode.NOT_LEADER_OR_FOLLOWER;
  }

  #endFor(leader: PartitionLeader): number {
    return this.#request.isolationLevel === readCommitted
      ? leader.lastStableOffset
      : leader.highWatermark;
  }

  #isEnough(found: readonly Found[]): boolean {
    let bytes = 0;
    for (const one of found) {
      if (one.errorCode !== ErrorCode.NONE || one.diverging !== null) return true;
      bytes += one.bytes;
    }
    // More than may be sent is not worth waiting for.
    return bytes >= Math.min(this.#request.minBytes, this.#maxBytes);
  }

  #answer(found: readonly Found[]): void {
    this.#ctx.onAbort = null;
    const responses: FetchResponseFetchableTopicResponseInput[] = [];
    let partitions: FetchResponsePartitionDataInput[] = [];
    let last: FetchPartition | null = null;
    for (const one of found) {
      const { asked } = one;
      if (!this.#isNews(one)) continue;
      if (last === null || last.topic !== asked.topic || last.topicId !== asked.topicId) {
        partitions = [];
        responses.push({ topic: asked.topic, topicId: asked.topicId, partitions });
      }
      last = asked;
      partitions.push(this.#partitionData(one));
      if (one.slice !== null && this.#session !== null) moveToEnd(this.#session, asked);
    }
    const answer = { sessionId: this.#sessionId, responses };
    if (!this.#ctx.respond<'Fetch'>('FetchResponse', answer)) letGo(found);
  }

  /** Whether the client must hear of the partition, and notes what it hears. */
  #isNews(found: Found): boolean {
    const { asked, leader } = found;
    const highWatermark = found.errorCode === ErrorCode.NONE ? (leader?.highWatermark ?? -1) : -1;
    const logStartOffset = leader?.log.logStartOffset ?? -1;
    const news =
      !this.#incremental ||
      found.slice !== null ||
      found.diverging !== null ||
      found.errorCode !== ErrorCode.NONE ||
      highWatermark !== asked.toldHighWatermark ||
      logStartOffset !== asked.toldLogStartOffset;
    asked.toldHighWatermark = highWatermark;
    asked.toldLogStartOffset = logStartOffset;
    return news;
  }

  #partitionData(found: Found): FetchResponsePartitionDataInput {
    const { asked, leader, errorCode } = found;
    const served = errorCode === ErrorCode.NONE && leader !== null;
    const isKnown =
      errorCode !== ErrorCode.KAFKA_STORAGE_ERROR || this.#ctx.apiVersion >= storageErrorSince;
    return {
      partitionIndex: asked.partition,
      errorCode: isKnown ? errorCode : ErrorCode.NOT_LEADER_OR_FOLLOWER,
      highWatermark: served ? leader.highWatermark : -1,
      lastStableOffset: served ? leader.lastStableOffset : -1,
      logStartOffset: served ? leader.log.logStartOffset : -1,
      divergingEpoch: found.diverging ?? undefined,
      abortedTransactions: this.#request.isolationLevel === readCommitted ? [] : null,
      records: found.slice === null ? noBytes : rangeOf(found.slice),
    };
  }
}

function newFound(
  asked: FetchPartition,
  leader: PartitionLeader | null,
  errorCode: ErrorCode,
): Found {
  return { asked, leader, errorCode, slice: null, bytes: 0, diverging: null };
}

/** Notes the records that a look has found, and keeps their file open and in place. */
function take(found: Found, slice: LogSlice): void {
  slice.segment.pin();
  found.slice = slice;
  if (slice.end === 'segment') found.bytes = Number.POSITIVE_INFINITY;
  else if (slice.end === 'all') found.bytes = slice.length;
  else found.bytes = Math.max(found.bytes, slice.length);
}

/** Nothing of it will be sent. */
function letGo(found: readonly Found[]): void {
  for (const { slice } of found) slice?.segment.unpin();
}

/** Where the client's history leaves the leader's, if it told its last epoch (KIP-595); epoch -1: nowhere that we know. */
function divergence(asked: FetchPartition, leader: PartitionLeader): Found['diverging'] {
  if (asked.lastFetchedEpoch < 0) return null;
  const end = leader.log.endOffsetForEpoch(asked.lastFetchedEpoch);
  if (end.epoch === asked.lastFetchedEpoch && end.endOffset >= asked.fetchOffset) return null;
  return end;
}

/** The records as a range of their file; the pin goes along, and ends when the range has been sent. */
function rangeOf({ segment, fd, position, length }: LogSlice): FileRange {
  return { fd, position, byteLength: length, pin: segment };
}
