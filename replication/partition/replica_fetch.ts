/**
 * The fetches of one follower from one leader: which partitions the next request asks for, within a fetch session
 * (KIP-227), and what each answer means for them. Pure bookkeeping: no IO, no clock; times are the caller's, monotonic
 * milliseconds.
 *
 * A partition is asked for only while its owner has nothing of it: what came is appended and flushed first, and then
 * the next request tells the offset behind it. One request is under way at a time, so that the leader gathers while the
 * follower flushes. While some partitions are with their owners the others go on in requests that do not wait, which
 * are sent when there is something to tell, when the leader has more than it could send, or when the owners take long.
 *
 * A request that waits at the leader (`maxWaitMs`) with nothing to come would keep new partitions waiting with it. One
 * more is sent behind it then: a leader that sees it ends the wait.
 *
 * Invariants: a request tells no offset that an owner has not reported; a partition is in one state of
 * `FollowedPartition` and in the set that belongs to it.
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { backOffMs, isSessionError, remedyFor } from './fetch_errors.ts';
import type {
  AnsweredPartition,
  AskedPartition,
  FetchPosition,
  ForgottenPartition,
  LeaderAnswer,
  ReplicaFetchRequest,
  ReplicaFetchResponse,
} from './fetch_exchange.ts';
import { FetchSessionState } from './fetch_session.ts';
import { askOf, FollowedPartition, isSamePosition, noteTold } from './followed_partition.ts';
import type { ReplicationThrottle } from './replication_throttle.ts';

export interface ReplicaFetchOptions {
  /** `replica.fetch.wait.max.ms`. */
  readonly maxWaitMs: number;
  /** `replica.fetch.min.bytes`. */
  readonly minBytes: number;
  /** `replica.fetch.response.max.bytes`. */
  readonly maxBytes: number;
  /** `replica.fetch.max.bytes`. */
  readonly partitionMaxBytes: number;
  /** `replica.fetch.backoff.ms`: the longest that a partition with an error is left alone. */
  readonly backoffMs: number;
  /** Of what this broker follows. */
  readonly throttle?: Pick<ReplicationThrottle, 'record' | 'freeAtMs'>;
}

const limits = {
  /** After an error that is over when metadata arrive. */
  backoffFirstMs: 10,
  /** Owners that take longer than this with what they got do not hold up the other partitions. */
  patienceMs: 10,
  /** Before another look at the quota, which may have changed. */
  throttledMs: 1_000,
} as const;

/** Goes to the partition's owner. `settled` is to be called with what it says, if it is to be waited for. */
export interface Handover {
  readonly followed: FollowedPartition;
  readonly answer: LeaderAnswer;
  /** False: only the high watermark or the leader's log start is new, and nothing waits for the owner. */
  readonly isAwaited: boolean;
}

export class ReplicaFetch {
  readonly #options: ReplicaFetchOptions;
  readonly #session: FetchSessionState = new FetchSessionState();
  /** By topic id, then by partition. */
  readonly #topics = new Map<string, (FollowedPartition | undefined)[]>();
  #size = 0;
  /** Nothing is sent before: a request failed as a whole. */
  #resumeAtMs = 0;
  #failures = 0;
  readonly #unknown = new Set<FollowedPartition>();
  #readyCount = 0;
  /** Ready, and the leader has not been told where they are. */
  readonly #untold = new Set<FollowedPartition>();
  /** In the leader's session, but not to be fetched now. */
  readonly #absent = new Set<FollowedPartition>();
  /** In the leader's session and not followed any more. */
  readonly #dropped = new Map<string, ForgottenPartition>();
  readonly #away = new Set<FollowedPartition>();
  readonly #delayed = new Set<FollowedPartition>();
  /** When something was handed to an owner last. */
  #handedOverMs = 0;
  /** The last answer was so large that the leader has probably left something out. */
  #isMoreLeft: boolean = false;

  constructor(options: ReplicaFetchOptions) {
    this.#options = options;
  }

  /** Partitions followed. */
  get size(): number {
    return this.#size;
  }

  /** Requests whose answers are not in. */
  get outstandingCount(): number {
    return this.#session.outstandingCount;
  }

  /** Follows a partition under this leader epoch; one that is followed under it already goes on as it is. */
  follow(topicId: string, partition: number, leaderEpoch: number): void {
    let topic = this.#topics.get(topicId);
    if (topic === undefined) {
      topic = [];
      this.#topics.set(topicId, topic);
    }
    const before = topic[partition];
    if (before?.leaderEpoch === leaderEpoch) return;
    const { partitionMaxBytes } = this.#options;
    const followed = new FollowedPartition(topicId, partition, leaderEpoch, partitionMaxBytes);
    if (before === undefined) this.#size += 1;
    else this.#end(before);
    topic[partition] = followed;
    const wasDropped = this.#dropped.delete(keyOf(topicId, partition));
    followed.inSession = wasDropped || before?.inSession === true;
    if (followed.inSession) this.#absent.add(followed);
    this.#unknown.add(followed);
  }

  unfollow(topicId: string, partition: number): void {
    const topic = this.#topics.get(topicId);
    const followed = topic?.[partition];
    if (topic === undefined || followed === undefined) return;
    this.#end(followed);
    topic[partition] = undefined;
    this.#size -= 1;
    if (topic.every((one) => one === undefined)) this.#topics.delete(topicId);
    if (followed.inSession) this.#dropped.set(keyOf(topicId, partition), { topicId, partition });
  }

  /** Partitions whose owners have to be asked where their logs end; `settled` takes what they say. */
  takeUnknown(nowMs: number): FollowedPartition[] {
    this.#wakeDelayed(nowMs);
    const unknown = [...this.#unknown];
    this.#unknown.clear();
    for (const followed of unknown) followed.state = 'asked';
    return unknown;
  }

  /**
   * What the owner says: where its log ends now (null with an error). Of a partition that is followed no more, or under
   * another epoch by now, it is ignored.
   */
  settled(
    followed: FollowedPartition,
    error: ErrorCode,
    position: FetchPosition | null,
    nowMs: number,
  ): void {
    if (followed.state !== 'asked' && followed.state !== 'away') return;
    this.#away.delete(followed);
    if (error === ErrorCode.NONE && position !== null) {
      this.#admit(followed, position, nowMs);
      return;
    }
    followed.position = null;
    this.#delay(followed, error, nowMs);
  }

  /** The next request, to be sent now; null: none yet. See `wakeAtMs`. */
  next(nowMs: number): ReplicaFetchRequest | null {
    this.#wakeDelayed(nowMs);
    if (nowMs < this.#resumeAtMs || this.#readyCount === 0) return null;
    const session = this.#session;
    if (session.outstandingCount > 0 && (!session.mayOvertake || this.#untold.size === 0))
      return null;
    const maxWaitMs = this.#maxWaitMs(nowMs);
    return maxWaitMs === null ? null : this.#request(maxWaitMs);
  }

  /** The answer to the oldest request under way. Returns what goes to owners. */
  answered(response: ReplicaFetchResponse, nowMs: number): Handover[] {
    const request = this.#session.answered();
    assert(request !== undefined, 'an answer without a request');
    if (request.isVoid) return [];
    if (response.errorCode !== ErrorCode.NONE) {
      this.#requestFailed(response.errorCode, nowMs);
      return [];
    }
    this.#failures = 0;
    const handovers: Handover[] = [];
    let bytes = 0;
    for (const answer of response.partitions) {
      const { topicId, partition, records } = answer;
      if (records !== null) {
        bytes += records.length;
        this.#options.throttle?.record(topicId, partition, records.length, nowMs);
      }
      const handover = this.#take(request.number, answer, nowMs);
      if (handover !== null) handovers.push(handover);
    }
    if (request.isFull) {
      this.#session.begun(response.sessionId);
      if (response.sessionId === 0) this.#forgetSession();
    }
    this.#isMoreLeft = bytes >= this.#options.maxBytes / 2;
    if (this.#away.size > 0 && handovers.length > 0) this.#handedOverMs = nowMs;
    return handovers;
  }

  /** The connection broke: whatever was under way has no answer. Owners go on with what they have. */
  disconnected(): void {
    this.#session.disconnected();
    this.#forgetSession();
  }

  /**
   * When `takeUnknown` and `next` may have something although nothing has happened; Infinity: never. They are to be
   * called after everything that does happen.
   */
  wakeAtMs(): number {
    let atMs = Number.POSITIVE_INFINITY;
    for (const { dueMs } of this.#delayed) atMs = Math.min(atMs, dueMs);
    if (this.#readyCount === 0 || this.#session.outstandingCount > 0) return atMs;
    const patientMs = this.#away.size > 0 ? this.#handedOverMs + limits.patienceMs : 0;
    const requestMs = Math.max(patientMs, this.#resumeAtMs);
    return requestMs > 0 ? Math.min(atMs, requestMs) : atMs;
  }

  /** How long the next request may wait at the leader; null: it is better not sent yet. */
  #maxWaitMs(nowMs: number): number | null {
    const { isFull, isFresh } = this.#session;
    if (isFull && isFresh) return 0;
    if (this.#away.size === 0) return this.#options.maxWaitMs;
    // Far behind, this follower fetches some partitions while others are flushed.
    if (!isFull && (this.#untold.size > 0 || this.#isMoreLeft)) return 0;
    return nowMs - this.#handedOverMs >= limits.patienceMs ? limits.patienceMs : null;
  }

  #request(maxWaitMs: number): ReplicaFetchRequest {
    const { number, sessionId, sessionEpoch } = this.#session.sent(maxWaitMs > limits.patienceMs);
    this.#resumeAtMs = 0;
    const partitions: AskedPartition[] = [];
    for (const followed of this.#untold) {
      followed.toldIn = number;
      followed.inSession = true;
      partitions.push(askOf(followed));
    }
    this.#untold.clear();
    const forgotten: ForgottenPartition[] = [...this.#dropped.values()];
    this.#dropped.clear();
    for (const followed of this.#absent) {
      const { topicId, partition } = followed;
      followed.inSession = false;
      followed.toldIn = -1;
      forgotten.push({ topicId, partition });
    }
    this.#absent.clear();
    const { minBytes, maxBytes } = this.#options;
    return { sessionId, sessionEpoch, maxWaitMs, minBytes, maxBytes, partitions, forgotten };
  }

  /** What the answer means for a partition; null: nothing for its owner. */
  #take(request: number, answered: AnsweredPartition, nowMs: number): Handover | null {
    const { topicId, partition, errorCode } = answered;
    const followed = this.#topics.get(topicId)?.[partition];
    // Moved on since the request, or never asked for.
    if (followed?.state !== 'ready' || followed.toldIn < 0 || followed.toldIn > request)
      return null;
    if (errorCode !== ErrorCode.NONE) {
      if (remedyFor(errorCode) === 'owner') return this.#handOver(followed, answered);
      this.#delay(followed, errorCode, nowMs);
      return null;
    }
    followed.failures = 0;
    const bytes = answered.records?.length ?? 0;
    if (answered.diverging !== null || bytes > 0) {
      this.#adapt(followed, bytes);
      return this.#handOver(followed, answered);
    }
    const { highWatermark, logStartOffset } = answered;
    const isKnown =
      highWatermark === followed.toldHighWatermark &&
      logStartOffset === followed.toldLogStartOffset;
    if (isKnown) return null;
    noteTold(followed, answered);
    return { followed, answer: answered, isAwaited: false };
  }

  #handOver(followed: FollowedPartition, answer: LeaderAnswer): Handover {
    noteTold(followed, answer);
    this.#leaveReady(followed);
    followed.state = 'away';
    this.#away.add(followed);
    return { followed, answer, isAwaited: true };
  }

  /** Full answers ask for fuller ones, up to what a whole answer may have: a follower far behind catches up faster. */
  #adapt(followed: FollowedPartition, bytes: number): void {
    const { partitionMaxBytes, maxBytes } = this.#options;
    if (bytes >= followed.maxBytes / 2)
      followed.maxBytes = Math.max(partitionMaxBytes, Math.min(maxBytes, followed.maxBytes * 2));
    else if (bytes < followed.maxBytes / 4) followed.maxBytes = partitionMaxBytes;
  }

  #requestFailed(error: ErrorCode, nowMs: number): void {
    if (error === ErrorCode.FETCH_SESSION_ID_NOT_FOUND) this.#session.lost();
    this.#session.reset();
    this.#forgetSession();
    this.#failures += 1;
    if (isSessionError(error) && this.#failures === 1) return;
    const { backoffMs } = this.#options;
    this.#resumeAtMs = nowMs + backOffMs('soon', this.#failures, limits.backoffFirstMs, backoffMs);
  }

  /** The next request is a full one. */
  #forgetSession(): void {
    this.#dropped.clear();
    this.#absent.clear();
    for (const topic of this.#topics.values())
      for (const followed of topic) {
        if (followed === undefined) continue;
        followed.inSession = false;
        followed.toldIn = -1;
        if (followed.state === 'ready') this.#untold.add(followed);
      }
  }

  /** Asks for the partition, or leaves it out of the requests for a while if it is throttled and not in sync (KIP-73). */
  #admit(followed: FollowedPartition, position: FetchPosition, nowMs: number): void {
    const { topicId, partition, toldHighWatermark } = followed;
    const freeAtMs = this.#options.throttle?.freeAtMs(topicId, partition, nowMs) ?? nowMs;
    const isInSync = toldHighWatermark >= 0 && position.fetchOffset >= toldHighWatermark;
    if (freeAtMs <= nowMs || isInSync) {
      this.#place(followed, position);
      return;
    }
    this.#move(followed, position);
    followed.dueMs = Math.min(freeAtMs, nowMs + limits.throttledMs);
    followed.state = 'delayed';
    this.#delayed.add(followed);
  }

  #place(followed: FollowedPartition, position: FetchPosition): void {
    this.#move(followed, position);
    followed.state = 'ready';
    this.#readyCount += 1;
    this.#absent.delete(followed);
    if (followed.inSession && followed.toldIn >= 0) return;
    followed.toldIn = -1;
    this.#untold.add(followed);
  }

  /** The leader is to be told of another position than the one it was told last. */
  #move(followed: FollowedPartition, position: FetchPosition): void {
    const before = followed.position;
    followed.position = position;
    if (before === null || !isSamePosition(before, position)) followed.toldIn = -1;
  }

  #delay(followed: FollowedPartition, error: ErrorCode, nowMs: number): void {
    const { backoffMs } = this.#options;
    const remedy = remedyFor(error);
    if (followed.state === 'ready') this.#leaveReady(followed);
    followed.failures += 1;
    followed.dueMs = nowMs + backOffMs(remedy, followed.failures, limits.backoffFirstMs, backoffMs);
    followed.toldHighWatermark = -1;
    followed.state = 'delayed';
    this.#delayed.add(followed);
  }

  #wakeDelayed(nowMs: number): void {
    for (const followed of this.#delayed) {
      if (followed.dueMs > nowMs) continue;
      this.#delayed.delete(followed);
      if (followed.position !== null) this.#admit(followed, followed.position, nowMs);
      else {
        followed.state = 'unknown';
        this.#unknown.add(followed);
      }
    }
  }

  #leaveReady(followed: FollowedPartition): void {
    this.#readyCount -= 1;
    this.#untold.delete(followed);
    if (followed.inSession) this.#absent.add(followed);
  }

  /** Not followed any more, or under another epoch. */
  #end(followed: FollowedPartition): void {
    if (followed.state === 'ready') this.#leaveReady(followed);
    this.#absent.delete(followed);
    this.#unknown.delete(followed);
    this.#away.delete(followed);
    this.#delayed.delete(followed);
    followed.state = 'over';
  }
}

function keyOf(topicId: string, partition: number): string {
  return `${topicId}/${partition}`;
}
