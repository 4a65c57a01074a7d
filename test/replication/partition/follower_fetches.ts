/** What the tests of followers' fetches say and hear: short forms of requests, answers and positions. */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type {
  AnsweredPartition,
  FetchPosition,
  ReplicaFetchRequest,
} from '../../../replication/partition/fetch_exchange.ts';
import type { FollowedPartition } from '../../../replication/partition/followed_partition.ts';
import {
  type Handover,
  ReplicaFetch,
  type ReplicaFetchOptions,
} from '../../../replication/partition/replica_fetch.ts';

export const options: ReplicaFetchOptions = {
  maxWaitMs: 500,
  minBytes: 1,
  maxBytes: 8_000,
  partitionMaxBytes: 1_000,
  backoffMs: 1_000,
};

export function at(fetchOffset: number, lastFetchedEpoch = 0): FetchPosition {
  return { fetchOffset, lastFetchedEpoch, logStartOffset: 0 };
}

export function answer(
  topicId: string,
  partition: number,
  fields: Partial<AnsweredPartition> = {},
): AnsweredPartition {
  return {
    topicId,
    partition,
    errorCode: ErrorCode.NONE,
    highWatermark: 0,
    logStartOffset: 0,
    diverging: null,
    records: null,
    ...fields,
  };
}

export const records = (length: number): Partial<AnsweredPartition> => ({
  records: new Uint8Array(length),
});

export function answered(
  fetch: ReplicaFetch,
  partitions: readonly AnsweredPartition[] = [],
  nowMs = 0,
  sessionId = 7,
): Handover[] {
  return fetch.answered({ errorCode: ErrorCode.NONE, sessionId, partitions }, nowMs);
}

export function next(fetch: ReplicaFetch, nowMs = 0): ReplicaFetchRequest {
  const request = fetch.next(nowMs);
  assert(request !== null, 'nothing to ask for');
  return request;
}

export const asked = ({ partitions }: ReplicaFetchRequest): (string | number)[][] =>
  partitions.map((one) => [one.topicId, one.partition, one.currentLeaderEpoch, one.fetchOffset]);

export const forgotten = (request: ReplicaFetchRequest): (string | number)[][] =>
  request.forgotten.map(({ topicId, partition }) => [topicId, partition]);

/** Fetches partitions 0… of topic `a` in leader epoch 3, all empty, with a session. */
export function following(count: number): { fetch: ReplicaFetch; parts: FollowedPartition[] } {
  const fetch = new ReplicaFetch(options);
  for (let partition = 0; partition < count; partition += 1) fetch.follow('a', partition, 3);
  const parts = fetch.takeUnknown(0);
  for (const part of parts) fetch.settled(part, ErrorCode.NONE, at(0, -1), 0);
  next(fetch);
  answered(fetch);
  return { fetch, parts };
}
