/**
 * Incremental fetch sessions (KIP-227): what a consumer fetches and what it was last told, so that
 * neither side repeats it with every request. And who looks at what: a follower's partitions in which nothing happens rest,
 * and no fetch visits them until their leaders say so.
 *
 * Thread: the shard that owns the connection. Concurrency: none; a session serves one request at a
 * time, because its client waits for each answer. Durability: none, a lost session is made anew.
 *
 * Legal transitions of a session:
 *   (none)  --epoch 0---------> epoch 1        full request: all its partitions are remembered
 *   epoch n --epoch n---------> epoch n + 1    incremental request (wraps to 1, never to 0)
 *   epoch n --another epoch---> unchanged      INVALID_FETCH_SESSION_EPOCH
 *   any     --epoch -1 or 0---> (none)         closed by its client; 0 then starts another
 *   any     --evicted---------> (none)         by a newer session when the cache is full
 */
import type { Awaited } from '../../engine/awaited.ts';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { RestingFetch } from '../../replication/partition/isr.ts';
import type { PartitionLeader } from '../../replication/partition/leader.ts';

type RestingPlace = Pick<PartitionLeader, 'rest' | 'disturb'>;

/** What the client asks for in one partition, and what it was told last. One object a partition. */
export interface FetchPartition {
  /** Empty when the client names topics by id only. */
  topic: string;
  /** Canonical base64url form; the zero uuid when the client names topics by name only. */
  topicId: string;
  partition: number;
  fetchOffset: number;
  maxBytes: number;
  /** -1 when the client does not know it. */
  currentLeaderEpoch: number;
  /** -1 when the client does not want a divergence check (KIP-595). */
  lastFetchedEpoch: number;
  /** As in the last answer; -1: never told, or it was an error, so that the next answer says it again. */
  toldHighWatermark: number;
  toldLogStartOffset: number;
  /** The leader with which it rests. */
  restsAt: RestingPlace | null;
}

/** What a fetch of a session with nothing to look at waits under. */
export interface FetchSession extends Awaited {
  readonly id: number;
  /** Invariant: between 1 and 2^31 - 1; the epoch that the client's next request must carry. */
  epoch: number;
  /** Topics by id (Fetch 13 and newer) or by name; a client may not switch within a session. */
  readonly usesTopicIds: boolean;
  readonly partitions: Map<string, FetchPartition>;
  /** Those that do not rest, in the order in which they are served; one that gave data goes to the end (fairness). */
  readonly active: Set<FetchPartition>;
  /** Those that have become active since the request under way has begun. */
  readonly disturbed: FetchPartition[];
  /** Whose it is, if it is a follower's: the broker and the epoch that it is registered with. */
  follower: { readonly brokerId: number; readonly brokerEpoch: number } | null;
  /** When a fetch last spoke for what rests, on the monotonic clock. */
  lastFetchMs: number;
  lastUsedMs: number;
  readonly createdMs: number;
}

export interface FetchSessionRequest {
  sessionId: number;
  sessionEpoch: number;
  usesTopicIds: boolean;
  /** May have left aside an answer that crossed this request: what it names is told all anew. A client waits for each answer. */
  isFollower: boolean;
  partitions: readonly FetchPartition[];
  /** Keys made by `partitionKey`. */
  forgotten: readonly string[];
}

export type FetchSessionResult =
  | { error: Exclude<ErrorCode, 0> }
  | {
      error: 0;
      /** 0: answer without a session. */
      sessionId: number;
      /** True: leave out what the client already knows. */
      incremental: boolean;
      session: FetchSession | null;
      partitions: Iterable<FetchPartition>;
    };

/** The key of a partition within a session: by id where the client uses ids, else by name. */
export function partitionKey(topic: string, topicId: string, partition: number): string {
  return topic === '' ? `${topicId}/${partition}` : `${topic}/${partition}`;
}

const FINAL_EPOCH = -1;
const INITIAL_EPOCH = 0;
const EPOCH_MAX = 0x7fffffff;
/** As in Kafka: a session used within this time is not evicted for one that is not larger. */
const EVICTION_MS = 120_000;

export class FetchSessions {
  readonly #sessions = new Map<number, FetchSession>();
  readonly #slotsMax: number;
  readonly #randomId: () => number;
  readonly #onDisturbed: (session: FetchSession) => void;

  /**
   * `slotsMax` sessions at the most (`max.incremental.fetch.session.cache.slots`); `randomId` draws
   * a positive int32, and is asked again when the id is taken; `onDisturbed` wakes the fetch that waits under the session.
   */
  constructor(
    slotsMax: number,
    randomId: () => number,
    onDisturbed: (session: FetchSession) => void = () => {},
  ) {
    this.#slotsMax = slotsMax;
    this.#randomId = randomId;
    this.#onDisturbed = onDisturbed;
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Resolves one request to the partitions that it fetches. Source: KIP-227, Kafka's FetchManager. */
  resolve(request: FetchSessionRequest, nowMs: number): FetchSessionResult {
    if (request.sessionEpoch === FINAL_EPOCH || request.sessionEpoch === INITIAL_EPOCH)
      return this.#full(request, nowMs);
    const session = this.#sessions.get(request.sessionId);
    if (session === undefined) return { error: ErrorCode.FETCH_SESSION_ID_NOT_FOUND };
    if (session.epoch !== request.sessionEpoch)
      return { error: ErrorCode.INVALID_FETCH_SESSION_EPOCH };
    if (session.usesTopicIds !== request.usesTopicIds)
      return { error: ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR };
    update(session, request);
    session.lastUsedMs = nowMs;
    session.epoch = session.epoch === EPOCH_MAX ? 1 : session.epoch + 1;
    return {
      error: 0,
      sessionId: session.id,
      incremental: true,
      session,
      partitions: session.active,
    };
  }

  /**
   * The fetch has found nothing new in the partition: if the leader agrees, those of the session pass it by from now on,
   * until the leader has something or the follower asks for something else.
   */
  rest(session: FetchSession, asked: FetchPartition, leader: RestingPlace): void {
    const { follower } = session;
    if (follower === null || !session.active.has(asked)) return;
    if (!leader.rest(follower.brokerId, new Rest(session, asked, this.#onDisturbed))) return;
    asked.restsAt = leader;
    session.active.delete(asked);
  }

  /** Whose request this is; null: a consumer's. What rests does so for one life of one broker. */
  identify(session: FetchSession, follower: FetchSession['follower']): void {
    const before = session.follower;
    const isSame =
      before?.brokerId === follower?.brokerId && before?.brokerEpoch === follower?.brokerEpoch;
    if (isSame) return;
    for (const asked of session.partitions.values()) endRest(session, asked);
    session.follower = follower;
  }

  /** Forgets a session, for example when its connection is gone and the client cannot come back to it. */
  close(sessionId: number): void {
    this.#sessions.delete(sessionId);
  }

  #full(request: FetchSessionRequest, nowMs: number): FetchSessionResult {
    if (request.sessionId !== 0) this.#sessions.delete(request.sessionId);
    const wanted = request.sessionEpoch === INITIAL_EPOCH && request.partitions.length > 0;
    const session = wanted && this.#makeRoom(request.partitions.length, nowMs);
    if (!session)
      return {
        error: 0,
        sessionId: 0,
        incremental: false,
        session: null,
        partitions: request.partitions,
      };
    const created = this.#create(request, nowMs);
    return {
      error: 0,
      sessionId: created.id,
      incremental: false,
      session: created,
      partitions: created.active,
    };
  }

  #create(request: FetchSessionRequest, nowMs: number): FetchSession {
    let id = this.#randomId();
    while (id <= 0 || this.#sessions.has(id)) id = this.#randomId();
    const session: FetchSession = {
      id,
      epoch: 1,
      usesTopicIds: request.usesTopicIds,
      waiters: null,
      partitions: new Map(),
      active: new Set(),
      disturbed: [],
      follower: null,
      lastFetchMs: nowMs,
      lastUsedMs: nowMs,
      createdMs: nowMs,
    };
    update(session, request);
    this.#sessions.set(id, session);
    return session;
  }

  /** True when there is a free slot, or one could be freed by Kafka's rules: stale first, then smaller. */
  #makeRoom(partitions: number, nowMs: number): boolean {
    if (this.#sessions.size < this.#slotsMax) return true;
    let candidate: FetchSession | null = null;
    for (const session of this.#sessions.values()) {
      const stale = nowMs - session.lastUsedMs > EVICTION_MS;
      const smaller =
        session.partitions.size < partitions && nowMs - session.createdMs > EVICTION_MS;
      if (!stale && !smaller) continue;
      if (candidate === null || session.lastUsedMs < candidate.lastUsedMs) candidate = session;
    }
    if (candidate === null) return false;
    this.#sessions.delete(candidate.id);
    return true;
  }
}

/** What the leader of a resting partition holds. */
class Rest implements RestingFetch {
  readonly #session: FetchSession;
  readonly #asked: FetchPartition;
  readonly #onDisturbed: (session: FetchSession) => void;

  constructor(
    session: FetchSession,
    asked: FetchPartition,
    onDisturbed: (session: FetchSession) => void,
  ) {
    this.#session = session;
    this.#asked = asked;
    this.#onDisturbed = onDisturbed;
  }

  get lastFetchMs(): number {
    return this.#session.lastFetchMs;
  }

  disturb(): void {
    const session = this.#session;
    this.#asked.restsAt = null;
    session.active.add(this.#asked);
    session.disturbed.push(this.#asked);
    this.#onDisturbed(session);
  }
}

function endRest({ follower }: FetchSession, asked: FetchPartition): void {
  if (follower !== null) asked.restsAt?.disturb(follower.brokerId);
}

/** Adds, changes and forgets partitions. What the client was told of a partition stays when it stays. */
function update(session: FetchSession, request: FetchSessionRequest): void {
  for (const wanted of request.partitions) {
    const key = partitionKey(wanted.topic, wanted.topicId, wanted.partition);
    const known = session.partitions.get(key);
    if (known === undefined) {
      session.partitions.set(key, wanted);
      session.active.add(wanted);
      continue;
    }
    endRest(session, known);
    known.fetchOffset = wanted.fetchOffset;
    known.maxBytes = wanted.maxBytes;
    known.currentLeaderEpoch = wanted.currentLeaderEpoch;
    known.lastFetchedEpoch = wanted.lastFetchedEpoch;
    if (!request.isFollower) continue;
    known.toldHighWatermark = wanted.toldHighWatermark;
    known.toldLogStartOffset = wanted.toldLogStartOffset;
  }
  for (const key of request.forgotten) {
    const known = session.partitions.get(key);
    if (known === undefined) continue;
    endRest(session, known);
    session.partitions.delete(key);
    session.active.delete(known);
  }
}

/** A partition that gave data is served last next time, so that a small `max_bytes` starves no other. */
export function moveToEnd(session: FetchSession, partition: FetchPartition): void {
  if (session.active.delete(partition)) session.active.add(partition);
}
