/**
 * The brokers of a cluster as its controller sees them: registration, heartbeats, fencing, controlled shutdown (KIP-500,
 * KIP-631, KIP-841, KIP-966).
 *
 * Legal transitions of a broker:
 *   unknown, fenced --registers--> fenced           with a new epoch; in a cluster of one node unfenced at once
 *   fenced --caught up--> active
 *   active --asks to stop--> in controlled shutdown   it leads nothing from here on
 *   active, in controlled shutdown --silent, unreachable, asks for it, may stop--> fenced
 *   any --unregistered--> unknown
 * A fenced broker is in no ISR of which a member lives: partitions are changed before the record that fences, so that a
 * controller which sees half of it finishes the rest.
 *
 * Thread and owner: those of the controller. Concurrency: none. Durability: none of its own, it appends records.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { BrokerSessions, SilentNode } from './broker_sessions.ts';
import type {
  BrokerHeartbeatRequest,
  BrokerHeartbeatResult,
  ControllerReply,
  RegisterBrokerRequest,
  RegisterBrokerResult,
  UnregisterBrokerRequest,
  UnregisterBrokerResult,
} from './controller_api.ts';
import { done, refused } from './controller_reply.ts';
import type { BrokerImage } from './image.ts';
import type { Leadership } from './leadership.ts';
import type { PartitionControl } from './partition_control.ts';
import type { IndexedPartition } from './partition_index.ts';
import type { RegisterBrokerRecord } from './records.ts';

/** What a registration takes over from the one before. */
type RegistrationState = Pick<
  RegisterBrokerRecord,
  'brokerEpoch' | 'fenced' | 'inControlledShutdown'
>;

export class BrokerControl {
  readonly #state: Leadership;
  readonly #partitions: PartitionControl;
  /** null where the cluster is one node. */
  readonly #sessions: BrokerSessions | null;

  constructor(state: Leadership, partitions: PartitionControl, sessions: BrokerSessions | null) {
    this.#state = state;
    this.#partitions = partitions;
    this.#sessions = sessions;
  }

  /**
   * The controller begins: every broker gets time to be heard of, and what was left half done is finished.
   * @param silent whose time has begun already
   */
  begin(nowMs: number, silent: SilentNode | null): void {
    const sessions = this.#sessions;
    if (sessions === null) return;
    const { image } = this.#state;
    for (const broker of image.brokers.values()) {
      const sinceMs = broker.id === silent?.nodeId ? silent.sinceMs : nowMs;
      if (!broker.fenced) sessions.begin(broker.id, sinceMs);
      if (!image.isActive(broker.id)) this.#partitions.suspend(broker.id);
    }
    this.#partitions.reconsiderAll();
  }

  /** Time has passed. */
  tick(nowMs: number): void {
    const expired = this.#sessions?.expired(nowMs) ?? [];
    if (expired.length > 0) this.#fence(expired);
  }

  /** The broker's process is gone. */
  unreachable(brokerId: number): void {
    const broker = this.#state.image.broker(brokerId);
    if (this.#sessions !== null && broker?.fenced === false) this.#fence([brokerId]);
  }

  register(request: RegisterBrokerRequest, nowMs: number): ControllerReply<RegisterBrokerResult> {
    const existing = this.#state.image.broker(request.brokerId);
    if (this.#sessions === null) return this.#registerLone(request, existing);
    const { brokerId, incarnationId } = request;
    if (existing?.incarnationId === incarnationId) {
      // The answer to the first attempt was lost.
      const { epoch: brokerEpoch, fenced, inControlledShutdown } = existing;
      this.#appendRegistration(request, { brokerEpoch, fenced, inControlledShutdown });
      return done({ brokerEpoch });
    }
    if (this.#sessions.isHeld(brokerId, nowMs))
      return refused(
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        `Another broker is registered with the id ${brokerId} and alive. If this one was restarted, it will be taken when the session of the one before has ended.`,
      );
    const problem = this.#featureProblem(request);
    if (problem !== null) return refused(ErrorCode.UNSUPPORTED_VERSION, problem);
    if (keepsReplicas(request, existing)) this.#partitions.suspend(brokerId);
    else this.#partitions.distrust(brokerId, isDamagedBy(request));
    this.#sessions.forget(brokerId);
    const brokerEpoch = this.#state.nextOffset;
    this.#appendRegistration(request, { brokerEpoch, fenced: true, inControlledShutdown: false });
    return done({ brokerEpoch });
  }

  unregister({ brokerId }: UnregisterBrokerRequest): ControllerReply<UnregisterBrokerResult> {
    const broker = this.#state.image.broker(brokerId);
    if (broker === undefined)
      return refused(
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        `Broker ID ${brokerId} is not currently registered`,
      );
    if (this.#sessions === null && !broker.fenced)
      return refused(
        ErrorCode.INVALID_REQUEST,
        `Broker ${brokerId} is this cluster's only one and runs: it cannot be done without.`,
      );
    // One that comes back with this id may be another machine.
    this.#partitions.distrust(brokerId, () => false);
    this.#sessions?.forget(brokerId);
    this.#state.append([{ type: 'UnregisterBrokerRecord', brokerId, brokerEpoch: broker.epoch }]);
    return done({});
  }

  heartbeat(
    request: BrokerHeartbeatRequest,
    nowMs: number,
  ): ControllerReply<BrokerHeartbeatResult> {
    const { brokerId, currentMetadataOffset } = request;
    const broker = this.#state.image.broker(brokerId);
    if (broker === undefined)
      return refused(
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        `Broker ID ${brokerId} is not currently registered`,
      );
    const stale = staleEpoch(broker, request.brokerEpoch);
    if (stale !== null) return stale;
    const isCaughtUp = currentMetadataOffset >= broker.epoch;
    const sessions = this.#sessions;
    if (sessions === null)
      return done({ isCaughtUp, isFenced: false, shouldShutDown: request.wantShutDown });
    const isFirst = !sessions.isHeard(brokerId);
    sessions.heard(brokerId, currentMetadataOffset, nowMs);
    if (isFirst && this.#state.image.isActive(brokerId))
      this.#partitions.leaveOutInactive(brokerId);
    this.#takeOffline(sessions, brokerId, request.offlineLogDirs);
    const shouldShutDown = broker.fenced
      ? this.#heardFenced(request, isCaughtUp, nowMs)
      : this.#heardUnfenced(sessions, broker, request);
    const isFenced = this.#state.image.broker(brokerId)!.fenced;
    return done({ isCaughtUp, isFenced, shouldShutDown });
  }

  /** Returns whether the broker may stop. */
  #heardFenced(request: BrokerHeartbeatRequest, isCaughtUp: boolean, nowMs: number): boolean {
    if (request.wantShutDown) return true;
    if (!request.wantFence && isCaughtUp) this.#unfence(request.brokerId, nowMs);
    return false;
  }

  #heardUnfenced(
    sessions: BrokerSessions,
    broker: BrokerImage,
    { wantFence, wantShutDown }: BrokerHeartbeatRequest,
  ): boolean {
    if (!wantFence && !wantShutDown) return false;
    if (!wantFence && !this.#hasHandedOver(sessions, broker)) return false;
    this.#fence([broker.id]);
    return wantShutDown;
  }

  /** Moves leadership away. True once the brokers that are active have heard of it. */
  #hasHandedOver(sessions: BrokerSessions, broker: BrokerImage): boolean {
    const { image, index } = this.#state;
    if (!broker.inControlledShutdown)
      this.#changeRegistration(broker, { fenced: 0, inControlledShutdown: 1 });
    if (!broker.inControlledShutdown || index.led(broker.id).size > 0)
      this.#partitions.withdraw([broker.id]);
    let offset = sessions.shutdownOffset(broker.id);
    if (offset === null) {
      offset = this.#state.nextOffset - 1;
      sessions.beginShutdown(broker.id, offset);
    }
    for (const { id } of image.brokers.values())
      if (image.isActive(id) && sessions.metadataOffset(id) < offset) return false;
    return true;
  }

  #takeOffline(sessions: BrokerSessions, brokerId: number, dirs: readonly string[]): void {
    if (!sessions.setOfflineDirs(brokerId, dirs)) return;
    this.#partitions.withdraw([brokerId], (reference) => {
      const { replicas, directories } = this.#partitions.current(reference);
      return dirs.includes(directories[replicas.indexOf(brokerId)] ?? '');
    });
  }

  /** Those who fall silent together had the same: any of them may be the first to come back. */
  #fence(brokerIds: readonly number[]): void {
    this.#partitions.withdraw(brokerIds);
    for (const brokerId of brokerIds) {
      this.#sessions?.end(brokerId);
      const broker = this.#state.image.broker(brokerId)!;
      this.#changeRegistration(broker, { fenced: 1, inControlledShutdown: 0 });
    }
  }

  #unfence(brokerId: number, nowMs: number): void {
    const broker = this.#state.image.broker(brokerId)!;
    this.#changeRegistration(broker, { fenced: -1, inControlledShutdown: 0 });
    this.#sessions?.begin(brokerId, nowMs);
    this.#partitions.electMissing();
    this.#partitions.leaveOutInactive(brokerId);
  }

  #changeRegistration(
    broker: BrokerImage,
    change: { readonly fenced: number; readonly inControlledShutdown: number },
  ): void {
    const { id: brokerId, epoch: brokerEpoch } = broker;
    const type = 'BrokerRegistrationChangeRecord';
    this.#state.append([{ type, brokerId, brokerEpoch, logDirs: [], ...change }]);
  }

  #appendRegistration(request: RegisterBrokerRequest, state: RegistrationState): void {
    const { brokerId, incarnationId, endPoints, features, rack, logDirs } = request;
    const type = 'RegisterBrokerRecord';
    this.#state.append([
      { type, brokerId, incarnationId, endPoints, features, rack, logDirs, ...state },
    ]);
  }

  /** A broker that cannot read what the cluster writes would be of no use. */
  #featureProblem({ features, brokerId }: RegisterBrokerRequest): string | null {
    const name = 'metadata.version';
    const level = this.#state.image.features.get(name) ?? 0;
    const range = features.find((feature) => feature.name === name);
    const { minSupportedVersion: min, maxSupportedVersion: max } = range ?? noVersions;
    if (level >= min && level <= max) return null;
    return `Unable to register broker ${brokerId} because it does not support ${name} ${level}, which this cluster uses. It supports ${min} to ${max}: start the version that the other brokers have.`;
  }

  /**
   * The only node of its cluster: it is unfenced at once, because there is nobody for whom it could still be behind.
   *
   * The partitions that it led get a new leader epoch unless its last shutdown was clean: it may have lost the unflushed
   * end of its logs, and a consumer can only see by the epoch that other records may stand there now (KIP-101,
   * KIP-320). After a clean one nothing can differ, so a restart of many partitions costs no records.
   */
  #registerLone(
    request: RegisterBrokerRequest,
    existing: BrokerImage | undefined,
  ): ControllerReply<RegisterBrokerResult> {
    const { brokerId, previousBrokerEpoch } = request;
    const isClean = previousBrokerEpoch >= 0 && existing?.epoch === previousBrokerEpoch;
    const led = isClean ? [] : [...this.#state.index.led(brokerId)];
    const brokerEpoch = this.#state.nextOffset;
    this.#appendRegistration(request, { brokerEpoch, fenced: true, inControlledShutdown: false });
    const broker = this.#state.image.broker(brokerId)!;
    this.#changeRegistration(broker, { fenced: -1, inControlledShutdown: 0 });
    for (const reference of led) this.#partitions.raiseLeaderEpoch(reference);
    this.#partitions.electMissing();
    return done({ brokerEpoch });
  }
}

const noVersions = { minSupportedVersion: 0, maxSupportedVersion: 0 } as const;

/** Whether what the broker had acknowledged is still there: it says so, and the directories are those of before. */
function keepsReplicas(
  { previousBrokerEpoch, logDirs }: RegisterBrokerRequest,
  existing: BrokerImage | undefined,
): boolean {
  if (existing === undefined || existing.epoch !== previousBrokerEpoch) return false;
  return existing.logDirs.every((dir) => logDirs.includes(dir));
}

function isDamagedBy({
  damagedReplicas,
}: RegisterBrokerRequest): (reference: IndexedPartition) => boolean {
  const damaged = new Set(
    damagedReplicas.flatMap(({ topicId, partitions }) =>
      partitions.map((id) => `${topicId},${id}`),
    ),
  );
  return ({ topic, partitionId }) => damaged.has(`${topic.id},${partitionId}`);
}

/** Refuses what another run of the broker asks for; null when the epoch is right. */
export function staleEpoch(broker: BrokerImage, epoch: number): ControllerReply<never> | null {
  if (broker.epoch === epoch) return null;
  return refused(
    ErrorCode.STALE_BROKER_EPOCH,
    `Broker ${broker.id} is registered with epoch ${broker.epoch}, not ${epoch}.`,
  );
}
