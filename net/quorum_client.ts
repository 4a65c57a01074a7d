/**
 * A thread's side of the quorum: keeps the thread's metadata image up to date and carries requests to the controller.
 *
 * Thread: the one that owns the image. Concurrency: deltas are applied one after another, the next only when
 * `onChanges` of the one before has settled. Durability: every delta that arrives is committed.
 */
import { ErrorCode } from '../engine/error_code.gen.ts';
import type { MetadataChanges } from '../replication/metadata/changes.ts';
import type {
  AllocateProducerIdsResult,
  AlterConfigsRequest,
  AlterConfigsResult,
  AlterPartitionReassignmentsRequest,
  AlterPartitionReassignmentsResult,
  AlterPartitionRequest,
  AlterPartitionResult,
  ControllerReply,
  CreatePartitionsRequest,
  CreatePartitionsResult,
  CreateTopicsRequest,
  CreateTopicsResult,
  DeleteTopicsRequest,
  DeleteTopicsResult,
  ElectLeadersRequest,
  ElectLeadersResult,
  UnregisterBrokerRequest,
  UnregisterBrokerResult,
} from '../replication/metadata/controller_api.ts';
import type { MetadataImage } from '../replication/metadata/image.ts';
import type { MetadataDelta } from '../replication/metadata/records.ts';
import type { QuorumDescription } from '../replication/raft/quorum.ts';
import type {
  AddVoterRequest,
  Done,
  QuorumReply,
  QuorumReplyOf,
  QuorumRequestOf,
  QuorumRequestType,
  RemoveVoterRequest,
} from './quorum_api.ts';
import {
  type FromQuorum,
  isQuorumMessage,
  type QuorumPort,
  type ToQuorum,
} from './quorum_messages.ts';

/** What handlers need of the quorum; tests give them a fake. */
export interface QuorumRequests {
  /** Resolves, never rejects. `timeoutMs` ≤ 0 asks without waiting: the answer is REQUEST_TIMED_OUT at once, as in Kafka. */
  createTopics(
    request: CreateTopicsRequest,
    timeoutMs: number,
  ): Promise<ControllerReply<CreateTopicsResult>>;
  deleteTopics(
    request: DeleteTopicsRequest,
    timeoutMs: number,
  ): Promise<ControllerReply<DeleteTopicsResult>>;
  createPartitions(
    request: CreatePartitionsRequest,
    timeoutMs: number,
  ): Promise<ControllerReply<CreatePartitionsResult>>;
  alterConfigs(
    request: AlterConfigsRequest,
    timeoutMs: number,
  ): Promise<ControllerReply<AlterConfigsResult>>;
  /** A block of ids that no other broker will ever use. */
  allocateProducerIds(timeoutMs: number): Promise<ControllerReply<AllocateProducerIdsResult>>;
  /** Other replicas in sync, of partitions that this broker leads. */
  alterPartition(
    topics: AlterPartitionRequest['topics'],
    timeoutMs: number,
  ): Promise<ControllerReply<AlterPartitionResult>>;
  electLeaders(
    request: ElectLeadersRequest,
    timeoutMs: number,
  ): Promise<ControllerReply<ElectLeadersResult>>;
  alterPartitionReassignments(
    request: AlterPartitionReassignmentsRequest,
    timeoutMs: number,
  ): Promise<ControllerReply<AlterPartitionReassignmentsResult>>;
  unregisterBroker(
    request: UnregisterBrokerRequest,
    timeoutMs: number,
  ): Promise<ControllerReply<UnregisterBrokerResult>>;
  /** As the leader sees its quorum. */
  describeQuorum(timeoutMs: number): Promise<ControllerReply<QuorumDescription>>;
  /** The request's own time-out counts. */
  addVoter(request: AddVoterRequest): Promise<ControllerReply<Done>>;
  removeVoter(request: RemoveVoterRequest): Promise<ControllerReply<Done>>;
}

export interface QuorumClientOptions {
  readonly port: QuorumPort;
  /** This broker's id. */
  readonly nodeId: number;
  /** An empty image; the client applies every delta to it. */
  readonly image: MetadataImage;
  /**
   * Acts on a delta that was just applied to the image (opens logs, drops logs). Only when it has returned, or its
   * promise is fulfilled, does this thread count as having applied the delta. The first call is for the snapshot.
   */
  readonly onChanges: (changes: MetadataChanges) => void | Promise<void>;
  /** `onChanges` or a delta failed: the thread can no longer follow the metadata and should stop the process. */
  readonly onFailed: (error: unknown) => void;
}

interface PendingRequest {
  readonly settle: (reply: QuorumReply) => void;
  readonly timer: NodeJS.Timeout;
}

export class QuorumClient implements QuorumRequests {
  readonly #options: QuorumClientOptions;
  readonly #pending = new Map<number, PendingRequest>();
  readonly #ready = Promise.withResolvers<void>();
  /** Settles when every delta received so far has been acted on. */
  #applied: Promise<void> = Promise.resolve();
  #nextId = 1;

  constructor(options: QuorumClientOptions) {
    this.#options = options;
    options.port.on('message', (message) => {
      if (isQuorumMessage(message)) this.#receive(message as FromQuorum);
    });
  }

  /** Fulfilled once the snapshot has been applied and acted on. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  createTopics(
    request: CreateTopicsRequest,
    timeoutMs: number,
  ): Promise<ControllerReply<CreateTopicsResult>> {
    return this.#request<'createTopics'>({ type: 'createTopics', ...request }, timeoutMs);
  }

  deleteTopics(
    request: DeleteTopicsRequest,
    timeoutMs: number,
  ): Promise<ControllerReply<DeleteTopicsResult>> {
    return this.#request<'deleteTopics'>({ type: 'deleteTopics', ...request }, timeoutMs);
  }

  createPartitions(
    request: CreatePartitionsRequest,
    timeoutMs: number,
  ): Promise<ControllerReply<CreatePartitionsResult>> {
    return this.#request<'createPartitions'>({ type: 'createPartitions', ...request }, timeoutMs);
  }

  alterConfigs(
    request: AlterConfigsRequest,
    timeoutMs: number,
  ): Promise<ControllerReply<AlterConfigsResult>> {
    return this.#request<'alterConfigs'>({ type: 'alterConfigs', ...request }, timeoutMs);
  }

  allocateProducerIds(timeoutMs: number): Promise<ControllerReply<AllocateProducerIdsResult>> {
    return this.#request<'allocateProducerIds'>(
      { type: 'allocateProducerIds', ...this.#broker },
      timeoutMs,
    );
  }

  alterPartition(
    topics: AlterPartitionRequest['topics'],
    timeoutMs: number,
  ): Promise<ControllerReply<AlterPartitionResult>> {
    return this.#request<'alterPartition'>(
      { type: 'alterPartition', ...this.#broker, topics },
      timeoutMs,
    );
  }

  get #broker(): { brokerId: number; brokerEpoch: number } {
    const { image, nodeId } = this.#options;
    return { brokerId: nodeId, brokerEpoch: image.broker(nodeId)?.epoch ?? -1 };
  }

  electLeaders(
    request: ElectLeadersRequest,
    timeoutMs: number,
  ): Promise<ControllerReply<ElectLeadersResult>> {
    return this.#request<'electLeaders'>({ type: 'electLeaders', ...request }, timeoutMs);
  }

  alterPartitionReassignments(
    request: AlterPartitionReassignmentsRequest,
    timeoutMs: number,
  ): Promise<ControllerReply<AlterPartitionReassignmentsResult>> {
    return this.#request<'alterPartitionReassignments'>(
      { type: 'alterPartitionReassignments', ...request },
      timeoutMs,
    );
  }

  unregisterBroker(
    request: UnregisterBrokerRequest,
    timeoutMs: number,
  ): Promise<ControllerReply<UnregisterBrokerResult>> {
    return this.#request<'unregisterBroker'>({ type: 'unregisterBroker', ...request }, timeoutMs);
  }

  describeQuorum(timeoutMs: number): Promise<ControllerReply<QuorumDescription>> {
    return this.#request<'describeQuorum'>({ type: 'describeQuorum' }, timeoutMs);
  }

  addVoter(request: AddVoterRequest): Promise<ControllerReply<Done>> {
    return this.#request<'addVoter'>({ type: 'addVoter', ...request }, request.timeoutMs);
  }

  removeVoter(request: RemoveVoterRequest): Promise<ControllerReply<Done>> {
    return this.#request<'removeVoter'>({ type: 'removeVoter', ...request }, request.timeoutMs);
  }

  #request<K extends QuorumRequestType>(
    request: QuorumRequestOf<K>,
    timeoutMs: number,
  ): Promise<QuorumReplyOf<K>> {
    const id = this.#nextId;
    this.#nextId += 1;
    this.#send({ type: 'quorum.request', id, request, timeoutMs } as ToQuorum);
    const timedOut = `The controller did not answer within ${timeoutMs} ms; it may still do what was asked.`;
    if (timeoutMs <= 0) return Promise.resolve(timeout(timedOut));
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#pending.delete(id);
        resolve(timeout(timedOut));
      }, timeoutMs);
      // The host answers a request with the result that belongs to its type; the map of types cannot follow the id.
      const settle = resolve as (reply: QuorumReply) => void;
      this.#pending.set(id, { settle, timer });
    });
  }

  #receive(message: FromQuorum): void {
    if (message.type === 'quorum.delta') {
      const { delta } = message;
      this.#applied = this.#applied.then(() => this.#apply(delta));
      this.#applied.catch(this.#options.onFailed);
      return;
    }
    const pending = this.#pending.get(message.id);
    if (pending === undefined) return;
    this.#pending.delete(message.id);
    clearTimeout(pending.timer);
    pending.settle(message.reply);
  }

  async #apply(delta: MetadataDelta): Promise<void> {
    const acted = this.#options.onChanges(this.#options.image.apply(delta));
    if (acted instanceof Promise) await acted;
    this.#send({ type: 'quorum.applied', offset: delta.lastOffset });
    if (delta.snapshot) this.#ready.resolve();
  }

  #send(message: ToQuorum): void {
    this.#options.port.postMessage(message);
  }
}

function timeout(errorMessage: string): ControllerReply<never> {
  return { errorCode: ErrorCode.REQUEST_TIMED_OUT, errorMessage, result: null };
}
