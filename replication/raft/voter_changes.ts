/**
 * One voter more or less at a time (KIP-853). A new set counts from its append on; the next change has to wait until it
 * is committed, so that any two majorities in use have a voter in common.
 *
 * Part of the Raft core: no IO, no clock.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { Voter } from '../metadata/records.ts';
import type { ReplicaKey } from './messages.ts';
import { changeOf, isSameReplica, keyOf, type RaftContext, type RaftEvent } from './raft_types.ts';

/** What a change needs to know of the leader. */
interface LeaderView {
  readonly epochStartOffset: number;
  readonly highWatermark: number;
  progressOf(key: ReplicaKey): { readonly endOffset: number; readonly lastFetchMs: number } | null;
}

export type ChangeRequest = RaftEvent & { readonly type: 'changeVoters' };

interface Change {
  readonly request: ChangeRequest;
  readonly deadlineMs: number;
  /** The new set is in the log. */
  isAppended: boolean;
}

export class VoterChanges {
  readonly #context: RaftContext;
  readonly #leader: LeaderView;
  #change: Change | null = null;

  constructor(context: RaftContext, leader: LeaderView) {
    this.#context = context;
    this.#leader = leader;
  }

  get deadlineMs(): number {
    return this.#change?.deadlineMs ?? Number.POSITIVE_INFINITY;
  }

  request(request: ChangeRequest, nowMs: number): void {
    const problem = this.#problemOf(request);
    if (problem !== null) {
      const { changeId } = request;
      this.#context.emit({ type: 'votersChanged', changeId, result: problem });
      return;
    }
    this.#change = { request, deadlineMs: nowMs + request.timeoutMs, isAppended: false };
    this.#appendWhenReady(nowMs);
  }

  /** An observer may have caught up. */
  replicaFetched(nowMs: number): void {
    this.#appendWhenReady(nowMs);
  }

  committed(endOffset: number): void {
    const change = this.#change;
    if (change?.isAppended && this.#context.log.votersOffset < endOffset)
      this.#finish(changeOf(ErrorCode.NONE, null));
  }

  tick(nowMs: number): void {
    if (nowMs < this.deadlineMs) return;
    const { isAppended, request } = this.#change!;
    const text = isAppended
      ? 'The new voter set is in the log, but not committed yet.'
      : `Node ${request.voter.voterId} has not caught up with the metadata log; is it running, and does it reach the leader?`;
    this.#finish(changeOf(ErrorCode.REQUEST_TIMED_OUT, text));
  }

  end(): void {
    if (this.#change !== null)
      this.#finish(
        changeOf(
          ErrorCode.NOT_LEADER_OR_FOLLOWER,
          'The leader of the metadata quorum has changed before the new voter set was committed.',
        ),
      );
  }

  #finish(result: ReturnType<typeof changeOf>): void {
    const { changeId } = this.#change!.request;
    this.#change = null;
    this.#context.emit({ type: 'votersChanged', changeId, result });
  }

  #problemOf({ kind, voter }: ChangeRequest): ReturnType<typeof changeOf> | null {
    const { log } = this.#context;
    const voters = log.voters ?? [];
    const { highWatermark, epochStartOffset } = this.#leader;
    if (this.#change !== null || log.votersOffset >= highWatermark)
      return changeOf(ErrorCode.REQUEST_TIMED_OUT, 'Another change of the voters is under way.');
    if (highWatermark <= epochStartOffset)
      return changeOf(
        ErrorCode.REQUEST_TIMED_OUT,
        'The leader has not committed anything in its term yet.',
      );
    const { voterId, voterDirectoryId } = voter;
    const same = voters.find((known) => known.voterId === voterId);
    if (kind === 'add') {
      if (same === undefined) return null;
      const text = `Node ${voterId} is a voter already, with directory ${same.voterDirectoryId}.`;
      return changeOf(ErrorCode.DUPLICATE_VOTER, text);
    }
    if (same?.voterDirectoryId !== voterDirectoryId)
      return changeOf(
        ErrorCode.VOTER_NOT_FOUND,
        `Node ${voterId} with directory ${voterDirectoryId} is no voter.`,
      );
    if (voters.length === 1)
      return changeOf(ErrorCode.INVALID_REQUEST, 'The last voter cannot be removed.');
    return null;
  }

  #appendWhenReady(nowMs: number): void {
    const change = this.#change;
    if (change === null || change.isAppended) return;
    const { kind, voter } = change.request;
    const { log } = this.#context;
    if (kind === 'add' && !this.#hasCaughtUp(keyOf(voter), nowMs)) return;
    change.isAppended = true;
    const kept = (log.voters ?? []).filter((known) => !isSameReplica(known, keyOf(voter)));
    const voters: Voter[] = kind === 'add' ? [...kept, voter] : kept;
    voters.sort((one, other) => one.voterId - other.voterId);
    this.#context.emit({ type: 'appendControl', records: [{ type: 'Voters', voters }] });
  }

  #hasCaughtUp(key: ReplicaKey, nowMs: number): boolean {
    const progress = this.#leader.progressOf(key);
    if (progress === null) return false;
    const isRecent = nowMs - progress.lastFetchMs < this.#context.config.timeouts.fetchTimeoutMs;
    return isRecent && progress.endOffset >= this.#leader.highWatermark;
  }
}
