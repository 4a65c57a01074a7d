/**
 * Does for other shards what they ask of the partitions of this one, and tells them what they wait for.
 *
 * Thread: the partitions' shard. Memory: batches are appended from where they lie in the asking shard's slab, which
 * keeps them there until it is told `written`. Durable: as the leader says, see `replication/partition/leader.ts`.
 */
import assert from 'node:assert/strict';
import { newBatchInfo } from '../../engine/batch/rules.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { newAppendResult } from '../../engine/log/append_result.ts';
import type { ReadAhead } from '../../engine/read_ahead.ts';
import type { Words } from '../../engine/thread/ring.ts';
import type { FollowersWait, PartitionLeader } from '../../replication/partition/leader.ts';
import { coldTriesMax, lookUpWarm, warm } from '../cold_looks.ts';
import {
  failedLook,
  type HeldSlice,
  type Look,
  type LookingReplica,
  type LookRequest,
  lookAt,
} from '../partition_look.ts';
import {
  endOfEpoch,
  findOffset,
  type OffsetAnswer,
  refusedEpoch,
  refusedOffset,
} from '../partition_offsets.ts';
import type { PartitionTable } from '../partition_table.ts';
import type { ShardLogger } from '../shard_context.ts';
import type { FollowerServer } from './follower_server.ts';
import type { Peer } from './peer.ts';
import type { Placements } from './placements.ts';
import { RemoteWaiter } from './remote_waiter.ts';
import {
  Answer,
  AppendFlag,
  AppendWord,
  Ask,
  EndedWord,
  EndOfEpochWord,
  errorWord,
  FindOffsetWord,
  FoundOffsetWord,
  LookedWord,
  LookFlag,
  LookWord,
  partitionWord,
  pinWord,
  writeText,
} from './wire.ts';

export interface PartitionServerOptions {
  readonly partitions: PartitionTable;
  readonly placements: Placements;
  /** For what the replication thread asks. */
  readonly followers: FollowerServer;
  readonly readAhead: ReadAhead;
  readonly logger: ShardLogger;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
}

interface Watched {
  readonly number: number;
  readonly peers: Set<Peer>;
}

export class PartitionServer {
  readonly #options: PartitionServerOptions;
  /** Reused for every batch: nothing of them is kept beyond the append. */
  readonly #info = newBatchInfo();
  readonly #result = newAppendResult();
  /** Segments that other shards send from, by pin; null: free. */
  readonly #pins: (HeldSlice['segment'] | null)[] = [];
  readonly #freePins: number[] = [];
  /** Who wants to know when the high watermark moves, or of a write, for followers; forgotten once told. */
  readonly #watched = new Map<PartitionLeader | FollowersWait, Watched>();

  constructor(options: PartitionServerOptions) {
    this.#options = options;
  }

  /** Segments pinned for other shards. */
  get pinnedCount(): number {
    return this.#pins.length - this.#freePins.length;
  }

  /** Serves one request; false: it needs a slab that is not announced yet, and has to be shown again. */
  serve(peer: Peer, words: Words, at: number): boolean {
    switch (words.numbers[at]) {
      case Ask.append:
        return this.#append(peer, words, at);
      case Ask.look:
        this.#look(peer, words, at);
        return true;
      case Ask.unpin:
        this.#unpin(words.numbers[at + pinWord] as number);
        return true;
      case Ask.findOffset:
        this.#findOffset(peer, words, at);
        return true;
      case Ask.endOfEpoch:
        this.#endOfEpoch(peer, words, at);
        return true;
      case Ask.replicate:
        return this.#options.followers.replicate(peer, words, at);
      case Ask.followerState:
        this.#options.followers.state(peer, words, at);
        return true;
      default:
        return assert.fail(`a request of kind ${words.numbers[at]}`);
    }
  }

  /** The partition has more to read, for consumers or for followers, or takes no requests any more. */
  moved(what: PartitionLeader | FollowersWait): void {
    if (this.#watched.size === 0) return;
    const watched = this.#watched.get(what);
    if (watched === undefined) return;
    this.#watched.delete(what);
    for (const peer of watched.peers) peer.answerer.tell(watched.number);
  }

  /** Undefined: its log is not open, or the topic is gone and the asking shard has not heard of it. */
  #leader({ numbers }: Words, at: number): PartitionLeader | undefined {
    return this.#leaderOf(numbers[at + partitionWord] as number);
  }

  #leaderOf(number: number): PartitionLeader | undefined {
    const placed = this.#options.placements.byNumber(number);
    if (placed === undefined) return undefined;
    return this.#options.partitions.byId(placed.topicId, placed.partition);
  }

  #append(peer: Peer, words: Words, at: number): boolean {
    const { numbers, longs } = words;
    const view = peer.views.find(numbers[at + AppendWord.slab] as number);
    if (view === undefined) return false;
    const exchange = numbers[at + 1] as number;
    const leader = this.#leader(words, at);
    if (leader === undefined) {
      refuse(peer, exchange, ErrorCode.NOT_LEADER_OR_FOLLOWER, null);
      return true;
    }
    const info = this.#info;
    const result = this.#result;
    const flags = numbers[at + AppendWord.flags] as number;
    info.lastOffsetDelta = numbers[at + AppendWord.lastOffsetDelta] as number;
    info.recordCount = info.lastOffsetDelta + 1;
    info.producerId = numbers[at + AppendWord.producerId] as number;
    info.producerEpoch = numbers[at + AppendWord.producerEpoch] as number;
    info.baseSequence = numbers[at + AppendWord.baseSequence] as number;
    info.maxTimestamp = longs[at + AppendWord.maxTimestamp] as bigint;
    info.isTransactional = (flags & AppendFlag.isTransactional) !== 0;
    info.rewriteHeader = (flags & AppendFlag.rewriteHeader) !== 0;
    const allReplicas = (flags & AppendFlag.allReplicas) !== 0;
    const waiter = new RemoteWaiter(peer.answerer, exchange, allReplicas);
    const error = leader.append(
      view,
      numbers[at + AppendWord.start] as number,
      numbers[at + AppendWord.length] as number,
      info,
      allReplicas,
      numbers[at + AppendWord.nowMs] as number,
      waiter,
      result,
    );
    if (error !== ErrorCode.NONE) refuse(peer, exchange, error, result.errorMessage);
    else waiter.begin(result.baseOffset, result.logAppendTimeMs, leader.log.logStartOffset);
    return true;
  }

  #look(peer: Peer, words: Words, at: number): void {
    const { numbers } = words;
    const flags = numbers[at + LookWord.flags] as number;
    const number = numbers[at + partitionWord] as number;
    const leader = this.#leaderOf(number);
    const replica = this.#replicaOf(numbers, at);
    if (leader !== undefined && (flags & LookFlag.watch) !== 0)
      this.#watch(replica === null ? leader : leader.followers, number, peer);
    const asked: LookRequest = {
      fetchOffset: numbers[at + LookWord.fetchOffset] as number,
      maxBytes: numbers[at + LookWord.maxBytes] as number,
      currentLeaderEpoch: numbers[at + LookWord.currentLeaderEpoch] as number,
      lastFetchedEpoch: numbers[at + LookWord.lastFetchedEpoch] as number,
    };
    const isReadCommitted = (flags & LookFlag.readCommitted) !== 0;
    this.#tryLook(peer, numbers[at + 1] as number, number, asked, isReadCommitted, replica, 0);
  }

  /** Null: a client looks. */
  #replicaOf(numbers: Float64Array, at: number): LookingReplica | null {
    const brokerId = numbers[at + LookWord.replicaId] as number;
    if (brokerId < 0) return null;
    const brokerEpoch = numbers[at + LookWord.replicaEpoch] as number;
    return { brokerId, brokerEpoch, nowMs: this.#options.nowMs() };
  }

  /** Answers now, or when what the look missed has come from the device. */
  #tryLook(
    peer: Peer,
    exchange: number,
    number: number,
    asked: LookRequest,
    isReadCommitted: boolean,
    replica: LookingReplica | null,
    tries: number,
  ): void {
    const leader = this.#leaderOf(number);
    const look =
      leader === undefined
        ? failedLook(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        : lookAt(
            leader,
            asked,
            asked.maxBytes,
            true,
            isReadCommitted,
            tries >= coldTriesMax,
            replica,
          );
    if (look.cold === null) this.#answerLook(peer, exchange, look);
    else
      warm(this.#options.readAhead, peer, [look.cold], () =>
        this.#tryLook(peer, exchange, number, asked, isReadCommitted, replica, tries + 1),
      );
  }

  #answerLook({ answerer }: Peer, exchange: number, look: Look): void {
    const { slice, diverging } = look;
    const { numbers } = answerer.words;
    numbers[errorWord] = look.errorCode;
    numbers[LookedWord.pin] = slice === null ? -1 : this.#pin(slice);
    numbers[LookedWord.fd] = slice?.fd ?? -1;
    numbers[LookedWord.position] = slice?.position ?? 0;
    numbers[LookedWord.length] = slice?.length ?? 0;
    numbers[LookedWord.highWatermark] = look.highWatermark;
    numbers[LookedWord.lastStableOffset] = look.lastStableOffset;
    numbers[LookedWord.logStartOffset] = look.logStartOffset;
    numbers[LookedWord.bytes] = look.bytes;
    numbers[LookedWord.isDiverging] = diverging === null ? 0 : 1;
    numbers[LookedWord.divergingEpoch] = diverging?.epoch ?? -1;
    numbers[LookedWord.divergingEnd] = diverging?.endOffset ?? -1;
    answerer.answer(Answer.looked, exchange, true);
  }

  #watch(what: PartitionLeader | FollowersWait, number: number, peer: Peer): void {
    const watched = this.#watched.get(what);
    if (watched === undefined) this.#watched.set(what, { number, peers: new Set([peer]) });
    else watched.peers.add(peer);
  }

  /** The look has pinned it; from now on the asking shard says when it is done. */
  #pin({ segment }: HeldSlice): number {
    const pin = this.#freePins.pop() ?? this.#pins.length;
    this.#pins[pin] = segment;
    return pin;
  }

  #unpin(pin: number): void {
    const segment = this.#pins[pin];
    if (segment === null || segment === undefined) assert.fail(`pin ${pin} is not held`);
    this.#pins[pin] = null;
    this.#freePins.push(pin);
    segment.unpin();
  }

  #findOffset(peer: Peer, words: Words, at: number): void {
    const { numbers, longs } = words;
    const { logger, readAhead } = this.#options;
    const number = numbers[at + partitionWord] as number;
    const exchange = numbers[at + 1] as number;
    const currentLeaderEpoch = numbers[at + FindOffsetWord.currentLeaderEpoch] as number;
    const timestamp = longs[at + FindOffsetWord.timestamp] as bigint;
    const isolationLevel = numbers[at + FindOffsetWord.isolationLevel] as number;
    const lookUp = (mayWait: boolean): OffsetAnswer => {
      const leader = this.#leaderOf(number);
      if (leader === undefined) return refusedOffset(ErrorCode.NOT_LEADER_OR_FOLLOWER);
      return findOffset(leader, currentLeaderEpoch, timestamp, isolationLevel, logger, mayWait);
    };
    const answer = (found: OffsetAnswer): void => {
      const target = peer.answerer.words;
      target.numbers[errorWord] = found.errorCode;
      target.numbers[FoundOffsetWord.offset] = found.offset;
      target.longs[FoundOffsetWord.timestamp] = found.timestamp;
      target.numbers[FoundOffsetWord.leaderEpoch] = found.leaderEpoch;
      peer.answerer.answer(Answer.foundOffset, exchange, true);
    };
    const found = lookUpWarm(readAhead, peer, lookUp);
    if (found instanceof Promise) void found.then(answer);
    else answer(found);
  }

  #endOfEpoch({ answerer }: Peer, words: Words, at: number): void {
    const { numbers } = words;
    const leader = this.#leader(words, at);
    const ended =
      leader === undefined
        ? refusedEpoch(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        : endOfEpoch(
            leader,
            numbers[at + EndOfEpochWord.currentLeaderEpoch] as number,
            numbers[at + EndOfEpochWord.epoch] as number,
          );
    const target = answerer.words.numbers;
    target[errorWord] = ended.errorCode;
    target[EndedWord.epoch] = ended.leaderEpoch;
    target[EndedWord.endOffset] = ended.endOffset;
    answerer.answer(Answer.endOfEpoch, numbers[at + 1] as number, true);
  }
}

function refuse({ answerer }: Peer, exchange: number, error: ErrorCode, text: string | null): void {
  answerer.words.numbers[errorWord] = error;
  writeText(answerer.words, text ?? '');
  answerer.answer(Answer.refused, exchange, true);
}
