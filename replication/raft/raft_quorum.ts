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
import { type MetadataRecord, uuidZero, type Voter } from '../metadata/records.ts';
import type { RaftReply, RaftRequest } from './messages.ts';
import type { LogFullError } from './metadata_log_store.ts';
import { PendingAnswers } from './pending_answers.ts';
import type { MetadataQuorum, QuorumDescription, QuorumListener, VoterChange } from './quorum.ts';
import { checkedAnswer } from './raft_answer_check.ts';
import { RaftCore } from './raft_core.ts';
import { describeQuorum } from './raft_description.ts';
import { Leadership } from './raft_leadership.ts';
import { RaftLog } from './raft_log.ts';
import type { RaftQuorumOptions } from './raft_options.ts';
import { RaftOutbox } from './raft_outbox.ts';
import { RaftSnapshots } from './raft_snapshots.ts';
import { configuredVotersOf, loadQuorumState, observerText, settleVoters } from './raft_start.ts';
import { type ConfiguredVoter, notLeading, type RaftEffect, type RaftEvent } from './raft_types.ts';
import { type LoadedSnapshot, stateOf } from './snapshot_format.ts';
import { WakeTimer } from './wake_timer.ts';

/** How long a closing node waits for the others to hear of it. */
const farewellMs = 500;

export class RaftQuorum implements MetadataQuorum {
  readonly #options: RaftQuorumOptions;
  readonly #log: RaftLog;
  readonly #configuredVoters: readonly ConfiguredVoter[];
  readonly #outbox: RaftOutbox;
  readonly #events: RaftEvent[] = [];
  readonly #requests = new PendingAnswers<RaftReply>();
  readonly #changes = new PendingAnswers<VoterChange>();
  readonly #farewells: (() => void)[] = [];
  #listener: QuorumListener | null = null;
  #core: RaftCore | null = null;
  #state: 'idle' | 'running' | 'failed' | 'closed' = 'idle';
  #failure: Error | null = null;
  #isStarted: boolean = false;
  #isStepping: boolean = false;
  #leadership: Leadership | null = null;
  #isFull: boolean = false;
  #knownVoters: readonly Voter[] | null = null;
  readonly #timer: WakeTimer;
  /** null: the log has everything. */
  readonly #snapshots: RaftSnapshots | null;

  constructor(options: RaftQuorumOptions) {
    this.#options = options;
    const { store, codec, wallMs, stateStore, onClusterId, timers } = options;
    this.#configuredVoters = configuredVotersOf(options);
    this.#timer = new WakeTimer(timers, () => this.#dispatch({ type: 'tick' }));
    this.#log = new RaftLog({
      store,
      codec,
      wallMs,
      onFlushed: () => this.#flushed(),
      onNoRoom: (error) => this.#foundNoRoom(error),
      onFailed: (error) => this.#fail(error),
    });
    this.#snapshots = this.#makeSnapshots();
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
    const { files, loaded = null, fetchBytesMax = 0 } = this.#options.snapshots ?? {};
    if (loaded !== null) this.#handOut(loaded);
    const ids = files?.ids ?? [];
    this.#log.load(loaded, ids, isAlone ? (batch) => listener.onCommitted(batch) : null);
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
        snapshotBytesMax: fetchBytesMax,
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
    this.#dispatch({ type: 'request', requestId: this.#requests.add(done), request });
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
    this.#timer.stop();
    await this.#snapshots?.close();
    this.#outbox.close();
    await this.#outbox.saved();
    await this.#log.close();
  }

  get #isLeader(): boolean {
    return this.#state === 'running' && this.#leadership!.isLeading;
  }

  get #isAlone(): boolean {
    return this.#configuredVoters.every(({ voterId }) => voterId === this.nodeId);
  }

  #changeVoters(kind: 'add' | 'remove', voter: Voter, timeoutMs: number): Promise<VoterChange> {
    if (this.#state !== 'running') return Promise.resolve(notLeading);
    return new Promise((resolve) => {
      const changeId = this.#changes.add(resolve);
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
    const atMs = this.#state === 'running' ? this.#core!.wakeAtMs : Number.POSITIVE_INFINITY;
    this.#timer.wakeAt(atMs);
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
        this.#outbox.post(() => this.#requests.answer(effect.requestId, effect.reply));
        return;
      case 'replyRecords': {
        const { requestId, reply, fromOffset, maxBytes } = effect;
        const records = this.#log.read(fromOffset, this.#log.flushedOffset, maxBytes);
        this.#outbox.post(() => this.#requests.answer(requestId, { ...reply, records }));
        return;
      }
      case 'replySnapshot': {
        const news = { leaderId: this.nodeId, leaderEpoch: core.epoch };
        const reply = { ...this.#snapshots!.answer(effect.request), ...news };
        this.#outbox.post(() => this.#requests.answer(effect.requestId, reply));
        return;
      }
      case 'keepSnapshot':
        this.#snapshots?.receive(effect.id, effect.size, effect.position, effect.bytes);
        return;
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
        this.#changes.answer(effect.changeId, effect.result);
        return;
      case 'resignationTold':
        for (const resolve of this.#farewells.splice(0)) resolve();
        return;
      case 'leaderChanged':
        this.#listener!.onLeaderChanged?.(effect.leaderId, effect.epoch);
        return;
      case 'elected':
        this.#leadership!.elected(effect.silent);
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
    const listener = this.#listener!;
    this.#snapshots?.committed(() => listener.snapshotRecords?.() ?? []);
  }

  #makeSnapshots(): RaftSnapshots | null {
    const { snapshots: settings, codec, wallMs, timers, onWarning } = this.#options;
    if (settings === null) return null;
    return new RaftSnapshots({
      settings,
      ...{ log: this.#log, codec, wallMs, onWarning },
      now: () => timers.now(),
      awaits: (id) => this.#state === 'running' && this.#core?.follower?.awaits(id) === true,
      handOut: (snapshot) => this.#handOut(snapshot),
      dispatch: (event) => this.#dispatch(event),
      onFailed: (error) => this.#fail(error),
    });
  }

  #handOut(snapshot: LoadedSnapshot): void {
    this.#listener!.onSnapshot?.(stateOf(snapshot, this.#core?.leaderId ?? -1));
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
    const text = observerText(voters, self);
    if (text !== null) this.#options.onWarning(text);
  }

  #fail(error: Error): void {
    if (this.#state === 'failed' || this.#state === 'closed') return;
    this.#state = 'failed';
    this.#failure = error;
    this.#timer.stop();
    this.#outbox.close();
    if (this.#isStarted) this.#listener?.onFailed(error);
  }
}
