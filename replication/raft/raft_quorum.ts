/**
 * The metadata quorum as a broker has it: drives the Raft core with the metadata log, the vote file, the transport and a
 * timer. A node that is its only voter leads from its start on, without any of the last two.
 *
 * Thread: its caller's. Concurrency: events are taken one after another, those that arise while one is being taken after
 * it. Durability: nothing is sent or answered before the term and the vote that it rests on are on stable storage; what
 * `onCommitted` reports is on stable storage on a majority of the voters.
 *
 * Legal transitions:
 *   idle --start--> running
 *   running --flush or vote file failed--> failed    for good
 *   any --close--> closed
 *
 * On disk it leaves what Kafka's voters do (KIP-595, KIP-853): the vote file, and at the start of each term a control
 * batch with a LeaderChange record; the first batch of all also names the quorum's version and voters.
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { type MetadataRecord, uuidZero, type Voter } from '../metadata/records.ts';
import type { RaftReply, RaftRequest } from './messages.ts';
import type { LogFullError } from './metadata_log_store.ts';
import type { MetadataQuorum, QuorumDescription, QuorumListener, VoterChange } from './quorum.ts';
import { checkedAnswer } from './raft_answer_check.ts';
import { RaftCore } from './raft_core.ts';
import { describeQuorum } from './raft_description.ts';
import { Leadership } from './raft_leadership.ts';
import { RaftLog } from './raft_log.ts';
import type { RaftQuorumOptions } from './raft_options.ts';
import { RaftOutbox } from './raft_outbox.ts';
import { loadQuorumState, settleVoters } from './raft_start.ts';
import {
  type ConfiguredVoter,
  changeOf,
  isSameReplica,
  type RaftEffect,
  type RaftEvent,
} from './raft_types.ts';

/** How long a closing node waits for the others to hear of it. */
const farewellMs = 500;

export class RaftQuorum implements MetadataQuorum {
  readonly #options: RaftQuorumOptions;
  readonly #log: RaftLog;
  readonly #outbox: RaftOutbox;
  readonly #events: RaftEvent[] = [];
  readonly #requests = new Map<number, (reply: RaftReply) => void>();
  readonly #changes = new Map<number, (result: VoterChange) => void>();
  readonly #farewells: (() => void)[] = [];
  #listener: QuorumListener | null = null;
  #core: RaftCore | null = null;
  #state: 'idle' | 'running' | 'failed' | 'closed' = 'idle';
  #failure: Error | null = null;
  #isStarted: boolean = false;
  #isStepping: boolean = false;
  #leadership: Leadership | null = null;
  #isFull: boolean = false;
  #nextId = 1;
  #knownVoters: readonly Voter[] | null = null;
  #wakeAtMs = Number.POSITIVE_INFINITY;
  #cancelTimer: (() => void) | null = null;

  constructor(options: RaftQuorumOptions) {
    this.#options = options;
    const { store, codec, wallMs, stateStore, onClusterId } = options;
    this.#log = new RaftLog({
      store,
      codec,
      wallMs,
      onFlushed: () => this.#flushed(),
      onNoRoom: (error) => this.#foundNoRoom(error),
      onFailed: (error) => this.#fail(error),
    });
    this.#outbox = new RaftOutbox({
      stateStore,
      onClusterId,
      onPersisted: () => this.#dispatch({ type: 'persisted' }),
      onFailed: (error) => this.#fail(error),
      forgets: options.without === 'votes are persisted',
    });
  }

  get nodeId(): number {
    return this.#options.self.voterId;
  }

  get leaderId(): number {
    if (this.#state !== 'running') return -1;
    const leaderId = this.#core?.leaderId ?? -1;
    return leaderId !== this.nodeId || this.#isLeader ? leaderId : -1;
  }

  get epoch(): number {
    return this.#core?.epoch ?? 0;
  }

  get committedOffset(): number {
    return this.#log.deliveredOffset - 1;
  }

  /** '' while the node belongs to none. */
  get clusterId(): string {
    return this.#core?.clusterId ?? this.#options.clusterId;
  }

  get voters(): readonly Voter[] {
    return (
      this.#log.voters ??
      this.#configuredVoters.map((voter) => ({ ...voter, voterDirectoryId: uuidZero }))
    );
  }

  async start(listener: QuorumListener): Promise<void> {
    assert(this.#state === 'idle', `a quorum that is ${this.#state} cannot start`);
    const { self, clusterId, newClusterId, timeouts, timers, without, onWarning } = this.#options;
    const isAlone = this.#isAlone;
    const state = loadQuorumState(this.#options, isAlone);
    this.#listener = listener;
    this.#log.load(isAlone ? (batch) => listener.onCommitted(batch) : null);
    if (this.#log.unknownRecords.length > 0)
      onWarning(
        `The metadata log holds records that have no effect here: ${this.#log.unknownRecords.join(', ')}.`,
      );
    settleVoters(this.#log, self, isAlone);
    this.#core = new RaftCore(
      {
        self: { id: self.voterId, directoryId: self.voterDirectoryId },
        endpoints: self.endpoints,
        configuredVoters: this.#configuredVoters,
        timeouts,
        random: () => this.#options.random.next(),
        newClusterId,
        without: without ?? null,
      },
      this.#log,
      { state, clusterId },
      timers.now(),
    );
    this.#leadership = new Leadership(listener, this.#core, this.#log);
    this.#state = 'running';
    this.#learnVoters();
    this.#deliver(this.#core.highWatermark);
    this.#dispatch({ type: 'start' });
    await this.#outbox.saved();
    if (this.#failure !== null) throw this.#failure;
    this.#isStarted = true;
  }

  append(records: readonly MetadataRecord[]): number {
    const state = this.#state === 'running' ? `${this.#state}, and does not lead` : this.#state;
    assert(this.#isLeader, `append to a quorum that is ${state}`);
    assert(records.length > 0, 'an append without records');
    return this.#log.append(records, this.epoch, this.nodeId);
  }

  /** A request of another member; `done` gets the one reply. After `start`; none comes after `close`. */
  handle(request: RaftRequest, done: (reply: RaftReply) => void): void {
    const requestId = this.#takeId();
    this.#requests.set(requestId, done);
    this.#dispatch({ type: 'request', requestId, request });
  }

  describe(): QuorumDescription {
    const { timers, wallMs, self } = this.#options;
    const wallOf = (ms: number): number => (ms < 0 ? -1 : wallMs() - (timers.now() - ms));
    return describeQuorum(this, this.#log, this.#core, { self, wallOf, wallMs: wallMs() });
  }

  addVoter(voter: Voter, timeoutMs: number): Promise<VoterChange> {
    return this.#changeVoters('add', voter, timeoutMs);
  }

  removeVoter(voterId: number, voterDirectoryId: string, timeoutMs: number): Promise<VoterChange> {
    return this.#changeVoters('remove', { voterId, voterDirectoryId, endpoints: [] }, timeoutMs);
  }

  resign(): Promise<void> {
    if (this.#state !== 'running') return Promise.resolve();
    return new Promise((resolve) => {
      this.#farewells.push(resolve);
      this.#dispatch({ type: 'resign' });
    });
  }

  async close(): Promise<void> {
    if (this.#state === 'closed') return;
    if (this.#state === 'running' && !this.#isAlone) {
      const told = this.resign();
      let cancel = (): void => {};
      const late = new Promise<void>((resolve) => {
        cancel = this.#options.timers.setTimer(farewellMs, resolve);
      });
      await Promise.race([told, late]);
      cancel();
    }
    await this.#log.flushed();
    this.#state = 'closed';
    this.#cancelTimer?.();
    this.#outbox.close();
    await this.#outbox.saved();
    await this.#log.close();
  }

  get #isLeader(): boolean {
    return this.#state === 'running' && this.#leadership!.isLeading;
  }

  get #configuredVoters(): readonly ConfiguredVoter[] {
    const { configuredVoters, self } = this.#options;
    const { voterId, endpoints } = self;
    if (configuredVoters.length === 0) return [{ voterId, endpoints }];
    return [...configuredVoters].sort((one, other) => one.voterId - other.voterId);
  }

  get #isAlone(): boolean {
    return this.#configuredVoters.every(({ voterId }) => voterId === this.nodeId);
  }

  #takeId(): number {
    this.#nextId += 1;
    return this.#nextId;
  }

  #changeVoters(kind: 'add' | 'remove', voter: Voter, timeoutMs: number): Promise<VoterChange> {
    if (this.#state !== 'running') return Promise.resolve(notRunning);
    return new Promise((resolve) => {
      const changeId = this.#takeId();
      this.#changes.set(changeId, resolve);
      this.#dispatch({ type: 'changeVoters', changeId, kind, voter, timeoutMs });
    });
  }

  #dispatch(event: RaftEvent): void {
    if (this.#state !== 'running') return;
    this.#events.push(event);
    if (this.#isStepping) return;
    this.#isStepping = true;
    try {
      for (;;) {
        const core = this.#core;
        const next = this.#state === 'running' ? this.#events.shift() : undefined;
        if (core === null || next === undefined) break;
        for (const effect of core.step(next, this.#options.timers.now())) this.#run(core, effect);
        this.#learnVoters();
      }
    } finally {
      this.#isStepping = false;
    }
    this.#arm();
  }

  #run(core: RaftCore, effect: RaftEffect): void {
    switch (effect.type) {
      case 'persist':
        this.#outbox.persist(effect.state);
        return;
      case 'adoptCluster':
        this.#outbox.adoptCluster(effect.clusterId);
        return;
      case 'send':
        this.#outbox.post(() => this.#send(effect));
        return;
      case 'reply':
        this.#outbox.post(() => this.#reply(effect.requestId, effect.reply));
        return;
      case 'replyRecords': {
        const { requestId, reply, fromOffset, maxBytes } = effect;
        const records = this.#log.read(fromOffset, this.#log.flushedOffset, maxBytes);
        this.#outbox.post(() => this.#reply(requestId, { ...reply, records }));
        return;
      }
      case 'appendControl':
        this.#log.appendControl(effect.records, core.epoch, this.nodeId);
        return;
      case 'appendFetched':
        this.#log.appendFetched(effect.records);
        this.#events.push({ type: 'tick' });
        return;
      case 'truncate':
        this.#truncate(effect.endOffset);
        this.#events.push({ type: 'tick' });
        return;
      case 'commit':
        this.#deliver(effect.endOffset);
        return;
      case 'votersChanged':
        this.#changes.get(effect.changeId)?.(effect.result);
        this.#changes.delete(effect.changeId);
        return;
      case 'resignationTold':
        for (const resolve of this.#farewells.splice(0)) resolve();
        return;
      case 'leaderChanged':
        this.#listener!.onLeaderChanged?.(effect.leaderId, effect.epoch);
        return;
      case 'elected':
        this.#leadership!.elected();
        return;
      case 'resigned':
        this.#leadership!.resigned();
        return;
      case 'warn':
        this.#options.onWarning(effect.message);
    }
  }

  #send({ to, token, request, timeoutMs }: RaftEffect & { type: 'send' }): void {
    const { transport } = this.#options;
    assert(transport !== null, `a quorum of one asks node ${to}`);
    transport.send(to, request, timeoutMs, (answer) => {
      const { onWarning } = this.#options;
      const reply = checkedAnswer(this.#log, request, answer, onWarning);
      this.#dispatch({ type: 'reply', from: to, token, request, reply });
    });
  }

  #reply(requestId: number, reply: RaftReply): void {
    const done = this.#requests.get(requestId);
    this.#requests.delete(requestId);
    done?.(reply);
  }

  #truncate(endOffset: number): void {
    try {
      this.#log.truncate(endOffset);
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #deliver(endOffset: number): void {
    const leaderId = this.#core?.leaderId ?? -1;
    this.#log.deliver(endOffset, leaderId, (batch) => this.#listener!.onCommitted(batch));
    this.#leadership!.resume();
  }

  #flushed(): void {
    this.#isFull = false;
    this.#dispatch({ type: 'flushed' });
  }

  /** A full disk must cost the requests at hand, not the process. Without room for the first batch there is no process. */
  #foundNoRoom(error: LogFullError): void {
    const leader = this.#core?.leader ?? null;
    if (this.#log.endOffset === 0 && leader !== null) {
      this.#fail(error);
      return;
    }
    if (!this.#isFull) this.#options.onWarning(error.message);
    this.#isFull = true;
    this.#leadership!.interrupt();
    this.#dispatch({ type: 'noRoom' });
    this.#leadership!.resume();
  }

  #learnVoters(): void {
    const { voters } = this.#log;
    if (voters === null || voters === this.#knownVoters) return;
    this.#knownVoters = voters;
    const { self, transport } = this.#options;
    // A host that has moved is where the configuration says.
    const configured = new Set(this.#configuredVoters.map(({ voterId }) => voterId));
    transport?.learn(voters.filter(({ voterId }) => !configured.has(voterId)));
    const key = { id: self.voterId, directoryId: self.voterDirectoryId };
    if (voters.some((voter) => isSameReplica(voter, key))) return;
    this.#options.onWarning(
      `This node (${key.id}, directory ${key.directoryId}) is no voter of the metadata quorum and follows it as an ` +
        'observer. To make it one, remove the voter that it replaces, if any, and add it: ' +
        'kafka-metadata-quorum remove-controller, add-controller.',
    );
  }

  #arm(): void {
    const atMs = this.#state === 'running' ? this.#core!.wakeAtMs : Number.POSITIVE_INFINITY;
    if (atMs === this.#wakeAtMs && this.#cancelTimer !== null) return;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#wakeAtMs = atMs;
    if (!Number.isFinite(atMs)) return;
    const { timers } = this.#options;
    this.#cancelTimer = timers.setTimer(Math.max(0, atMs - timers.now()), () => {
      this.#cancelTimer = null;
      this.#dispatch({ type: 'tick' });
    });
  }

  #fail(error: Error): void {
    if (this.#state === 'failed' || this.#state === 'closed') return;
    this.#state = 'failed';
    this.#failure = error;
    this.#cancelTimer?.();
    this.#outbox.close();
    if (this.#isStarted) this.#listener?.onFailed(error);
  }
}

const notRunning = changeOf(
  ErrorCode.NOT_LEADER_OR_FOLLOWER,
  'This node does not lead the metadata quorum.',
);
