/**
 * Raft as KRaft does it (KIP-595, KIP-853, KIP-996): who leads, in which term, and what follows from each message.
 *
 * No IO and no clock: `step(event, nowMs)` returns what is to be done, `wakeAtMs` says when a `tick` is due. Memory: its
 * own. Durability: the state in memory runs ahead of the vote file; what others may hear of it waits (see `RaftEffect`).
 *
 * Legal transitions (anything else is a broken assertion):
 *   unattached, prospective, candidate --> follower     a leader of this term or a later one is known
 *   unattached --> prospective   the term has been without a leader for long enough; voters only
 *   prospective --> candidate    a majority would vote: the next term begins
 *   unattached --> candidate     all founders are known, or this node is the only voter
 *   candidate --> leader         a majority has voted, this node's own vote is on stable storage; founders: all of them
 *   follower --> unattached      the leader is gone or silent, or a later term
 *   prospective, candidate --> unattached   lost, timed out, or a later term
 *   leader --> unattached        a majority is silent, it is to stop, it is no voter any more; or a later term
 *
 * Invariants: the term never falls, and there is one vote in it; who led in a term never leads in it again.
 */
import assert from 'node:assert/strict';
import type { Voter } from '../metadata/records.ts';
import type { QuorumState } from './quorum_state.ts';
import { RaftElection } from './raft_election.ts';
import { RaftFarewell } from './raft_farewell.ts';
import { RaftFollower } from './raft_follower.ts';
import { type Founders, RaftFormation } from './raft_formation.ts';
import { RaftLeader } from './raft_leader.ts';
import type { RaftNode } from './raft_node.ts';
import { RaftPatience } from './raft_patience.ts';
import { takeReply } from './raft_replies.ts';
import { serveRequest } from './raft_requests.ts';
import { RaftSilence } from './raft_silence.ts';
import { RaftTerm } from './raft_term.ts';
import {
  isSameReplica,
  notLeading,
  type RaftConfig,
  type RaftEffect,
  type RaftEvent,
  type RaftLogView,
} from './raft_types.ts';

type Role =
  | { readonly name: 'unattached'; readonly standAtMs: number }
  | { readonly name: 'follower'; readonly follower: RaftFollower }
  | { readonly name: 'prospective'; readonly election: RaftElection }
  | { readonly name: 'candidate'; readonly election: RaftElection }
  | { readonly name: 'leader'; readonly leader: RaftLeader };

const legal: { readonly [from in Role['name']]: readonly Role['name'][] } = {
  unattached: ['unattached', 'follower', 'prospective', 'candidate'],
  follower: ['unattached'],
  prospective: ['candidate', 'unattached', 'follower'],
  candidate: ['leader', 'unattached', 'follower'],
  leader: ['unattached'],
};

export class RaftCore implements RaftNode {
  readonly config: RaftConfig;
  readonly log: RaftLogView;
  readonly term: RaftTerm;
  readonly formation: RaftFormation;
  readonly patience: RaftPatience;
  readonly #farewell = new RaftFarewell();
  readonly #silence = new RaftSilence(this);
  #clusterId: string;
  #role: Role;
  #leaderId = -1;
  #highWatermark = 0;
  #isLeaving: boolean = false;
  #lastToken = 0;
  #effects: RaftEffect[] = [];

  /** @param stored the vote file, and the id of the cluster that this node belongs to, '' for none */
  constructor(
    config: RaftConfig,
    log: RaftLogView,
    stored: { readonly state: QuorumState; readonly clusterId: string },
    nowMs: number,
  ) {
    this.config = config;
    this.log = log;
    this.#clusterId = stored.clusterId;
    this.term = new RaftTerm(this, stored.state);
    this.formation = new RaftFormation(this, nowMs);
    this.patience = new RaftPatience(this);
    this.#role = { name: 'unattached', standAtMs: nowMs + this.patience.pauseMs(-1) };
    this.#highWatermark = this.#isOnlyVoter ? log.flushedOffset : (log.snapshotId?.endOffset ?? 0);
  }

  get clusterId(): string {
    return this.#clusterId;
  }

  get epoch(): number {
    return this.term.epoch;
  }

  /** -1 while unknown. */
  get leaderId(): number {
    return this.#leaderId;
  }

  /** Everything below is committed, as far as this node knows. */
  get highWatermark(): number {
    return this.#highWatermark;
  }

  get leader(): RaftLeader | null {
    return this.#role.name === 'leader' ? this.#role.leader : null;
  }

  get follower(): RaftFollower | null {
    return this.#role.name === 'follower' ? this.#role.follower : null;
  }

  get election(): RaftElection | null {
    const role = this.#role;
    return role.name === 'prospective' || role.name === 'candidate' ? role.election : null;
  }

  get isUnattached(): boolean {
    return this.#role.name === 'unattached';
  }

  get isVoter(): boolean {
    return this.log.voters?.some((voter) => isSameReplica(voter, this.config.self)) ?? false;
  }

  /** When a `tick` has something to do. */
  get wakeAtMs(): number {
    const role = this.#role;
    switch (role.name) {
      case 'unattached':
        return Math.min(
          this.isVoter && !this.#isLeaving ? role.standAtMs : Number.POSITIVE_INFINITY,
          this.#mustAsk ? this.formation.wakeAtMs : Number.POSITIVE_INFINITY,
        );
      case 'follower':
        return role.follower.wakeAtMs;
      case 'leader':
        return role.leader.wakeAtMs;
      default:
        return role.election.untilMs;
    }
  }

  /**
   * After effects that change the log as a follower does, a `tick` is due.
   * @param nowMs monotonic
   */
  step(event: RaftEvent, nowMs: number): RaftEffect[] {
    const effects: RaftEffect[] = [];
    this.#effects = effects;
    this.#take(event, nowMs);
    // What follows from the log must wait for it to be as it will be.
    if (effects.some(({ type }) => type === 'truncate' || type === 'appendFetched')) return effects;
    for (let role: Role | null = null; role !== this.#role; ) {
      role = this.#role;
      this.#settle(nowMs);
    }
    return effects;
  }

  emit(effect: RaftEffect): void {
    if (effect.type === 'commit') this.#highWatermark = effect.endOffset;
    this.#effects.push(effect);
  }

  get #isOnlyVoter(): boolean {
    return this.isVoter && this.log.voters?.length === 1;
  }

  /** An empty node and an observer ask around for a leader; voters hear of one when they ask for votes. */
  get #mustAsk(): boolean {
    return this.log.endOffset === 0 || !this.isVoter;
  }

  #take(event: RaftEvent, nowMs: number): void {
    const role = this.#role;
    switch (event.type) {
      case 'start':
      case 'tick':
        return;
      case 'persisted':
        if (role.name === 'candidate') role.election.grant(this.config.self.id);
        return;
      case 'flushed':
        if (role.name === 'leader') role.leader.advance(nowMs);
        if (role.name === 'follower') this.commitAsFollower(role.follower);
        return;
      case 'noRoom':
        this.#foundNoRoom(nowMs);
        return;
      case 'snapshotInstalled':
        if (event.id.endOffset > this.#highWatermark)
          this.emit({ type: 'commit', endOffset: event.id.endOffset });
        if (role.name === 'follower') role.follower.endSnapshot(true, nowMs);
        return;
      case 'snapshotFailed':
        if (role.name === 'follower' && role.follower.awaits(event.id))
          role.follower.endSnapshot(false, nowMs);
        return;
      case 'request':
        this.#silence.heardRequest(event.request, nowMs);
        serveRequest(this, event.requestId, event.request, nowMs);
        return;
      case 'reply':
        if (this.#farewell.answered(event.token) && this.#isLeaving)
          this.emit({ type: 'resignationTold' });
        if (event.reply.type !== 'failure') this.#silence.heard(event.from, nowMs);
        takeReply(this, event, nowMs);
        return;
      case 'resign':
        this.#isLeaving = true;
        this.#resign(nowMs);
        if (this.#farewell.isTold) this.emit({ type: 'resignationTold' });
        return;
      case 'changeVoters':
        if (role.name === 'leader') role.leader.changes.request(event, nowMs);
        else this.emit({ type: 'votersChanged', changeId: event.changeId, result: notLeading });
    }
  }

  /** Does what is due in the present role; called until the role stays. */
  #settle(nowMs: number): void {
    const role = this.#role;
    switch (role.name) {
      case 'unattached':
        this.#seekLeader(role.standAtMs, nowMs);
        return;
      case 'follower':
        this.#fetch(role.follower, nowMs);
        return;
      case 'leader':
        if (!role.leader.tick(nowMs) || this.#isRemoved(role.leader)) this.#resign(nowMs);
        return;
      default:
        if (role.election.isWon) this.#win(role, nowMs);
        else if (role.election.isLost || nowMs >= role.election.untilMs) this.#lose(nowMs);
    }
  }

  #seekLeader(standAtMs: number, nowMs: number): void {
    if (this.#mustAsk) this.formation.askWhenDue(this.#nextToken(), nowMs);
    if (this.#isLeaving) return;
    if (this.isVoter) {
      const voters = this.log.voters ?? [];
      if (this.#isOnlyVoter) this.#stand(voters, null, nowMs);
      else if (nowMs >= standAtMs) this.#sound(voters, nowMs);
      return;
    }
    const founders = this.formation.founders();
    if (founders !== null) this.#found(founders, nowMs);
  }

  /** The pre-vote. */
  #sound(voters: readonly Voter[], nowMs: number): void {
    const election = this.#newElection(voters, null, nowMs);
    election.grant(this.config.self.id);
    this.#become({ name: 'prospective', election });
    election.begin(this, this.epoch, true);
  }

  #found({ voters, votesNeeded, clusterId }: Founders, nowMs: number): void {
    if (this.#clusterId === '') this.adoptCluster(clusterId || this.config.newClusterId);
    this.#stand(voters, votesNeeded, nowMs);
  }

  #stand(voters: readonly Voter[], votesNeeded: number | null, nowMs: number): void {
    const election = this.#newElection(voters, votesNeeded, nowMs);
    this.#become({ name: 'candidate', election });
    this.term.stand(voters.length === 1 ? this.config.self.id : -1);
    election.begin(this, this.epoch, false);
  }

  #newElection(voters: readonly Voter[], needed: number | null, nowMs: number): RaftElection {
    const { electionTimeoutMs } = this.config.timeouts;
    const untilMs = voters.length === 1 ? Number.POSITIVE_INFINITY : nowMs + electionTimeoutMs;
    return new RaftElection(voters, this.#nextToken(), untilMs, needed);
  }

  #win(role: Role & { name: 'prospective' | 'candidate' }, nowMs: number): void {
    const { voters } = role.election;
    if (role.name === 'prospective') {
      this.#stand(voters, null, nowMs);
      return;
    }
    this.patience.succeeded();
    const token = this.#nextToken();
    const silent = this.#silence.end(nowMs);
    const term = { epoch: this.epoch, token, highWatermark: this.#highWatermark, silent };
    const leader = new RaftLeader(this, term, nowMs);
    this.#become({ name: 'leader', leader });
    this.setLeader(this.config.self.id);
    leader.begin(voters, nowMs);
  }

  #lose(nowMs: number): void {
    this.patience.failed();
    if (this.log.endOffset === 0) this.formation.restart(nowMs);
    this.wait(nowMs + this.patience.pauseMs(-1));
  }

  leaderGone(nowMs: number): void {
    this.wait(nowMs + this.patience.pauseMs(this.#leaderId));
    this.setLeader(-1);
    this.patience.failed();
    if (this.#mustAsk) this.formation.restart(nowMs);
  }

  /** Not the leader any more, in this term for good. */
  #resign(nowMs: number): void {
    if (this.#role.name !== 'leader') return;
    this.#farewell.say(this, this.#role.leader, this.#nextToken());
    this.patience.failed();
    this.wait(nowMs + this.patience.othersTurnMs());
    this.setLeader(-1);
  }

  #isRemoved(leader: RaftLeader): boolean {
    const { voters, votersOffset } = this.log;
    return voters !== null && !this.isVoter && votersOffset < leader.highWatermark;
  }

  #fetch(follower: RaftFollower, nowMs: number): void {
    if (nowMs >= follower.silentAtMs) {
      this.leaderGone(nowMs);
      return;
    }
    if (!follower.isDue(nowMs)) return;
    const token = this.#nextToken();
    if (this.#clusterId !== '') follower.fetch(token, this.#highWatermark);
    else {
      // Which cluster this is must be on stable storage before anything of its log is.
      follower.expect(token);
      this.formation.ask(follower.leaderId, token);
    }
  }

  commitAsFollower({ committedOffset: endOffset }: RaftFollower): void {
    if (endOffset > this.#highWatermark) this.emit({ type: 'commit', endOffset });
  }

  #foundNoRoom(nowMs: number): void {
    const role = this.#role;
    if (role.name === 'follower') role.follower.foundNoRoom(nowMs);
    if (role.name !== 'leader' || this.#isOnlyVoter) return;
    if (this.log.endOffset <= role.leader.epochStartOffset) this.#resign(nowMs);
  }

  /** Somebody names a leader, or a term without one. */
  hearOf(leaderId: number, epoch: number, nowMs: number): void {
    const known = leaderId === this.config.self.id ? -1 : leaderId;
    const { name } = this.#role;
    if (epoch > this.epoch) this.enterEpoch(epoch, known, nowMs);
    else if (epoch === this.epoch && known >= 0 && name !== 'leader' && name !== 'follower')
      this.#follow(known, nowMs);
  }

  enterEpoch(epoch: number, leaderId: number, nowMs: number): void {
    this.wait(nowMs + this.patience.othersTurnMs());
    this.term.enter(epoch, leaderId);
    if (leaderId >= 0) this.#follow(leaderId, nowMs);
    else this.setLeader(-1);
  }

  #follow(id: number, nowMs: number): void {
    const follower = new RaftFollower(this, { id, epoch: this.epoch }, nowMs);
    this.#become({ name: 'follower', follower });
    this.setLeader(id);
    this.#silence.follow(id);
  }

  wait(standAtMs: number): void {
    this.#become({ name: 'unattached', standAtMs });
  }

  #become(role: Role): void {
    const from = this.#role;
    assert(legal[from.name].includes(role.name), `${from.name} cannot become ${role.name}`);
    if (from.name === 'leader') from.leader.end();
    this.#role = role;
  }

  setLeader(leaderId: number): void {
    if (leaderId === -1 && this.#leaderId === -1) return;
    this.#leaderId = leaderId;
    this.emit({ type: 'leaderChanged', leaderId, epoch: this.epoch });
  }

  adoptCluster(clusterId: string): void {
    this.#clusterId = clusterId;
    this.emit({ type: 'adoptCluster', clusterId });
  }

  #nextToken(): number {
    this.#lastToken += 1;
    return this.#lastToken;
  }
}
