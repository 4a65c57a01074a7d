/**
 * Does for the replication thread what it asks of the partitions that this shard follows others in.
 *
 * Thread: the partitions' shard. Memory: records are appended from where they lie in the asking thread's slab, which keeps
 * them there until the answer. Durable: an answer says where the log ends once that is as safe as the topic asks.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { Answerer } from '../../engine/thread/link.ts';
import type { Words } from '../../engine/thread/ring.ts';
import type { PartitionFollower } from '../../replication/partition/follower.ts';
import type {
  FetchedPartition,
  ReplicationWaiter,
} from '../../replication/partition/follower_fetch.ts';
import type { Peer } from './peer.ts';
import {
  Answer,
  errorWord,
  FollowedWord,
  FollowerStateWord,
  partitionWord,
  ReplicateWord,
} from './wire.ts';

export interface FollowerServerOptions {
  /** By the partition's number; undefined: there is none, or this broker leads it. */
  readonly find: (number: number) => PartitionFollower | undefined;
  /** Wall clock. */
  readonly nowMs: () => number;
}

const nobody: ReplicationWaiter = { onWritten: () => {}, onReplicated: () => {} };

export class FollowerServer {
  readonly #options: FollowerServerOptions;

  constructor(options: FollowerServerOptions) {
    this.#options = options;
  }

  /** Where the log ends, when all of it is safe. */
  state({ answerer }: Peer, { numbers }: Words, at: number): void {
    const exchange = numbers[at + 1] as number;
    const leaderEpoch = numbers[at + FollowerStateWord.leaderEpoch] as number;
    const follower = this.#options.find(numbers[at + partitionWord] as number);
    if (follower === undefined) answer(answerer, exchange, ErrorCode.NOT_LEADER_OR_FOLLOWER, null);
    else
      follower.prepare((error) => {
        const refusal = error === ErrorCode.NONE ? refusalOf(follower, leaderEpoch) : error;
        answer(answerer, exchange, refusal, follower);
      });
  }

  /** False: its slab is not announced yet, and it has to be shown again. */
  replicate({ answerer, views }: Peer, words: Words, at: number): boolean {
    const { numbers } = words;
    const slab = numbers[at + ReplicateWord.slab] as number;
    let records: Uint8Array | null = null;
    if (slab >= 0) {
      const start = numbers[at + ReplicateWord.start] as number;
      const view = views.find(slab);
      if (view === undefined) return false;
      records = view.subarray(start, start + (numbers[at + ReplicateWord.length] as number));
    }
    const exchange = numbers[at + 1] as number;
    const follower = this.#options.find(numbers[at + partitionWord] as number);
    if (follower === undefined) {
      if (exchange >= 0) answer(answerer, exchange, ErrorCode.NOT_LEADER_OR_FOLLOWER, null);
      return true;
    }
    const waiter: ReplicationWaiter = {
      onWritten: () => {},
      onReplicated: (error) => answer(answerer, exchange, error, follower),
    };
    const fetched = fetchedOf(numbers, at, records);
    follower.receive(fetched, this.#options.nowMs(), exchange < 0 ? nobody : waiter);
    return true;
  }
}

/** Another leader epoch than the shard's: the one or the other thread has not heard of it. */
function refusalOf({ leaderEpoch: own }: PartitionFollower, leaderEpoch: number): ErrorCode {
  if (leaderEpoch === own) return ErrorCode.NONE;
  return leaderEpoch < own ? ErrorCode.FENCED_LEADER_EPOCH : ErrorCode.UNKNOWN_LEADER_EPOCH;
}

function fetchedOf(
  numbers: Float64Array,
  at: number,
  records: Uint8Array | null,
): FetchedPartition {
  const isDiverging = numbers[at + ReplicateWord.isDiverging] === 1;
  return {
    leaderEpoch: numbers[at + ReplicateWord.leaderEpoch] as number,
    errorCode: numbers[at + ReplicateWord.errorCode] as ErrorCode,
    highWatermark: numbers[at + ReplicateWord.highWatermark] as number,
    logStartOffset: numbers[at + ReplicateWord.logStartOffset] as number,
    diverging: isDiverging
      ? {
          epoch: numbers[at + ReplicateWord.divergingEpoch] as number,
          endOffset: numbers[at + ReplicateWord.divergingEnd] as number,
        }
      : null,
    records,
  };
}

function answer(
  answerer: Answerer,
  exchange: number,
  error: ErrorCode,
  follower: PartitionFollower | null,
): void {
  const { numbers } = answerer.words;
  numbers[errorWord] = error;
  if (error === ErrorCode.NONE && follower !== null) {
    const { fetchOffset, lastFetchedEpoch, logStartOffset } = follower.fetchState();
    numbers[FollowedWord.fetchOffset] = fetchOffset;
    numbers[FollowedWord.lastFetchedEpoch] = lastFetchedEpoch;
    numbers[FollowedWord.logStartOffset] = logStartOffset;
  }
  answerer.answer(Answer.followed, exchange, true);
}
