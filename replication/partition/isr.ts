/**
 * The replicas in sync of a partition, as its leader sees them: how far the followers are, who counts for the high
 * watermark, and which changes of the set to ask the controller for.
 *
 * Thread: the shard that owns the partition's log. Concurrency: none, every call runs to its end; it reads no clock.
 * Durability: a follower's fetch offset speaks of what it has on stable storage, so the minimum over the set does, too.
 * With `log.durability=os` it speaks of page caches, as in Kafka.
 *
 * The set that counts is the maximal one (KIP-497): while an expansion is asked for, it may have come about already, so
 * the new member counts; while a shrink is asked for, it may not have, so the old member still does. Below
 * min.insync.replicas the high watermark stands still (KIP-966). A replica comes back only when it has reached the high
 * watermark and an offset of this leader's epoch (KIP-320 shows why), and when its broker is still registered under the
 * epoch that it fetched with (KIP-903): a broker that has restarted may have lost what it had.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';

/** The part of a partition's metadata that its leader works with; `PartitionImage` is one. */
export interface ReplicaSet {
  readonly replicas: readonly number[];
  readonly isr: readonly number[];
  readonly leaderEpoch: number;
  readonly partitionEpoch: number;
}

/** A member of a proposed set, under the broker epoch that the leader saw it fetch with; -1: it has not seen it yet. */
export interface IsrMember {
  readonly brokerId: number;
  readonly brokerEpoch: number;
}

/** What the leader asks the controller for (AlterPartition, KIP-497). */
export interface IsrProposal {
  readonly topicId: string;
  readonly partition: number;
  readonly leaderEpoch: number;
  /** Of the state that the proposal rests on. */
  readonly partitionEpoch: number;
  readonly newIsr: readonly IsrMember[];
}

/** What the controller says to it. */
export interface IsrAnswer {
  readonly errorCode: ErrorCode;
  readonly leaderEpoch: number;
  readonly isr: readonly number[];
  readonly partitionEpoch: number;
}

/** What a leader knows of the brokers. */
export interface BrokerView {
  readonly nodeId: number;
  /** The epoch that a broker is registered with, when it may be in an ISR: neither fenced nor shutting down; else -1. */
  eligibleEpoch(brokerId: number): number;
  /** replica.lag.time.max.ms, as it is now. */
  readonly lagTimeMaxMs: number;
}

export interface InSyncReplicasOptions {
  readonly topicId: string;
  readonly partition: number;
  readonly brokers: BrokerView;
  /** Asks the controller; the answer comes to `answered`, in a later turn. */
  readonly propose: (proposal: IsrProposal) => void;
}

/**
 * The fetches of a follower that has all there is in a partition: they come again and again, and pass it by until they are
 * disturbed. Each counts as one that asked for the log's end.
 */
export interface RestingFetch {
  /** When the last of them came, on the monotonic clock. */
  readonly lastFetchMs: number;
  /** The rest is over: the next fetch is to look at the partition. */
  disturb(): void;
}

/** Kafka's UNKNOWN_OFFSET: the follower has not fetched from this leader in this epoch. */
const unknownOffset = -1;

/** How far a follower is. */
interface Progress {
  readonly brokerId: number;
  brokerEpoch: number;
  endOffset: number;
  lastFetchMs: number;
  /** Where the leader's log ended at that fetch. */
  leaderEndThen: number;
  /** When it last had all that the leader had. */
  lastCaughtUpMs: number;
  /** While it rests, both times are those of its fetches. */
  resting: RestingFetch | null;
}

interface Pending {
  readonly proposal: IsrProposal;
  /** False when there was no answer, or none that says what became of it: it is asked for again. */
  isUnderWay: boolean;
}

export class InSyncReplicas {
  readonly #options: InSyncReplicasOptions;
  #state: ReplicaSet;
  /** Of every replica but this one. */
  #followers: readonly Progress[] = [];
  #pending: Pending | null = null;
  /** Committed set, and what is proposed to be added to it. */
  #maximal: readonly number[];
  /** First offset of this leader's epoch. */
  #epochStartOffset = 0;
  /** When the leader last told the time. */
  #nowMs = 0;

  constructor(options: InSyncReplicasOptions, state: ReplicaSet) {
    this.#options = options;
    this.#state = state;
    this.#maximal = state.isr;
  }

  /** No other broker has a copy: what this one has flushed is committed. */
  get isAlone(): boolean {
    return this.#state.replicas.length === 1;
  }

  /** Members of the committed set, this replica included. */
  get size(): number {
    return this.#state.isr.length;
  }

  get leaderEpoch(): number {
    return this.#state.leaderEpoch;
  }

  /** Whether the broker is to have a copy. */
  isReplica(brokerId: number): boolean {
    return this.#follower(brokerId) !== undefined;
  }

  /** This broker leads with a new epoch: nothing is known of the followers any more. */
  begin(state: ReplicaSet, epochStartOffset: number, nowMs: number): void {
    this.disturbAll();
    this.#followers = [];
    this.#nowMs = nowMs;
    this.#epochStartOffset = epochStartOffset;
    this.#commit(state);
  }

  /** The metadata says what the partition is now, in the leader's epoch. False: it is not news. */
  update(state: ReplicaSet): boolean {
    if (state.partitionEpoch < this.#state.partitionEpoch) return false;
    const isNews = state.partitionEpoch > this.#state.partitionEpoch;
    // The answer to a proposal can be here first; what it does not say is the list of replicas.
    if (isNews) this.#commit(state);
    else this.#commit({ ...this.#state, replicas: state.replicas }, this.#pending);
    return isNews;
  }

  /**
   * A follower asks for what comes at `fetchOffset`, so it has everything before that. Comes after the checks of the
   * request's epochs and of diverging histories.
   * @param leaderEnd where this log ends
   * @param highWatermark of now
   * @returns NONE; UNKNOWN_LEADER_EPOCH when the broker has no copy as far as this leader knows;
   *   NOT_LEADER_OR_FOLLOWER when the request is from an earlier life of the broker
   */
  fetched(
    brokerId: number,
    brokerEpoch: number,
    fetchOffset: number,
    leaderEnd: number,
    nowMs: number,
  ): ErrorCode {
    const follower = this.#follower(brokerId);
    if (follower === undefined) return ErrorCode.UNKNOWN_LEADER_EPOCH;
    if (brokerEpoch >= 0 && brokerEpoch < follower.brokerEpoch)
      return ErrorCode.NOT_LEADER_OR_FOLLOWER;
    disturb(follower);
    // Another life of the broker: what the one before had says nothing of it.
    if (brokerEpoch !== follower.brokerEpoch && !this.#maximal.includes(brokerId))
      forgetPace(follower);
    // A fetch that has waited tells the time of its beginning.
    this.#nowMs = Math.max(this.#nowMs, nowMs);
    if (fetchOffset >= leaderEnd) follower.lastCaughtUpMs = nowMs;
    else if (fetchOffset >= follower.leaderEndThen && follower.leaderEndThen >= 0)
      // It has what there was when it last asked: it keeps pace, however much is written.
      follower.lastCaughtUpMs = Math.max(follower.lastCaughtUpMs, follower.lastFetchMs);
    follower.brokerEpoch = brokerEpoch;
    follower.endOffset = fetchOffset;
    follower.lastFetchMs = nowMs;
    follower.leaderEndThen = leaderEnd;
    return ErrorCode.NONE;
  }

  /**
   * After `fetched`: the follower's fetches need not look again before they are disturbed, for they would find nothing and
   * nobody would learn anything from them. False: this one has to.
   */
  rest(brokerId: number, leaderEnd: number, fetch: RestingFetch): boolean {
    const follower = this.#follower(brokerId);
    if (follower === undefined || follower.endOffset !== leaderEnd) return false;
    if (this.#pending !== null || !this.#state.isr.includes(brokerId)) return false;
    disturb(follower);
    follower.resting = fetch;
    return true;
  }

  /** The follower's fetch has changed: it says where it is. */
  disturb(brokerId: number): void {
    const follower = this.#follower(brokerId);
    if (follower !== undefined) disturb(follower);
  }

  /** Something is about to change for the followers: each looks again. */
  disturbAll(): void {
    for (const follower of this.#followers) disturb(follower);
  }

  /** After `fetched`: asks for the follower to be taken in when it may be. */
  maybeExpand(brokerId: number, highWatermark: number): void {
    if (this.#pending !== null || this.#state.isr.includes(brokerId)) return;
    const follower = this.#follower(brokerId);
    if (follower === undefined || !this.#isEligible(follower)) return;
    if (follower.endOffset < highWatermark || follower.endOffset < this.#epochStartOffset) return;
    this.#propose([...this.#state.isr, brokerId]);
  }

  /**
   * Asks for followers to be left out that have not kept pace for `replica.lag.time.max.ms`, and again for what was not
   * answered. Call about once a second.
   */
  tick(leaderEnd: number, nowMs: number): void {
    this.#nowMs = nowMs;
    if (this.#pending !== null) {
      if (this.#pending.isUnderWay) return;
      this.#pending.isUnderWay = true;
      this.#options.propose(this.#pending.proposal);
      return;
    }
    const { isr } = this.#state;
    if (isr.length <= 1 || !this.#isAnyLagging(leaderEnd)) return;
    this.#propose(isr.filter((id) => !this.#isLagging(id, leaderEnd)));
  }

  /**
   * The controller's answer to a proposal; null when there was none: then it is not known what became of it, and `tick`
   * asks again. True: who counts for the high watermark has changed.
   */
  answered(proposal: IsrProposal, answer: IsrAnswer | null): boolean {
    const pending = this.#pending;
    if (pending === null || pending.proposal !== proposal) return false;
    if (answer === null) {
      pending.isUnderWay = false;
      return false;
    }
    const { errorCode } = answer;
    if (errorCode === ErrorCode.NONE) return this.#accept(answer);
    if (
      errorCode === ErrorCode.INELIGIBLE_REPLICA ||
      errorCode === ErrorCode.OPERATION_NOT_ATTEMPTED
    ) {
      // It has not come about, and will not.
      this.#commit(this.#state);
      return true;
    }
    // The controller is another one, or knows better than this leader, whom the metadata will tell. Until then both
    // sets count.
    pending.isUnderWay = false;
    return false;
  }

  /**
   * Up to where all replicas have the log that count, when this one has it up to `ownEnd`; -1 when it must not move, or
   * is not known yet.
   * @param minInsyncReplicas no more than there are replicas
   */
  committable(ownEnd: number, minInsyncReplicas: number): number {
    if (this.#state.isr.length < minInsyncReplicas) return unknownOffset;
    if (this.#state.replicas.length === 1) return ownEnd;
    let end = ownEnd;
    for (const follower of this.#followers) {
      if (follower.endOffset >= end) continue;
      if (this.#maximal.includes(follower.brokerId) || this.#isJoining(follower))
        end = follower.endOffset;
    }
    return end;
  }

  /**
   * Keeps pace and may come back: waiting for it is what lets it reach the high watermark under a load that never
   * pauses (as in Kafka).
   */
  #isJoining(follower: Progress): boolean {
    return (
      follower.endOffset >= this.#epochStartOffset &&
      this.#nowMs - follower.lastCaughtUpMs <= this.#options.brokers.lagTimeMaxMs &&
      this.#isEligible(follower)
    );
  }

  #follower(brokerId: number): Progress | undefined {
    for (const one of this.#followers) if (one.brokerId === brokerId) return one;
    return undefined;
  }

  #isEligible({ brokerId, brokerEpoch }: Progress): boolean {
    const registered = this.#options.brokers.eligibleEpoch(brokerId);
    return registered >= 0 && brokerEpoch === registered;
  }

  /** Without a closure or a list: every second every leader is asked, and nearly always nobody lags. */
  #isAnyLagging(leaderEnd: number): boolean {
    for (const id of this.#state.isr) if (this.#isLagging(id, leaderEnd)) return true;
    return false;
  }

  #isLagging(id: number, leaderEnd: number): boolean {
    const follower = this.#follower(id);
    if (follower === undefined || follower.endOffset === leaderEnd) return false;
    return this.#nowMs - follower.lastCaughtUpMs > this.#options.brokers.lagTimeMaxMs;
  }

  #propose(isr: readonly number[]): void {
    const { topicId, partition, brokers, propose } = this.#options;
    const { leaderEpoch, partitionEpoch } = this.#state;
    const newIsr = isr.map((brokerId) => {
      const isSelf = brokerId === brokers.nodeId;
      const own = isSelf ? brokers.eligibleEpoch(brokerId) : -1;
      return { brokerId, brokerEpoch: this.#follower(brokerId)?.brokerEpoch ?? own };
    });
    const proposal = { topicId, partition, leaderEpoch, partitionEpoch, newIsr };
    this.#commit(this.#state, { proposal, isUnderWay: true });
    propose(proposal);
  }

  #accept({ leaderEpoch, isr, partitionEpoch }: IsrAnswer): boolean {
    const state = this.#state;
    // An answer that is older than what the metadata has told since, or of another epoch, says nothing.
    if (leaderEpoch !== state.leaderEpoch || partitionEpoch < state.partitionEpoch) return false;
    this.#commit({ ...state, isr, partitionEpoch });
    return true;
  }

  #commit(state: ReplicaSet, pending: Pending | null = null): void {
    const { isr, replicas } = state;
    this.disturbAll();
    for (const follower of this.#followers) {
      const wasIn = this.#state.isr.includes(follower.brokerId);
      const isIn = isr.includes(follower.brokerId);
      if (wasIn && !isIn) forgetPace(follower);
      // It has reached what is committed, not yet the log's end.
      if (!wasIn && isIn) follower.lastCaughtUpMs = this.#nowMs;
    }
    const isSameList = replicas === this.#state.replicas && this.#followers.length > 0;
    this.#state = state;
    this.#pending = pending;
    const added = pending?.proposal.newIsr.map(({ brokerId }) => brokerId) ?? [];
    this.#maximal = added.length === 0 ? isr : [...new Set([...isr, ...added])];
    // When a broker dies, thousands of partitions lose a member of their sets and no replica.
    if (isSameList) return;
    const { nodeId } = this.#options.brokers;
    this.#followers = replicas
      .filter((id) => id !== nodeId)
      .map((id) => this.#follower(id) ?? this.#unheard(id, isr));
  }

  /** A follower that has not fetched. Those in sync get as long as they may lag to show themselves. */
  #unheard(brokerId: number, isr: readonly number[]): Progress {
    return {
      brokerId,
      brokerEpoch: -1,
      endOffset: unknownOffset,
      lastFetchMs: 0,
      leaderEndThen: unknownOffset,
      lastCaughtUpMs: isr.includes(brokerId) ? this.#nowMs : Number.NEGATIVE_INFINITY,
      resting: null,
    };
  }
}

/** What its fetches have said meanwhile: that it had all there was. */
function disturb(follower: Progress): void {
  const { resting } = follower;
  if (resting === null) return;
  follower.resting = null;
  follower.lastFetchMs = Math.max(follower.lastFetchMs, resting.lastFetchMs);
  follower.lastCaughtUpMs = Math.max(follower.lastCaughtUpMs, resting.lastFetchMs);
  resting.disturb();
}

/** It has been away, or too slow: before anybody waits for it to come back, it has to keep pace anew. */
function forgetPace(follower: Progress): void {
  follower.leaderEndThen = unknownOffset;
  follower.lastCaughtUpMs = Number.NEGATIVE_INFINITY;
}
