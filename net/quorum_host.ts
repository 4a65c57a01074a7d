/**
 * Runs the metadata quorum and the controller on a thread and serves the other threads through their ports.
 *
 * Thread: main for now. Concurrency: callbacks of the quorum and messages of the ports run one after another.
 * Durability: only committed records leave it. A reply goes out when all that it rests on is committed, and the replies
 * to what changes topics or settings when every attached thread has acted on it as well.
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../engine/error_code.gen.ts';
import type { Controller, ControllerEffect } from '../replication/metadata/controller.ts';
import type {
  AnyControllerReply,
  ControllerApi,
  ControllerReply,
  ControllerRequest,
  ControllerRequestType,
} from '../replication/metadata/controller_api.ts';
import type { MetadataImage } from '../replication/metadata/image.ts';
import type { MetadataBatch, MetadataDelta } from '../replication/metadata/records.ts';
import type { MetadataQuorum, QuorumListener } from '../replication/raft/quorum.ts';
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
}

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

/** Requests whose effects every thread has acted on before the answer. */
const appliedEverywhere: ReadonlySet<ControllerRequestType> = new Set([
  'createTopics',
  'deleteTopics',
  'createPartitions',
  'alterConfigs',
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
  #nextRequestId = 1;

  constructor(options: QuorumHostOptions) {
    this.#options = options;
  }

  /** What is committed, as this thread sees it. */
  get image(): MetadataImage {
    return this.#options.image;
  }

  /** Replays the log and joins the quorum. Rejects with a text for people when the log cannot be used. */
  start(): Promise<void> {
    return this.#options.quorum.start(this);
  }

  /** A request of this thread itself. Resolves, never rejects, once the result is committed. */
  request<K extends ControllerRequestType>(
    request: ControllerRequest & { readonly type: K },
  ): Promise<ControllerReply<ControllerApi[K]['result']>> {
    return new Promise((resolve) => {
      // The controller answers with the result that belongs to the request's type.
      this.#submit(request, resolve as (reply: AnyControllerReply) => void);
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

  close(): Promise<void> {
    return this.#options.quorum.close();
  }

  onCommitted(batch: MetadataBatch): void {
    this.#options.image.follow(batch);
    this.#options.beforeDelta?.(batch);
    for (const thread of this.#threads) this.#sendDelta(thread, batch);
    this.#sendReady();
  }

  onElected(epoch: number, nextOffset: number): void {
    const { controller, image } = this.#options;
    this.#run(controller.step({ type: 'elected', epoch, nextOffset, image }));
  }

  onResigned(): void {
    this.#run(this.#options.controller.step({ type: 'resigned' }));
    const { committedOffset } = this.#options.quorum;
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
      const { id, request } = message;
      this.#submit(request, (reply) => post(thread.port, { type: 'quorum.reply', id, reply }));
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

  #submit(request: ControllerRequest, send: (reply: AnyControllerReply) => void): void {
    const requestId = this.#nextRequestId;
    this.#nextRequestId += 1;
    this.#requests.set(requestId, { type: request.type, send });
    this.#run(this.#options.controller.step({ type: 'request', requestId, request }));
    this.#sendReady();
  }

  #run(effects: readonly ControllerEffect[]): void {
    for (const effect of effects) {
      if (effect.type === 'append') {
        this.#options.quorum.append(effect.records);
        continue;
      }
      const { requestId, afterOffset, reply } = effect;
      const request = this.#requests.get(requestId);
      assert(request !== undefined, `the controller answers request ${requestId} twice`);
      this.#requests.delete(requestId);
      const everywhere = appliedEverywhere.has(request.type);
      const queue = everywhere ? this.#awaitingApplied : this.#awaitingCommit;
      queue.push({ afterOffset, reply, send: request.send });
    }
  }

  #sendReady(): void {
    const { committedOffset } = this.#options.quorum;
    sendUpTo(this.#awaitingCommit, committedOffset);
    let applied = committedOffset;
    for (const thread of this.#threads) applied = Math.min(applied, thread.appliedOffset);
    sendUpTo(this.#awaitingApplied, applied);
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

const leadershipLost: AnyControllerReply = {
  errorCode: ErrorCode.NOT_CONTROLLER,
  errorMessage:
    'This node lost the leadership of the metadata quorum before the change was committed.',
  result: null,
};
