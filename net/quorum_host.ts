/**
 * Runs the metadata quorum and the controller on a thread and serves the other threads through their ports.
 *
 * Thread: main for now. Concurrency: callbacks of the quorum and messages of the ports run one after another.
 * Durability: only committed records leave it. A reply goes out when all that it rests on is committed, and the replies
 * to what changes topics or settings when every attached thread has acted on it as well.
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../engine/error_code.gen.ts';
import type { Clock } from '../engine/ports.ts';
import type { SilentNode } from '../replication/metadata/broker_sessions.ts';
import type { Controller, ControllerEffect } from '../replication/metadata/controller.ts';
import type {
  AnyControllerReply,
  ControllerRequest,
  ControllerRequestType,
} from '../replication/metadata/controller_api.ts';
import type { MetadataImage } from '../replication/metadata/image.ts';
import { deltaTo } from '../replication/metadata/image_difference.ts';
import type {
  MetadataBatch,
  MetadataDelta,
  MetadataRecord,
  MetadataSnapshot,
} from '../replication/metadata/records.ts';
import type { MetadataQuorum, QuorumListener, VoterChange } from '../replication/raft/quorum.ts';
import type {
  Done,
  QuorumReply,
  QuorumReplyOf,
  QuorumRequest,
  QuorumRequestOf,
  QuorumRequestType,
} from './quorum_api.ts';
import {
  type FromQuorum,
  isQuorumMessage,
  type QuorumPort,
  type ToQuorum,
} from './quorum_messages.ts';

export interface QuorumHostOptions {
  readonly quorum: MetadataQuorum;
  readonly controller: Controller;
  /** An empty image; the host keeps it at what is committed. */
  readonly image: MetadataImage;
  /** Called with each committed delta before any thread is sent it. */
  readonly beforeDelta?: (delta: MetadataDelta) => void;
  /** The quorum's storage failed: the process should stop with this reason. */
  readonly onFailed: (error: Error) => void;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/** Who wants to know of the quorum's leaders. */
export interface LeaderWatcher {
  /** -1: nobody leads as far as this node knows. */
  onLeaderChanged(leaderId: number, epoch: number): void;
  /** This node's controller is at work from now on. */
  onElected?(): void;
}

/** Takes a thread's request to whoever leads. Never rejects. */
export type Forward = (request: QuorumRequest, timeoutMs: number) => Promise<QuorumReply>;

interface AttachedThread {
  readonly port: QuorumPort;
  /** Offset up to which the thread has acted on the metadata; -2 until it has acted on its snapshot. */
  appliedOffset: number;
  readonly attached: PromiseWithResolvers<void>;
}

interface WaitingReply {
  readonly afterOffset: number;
  readonly reply: AnyControllerReply;
  readonly send: (reply: AnyControllerReply) => void;
}

interface Barrier {
  readonly offset: number;
  readonly pass: () => void;
}

/** Node's timers take no more. A tick that is early does no harm. */
const timerMsMax = 2 ** 31 - 1;

/** Requests whose effects every thread has acted on before the answer. */
export const appliedEverywhere: ReadonlySet<QuorumRequestType> = new Set<QuorumRequestType>([
  'createTopics',
  'deleteTopics',
  'createPartitions',
  'alterConfigs',
  'electLeaders',
  'alterPartitionReassignments',
  'unregisterBroker',
]);

export class QuorumHost implements QuorumListener {
  readonly #options: QuorumHostOptions;
  readonly #threads = new Set<AttachedThread>();
  readonly #requests = new Map<
    number,
    { readonly type: ControllerRequestType; readonly send: (reply: AnyControllerReply) => void }
  >();
  /** Invariant: both in the order of `afterOffset`. */
  readonly #awaitingCommit: WaitingReply[] = [];
  readonly #awaitingApplied: WaitingReply[] = [];
  #barriers: Barrier[] = [];
  readonly #watchers: LeaderWatcher[] = [];
  /** Null: this node leads, always. */
  #forward: Forward | null = null;
  #wakeTimer: NodeJS.Timeout | null = null;
  #nextRequestId = 1;

  constructor(options: QuorumHostOptions) {
    this.#options = options;
  }

  /** What is committed, as this thread sees it. */
  get image(): MetadataImage {
    return this.#options.image;
  }

  /** -1 while unknown. */
  get leaderId(): number {
    return this.#options.quorum.leaderId;
  }

  /** Offset up to which everything is committed and every attached thread has acted on it. */
  get appliedOffset(): number {
    let applied = this.#options.quorum.committedOffset;
    for (const thread of this.#threads) applied = Math.min(applied, thread.appliedOffset);
    return applied;
  }

  /** Replays the log and joins the quorum. Rejects with a text for people when the log cannot be used. */
  start(): Promise<void> {
    return this.#options.quorum.start(this);
  }

  watch(watcher: LeaderWatcher): void {
    this.#watchers.push(watcher);
  }

  /** Has the threads' requests taken to whoever leads. Without it they are this node's controller's. */
  forwardBy(forward: Forward): void {
    this.#forward = forward;
  }

  /**
   * A request to the controller of this very node, which answers NOT_CONTROLLER while it does not lead. Resolves, never
   * rejects, once the result is committed.
   */
  request<K extends QuorumRequestType>(request: QuorumRequestOf<K>): Promise<QuorumReplyOf<K>> {
    return new Promise((resolve) => {
      // The answer is the one that belongs to the request's type.
      this.#submit(request as unknown as QuorumRequest, resolve as (reply: QuorumReply) => void);
    });
  }

  /** Nobody listens where the broker was: its process is gone. */
  brokerUnreachable(brokerId: number): void {
    const { controller } = this.#options;
    this.#run(controller.step({ type: 'brokerUnreachable', brokerId, nowMs: this.#nowMs() }));
  }

  /** Fulfilled when `appliedOffset` has got there. */
  applied(offset: number): Promise<void> {
    return new Promise((pass) => {
      this.#barriers.push({ offset, pass });
      this.#sendReady();
    });
  }

  /** Serves a thread from now on. Fulfilled once it has acted on the snapshot that it is sent first. */
  attach(port: QuorumPort): Promise<void> {
    const thread: AttachedThread = {
      port,
      appliedOffset: -2,
      attached: Promise.withResolvers<void>(),
    };
    port.on('message', (message) => {
      if (isQuorumMessage(message)) this.#receive(thread, message as ToQuorum);
    });
    this.#threads.add(thread);
    this.#sendDelta(thread, this.#options.image.snapshot());
    return thread.attached.promise;
  }

  /** Stops waiting for a thread, which must have ended. */
  detach(port: QuorumPort): void {
    for (const thread of this.#threads) if (thread.port === port) this.#threads.delete(thread);
    this.#sendReady();
  }

  /** Lets another node lead, if this one does. See `MetadataQuorum.resign`. */
  resign(): Promise<void> {
    return this.#options.quorum.resign();
  }

  close(): Promise<void> {
    this.#wakeAt(null);
    return this.#options.quorum.close();
  }

  onCommitted(batch: MetadataBatch): void {
    this.#follow(batch);
  }

  onSnapshot(snapshot: MetadataSnapshot): void {
    this.#follow(deltaTo(this.#options.image, snapshot));
  }

  snapshotRecords(): Iterable<MetadataRecord> {
    return this.#options.image.copy().records();
  }

  #follow(delta: MetadataDelta): void {
    this.#options.image.follow(delta);
    this.#options.beforeDelta?.(delta);
    for (const thread of this.#threads) this.#sendDelta(thread, delta);
    this.#sendReady();
  }

  onLeaderChanged(leaderId: number, epoch: number): void {
    for (const watcher of this.#watchers) watcher.onLeaderChanged(leaderId, epoch);
  }

  onElected(epoch: number, nextOffset: number, silent: SilentNode | null): void {
    const { controller, image } = this.#options;
    const nowMs = this.#nowMs();
    this.#run(controller.step({ type: 'elected', epoch, nextOffset, image, silent, nowMs }));
    for (const watcher of this.#watchers) watcher.onElected?.();
  }

  onResigned(): void {
    const { controller, quorum } = this.#options;
    this.#run(controller.step({ type: 'resigned', nowMs: this.#nowMs() }));
    this.#wakeAt(null);
    const { committedOffset } = quorum;
    for (const queue of [this.#awaitingCommit, this.#awaitingApplied]) {
      const lost = queue.findIndex((waiting) => waiting.afterOffset > committedOffset);
      if (lost !== -1) for (const waiting of queue.splice(lost)) waiting.send(leadershipLost);
    }
  }

  onFailed(error: Error): void {
    this.#options.onFailed(error);
  }

  #receive(thread: AttachedThread, message: ToQuorum): void {
    if (message.type === 'quorum.request') {
      const { id, request, timeoutMs } = message;
      const send = (reply: QuorumReply): void =>
        post(thread.port, { type: 'quorum.reply', id, reply });
      if (this.#forward === null) this.#submit(request, send);
      else void this.#forward(request, timeoutMs).then(send);
      return;
    }
    assert(
      message.offset >= thread.appliedOffset,
      `a thread has applied the metadata up to ${message.offset}, after ${thread.appliedOffset}`,
    );
    thread.appliedOffset = message.offset;
    thread.attached.resolve();
    this.#sendReady();
  }

  #submit(request: QuorumRequest, send: (reply: QuorumReply) => void): void {
    const { quorum } = this.#options;
    switch (request.type) {
      case 'describeQuorum':
        send(
          this.leaderId === quorum.nodeId
            ? { errorCode: ErrorCode.NONE, result: quorum.describe() }
            : notController,
        );
        break;
      case 'addVoter':
        this.#change(() => quorum.addVoter(request.voter, request.timeoutMs), send);
        break;
      case 'removeVoter': {
        const { voterId, voterDirectoryId, timeoutMs } = request;
        this.#change(() => quorum.removeVoter(voterId, voterDirectoryId, timeoutMs), send);
        break;
      }
      default:
        this.#control(request, send);
    }
  }

  #change(ask: () => Promise<VoterChange>, send: (reply: QuorumReply) => void): void {
    if (this.#forward === null) send(alone);
    else void ask().then((change) => send(changed(change)));
  }

  #control(request: ControllerRequest, send: (reply: AnyControllerReply) => void): void {
    const { controller } = this.#options;
    const requestId = this.#nextRequestId;
    this.#nextRequestId += 1;
    this.#requests.set(requestId, { type: request.type, send });
    this.#run(controller.step({ type: 'request', requestId, request, nowMs: this.#nowMs() }));
    this.#sendReady();
  }

  #run(effects: readonly ControllerEffect[]): void {
    for (const effect of effects)
      switch (effect.type) {
        case 'append':
          this.#options.quorum.append(effect.records);
          break;
        case 'wakeAt':
          this.#wakeAt(effect.atMs);
          break;
        case 'reply':
          this.#queue(effect);
          break;
      }
  }

  #queue({ requestId, afterOffset, reply }: ControllerEffect & { type: 'reply' }): void {
    const request = this.#requests.get(requestId);
    assert(request !== undefined, `the controller answers request ${requestId} twice`);
    this.#requests.delete(requestId);
    const everywhere = appliedEverywhere.has(request.type);
    const queue = everywhere ? this.#awaitingApplied : this.#awaitingCommit;
    queue.push({ afterOffset, reply, send: request.send });
  }

  /** A timer fires up to a millisecond early, and the controller may then ask for the same time again. */
  #wakeAt(atMs: number | null): void {
    if (this.#wakeTimer !== null) clearTimeout(this.#wakeTimer);
    this.#wakeTimer = null;
    if (atMs === null) return;
    const { controller } = this.#options;
    const delayMs = Math.min(timerMsMax, Math.max(1, Math.ceil(atMs - this.#nowMs())));
    this.#wakeTimer = setTimeout(() => {
      this.#wakeTimer = null;
      this.#run(controller.step({ type: 'tick', nowMs: this.#nowMs() }));
    }, delayMs);
    this.#wakeTimer.unref();
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  #sendReady(): void {
    const { committedOffset } = this.#options.quorum;
    const { appliedOffset } = this;
    sendUpTo(this.#awaitingCommit, committedOffset);
    sendUpTo(this.#awaitingApplied, appliedOffset);
    if (this.#barriers.length === 0) return;
    const barriers = this.#barriers;
    this.#barriers = barriers.filter(({ offset }) => offset > appliedOffset);
    for (const { offset, pass } of barriers) if (offset <= appliedOffset) pass();
  }

  #sendDelta(thread: AttachedThread, delta: MetadataDelta): void {
    post(thread.port, { type: 'quorum.delta', delta });
  }
}

function sendUpTo(queue: WaitingReply[], offset: number): void {
  while (queue[0] !== undefined && queue[0].afterOffset <= offset) {
    const { send, reply } = queue.shift()!;
    send(reply);
  }
}

function post(port: QuorumPort, message: FromQuorum): void {
  port.postMessage(message);
}

/** Who does not lead must be told from who refuses: the one is asked again elsewhere. */
function changed({ errorCode, errorMessage }: VoterChange): QuorumReplyOf<'addVoter'> {
  if (errorCode === ErrorCode.NONE) return { errorCode, result: {} satisfies Done };
  if (errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER) return notController;
  return { errorCode, errorMessage: errorMessage ?? '', result: null };
}

const notController: QuorumReplyOf<'addVoter'> & { result: null } = {
  errorCode: ErrorCode.NOT_CONTROLLER,
  errorMessage: 'This node does not lead the metadata quorum at the moment.',
  result: null,
};

const alone: QuorumReplyOf<'addVoter'> = {
  errorCode: ErrorCode.INVALID_REQUEST,
  errorMessage: 'This node is alone. Several voters need controller.quorum.voters on each node.',
  result: null,
};

const leadershipLost: AnyControllerReply = {
  errorCode: ErrorCode.NOT_CONTROLLER,
  errorMessage:
    'This node lost the leadership of the metadata quorum before the change was committed.',
  result: null,
};
