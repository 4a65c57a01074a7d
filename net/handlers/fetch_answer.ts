/** What the answer to a fetch says of its partitions. Thread: the connection's shard; lives as long as one answer is made. */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { type CurrentLeader, CurrentLeaders, type NodeEndpoint } from '../current_leaders.ts';
import { type HeldSlice, type Look, nothingNew } from '../partition_look.ts';
import type {
  FetchResponseFetchableTopicResponseInput,
  FetchResponsePartitionDataInput,
} from '../protocol/messages.gen.ts';
import type { FetchPartition } from '../server/fetch_sessions.ts';
import type { FileRange } from '../server/file_range.ts';
import type { RequestContext } from '../server/request_context.ts';
import type { ShardServices } from '../shard_services.ts';

/** Fetch requests name topics by id from this version on. */
export const topicIdsSince = 13;
/** Older clients take KAFKA_STORAGE_ERROR for a fatal one: this one makes them try again. */
const storageErrorSince = 6;
/** Answers have addresses of leaders from this version on (KIP-951). */
const leadersSince = 16;
const noBytes = new Uint8Array(0);

export interface FetchAnswerOptions {
  /** Only what is news to the client is said (KIP-227). */
  readonly incremental: boolean;
  readonly isReadCommitted: boolean;
  /** A follower's, not a consumer's. */
  readonly isFollowers: boolean;
}

export class FetchAnswer {
  readonly responses: FetchResponseFetchableTopicResponseInput[] = [];
  readonly #services: ShardServices;
  readonly #ctx: RequestContext;
  readonly #options: FetchAnswerOptions;
  /** Null: nobody has been asked in vain. */
  #leaders: CurrentLeaders | null = null;
  #partitions: FetchResponsePartitionDataInput[] = [];
  #last: FetchPartition | null = null;

  constructor(services: ShardServices, ctx: RequestContext, options: FetchAnswerOptions) {
    this.#services = services;
    this.#ctx = ctx;
    this.#options = options;
  }

  get nodeEndpoints(): readonly NodeEndpoint[] | undefined {
    return this.#leaders?.nodeEndpoints;
  }

  /** Adds what was found in the next partition, and notes what the client hears of it. False: there is no need to. */
  add(asked: FetchPartition, look: Look): boolean {
    if (!this.#isNews(asked, look)) return false;
    const last = this.#last;
    if (last === null || last.topic !== asked.topic || last.topicId !== asked.topicId) {
      this.#partitions = [];
      const { topic, topicId } = asked;
      this.responses.push({ topic, topicId, partitions: this.#partitions });
    }
    this.#last = asked;
    this.#partitions.push(this.#partitionData(asked, look));
    return true;
  }

  #isNews(asked: FetchPartition, look: Look): boolean {
    if (look === nothingNew) return false;
    const { logStartOffset } = look;
    // As in Kafka: when the error or the difference has gone, the follower is told what it had no use for.
    const isPlain = look.errorCode === ErrorCode.NONE && look.diverging === null;
    const highWatermark = isPlain ? look.highWatermark : -1;
    const news =
      !this.#options.incremental ||
      look.slice !== null ||
      look.diverging !== null ||
      look.errorCode !== ErrorCode.NONE ||
      highWatermark !== asked.toldHighWatermark ||
      logStartOffset !== asked.toldLogStartOffset;
    asked.toldHighWatermark = highWatermark;
    asked.toldLogStartOffset = logStartOffset;
    return news;
  }

  #partitionData(asked: FetchPartition, look: Look): FetchResponsePartitionDataInput {
    const { errorCode } = look;
    const { apiVersion } = this.#ctx;
    const { isFollowers, isReadCommitted } = this.#options;
    // A follower whose end is out of range has to know where to go on.
    const isTold = isFollowers && errorCode === ErrorCode.OFFSET_OUT_OF_RANGE;
    const served = errorCode === ErrorCode.NONE || isTold;
    const isKnown = errorCode !== ErrorCode.KAFKA_STORAGE_ERROR || apiVersion >= storageErrorSince;
    const isMoved =
      errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER || errorCode === ErrorCode.FENCED_LEADER_EPOCH;
    const isLed = isMoved && apiVersion >= leadersSince;
    return {
      partitionIndex: asked.partition,
      errorCode: isKnown ? errorCode : ErrorCode.NOT_LEADER_OR_FOLLOWER,
      highWatermark: served ? look.highWatermark : -1,
      lastStableOffset: served ? look.lastStableOffset : -1,
      logStartOffset: served ? look.logStartOffset : -1,
      divergingEpoch: look.diverging ?? undefined,
      currentLeader: isLed ? this.#leaderOf(asked) : undefined,
      abortedTransactions: isReadCommitted ? [] : null,
      records: look.slice === null ? noBytes : rangeOf(look.slice),
    };
  }

  /** Versions that have the field have topic ids. */
  #leaderOf({ topicId, partition }: FetchPartition): CurrentLeader | undefined {
    const { image } = this.#services;
    this.#leaders ??= new CurrentLeaders(image, this.#ctx.connection.listener);
    return this.#leaders.name(image.topicById(topicId), partition);
  }
}

/** The records as a range of their file; the pin goes along, and ends when the range has been sent. */
function rangeOf({ segment, fd, position, length }: HeldSlice): FileRange {
  return { fd, position, byteLength: length, pin: segment };
}
