/**
 * A simulated broker's life in its cluster: registers, sends heartbeats, and takes requests to the controller to whoever
 * leads the quorum.
 */
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { supportedFeatures } from '../../../net/metadata_quorum.ts';
import type {
  AnyControllerReply,
  BrokerHeartbeatResult,
  ControllerRequest,
  RegisterBrokerRequest,
  RegisterBrokerResult,
} from '../../../replication/metadata/controller_api.ts';
import type { SeededRandom } from '../seeded_random.ts';
import type { ControllerHost } from './controller_host.ts';
import { type Connection, isFailure, type Network } from './network.ts';
import type { SimProcess } from './sim_process.ts';

export interface NodeLifecycleOptions {
  readonly process: SimProcess;
  readonly network: Network;
  readonly host: ControllerHost;
  readonly random: SeededRandom;
  readonly incarnationId: string;
  /** What the process has found on its disks. */
  readonly disks: Pick<
    RegisterBrokerRequest,
    'logDirs' | 'previousBrokerEpoch' | 'damagedReplicas'
  >;
  readonly sessionTimeoutMs: number;
  /** Who leads the quorum as far as this node knows, -1: nobody. */
  readonly leaderId: () => number;
  /** Offset of the last metadata that the partitions of this broker follow. */
  readonly appliedOffset: () => number;
  readonly onUnfenced: () => void;
  readonly onRefused: (message: string) => void;
  readonly onRegistered: (brokerEpoch: number) => void;
}

const controllerTimeoutMs = 1_000;

const unanswered: AnyControllerReply = {
  errorCode: ErrorCode.REQUEST_TIMED_OUT,
  errorMessage: 'no answer',
  result: null,
};
const nobodyLeads: AnyControllerReply = {
  errorCode: ErrorCode.NOT_CONTROLLER,
  errorMessage: 'nobody leads',
  result: null,
};

export class NodeLifecycle {
  readonly #options: NodeLifecycleOptions;
  readonly #connections = new Map<number, Connection>();
  #brokerEpoch = -1;
  #isUnfenced: boolean = false;

  constructor(options: NodeLifecycleOptions) {
    this.#options = options;
  }

  /** -1 until it is registered. */
  get brokerEpoch(): number {
    return this.#brokerEpoch;
  }

  get isUnfenced(): boolean {
    return this.#isUnfenced;
  }

  start(): void {
    const { process, random } = this.#options;
    process.after(1 + random.below(20), () => this.#register());
  }

  /** `done` is called once, in a later event, with an answer or an error that is worth another try. */
  ask(request: ControllerRequest, done: (reply: AnyControllerReply) => void): void {
    const { process, network, host } = this.#options;
    const leaderId = this.#options.leaderId();
    if (leaderId === -1) {
      process.after(1, () => done(nobodyLeads));
      return;
    }
    if (leaderId === process.machineId) {
      process.after(0, () => host.submit(request, done));
      return;
    }
    let connection = this.#connections.get(leaderId);
    if (connection === undefined || connection.isClosed) {
      connection = network.connect(process, leaderId);
      this.#connections.set(leaderId, connection);
    }
    connection.request({ type: 'controller', request }, controllerTimeoutMs, (answer) => {
      done(isFailure(answer) ? unanswered : (answer as AnyControllerReply));
    });
  }

  #register(): void {
    const { process, random, incarnationId, disks } = this.#options;
    const request = {
      type: 'registerBroker',
      brokerId: process.machineId,
      incarnationId,
      endPoints: [
        {
          name: 'PLAINTEXT',
          host: `host${process.machineId}`,
          port: 9092,
          securityProtocol: 0,
        },
      ],
      features: supportedFeatures,
      rack: null,
      ...disks,
      // This process has lost nothing since it registered last.
      previousBrokerEpoch: this.#brokerEpoch >= 0 ? this.#brokerEpoch : disks.previousBrokerEpoch,
    } as const;
    this.ask(request, (reply) => {
      if (reply.errorCode !== ErrorCode.NONE) {
        this.#options.onRefused(reply.errorMessage);
        process.after(50 + random.below(100), () => this.#register());
        return;
      }
      const { brokerEpoch } = reply.result as RegisterBrokerResult;
      this.#brokerEpoch = brokerEpoch;
      this.#options.onRegistered(brokerEpoch);
      this.#heartbeat();
    });
  }

  #heartbeat(): void {
    const { process, random, sessionTimeoutMs } = this.#options;
    const request = {
      type: 'brokerHeartbeat',
      brokerId: process.machineId,
      brokerEpoch: this.#brokerEpoch,
      currentMetadataOffset: this.#options.appliedOffset(),
      wantFence: false,
      wantShutDown: false,
      offlineLogDirs: [],
    } as const;
    this.ask(request, (reply) => {
      const { errorCode } = reply;
      if (errorCode === ErrorCode.NONE) {
        this.#isUnfenced = !(reply.result as BrokerHeartbeatResult).isFenced;
        if (this.#isUnfenced) this.#options.onUnfenced();
      }
      const isUnknown =
        errorCode === ErrorCode.BROKER_ID_NOT_REGISTERED ||
        errorCode === ErrorCode.STALE_BROKER_EPOCH;
      if (isUnknown) {
        this.#isUnfenced = false;
        process.after(20, () => this.#register());
        return;
      }
      const isGood = errorCode === ErrorCode.NONE && this.#isUnfenced;
      const delayMs = isGood ? sessionTimeoutMs / 4 : 50 + random.below(50);
      process.after(delayMs, () => this.#heartbeat());
    });
  }
}
