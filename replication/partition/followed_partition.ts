/** A partition that is fetched from a leader, under one leader epoch: with another epoch comes another object. */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { AskedPartition, FetchPosition, LeaderAnswer } from './fetch_exchange.ts';

/**
 * Legal transitions:
 *   unknown --`takeUnknown`---> asked      its owner is asked where its log ends
 *   asked   --position--------> ready
 *   ready   --records, divergence, out of range--> away      its owner has the answer
 *   away    --position--------> ready      flushed: from here on its offset may be told
 *   ready   --error of the leader--------> delayed --time--> ready
 *   asked, away --error of the owner-----> delayed --time--> unknown
 *   any     --unfollowed, or followed under another epoch--> over
 */
export type FollowedState = 'unknown' | 'asked' | 'ready' | 'away' | 'delayed' | 'over';

/** Written by `ReplicaFetch` alone. */
export class FollowedPartition {
  readonly topicId: string;
  readonly partition: number;
  readonly leaderEpoch: number;
  state: FollowedState = 'unknown';
  /** Null: its owner has to be asked. Invariant: not null in `ready`. */
  position: FetchPosition | null = null;
  /** The leader's session holds the partition, with whatever position. */
  inSession: boolean = false;
  /** Number of the request that told the leader `position`; -1: none has. */
  toldIn = -1;
  /** In a row. */
  failures = 0;
  /** Of a delayed one, on the callers' clock. */
  dueMs = 0;
  /** What one answer may bring: grows while the partition is far behind. */
  maxBytes: number;
  /** As its owner was told last; -1: never. */
  toldHighWatermark = -1;
  toldLogStartOffset = -1;

  constructor(topicId: string, partition: number, leaderEpoch: number, maxBytes: number) {
    this.topicId = topicId;
    this.partition = partition;
    this.leaderEpoch = leaderEpoch;
    this.maxBytes = maxBytes;
  }
}

/** What a request says of a partition that is ready. */
export function askOf(followed: FollowedPartition): AskedPartition {
  const { topicId, partition, leaderEpoch, position, maxBytes } = followed;
  assert(position !== null, `${topicId}-${partition} is asked for without a position`);
  const { fetchOffset, lastFetchedEpoch, logStartOffset } = position;
  return {
    topicId,
    partition,
    currentLeaderEpoch: leaderEpoch,
    fetchOffset,
    lastFetchedEpoch,
    logStartOffset,
    maxBytes,
  };
}

/** Who cuts its log has the high watermark told anew, also where it is what it was. */
export function noteTold(followed: FollowedPartition, answer: LeaderAnswer): void {
  const isTaken = answer.errorCode === ErrorCode.NONE && answer.diverging === null;
  followed.toldHighWatermark = isTaken ? answer.highWatermark : -1;
  followed.toldLogStartOffset = answer.logStartOffset;
}

export function isSamePosition(one: FetchPosition, other: FetchPosition): boolean {
  return (
    one.fetchOffset === other.fetchOffset &&
    one.lastFetchedEpoch === other.lastFetchedEpoch &&
    one.logStartOffset === other.logStartOffset
  );
}
