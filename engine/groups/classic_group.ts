/**
 * One classic group: its members, its state and what follows from them. What moves it is in the other `classic_*` files.
 *
 * Thread and concurrency: as `GroupCoordinator`. Durability: a generation's assignments count once its record is committed.
 *
 * Legal transitions:
 *   Empty --join--> PreparingRebalance                     the first rebalance, which waits for further members
 *   Empty --deleted, expired--> Dead                       until the tombstones are committed, when the group is gone
 *   Dead --append failed--> Empty
 *   PreparingRebalance --all joined, time-out--> CompletingRebalance     generation + 1
 *   PreparingRebalance --all left--> Empty                 generation + 1
 *   CompletingRebalance --leader's sync committed--> Stable
 *   CompletingRebalance --join, leave, expiry, append failed--> PreparingRebalance
 *   Stable --join, leave, expiry, member that does not sync--> PreparingRebalance
 * A loaded group begins as Stable when it has members, else as Empty.
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../error_code.gen.ts';
import { type ClassicMember, type ClassicProtocol, metadataFor } from './classic_member.ts';
import { subscribedTopicsOf } from './subscription.ts';
import { newTimer, type Timer } from './timers.ts';

export const ClassicState = {
  empty: 'Empty',
  preparingRebalance: 'PreparingRebalance',
  completingRebalance: 'CompletingRebalance',
  stable: 'Stable',
  dead: 'Dead',
} as const;
export type ClassicState = (typeof ClassicState)[keyof typeof ClassicState];

const legal: Readonly<Record<ClassicState, readonly ClassicState[]>> = {
  Empty: ['PreparingRebalance', 'Dead'],
  PreparingRebalance: ['CompletingRebalance', 'Empty'],
  CompletingRebalance: ['Stable', 'PreparingRebalance'],
  Stable: ['PreparingRebalance'],
  Dead: ['Empty'],
};

/** The time-outs of the group itself, set by `classic_rebalance.ts`. */
export interface ClassicTimeouts {
  joinPhase(): void;
  syncPhase(): void;
}

export class ClassicGroup {
  readonly type = 'classic';
  readonly groupId: string;
  readonly members: Map<string, ClassicMember> = new Map();
  /** Member ids by group instance id. Invariant: each is a key of `members`. */
  readonly staticMembers: Map<string, string> = new Map();
  /** Ids that were told with MEMBER_ID_REQUIRED and have not come back yet, with the time-out of each. */
  readonly pendingMembers: Map<string, Timer> = new Map();
  /** Members of this generation that have not sent SyncGroup. Invariant: keys of `members`. */
  readonly pendingSync: Set<string> = new Set();
  readonly joinPhase: Timer;
  readonly syncPhase: Timer;
  generationId = 0;
  /** The generation whose assignments were last handed to the log. */
  storedGenerationId = -1;
  /** Null: never had a member, only offsets. */
  protocolType: string | null = null;
  protocolName: string | null = null;
  /** Invariant: null or a key of `members`. */
  leaderId: string | null = null;
  /** Wall clock: since when the group is in its state; -1 if not known. */
  stateSinceMs = -1;
  /** During the first rebalance: somebody has come since the delay was last extended. */
  newMemberAdded = false;
  /** During the first rebalance: monotonic time beyond which it does not wait for more members. */
  initialUntilMs = 0;
  /** Null: not known, because a member's metadata cannot be read or is not a consumer's. */
  subscribedTopics: ReadonlySet<string> | null = null;
  #state: ClassicState = ClassicState.empty;
  /** True from Empty to the end of the first rebalance. */
  #isInitial: boolean = false;
  #awaitingJoin = 0;
  readonly #supporters = new Map<string, number>();

  constructor(groupId: string, timeouts: (group: ClassicGroup) => ClassicTimeouts) {
    this.groupId = groupId;
    const { joinPhase, syncPhase } = timeouts(this);
    this.joinPhase = newTimer(joinPhase);
    this.syncPhase = newTimer(syncPhase);
  }

  get state(): ClassicState {
    return this.#state;
  }

  get isInitialRebalance(): boolean {
    return this.#isInitial;
  }

  /** How many JoinGroup requests wait. */
  get awaitingJoin(): number {
    return this.#awaitingJoin;
  }

  get hasAllMembersJoined(): boolean {
    return this.#awaitingJoin === this.members.size && this.pendingMembers.size === 0;
  }

  /** The longest of its members' time-outs. */
  get rebalanceTimeoutMs(): number {
    let longest = 0;
    for (const member of this.members.values())
      longest = Math.max(longest, member.rebalanceTimeoutMs);
    return longest;
  }

  get usesConsumerProtocol(): boolean {
    return this.protocolType === 'consumer';
  }

  transitionTo(state: ClassicState, wallMs: number): void {
    assert(legal[this.#state].includes(state), `${this.groupId}: ${this.#state} to ${state}`);
    this.#isInitial = state === 'PreparingRebalance' && this.#state === 'Empty';
    this.#state = state;
    this.stateSinceMs = wallMs;
  }

  /** The state after loading. */
  resume(stateSinceMs: number): void {
    this.#state = this.members.size > 0 ? ClassicState.stable : ClassicState.empty;
    this.stateSinceMs = stateSinceMs;
  }

  add(member: ClassicMember, protocolType: string): void {
    assert(!this.members.has(member.memberId), `${member.memberId} is already a member`);
    if (this.members.size === 0) this.protocolType = protocolType;
    this.members.set(member.memberId, member);
    if (member.groupInstanceId !== null)
      this.staticMembers.set(member.groupInstanceId, member.memberId);
    this.leaderId ??= member.memberId;
    this.#count(member.protocols, 1);
    if (member.joinToken !== null) this.#awaitingJoin += 1;
  }

  /** Its waiting requests must have been answered. */
  remove(member: ClassicMember): void {
    assert(member.joinToken === null && member.syncToken === null, `${member.memberId} waits`);
    this.members.delete(member.memberId);
    this.pendingSync.delete(member.memberId);
    if (member.groupInstanceId !== null) this.staticMembers.delete(member.groupInstanceId);
    this.#count(member.protocols, -1);
    if (this.leaderId === member.memberId) this.leaderId = this.members.keys().next().value ?? null;
  }

  /** Puts a static member's new incarnation in the old one's place. */
  replace(old: ClassicMember, successor: ClassicMember, protocolType: string): void {
    const wasLeader = this.leaderId === old.memberId;
    this.remove(old);
    this.add(successor, protocolType);
    if (wasLeader) this.leaderId = successor.memberId;
  }

  setProtocols(member: ClassicMember, protocols: readonly ClassicProtocol[]): void {
    this.#count(member.protocols, -1);
    member.protocols = protocols;
    this.#count(protocols, 1);
  }

  setJoinToken(member: ClassicMember, token: number | null): void {
    if (member.joinToken !== null) this.#awaitingJoin -= 1;
    member.joinToken = token;
    if (token !== null) this.#awaitingJoin += 1;
  }

  /** Whether somebody with these protocols can be a member beside the others. */
  supports(protocolType: string, protocols: readonly ClassicProtocol[]): boolean {
    if (this.members.size === 0) return protocolType !== '' && protocols.length > 0;
    return protocolType === this.protocolType && protocols.some(({ name }) => this.#isCommon(name));
  }

  /** The protocol that most members like best among those that all of them know. */
  selectProtocol(): string {
    const votes = new Map<string, number>();
    for (const { protocols } of this.members.values()) {
      const choice = protocols.find(({ name }) => this.#isCommon(name));
      if (choice !== undefined) votes.set(choice.name, (votes.get(choice.name) ?? 0) + 1);
    }
    let winner: string | null = null;
    for (const [name, count] of votes)
      if (winner === null || count > (votes.get(winner) ?? 0)) winner = name;
    assert(winner !== null, `${this.groupId}: members without a common protocol`);
    return winner;
  }

  /** Goes to the next generation: members' assignments are void, the protocol is chosen anew. */
  beginGeneration(wallMs: number): void {
    this.generationId += 1;
    this.pendingSync.clear();
    for (const member of this.members.values()) this.pendingSync.add(member.memberId);
    const isEmpty = this.members.size === 0;
    this.protocolName = isEmpty ? null : this.selectProtocol();
    this.transitionTo(isEmpty ? ClassicState.empty : ClassicState.completingRebalance, wallMs);
    this.findSubscribedTopics();
  }

  findSubscribedTopics(): void {
    this.subscribedTopics = null;
    if (!this.usesConsumerProtocol) return;
    const topics = new Set<string>();
    for (const member of this.members.values()) {
      const subscribed = subscribedTopicsOf(metadataFor(member, this.protocolName));
      if (subscribed === null) return;
      for (const topic of subscribed) topics.add(topic);
    }
    this.subscribedTopics = topics;
  }

  /** What is wrong with a request of this member (KIP-345), NONE for nothing. */
  checkMember(memberId: string, groupInstanceId: string | null): ErrorCode {
    if (groupInstanceId !== null) {
      const known = this.staticMembers.get(groupInstanceId);
      if (known === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
      if (known !== memberId) return ErrorCode.FENCED_INSTANCE_ID;
    }
    return this.members.has(memberId) ? ErrorCode.NONE : ErrorCode.UNKNOWN_MEMBER_ID;
  }

  #isCommon(protocol: string): boolean {
    return this.#supporters.get(protocol) === this.members.size;
  }

  #count(protocols: readonly ClassicProtocol[], by: 1 | -1): void {
    for (const name of new Set(protocols.map((protocol) => protocol.name)))
      this.#supporters.set(name, (this.#supporters.get(name) ?? 0) + by);
  }
}
