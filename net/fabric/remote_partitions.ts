/**
 * Partitions of other shards, as the handlers of this one use them: each call is a request descriptor to the owner, each
 * answer comes back in a later turn.
 *
 * Thread: the connection's shard. Memory: a batch stays in this shard's slab, which the owner reads and stamps until it
 * says `written`; a slice that was found is pinned at the owner until it is unpinned here. Durable: what `onCommitted`
 * says of a leader holds, since it is the leader that says it.
 */
import assert from 'node:assert/strict';
import type { BatchInfo } from '../../engine/batch/rules.ts';
import type { ErrorCode } from '../../engine/error_code.gen.ts';
import type { Exchange } from '../../engine/thread/link.ts';
import type { Words } from '../../engine/thread/ring.ts';
import type { HeldSlice, Look, LookRequest } from '../partition_look.ts';
import type { EpochEndAnswer, OffsetAnswer } from '../partition_offsets.ts';
import type { Peer } from './peer.ts';
import type { PlacedPartition } from './placements.ts';
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
  readText,
  WrittenWord,
} from './wire.ts';

/** Who appended a batch to a partition of another shard. */
export interface RemoteAppendWaiter {
  /** The owner did not take the batch; nothing else is called. */
  onRefused(error: ErrorCode, message: string | null): void;
  /** The owner took it, or had it already. Comes right before `onWritten`. */
  onAppended(baseOffset: number, logAppendTimeMs: bigint, logStartOffset: number): void;
  /** As `AppendWaiter.onWritten`. */
  onWritten(error: ErrorCode): void;
  /** As `AppendWaiter.onCommitted`. */
  onCommitted(error: ErrorCode): void;
}

export class RemotePartitions {
  readonly #peers: readonly (Peer | undefined)[];

  /** @param peers by the number of their shard */
  constructor(peers: readonly (Peer | undefined)[]) {
    this.#peers = peers;
  }

  /** Appends a batch that has been validated. It lies in slab `slabId` of this thread and stays as it is until `onWritten`. */
  append(
    placed: PlacedPartition,
    slabId: number,
    batch: Uint8Array,
    info: BatchInfo,
    allReplicas: boolean,
    nowMs: number,
    waiter: RemoteAppendWaiter,
  ): void {
    const { asker, announcer } = this.#peer(placed);
    const { buffer } = batch;
    assert(buffer instanceof SharedArrayBuffer, 'a batch outside of the slabs');
    announcer.announce(slabId, buffer);
    const { numbers, longs } = asker.words;
    numbers[partitionWord] = placed.number;
    numbers[AppendWord.slab] = slabId;
    numbers[AppendWord.start] = batch.byteOffset;
    numbers[AppendWord.length] = batch.length;
    numbers[AppendWord.flags] =
      (allReplicas ? AppendFlag.allReplicas : 0) |
      (info.isTransactional ? AppendFlag.isTransactional : 0) |
      (info.rewriteHeader ? AppendFlag.rewriteHeader : 0);
    numbers[AppendWord.nowMs] = nowMs;
    numbers[AppendWord.lastOffsetDelta] = info.lastOffsetDelta;
    numbers[AppendWord.producerId] = info.producerId;
    numbers[AppendWord.producerEpoch] = info.producerEpoch;
    numbers[AppendWord.baseSequence] = info.baseSequence;
    longs[AppendWord.maxTimestamp] = info.maxTimestamp;
    asker.ask(Ask.append, new RemoteAppend(waiter), allReplicas ? 2 : 1, true);
  }

  /**
   * Looks at a partition for a fetch; the first batch is found whatever its size.
   * @param watch have `PlacedPartition.moves` count the next move of the high watermark after this look; for a follower
   *   the next write
   * @param replica the follower that fetches; null: a client
   */
  look(
    placed: PlacedPartition,
    asked: LookRequest,
    isReadCommitted: boolean,
    watch: boolean,
    replica: { readonly brokerId: number; readonly brokerEpoch: number } | null,
    onLooked: (look: Look) => void,
  ): void {
    const peer = this.#peer(placed);
    const { numbers } = peer.asker.words;
    numbers[partitionWord] = placed.number;
    numbers[LookWord.fetchOffset] = asked.fetchOffset;
    numbers[LookWord.maxBytes] = asked.maxBytes;
    numbers[LookWord.currentLeaderEpoch] = asked.currentLeaderEpoch;
    numbers[LookWord.lastFetchedEpoch] = asked.lastFetchedEpoch;
    numbers[LookWord.flags] =
      (isReadCommitted ? LookFlag.readCommitted : 0) | (watch ? LookFlag.watch : 0);
    numbers[LookWord.replicaId] = replica?.brokerId ?? -1;
    numbers[LookWord.replicaEpoch] = replica?.brokerEpoch ?? -1;
    const onAnswer = (words: Words, at: number): void => onLooked(readLook(peer, words, at));
    peer.asker.ask(Ask.look, { onAnswer }, 1, false);
  }

  /** As `findOffset` of `partition_offsets.ts`. */
  findOffset(
    placed: PlacedPartition,
    currentLeaderEpoch: number,
    timestamp: bigint,
    isolationLevel: number,
  ): Promise<OffsetAnswer> {
    const { asker } = this.#peer(placed);
    const { numbers, longs } = asker.words;
    numbers[partitionWord] = placed.number;
    numbers[FindOffsetWord.currentLeaderEpoch] = currentLeaderEpoch;
    numbers[FindOffsetWord.isolationLevel] = isolationLevel;
    longs[FindOffsetWord.timestamp] = timestamp;
    return new Promise((resolve) => {
      const onAnswer = (words: Words, at: number): void =>
        resolve({
          errorCode: words.numbers[at + errorWord] as ErrorCode,
          offset: words.numbers[at + FoundOffsetWord.offset] as number,
          timestamp: words.longs[at + FoundOffsetWord.timestamp] as bigint,
          leaderEpoch: words.numbers[at + FoundOffsetWord.leaderEpoch] as number,
        });
      asker.ask(Ask.findOffset, { onAnswer }, 1, false);
    });
  }

  /** As `endOfEpoch` of `partition_offsets.ts`. */
  endOfEpoch(
    placed: PlacedPartition,
    currentLeaderEpoch: number,
    epoch: number,
  ): Promise<EpochEndAnswer> {
    const { asker } = this.#peer(placed);
    const { numbers } = asker.words;
    numbers[partitionWord] = placed.number;
    numbers[EndOfEpochWord.currentLeaderEpoch] = currentLeaderEpoch;
    numbers[EndOfEpochWord.epoch] = epoch;
    return new Promise((resolve) => {
      const onAnswer = (words: Words, at: number): void =>
        resolve({
          errorCode: words.numbers[at + errorWord] as ErrorCode,
          leaderEpoch: words.numbers[at + EndedWord.epoch] as number,
          endOffset: words.numbers[at + EndedWord.endOffset] as number,
        });
      asker.ask(Ask.endOfEpoch, { onAnswer }, 1, false);
    });
  }

  #peer({ shard }: PlacedPartition): Peer {
    const peer = this.#peers[shard];
    assert(peer !== undefined, `no shard ${shard} to talk to`);
    return peer;
  }
}

class RemoteAppend implements Exchange {
  readonly #waiter: RemoteAppendWaiter;

  constructor(waiter: RemoteAppendWaiter) {
    this.#waiter = waiter;
  }

  onAnswer(words: Words, at: number): void {
    const { numbers, longs } = words;
    const kind = numbers[at];
    const error = numbers[at + errorWord] as ErrorCode;
    if (kind === Answer.refused) this.#waiter.onRefused(error, readText(words, at));
    else if (kind === Answer.committed) this.#waiter.onCommitted(error);
    else {
      this.#waiter.onAppended(
        numbers[at + WrittenWord.baseOffset] as number,
        longs[at + WrittenWord.logAppendTimeMs] as bigint,
        numbers[at + WrittenWord.logStartOffset] as number,
      );
      this.#waiter.onWritten(error);
    }
  }
}

/** A segment that its owner keeps open for us. */
class RemotePin {
  readonly #peer: Peer;
  readonly #pin: number;

  constructor(peer: Peer, pin: number) {
    this.#peer = peer;
    this.#pin = pin;
  }

  unpin(): void {
    const { asker } = this.#peer;
    asker.words.numbers[pinWord] = this.#pin;
    asker.ask(Ask.unpin, null, 0, false);
  }
}

function readLook(peer: Peer, { numbers }: Words, at: number): Look {
  return {
    errorCode: numbers[at + errorWord] as ErrorCode,
    slice: readSlice(peer, numbers, at),
    bytes: numbers[at + LookedWord.bytes] as number,
    diverging:
      numbers[at + LookedWord.isDiverging] === 1
        ? {
            epoch: numbers[at + LookedWord.divergingEpoch] as number,
            endOffset: numbers[at + LookedWord.divergingEnd] as number,
          }
        : null,
    cold: null,
    highWatermark: numbers[at + LookedWord.highWatermark] as number,
    lastStableOffset: numbers[at + LookedWord.lastStableOffset] as number,
    logStartOffset: numbers[at + LookedWord.logStartOffset] as number,
  };
}

function readSlice(peer: Peer, numbers: Float64Array, at: number): HeldSlice | null {
  const pin = numbers[at + LookedWord.pin] as number;
  if (pin < 0) return null;
  return {
    segment: new RemotePin(peer, pin),
    fd: numbers[at + LookedWord.fd] as number,
    position: numbers[at + LookedWord.position] as number,
    length: numbers[at + LookedWord.length] as number,
  };
}
