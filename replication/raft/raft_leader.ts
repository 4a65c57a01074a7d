/**
 * The leader's side of one term: how far its followers are, what is committed, who waits for records, whether a majority
 * still listens.
 *
 * Part of the Raft core: no IO, no clock. A replica's offset is what it has on stable storage, its own included, and
 * only what is flushed here is handed out: so what a full disk takes back has been seen by nobody.
 *
 * Invariant: `highWatermark` never falls, and rises past what was in the log before the term only together with a batch
 * of the term (Raft, figure 8).
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { SilentNode } from '../metadata/broker_sessions.ts';
import type { QuorumControlRecord, Voter } from '../metadata/records.ts';
import { fetchReply } from './empty_reply.ts';
import type { FetchReply, FetchRequest, FetchSnapshotRequest, ReplicaKey } from './messages.ts';
import { isSameReplica, keyOf, type RaftContext } from './raft_types.ts';
import { VoterChanges } from './voter_changes.ts';

/** What is known of a replica that fetches. Times are monotonic ms, -1 when it never happened. */
export interface Progress {
  readonly key: ReplicaKey;
  endOffset: number;
  lastFetchMs: number;
  lastCaughtUpMs: number;
  /** The log's end when it fetched last. */
  endOffsetThen: number;
}

interface Parked {
  readonly requestId: number;
  readonly request: FetchRequest;
  readonly untilMs: number;
}

export class RaftLeader {
  readonly epoch: number;
  /** Where the log ended when the term began. */
  readonly epochStartOffset: number;
  readonly token: number;
  readonly changes: VoterChanges;
  readonly #context: RaftContext;
  readonly #electedAtMs: number;
  /** Who led before. */
  readonly #silent: SilentNode | null;
  readonly #replicas = new Map<string, Progress>();
  #parked: Parked[] = [];
  #highWatermark: number;
  /** The listener knows that it leads. */
  #isAnnounced: boolean = false;
  #tellAtMs: number;

  constructor(
    context: RaftContext,
    term: { epoch: number; token: number; highWatermark: number; silent: SilentNode | null },
    nowMs: number,
  ) {
    this.#context = context;
    this.epoch = term.epoch;
    this.token = term.token;
    this.epochStartOffset = context.log.endOffset;
    this.changes = new VoterChanges(context, this);
    this.#electedAtMs = nowMs;
    this.#tellAtMs = nowMs;
    this.#highWatermark = term.highWatermark;
    this.#silent = term.silent;
  }

  get highWatermark(): number {
    return this.#highWatermark;
  }

  get isAnnounced(): boolean {
    return this.#isAnnounced;
  }

  get replicas(): Iterable<Progress> {
    return this.#replicas.values();
  }

  /** When `tick` has something to do next. */
  get wakeAtMs(): number {
    let at = Math.min(this.#tellAtMs, this.#quorumEndsAtMs(), this.changes.deadlineMs);
    for (const { untilMs } of this.#parked) at = Math.min(at, untilMs);
    return at;
  }

  /** Writes the term's first batch; in the first term of all it also names the voters. */
  begin(voters: readonly Voter[], nowMs: number): void {
    const { config, log } = this.#context;
    const records: QuorumControlRecord[] = [
      { type: 'LeaderChange', leaderId: config.self.id, voters },
    ];
    if (log.voters === null)
      records.push({ type: 'KRaftVersion', kraftVersion: 1 }, { type: 'Voters', voters });
    this.#context.emit({ type: 'appendControl', records });
    this.#tell(voters, nowMs);
    this.#announce();
  }

  progressOf(key: ReplicaKey): Progress | null {
    return this.#replicas.get(nameOf(key)) ?? null;
  }

  /** A fetch in this term; its epoch has been checked. */
  fetched(requestId: number, request: FetchRequest, nowMs: number): void {
    const { log } = this.#context;
    const { fetchOffset, lastFetchedEpoch } = request;
    if (fetchOffset > 0 || log.startOffset > 0) {
      const known = log.endOffsetForEpoch(lastFetchedEpoch);
      const isReadable = fetchOffset >= log.startOffset;
      if (!isReadable || known.epoch !== lastFetchedEpoch || known.endOffset < fetchOffset) {
        // Where the histories part below what is left of the log, only the snapshot helps.
        const isGone = !isReadable || known.endOffset < log.startOffset;
        const { epoch, endOffset } = known;
        this.#progressOfFetcher(request, nowMs).lastFetchMs = nowMs;
        const reply = {
          ...this.#fetchReply(),
          divergingEpoch: isGone ? null : { epoch, endOffset },
          snapshotId: isGone ? log.snapshotId : null,
        };
        this.#context.emit({ type: 'reply', requestId, reply });
        return;
      }
    }
    const progress = this.#progressOfFetcher(request, nowMs);
    progress.endOffset = fetchOffset;
    if (fetchOffset >= log.endOffset) progress.lastCaughtUpMs = nowMs;
    else if (fetchOffset >= progress.endOffsetThen && progress.endOffsetThen > 0)
      progress.lastCaughtUpMs = Math.max(progress.lastCaughtUpMs, progress.lastFetchMs);
    progress.lastFetchMs = nowMs;
    progress.endOffsetThen = log.endOffset;
    const untilMs = nowMs + Math.max(0, request.maxWaitMs);
    this.#parked.push({ requestId, request, untilMs });
    this.advance(nowMs);
    this.changes.replicaFetched(nowMs);
    this.#answerParked(nowMs);
  }

  /** A replica copies a snapshot, in this term: it lives, though it does not fetch from the log. */
  fetchedSnapshot(requestId: number, request: FetchSnapshotRequest, nowMs: number): void {
    this.#progressOfFetcher(request, nowMs).lastFetchMs = nowMs;
    this.#context.emit({ type: 'replySnapshot', requestId, request });
  }

  /** More is flushed here, or the voters have changed: more may be committed. */
  advance(nowMs: number): void {
    const offset = this.#majorityOffset();
    const { config } = this.#context;
    const isOwn = offset > this.epochStartOffset || config.without === 'own term commits';
    if (offset > this.#highWatermark && isOwn) {
      this.#highWatermark = offset;
      this.#context.emit({ type: 'commit', endOffset: offset });
      this.#announce();
      this.changes.committed(offset);
    }
    this.#answerParked(nowMs);
  }

  /** @returns false when a majority of the voters has not fetched for too long: the term is over */
  tick(nowMs: number): boolean {
    if (nowMs >= this.#quorumEndsAtMs()) return false;
    this.changes.tick(nowMs);
    this.#answerParked(nowMs);
    if (nowMs >= this.#tellAtMs) this.#tell(this.#context.log.voters ?? [], nowMs);
    return true;
  }

  /** The term is over: whoever waits is sent away. */
  end(): void {
    const parked = this.#parked;
    this.#parked = [];
    const nobody = { leaderId: -1, epoch: this.epoch };
    const reply = fetchReply(ErrorCode.NOT_LEADER_OR_FOLLOWER, nobody, -1);
    for (const { requestId } of parked) this.#context.emit({ type: 'reply', requestId, reply });
    this.changes.end();
    if (this.#isAnnounced) this.#context.emit({ type: 'resigned' });
    this.#isAnnounced = false;
  }

  #announce(): void {
    if (this.#isAnnounced || this.#highWatermark < this.epochStartOffset) return;
    this.#isAnnounced = true;
    this.#context.emit({ type: 'elected', epoch: this.epoch, silent: this.#silent });
  }

  #progressOfFetcher(
    { replicaId, replicaDirectoryId }: Pick<FetchRequest, 'replicaId' | 'replicaDirectoryId'>,
    nowMs: number,
  ): Progress {
    const key = { id: replicaId, directoryId: replicaDirectoryId };
    const name = nameOf(key);
    let progress = this.#replicas.get(name);
    if (progress === undefined) {
      progress = { key, endOffset: -1, lastFetchMs: -1, lastCaughtUpMs: -1, endOffsetThen: 0 };
      this.#replicas.set(name, progress);
    }
    if (progress.lastFetchMs < 0) progress.lastFetchMs = nowMs;
    return progress;
  }

  #majorityOffset(): number {
    const { config, log } = this.#context;
    const voters = log.voters ?? [];
    const ends = voters.map((voter) =>
      isSameReplica(voter, config.self)
        ? log.flushedOffset
        : (this.progressOf(keyOf(voter))?.endOffset ?? -1),
    );
    ends.sort((one, other) => other - one);
    return ends[majorityOf(voters.length) - 1] ?? -1;
  }

  /** Check-quorum: Infinity when the leader is the majority itself. */
  #quorumEndsAtMs(): number {
    const { config, log } = this.#context;
    const voters = log.voters ?? [];
    const others = voters.filter((voter) => !isSameReplica(voter, config.self));
    const needed = majorityOf(voters.length) - (voters.length - others.length);
    if (needed <= 0 || others.length < needed) return Number.POSITIVE_INFINITY;
    const heardAtMs = others.map((voter) =>
      Math.max(this.#electedAtMs, this.progressOf(keyOf(voter))?.lastFetchMs ?? -1),
    );
    heardAtMs.sort((one, other) => other - one);
    return heardAtMs[needed - 1]! + config.timeouts.fetchTimeoutMs * 1.5;
  }

  /** BeginQuorumEpoch, again and again to those who do not fetch. */
  #tell(voters: readonly Voter[], nowMs: number): void {
    const { config, clusterId } = this.#context;
    const { fetchTimeoutMs, requestTimeoutMs } = config.timeouts;
    this.#tellAtMs = Number.POSITIVE_INFINITY;
    for (const voter of voters) {
      if (isSameReplica(voter, config.self)) continue;
      this.#tellAtMs = nowMs + fetchTimeoutMs / 4;
      const lastFetchMs = this.progressOf(keyOf(voter))?.lastFetchMs ?? -1;
      if (lastFetchMs >= 0 && nowMs - lastFetchMs < fetchTimeoutMs / 2) continue;
      this.#context.emit({
        type: 'send',
        to: voter.voterId,
        token: this.token,
        request: {
          type: 'beginQuorumEpoch',
          clusterId,
          voterId: voter.voterId,
          voterDirectoryId: voter.voterDirectoryId,
          leaderId: config.self.id,
          leaderEpoch: this.epoch,
          leaderEndpoints: config.endpoints,
        },
        timeoutMs: requestTimeoutMs,
      });
    }
  }

  #answerParked(nowMs: number): void {
    if (this.#parked.length === 0) return;
    const { flushedOffset } = this.#context.log;
    const waiting: Parked[] = [];
    for (const parked of this.#parked) {
      const { requestId, request, untilMs } = parked;
      const { fetchOffset, highWatermark, maxBytes } = request;
      const reply = this.#fetchReply();
      if (flushedOffset > fetchOffset)
        this.#context.emit({
          type: 'replyRecords',
          requestId,
          reply,
          fromOffset: fetchOffset,
          maxBytes,
        });
      else if (highWatermark < this.#highWatermark || untilMs <= nowMs)
        this.#context.emit({ type: 'reply', requestId, reply });
      else waiting.push(parked);
    }
    this.#parked = waiting;
  }

  #fetchReply(): FetchReply {
    const { epoch } = this;
    const leaderId = this.#context.config.self.id;
    const reply = fetchReply(ErrorCode.NONE, { leaderId, epoch }, this.#highWatermark);
    return { ...reply, logStartOffset: this.#context.log.startOffset };
  }
}

export function majorityOf(voters: number): number {
  return Math.floor(voters / 2) + 1;
}

function nameOf({ id, directoryId }: ReplicaKey): string {
  return `${id}/${directoryId}`;
}
