/**
 * The partitions that this broker follows, as the replication thread brings them what it has fetched: each call is a
 * request descriptor to the owner, the answer comes back in a later turn.
 *
 * Thread: the replication thread. Memory: records stay in its slab, which the owner reads, until the answer. Durable: what
 * an answer says is as the owner's follower says it, see `replication/partition/follower.ts`.
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { Exchange } from '../../engine/thread/link.ts';
import type { Words } from '../../engine/thread/ring.ts';
import type { FetchPosition, LeaderAnswer } from '../../replication/partition/fetch_exchange.ts';
import type { Peer } from './peer.ts';
import type { PlacedPartition } from './placements.ts';
import {
  Ask,
  errorWord,
  FollowedWord,
  FollowerStateWord,
  partitionWord,
  ReplicateWord,
} from './wire.ts';

/** Where the follower's log ends now; null with an error. */
export type OnFollowed = (error: ErrorCode, position: FetchPosition | null) => void;

export class RemoteFollowers {
  readonly #peers: readonly (Peer | undefined)[];

  /** @param peers by the number of their shard */
  constructor(peers: readonly (Peer | undefined)[]) {
    this.#peers = peers;
  }

  /** Where the partition's log ends, for fetches from the leader of this epoch. */
  state(placed: PlacedPartition, leaderEpoch: number, onFollowed: OnFollowed): void {
    const { asker } = this.#peer(placed);
    const { numbers } = asker.words;
    numbers[partitionWord] = placed.number;
    numbers[FollowerStateWord.leaderEpoch] = leaderEpoch;
    asker.ask(Ask.followerState, new FollowedExchange(onFollowed), 1, true);
  }

  /**
   * Brings what the leader of this epoch has answered. Records lie in slab `slabId` of this thread, and stay as they are
   * until the answer.
   * @param onFollowed null: nobody waits for the answer; without records only
   */
  replicate(
    placed: PlacedPartition,
    leaderEpoch: number,
    answer: LeaderAnswer,
    slabId: number,
    onFollowed: OnFollowed | null,
  ): void {
    const { asker, announcer } = this.#peer(placed);
    const { records, diverging } = answer;
    const { numbers } = asker.words;
    numbers[ReplicateWord.slab] = -1;
    if (records !== null && records.length > 0) {
      const { buffer } = records;
      assert(buffer instanceof SharedArrayBuffer, 'records outside of the slabs');
      assert(onFollowed !== null, 'records that nobody waits for');
      announcer.announce(slabId, buffer);
      numbers[ReplicateWord.slab] = slabId;
      numbers[ReplicateWord.start] = records.byteOffset;
      numbers[ReplicateWord.length] = records.length;
    }
    numbers[partitionWord] = placed.number;
    numbers[ReplicateWord.leaderEpoch] = leaderEpoch;
    numbers[ReplicateWord.errorCode] = answer.errorCode;
    numbers[ReplicateWord.highWatermark] = answer.highWatermark;
    numbers[ReplicateWord.logStartOffset] = answer.logStartOffset;
    numbers[ReplicateWord.isDiverging] = diverging === null ? 0 : 1;
    numbers[ReplicateWord.divergingEpoch] = diverging?.epoch ?? -1;
    numbers[ReplicateWord.divergingEnd] = diverging?.endOffset ?? -1;
    const exchange = onFollowed === null ? null : new FollowedExchange(onFollowed);
    asker.ask(Ask.replicate, exchange, exchange === null ? 0 : 1, true);
  }

  #peer({ shard }: PlacedPartition): Peer {
    const peer = this.#peers[shard];
    assert(peer !== undefined, `no shard ${shard} to talk to`);
    return peer;
  }
}

class FollowedExchange implements Exchange {
  readonly #onFollowed: OnFollowed;

  constructor(onFollowed: OnFollowed) {
    this.#onFollowed = onFollowed;
  }

  onAnswer({ numbers }: Words, at: number): void {
    const error = numbers[at + errorWord] as ErrorCode;
    if (error !== ErrorCode.NONE) {
      this.#onFollowed(error, null);
      return;
    }
    this.#onFollowed(error, {
      fetchOffset: numbers[at + FollowedWord.fetchOffset] as number,
      lastFetchedEpoch: numbers[at + FollowedWord.lastFetchedEpoch] as number,
      logStartOffset: numbers[at + FollowedWord.logStartOffset] as number,
    });
  }
}
