/**
 * The cluster's controller as a state machine: turns requests, time and the loss of brokers into records of the metadata log
 * and answers.
 *
 * Thread: that of the quorum. Concurrency: none, `step` runs to its end. Durability: a `reply` effect may be sent only
 * once everything up to its `afterOffset` is committed; then what it promises cannot be lost.
 *
 * Legal transitions:
 *   following --elected--> leading     with a copy of what the log holds, all of which the new term commits
 *   leading --resigned--> following    the copy is dropped, with what was not committed
 * While leading, the image runs ahead of the log's committed end by this controller's own appends, so that each request
 * sees those before it. While following, requests get NOT_CONTROLLER and all else is ignored.
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../engine/error_code.gen.ts';
import { BrokerControl, staleEpoch } from './broker_control.ts';
import { BrokerSessions, type SilentNode } from './broker_sessions.ts';
import { type ConfigRules, planAlteration, refuseAlteration } from './config_alteration.ts';
import type {
  AllocateProducerIdsRequest,
  AllocateProducerIdsResult,
  AlterConfigsRequest,
  AlterConfigsResult,
  AnyControllerReply,
  ControllerReply,
  ControllerRequest,
} from './controller_api.ts';
import { done, refused } from './controller_reply.ts';
import type { MetadataImage } from './image.ts';
import { alterPartitions } from './isr_alteration.ts';
import { balanceLeaders, electLeaders } from './leader_election.ts';
import { Leadership } from './leadership.ts';
import { minIsrProblem, missingMinIsr } from './min_isr_config.ts';
import { PartitionControl, type PartitionDefaults } from './partition_control.ts';
import { alterReassignments } from './reassignment.ts';
import type { MetadataRecord } from './records.ts';
import { TopicControl, type TopicControlOptions } from './topic_control.ts';

/** As Kafka's `ProducerIdsBlock`. */
const producerIdBlockLength = 1000;

export interface ControllerOptions extends TopicControlOptions, PartitionDefaults, ConfigRules {
  readonly nodeId: number;
  /** Written when the cluster forms, `metadata.version` among them; a later start never raises a level by itself. */
  readonly formationFeatures: readonly { readonly name: string; readonly level: number }[];
  /**
   * `broker.session.timeout.ms`: a broker that is silent for longer is fenced. null where the cluster is this node alone:
   * then broker and controller live and die together, and the broker is unfenced as it registers.
   */
  readonly sessionTimeoutMs: number | null;
  /** How often leadership goes back to preferred replicas (`leader.imbalance.check.interval.seconds`); null: never. */
  readonly leaderBalanceIntervalMs: number | null;
}

/** `nowMs`: monotonic, in milliseconds, with any origin; it never goes back. */
export type ControllerEvent =
  | {
      readonly type: 'elected';
      readonly epoch: number;
      /** Offset of the record that is appended next. */
      readonly nextOffset: number;
      /** The state up to the log's end. */
      readonly image: MetadataImage;
      /** Who led before, if this node heard it; it may be silent only since now. */
      readonly silent: SilentNode | null;
      readonly nowMs: number;
    }
  | { readonly type: 'resigned'; readonly nowMs: number }
  | {
      readonly type: 'request';
      readonly requestId: number;
      readonly request: ControllerRequest;
      readonly nowMs: number;
    }
  /** Time has passed, perhaps as much as `wakeAt` asked for. May come at any time. */
  | { readonly type: 'tick'; readonly nowMs: number }
  /** The broker's process is gone: connections to it are refused. It is fenced at once and returns by registering. */
  | { readonly type: 'brokerUnreachable'; readonly brokerId: number; readonly nowMs: number };

export type ControllerEffect =
  /** To be appended as one batch; it takes exactly the next offsets. */
  | { readonly type: 'append'; readonly records: readonly MetadataRecord[] }
  | {
      readonly type: 'reply';
      readonly requestId: number;
      readonly reply: AnyControllerReply;
      readonly afterOffset: number;
    }
  /** A `tick` is wanted then; it replaces the time that was asked for before. */
  | { readonly type: 'wakeAt'; readonly atMs: number };

/** What there is while the controller leads. */
interface Leading {
  readonly state: Leadership;
  readonly partitions: PartitionControl;
  readonly brokers: BrokerControl;
  readonly sessions: BrokerSessions | null;
  readonly topics: TopicControl;
  /** When leaders are balanced next; Infinity: never. */
  balanceAtMs: number;
}

export class Controller {
  readonly #options: ControllerOptions;
  /** Null while following. */
  #leading: Leading | null = null;
  /** The tick that was asked for; Infinity: none. */
  #wakeAtMs = Number.POSITIVE_INFINITY;

  constructor(options: ControllerOptions) {
    this.#options = options;
  }

  /** Its own view while leading: what is committed, plus what it has appended. */
  get image(): MetadataImage {
    assert(this.#leading !== null, 'a controller that does not lead has no image');
    return this.#leading.state.image;
  }

  /** Takes one event and returns what the caller must do, in order. */
  step(event: ControllerEvent): ControllerEffect[] {
    switch (event.type) {
      case 'elected':
        this.#elected(event);
        return this.#effects();
      case 'resigned':
        this.#leading = null;
        this.#wakeAtMs = Number.POSITIVE_INFINITY;
        return [];
      case 'request':
        return this.#request(event.requestId, event.request, event.nowMs);
      case 'tick':
        this.#tick(event.nowMs);
        return this.#effects();
      case 'brokerUnreachable':
        this.#leading?.brokers.unreachable(event.brokerId);
        return this.#effects();
    }
  }

  #elected(event: ControllerEvent & { type: 'elected' }): void {
    const { epoch, nextOffset, image, silent, nowMs } = event;
    assert(this.#leading === null, `elected in term ${epoch} while leading`);
    assert(nextOffset > image.offset, `elected at offset ${nextOffset}, behind ${image.offset}`);
    const options = this.#options;
    const state = new Leadership(options.nodeId, epoch, nextOffset, image.copy());
    const { sessionTimeoutMs, leaderBalanceIntervalMs } = options;
    const sessions = sessionTimeoutMs === null ? null : new BrokerSessions(sessionTimeoutMs);
    const partitions = new PartitionControl(state, sessions, options);
    const brokers = new BrokerControl(state, partitions, sessions);
    const topics = new TopicControl(state, options);
    const balanceAtMs =
      leaderBalanceIntervalMs === null ? Number.POSITIVE_INFINITY : nowMs + leaderBalanceIntervalMs;
    this.#leading = { state, partitions, brokers, sessions, topics, balanceAtMs };
    if (!image.features.has('metadata.version')) {
      const features = options.formationFeatures;
      assert(features.length > 0, 'a cluster needs at least the feature metadata.version to form');
      state.append(
        features.map(({ name, level }) => ({
          type: 'FeatureLevelRecord',
          name,
          featureLevel: level,
        })),
      );
    }
    if (sessions !== null) state.append(missingMinIsr(state.image, options.minInsyncReplicas));
    brokers.begin(nowMs, silent);
  }

  #request(requestId: number, request: ControllerRequest, nowMs: number): ControllerEffect[] {
    const leading = this.#leading;
    if (leading === null)
      return [{ type: 'reply', requestId, reply: notController, afterOffset: -1 }];
    const reply = this.#handle(leading, request, nowMs);
    const afterOffset = leading.state.nextOffset - 1;
    return this.#effects({ type: 'reply', requestId, reply, afterOffset });
  }

  #tick(nowMs: number): void {
    const leading = this.#leading;
    if (leading === null) return;
    // A timer may be early: who ticks is told anew when to come.
    this.#wakeAtMs = Number.POSITIVE_INFINITY;
    leading.brokers.tick(nowMs);
    if (nowMs < leading.balanceAtMs) return;
    const hasMore = balanceLeaders(leading.state, leading.partitions);
    leading.balanceAtMs = hasMore ? nowMs : nowMs + (this.#options.leaderBalanceIntervalMs ?? 0);
  }

  /** What the step has brought about: its batches, then the answer, then the next tick if one is wanted earlier. */
  #effects(...reply: ControllerEffect[]): ControllerEffect[] {
    const leading = this.#leading;
    if (leading === null) return [];
    const { state, sessions, balanceAtMs } = leading;
    const effects: ControllerEffect[] = [];
    for (const records of state.takeBatches()) effects.push({ type: 'append', records });
    effects.push(...reply);
    const atMs = Math.min(balanceAtMs, sessions?.nextExpiryMs ?? Number.POSITIVE_INFINITY);
    if (atMs < this.#wakeAtMs) {
      this.#wakeAtMs = atMs;
      effects.push({ type: 'wakeAt', atMs });
    }
    return effects;
  }

  #handle(leading: Leading, request: ControllerRequest, nowMs: number): AnyControllerReply {
    const { state, partitions, brokers, topics } = leading;
    switch (request.type) {
      case 'createTopics':
        return topics.createTopics(request);
      case 'deleteTopics':
        return topics.deleteTopics(request);
      case 'createPartitions':
        return topics.createPartitions(request);
      case 'alterConfigs':
        return this.#alterConfigs(leading, request);
      case 'allocateProducerIds':
        return allocateProducerIds(state, request);
      case 'registerBroker':
        return brokers.register(request, nowMs);
      case 'brokerHeartbeat':
        return brokers.heartbeat(request, nowMs);
      case 'unregisterBroker':
        return brokers.unregister(request);
      case 'alterPartition':
        return alterPartitions(state, partitions, request);
      case 'electLeaders':
        return electLeaders(state, partitions, request);
      case 'alterPartitionReassignments':
        return alterReassignments(state, partitions, request);
    }
  }

  #alterConfigs(
    { state, partitions, sessions }: Leading,
    { resources, validateOnly }: AlterConfigsRequest,
  ): ControllerReply<AlterConfigsResult> {
    const results: AlterConfigsResult['resources'][number][] = [];
    for (const asked of resources) {
      const problem = sessions === null ? null : minIsrProblem(asked);
      const { result, records } =
        problem === null
          ? planAlteration(state.image, asked, this.#options)
          : refuseAlteration(asked, { errorCode: ErrorCode.INVALID_CONFIG, errorMessage: problem });
      results.push(result);
      if (records.length === 0 || validateOnly) continue;
      state.append(records);
      const names = records.map(({ name }) => name);
      partitions.followSettings(asked.resourceType, asked.resourceName, names);
    }
    return done({ resources: results });
  }
}

function allocateProducerIds(
  state: Leadership,
  { brokerId, brokerEpoch }: AllocateProducerIdsRequest,
): ControllerReply<AllocateProducerIdsResult> {
  const broker = state.image.broker(brokerId);
  if (broker === undefined)
    return refused(ErrorCode.BROKER_ID_NOT_REGISTERED, `Broker ${brokerId} is not registered.`);
  const stale = staleEpoch(broker, brokerEpoch);
  if (stale !== null) return stale;
  const firstProducerId = state.image.nextProducerId;
  const nextProducerId = firstProducerId + producerIdBlockLength;
  assert(Number.isSafeInteger(nextProducerId), `producer ids are used up at ${firstProducerId}`);
  const record: MetadataRecord = {
    type: 'ProducerIdsRecord',
    brokerId,
    brokerEpoch,
    nextProducerId,
  };
  state.append([record]);
  return done({ firstProducerId, length: producerIdBlockLength });
}

const notController = refused(
  ErrorCode.NOT_CONTROLLER,
  'This node does not lead the metadata quorum at the moment.',
);
