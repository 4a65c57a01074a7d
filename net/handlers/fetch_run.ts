/**
 * One fetch request from its first look at the logs to its answer.
 *
 * Thread: the connection's shard. A look pins the segments that it finds records in, since a look at the next partition
 * may close the files of others; it ends in an answer or lets go of them, so that a parked fetch holds nothing.
 *
 * Partitions of other shards are looked at first, all at once, and those of this shard when the last answer is in. So a
 * fetch of this shard's partitions alone never leaves its turn.
 *
 * A follower's fetch passes by what rests in its session (see `FetchSessions.rest`) and waits under the session as well: an
 * idle one visits nothing.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { ColdRead } from '../../engine/ports.ts';
import { coldTriesMax, warm } from '../cold_looks.ts';
import type { PlacedPartition } from '../fabric/placements.ts';
import {
  drop,
  failedLook,
  hasNothingNew,
  holdBack,
  type Look,
  type LookingReplica,
  lookAt,
  nothingNew,
} from '../partition_look.ts';
import type { FetchRequest } from '../protocol/messages.gen.ts';
import { type FetchWait, isHere, type Place } from '../routes.ts';
import {
  type FetchPartition,
  type FetchSession,
  type FetchSessionResult,
  moveToEnd,
} from '../server/fetch_sessions.ts';
import type { Parkable, Parked } from '../server/purgatory.ts';
import type { RequestContext } from '../server/request_context.ts';
import type { ShardServices } from '../shard_services.ts';
import { FetchAnswer, topicIdsSince } from './fetch_answer.ts';

const readCommitted = 1;
/** Followers tell the epoch of their broker from this version on (KIP-903). */
const replicaStateSince = 15;

/** A look at a partition of another shard. */
interface RemoteLook {
  readonly place: PlacedPartition;
  /** `place.moves` when it was asked for: more to read has been told of since if that has grown. */
  readonly movesBefore: number;
  /** Null: the answer is not in. */
  look: Look | null;
}

type Resolved = Extract<FetchSessionResult, { error: 0 }>;

export class FetchRun implements Parkable {
  readonly #services: ShardServices;
  readonly #ctx: RequestContext;
  readonly #request: FetchRequest;
  readonly #sessionId: number;
  readonly #session: FetchSession | null;
  readonly #incremental: boolean;
  /** Grows by those of the session whose rest ends meanwhile. */
  readonly #partitions: FetchPartition[];
  /** Runs parallel to `#partitions`. */
  #places: (Place | ErrorCode)[] = [];
  /** By index in `#partitions`; empty when all are of this shard. */
  readonly #remote: (RemoteLook | undefined)[] = [];
  /** Looks whose answers are not in, and what is being brought into the page cache for another one. */
  #outstanding = 0;
  #coldTries = 0;
  /** Gives up what is being brought in. */
  #stopWarming: (() => void) | null = null;
  /** On the monotonic clock of the purgatory; 0 before the first look has ended. */
  #deadlineMs = 0;
  #parked: Parked<FetchWait> | null = null;
  /** Partitions that it is parked under. */
  #parkedCount = 0;
  /** The follower that fetches; null: a consumer does. */
  readonly #replica: LookingReplica | null;
  /** The time to wait is over: what is found is the answer. */
  #isExpired: boolean = false;
  #isAborted: boolean = false;

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
    this.#replica = this.#replicaOf(request);
    if (this.#session !== null) services.fetchSessions.identify(this.#session, this.#replica);
    // A copy: answering moves partitions to the end of the session that it came from.
    this.#partitions = [...resolved.partitions];
    if (this.#session !== null) this.#session.disturbed.length = 0;
  }

  start(): void {
    const count = this.#session?.partitions.size ?? this.#partitions.length;
    if (this.#request.maxWaitMs <= 0 || count === 0) this.#isExpired = true;
    else this.#deadlineMs = this.#services.purgatory.nowMs() + this.#request.maxWaitMs;
    this.#ctx.onAbort = () => this.#abort();
    if (this.#replica !== null) this.#ctx.onOvertaken = () => this.#endWait();
    this.#look();
    // Now that what it names has been looked at, it speaks for what rests.
    if (this.#session !== null && this.#replica !== null)
      this.#session.lastFetchMs = this.#replica.nowMs;
  }

  tryComplete(): boolean {
    // Looks are under way: `#conclude` sees what has moved since they were asked for, or looks again.
    return this.#outstanding === 0 && this.#look();
  }

  expire(): void {
    this.#isExpired = true;
    if (this.#outstanding === 0) this.#look();
  }

  /** A follower has something else to ask for, and would rather have the answer now. */
  #endWait(): void {
    if (this.#isExpired) return;
    this.#isExpired = true;
    queueMicrotask(() => {
      if (!this.#isAborted && !this.#ctx.answered && this.#outstanding === 0) this.#look();
    });
  }

  get #maxBytes(): number {
    return Math.min(this.#request.maxBytes, this.#services.config.fetchMaxBytes);
  }

  get #isReadCommitted(): boolean {
    return this.#request.isolationLevel === readCommitted;
  }

  /** Looks at every partition, and answers if there is enough; true when it has answered within this call. */
  #look(): boolean {
    this.#takeDisturbed();
    this.#places = this.#partitions.map((asked) => this.#find(asked));
    this.#places.forEach((place, index) => {
      if (typeof place !== 'number' && !isHere(place)) this.#lookElsewhere(place, index);
    });
    return this.#outstanding === 0 && this.#conclude();
  }

  #takeDisturbed(): void {
    const disturbed = this.#session?.disturbed;
    if (disturbed === undefined || disturbed.length === 0) return;
    for (const one of disturbed) this.#partitions.push(one);
    disturbed.length = 0;
  }

  #lookElsewhere(place: PlacedPartition, index: number): void {
    const before = this.#remote[index];
    // Nothing was there, and its shard would have said if that had changed.
    if (before !== undefined && isStillEmpty(before, place) && !this.#isExpired) return;
    const remote: RemoteLook = { place, movesBefore: place.moves, look: null };
    this.#remote[index] = remote;
    this.#outstanding += 1;
    const asked = this.#partitions[index]!;
    const isReadCommitted = this.#isReadCommitted;
    const watch = !this.#isExpired;
    this.#services.remote.look(place, asked, isReadCommitted, watch, this.#replica, (look) => {
      remote.look = look;
      this.#outstanding -= 1;
      if (this.#outstanding === 0) this.#conclude();
    });
  }

  /** All answers of other shards are in. */
  #conclude(): boolean {
    if (this.#isAborted) {
      for (const remote of this.#remote) drop(remote?.look);
      return true;
    }
    const looks = this.#gather();
    const missed: ColdRead[] = [];
    for (const { cold } of looks) if (cold !== null) missed.push(cold);
    if (missed.length > 0) {
      for (const look of looks) drop(look);
      this.#warm(missed);
      return false;
    }
    if (this.#isExpired || this.#isEnough(looks)) {
      if (this.#parked !== null) this.#services.purgatory.cancel(this.#parked);
      this.#answer(looks);
      return true;
    }
    for (const look of looks) drop(look);
    if (this.#remote.some((one) => one !== undefined && one.place.moves !== one.movesBefore))
      return this.#look();
    this.#park();
    return false;
  }

  /** Looks again when what the last look missed has come from the device; others have the thread meanwhile. */
  #warm(missed: readonly ColdRead[]): void {
    this.#coldTries += 1;
    this.#outstanding += 1;
    this.#stopWarming = warm(this.#services.readAhead, this.#ctx.connection, missed, () => {
      this.#stopWarming = null;
      this.#outstanding -= 1;
      this.#look();
    });
  }

  #park(): void {
    const { purgatory } = this.#services;
    if (this.#parked !== null) {
      if (this.#parkedCount === this.#partitions.length) return;
      purgatory.cancel(this.#parked);
    }
    this.#parkedCount = this.#partitions.length;
    // Nothing of a consumer's rests.
    const places: FetchWait[] =
      this.#session === null || this.#replica === null ? [] : [this.#session];
    for (const place of this.#places)
      if (typeof place !== 'number')
        places.push(this.#replica !== null && isHere(place) ? place.followers : place);
    const waitMs = Math.max(0, this.#deadlineMs - purgatory.nowMs());
    this.#parked = purgatory.park(this, places, waitMs);
  }

  #abort(): void {
    this.#isAborted = true;
    this.#stopWarming?.();
    if (this.#parked !== null) this.#services.purgatory.cancel(this.#parked);
  }

  /** What was found in every partition, in turn. The first batch of all is found whatever its size, so that readers progress. */
  #gather(): Look[] {
    let bytesLeft = this.#maxBytes;
    let first = true;
    const mayWait = this.#coldTries >= coldTriesMax;
    return this.#partitions.map((asked, index) => {
      const place = this.#places[index]!;
      let look: Look;
      if (typeof place === 'number') look = failedLook(place);
      else if (isHere(place) && hasNothingNew(place, asked, this.#isReadCommitted, this.#replica))
        look = nothingNew;
      else if (isHere(place))
        look = lookAt(
          place,
          asked,
          bytesLeft,
          first,
          this.#isReadCommitted,
          mayWait,
          this.#replica,
        );
      else {
        look = this.#remote[index]!.look!;
        // Its shard did not know what else there is.
        const room = Math.min(bytesLeft, asked.maxBytes);
        if (!first && look.slice !== null && look.slice.length > room) drop(look);
      }
      if (look.bytes > 0 && this.#isThrottled(asked)) holdBack(look);
      if (look.slice !== null) {
        bytesLeft = Math.max(0, bytesLeft - look.slice.length);
        first = false;
      }
      return look;
    });
  }

  /** Where the partition is, or why there is none. */
  #find(asked: FetchPartition): Place | ErrorCode {
    const { routes } = this.#services;
    return this.#ctx.apiVersion >= topicIdsSince
      ? routes.byId(asked.topicId, asked.partition)
      : routes.byName(asked.topic, asked.partition);
  }

  #replicaOf({ replicaId, replicaState }: FetchRequest): LookingReplica | null {
    const isStateTold = this.#ctx.apiVersion >= replicaStateSince;
    const brokerId = isStateTold ? replicaState.replicaId : replicaId;
    if (brokerId < 0) return null;
    const brokerEpoch = isStateTold ? Number(replicaState.replicaEpoch) : -1;
    return { brokerId, brokerEpoch, nowMs: this.#services.clock.monotonicMs() };
  }

  /** The records go to a replica that is not in sync, and may not do so now (KIP-73). */
  #isThrottled({ topicId, partition }: FetchPartition): boolean {
    const replica = this.#replica;
    if (replica === null) return false;
    const { throttle, image, clock } = this.#services;
    const nowMs = clock.monotonicMs();
    if (throttle.freeAtMs(topicId, partition, nowMs) <= nowMs) return false;
    const isr = image.topicById(topicId)?.partitions[partition]?.isr;
    return isr?.includes(replica.brokerId) !== true;
  }

  #isEnough(looks: readonly Look[]): boolean {
    let bytes = 0;
    for (const look of looks) {
      if (look.errorCode !== ErrorCode.NONE || look.diverging !== null) return true;
      bytes += look.bytes;
    }
    // More than may be sent is not worth waiting for.
    return bytes >= Math.min(this.#request.minBytes, this.#maxBytes);
  }

  #answer(looks: readonly Look[]): void {
    this.#ctx.onAbort = null;
    const answer = new FetchAnswer(this.#services, this.#ctx, {
      incremental: this.#incremental,
      isReadCommitted: this.#isReadCommitted,
      isFollowers: this.#replica !== null,
    });
    looks.forEach((look, index) => {
      const asked = this.#partitions[index]!;
      if (look === nothingNew) this.#rest(asked, this.#places[index]!);
      if (answer.add(asked, look) && look.slice !== null) this.#noteSent(asked, look.slice.length);
    });
    const { responses, nodeEndpoints } = answer;
    const body = { sessionId: this.#sessionId, responses, nodeEndpoints };
    if (!this.#ctx.respond<'Fetch'>('FetchResponse', body)) for (const look of looks) drop(look);
  }

  #rest(asked: FetchPartition, place: Place | ErrorCode): void {
    if (this.#session === null || typeof place === 'number' || !isHere(place)) return;
    this.#services.fetchSessions.rest(this.#session, asked, place);
  }

  #noteSent(asked: FetchPartition, bytes: number): void {
    if (this.#session !== null) moveToEnd(this.#session, asked);
    const { throttle, clock } = this.#services;
    if (this.#replica !== null)
      throttle.record(asked.topicId, asked.partition, bytes, clock.monotonicMs());
  }
}

/** Whether the look found the partition in order and without records, and no word of others has come since. */
function isStillEmpty({ place, movesBefore, look }: RemoteLook, now: PlacedPartition): boolean {
  return (
    place === now &&
    place.moves === movesBefore &&
    look !== null &&
    look.errorCode === ErrorCode.NONE &&
    look.bytes === 0 &&
    look.diverging === null
  );
}
