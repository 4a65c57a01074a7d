/**
 * The controller of a simulated node on its metadata quorum: runs the core's steps, keeps the image at what is committed,
 * and lets answers out when what they rest on is committed. What `net/quorum_host.ts` does for threads, without threads.
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { SilentNode } from '../../../replication/metadata/broker_sessions.ts';
import type { Controller, ControllerEffect } from '../../../replication/metadata/controller.ts';
import type {
  AnyControllerReply,
  ControllerRequest,
} from '../../../replication/metadata/controller_api.ts';
import { MetadataImage } from '../../../replication/metadata/image.ts';
import { deltaTo } from '../../../replication/metadata/image_difference.ts';
import type {
  MetadataBatch,
  MetadataDelta,
  MetadataRecord,
  MetadataSnapshot,
} from '../../../replication/metadata/records.ts';
import type { MetadataQuorum, QuorumListener } from '../../../replication/raft/quorum.ts';
import { brokerEpochs, checkIsrEpochs, withEpochs } from './isr_epochs.ts';
import type { Mutant } from './mutants.ts';
import type { SimProcess } from './sim_process.ts';

export interface ControllerHostOptions {
  readonly process: SimProcess;
  readonly controller: Controller;
  /** The node's monotonic clock. */
  readonly now: () => number;
  /** @param isNews false for what a snapshot has told all at once */
  readonly onDelta: (delta: MetadataDelta, isNews: boolean) => void;
  /** The controller's image with what it has just proposed, and all that was proposed in the step. */
  readonly onProposed: (image: MetadataImage, records: readonly MetadataRecord[]) => void;
  readonly onElected: (epoch: number, nextOffset: number) => void;
  readonly onLeaderChanged: (leaderId: number, epoch: number) => void;
  readonly onFailed: (error: Error) => void;
  readonly mutant: Mutant | null;
}

interface Waiting {
  readonly afterOffset: number;
  readonly reply: AnyControllerReply;
  readonly send: (reply: AnyControllerReply) => void;
}

const leadershipLost: AnyControllerReply = {
  errorCode: ErrorCode.NOT_CONTROLLER,
  errorMessage: 'lost',
  result: null,
};

export class ControllerHost implements QuorumListener {
  /** Kept at what is committed. */
  readonly image: MetadataImage = new MetadataImage('simulatedClusterOfTests');
  readonly #options: ControllerHostOptions;
  readonly #requests = new Map<number, (reply: AnyControllerReply) => void>();
  /** Invariant: in the order of `afterOffset`. */
  readonly #waiting: Waiting[] = [];
  #quorum: MetadataQuorum | null = null;
  #nextRequestId = 1;
  #cancelWake: () => void = () => {};
  #isLeading: boolean = false;
  #committedOffset = -1;

  constructor(options: ControllerHostOptions) {
    this.#options = options;
  }

  start(quorum: MetadataQuorum): Promise<void> {
    this.#quorum = quorum;
    return quorum.start(this);
  }

  /** `send` is called once, when the result is committed, or with an error. */
  submit(request: ControllerRequest, send: (reply: AnyControllerReply) => void): void {
    const requestId = this.#nextRequestId;
    this.#nextRequestId += 1;
    const { now, controller, mutant } = this.#options;
    const view = this.#isLeading ? brokerEpochs(controller.image) : new Map<number, number>();
    this.#requests.set(requestId, (reply) => {
      if (request.type === 'alterPartition') checkIsrEpochs(request, reply, view);
      send(reply);
    });
    const asked =
      mutant === 'stale broker epoch' && request.type === 'alterPartition'
        ? withEpochs(request, view)
        : request;
    const nowMs = now();
    this.#run(controller.step({ type: 'request', requestId, request: asked, nowMs }));
    this.#sendReady();
  }

  /** Connections to the broker are refused. */
  brokerUnreachable(brokerId: number): void {
    const nowMs = this.#options.now();
    this.#run(this.#options.controller.step({ type: 'brokerUnreachable', brokerId, nowMs }));
  }

  onCommitted(batch: MetadataBatch): void {
    this.#follow(batch, true);
  }

  onSnapshot(snapshot: MetadataSnapshot): void {
    this.#follow(deltaTo(this.image, snapshot), false);
  }

  snapshotRecords(): Iterable<MetadataRecord> {
    return this.image.copy().records();
  }

  #follow(delta: MetadataDelta, isNews: boolean): void {
    this.image.follow(delta);
    this.#committedOffset = delta.lastOffset;
    this.#options.onDelta(delta, isNews);
    this.#sendReady();
  }

  onElected(epoch: number, nextOffset: number, silent: SilentNode | null): void {
    const { controller, now } = this.#options;
    const { image } = this;
    this.#options.onElected(epoch, nextOffset);
    this.#isLeading = true;
    const nowMs = now();
    this.#run(controller.step({ type: 'elected', epoch, nextOffset, image, silent, nowMs }));
  }

  onResigned(): void {
    const { controller, now } = this.#options;
    this.#isLeading = false;
    this.#run(controller.step({ type: 'resigned', nowMs: now() }));
    const lost = this.#waiting.findIndex(({ afterOffset }) => afterOffset > this.#committedOffset);
    if (lost !== -1) for (const { send } of this.#waiting.splice(lost)) send(leadershipLost);
  }

  onLeaderChanged(leaderId: number, epoch: number): void {
    this.#options.onLeaderChanged(leaderId, epoch);
  }

  onFailed(error: Error): void {
    this.#options.onFailed(error);
  }

  #run(effects: readonly ControllerEffect[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case 'append':
          this.#options.onProposed(this.#options.controller.image, effect.records);
          this.#quorum?.append(effect.records);
          break;
        case 'wakeAt':
          this.#wakeAt(effect.atMs);
          break;
        case 'reply': {
          const send = this.#requests.get(effect.requestId);
          assert(send !== undefined, `the controller answers request ${effect.requestId} twice`);
          this.#requests.delete(effect.requestId);
          this.#waiting.push({ afterOffset: effect.afterOffset, reply: effect.reply, send });
          break;
        }
      }
    }
  }

  #wakeAt(atMs: number): void {
    const { process, controller, now } = this.#options;
    this.#cancelWake();
    this.#cancelWake = process.after(Math.max(0, atMs - now()), () => {
      this.#run(controller.step({ type: 'tick', nowMs: now() }));
      this.#sendReady();
    });
  }

  #sendReady(): void {
    const waiting = this.#waiting;
    while (waiting[0] !== undefined && waiting[0].afterOffset <= this.#committedOffset) {
      const { send, reply } = waiting.shift() as Waiting;
      send(reply);
    }
  }
}
