/**
 * Random histories of a cluster: brokers die with and without loss, pause, stop and come back, leaders ask for ISRs with
 * delays, people reassign and elect, controllers follow each other. Whatever happens, with every step:
 *
 *   a partition has at most one leader in an epoch; it is in the ISR, or there is none
 *   ISR and ELR are apart, among the replicas; fenced brokers are in no ISR of a member that is known to live; epochs only grow
 *   a leader that was not elected uncleanly has every record that was ever committed
 *   no election is unclean unless a topic allows it, or nobody is left who is known to have everything
 */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { PartitionToAlter } from '../../../replication/metadata/controller_api.ts';
import type { ControllerRule } from '../../../replication/metadata/partition_control.ts';
import { type Random, splitMix } from '../../harness/split_mix.ts';
import { ClusterChecks } from './cluster_checks.ts';
import { advance, fetch, learn, newReplica, proposal, type Replica } from './cluster_replicas.ts';
import { controllerOptions, newTopic, registration, uuids } from './fixtures.ts';
import { QuorumStandIn } from './quorum_stand_in.ts';

const brokerIds = [1, 2, 3, 4] as const;
const topicName = 't';
/** One partition, so that much happens to it. */
const assignments = [[1, 2, 3]] as const;
const sessionTimeoutMs = 1_000;

interface SimBroker {
  readonly id: number;
  isAlive: boolean;
  /** The process stands still, as after SIGSTOP: it neither hears nor says anything to the controller. */
  isPaused: boolean;
  /** It copies nothing for the time being. */
  isSlow: boolean;
  wantsShutDown: boolean;
  epoch: number;
  /** To be said at the next registration. */
  previousEpoch: number;
  incarnation: string;
  readonly replicas: Map<number, Replica>;
}

interface Delayed {
  readonly from: SimBroker;
  readonly brokerEpoch: number;
  readonly asked: PartitionToAlter;
  /** The step before which it does not arrive. */
  readonly due: number;
}

export interface Totals {
  [what: string]: number;
}

export class ClusterHistory {
  readonly totals: Totals = {};
  readonly #random: Random;
  readonly #quorum: QuorumStandIn;
  readonly #checks: ClusterChecks;
  readonly #minIsr: number;
  readonly #newUuid: () => string;
  readonly #brokers: readonly SimBroker[];
  readonly #actions: (() => void)[] = [];
  readonly #delayed: Delayed[] = [];
  readonly #topicId: string;
  #nextRecord = 1;
  #stepNumber = 0;
  /** Faults come in storms. */
  #isCalm: boolean = true;

  constructor(seed: number, without: readonly ControllerRule[] = []) {
    this.#random = splitMix(seed);
    this.#minIsr = 1 + this.#random(2);
    const allowsUnclean = this.#random(8) === 0;
    this.#newUuid = uuids(seed);
    const options = controllerOptions({
      random: splitMix(seed + 1),
      newUuid: this.#newUuid,
      sessionTimeoutMs,
      leaderBalanceIntervalMs: 5_000,
      minInsyncReplicas: this.#minIsr,
      uncleanLeaderElectionEnable: allowsUnclean,
      without,
    });
    this.#checks = new ClusterChecks(topicName, assignments.length, allowsUnclean, () =>
      this.#count('unclean elections'),
    );
    this.#quorum = new QuorumStandIn(options, () => this.#checks.onCommitted(this.#quorum.image));
    this.#brokers = brokerIds.map((id) => ({
      id,
      isAlive: true,
      isPaused: false,
      isSlow: false,
      wantsShutDown: false,
      epoch: -1,
      previousEpoch: -1,
      incarnation: this.#newUuid(),
      replicas: new Map(),
    }));
    for (const broker of this.#brokers) this.#register(broker);
    this.#quorum.commit(this.#quorum.openCount);
    for (const broker of this.#brokers) this.#beat(broker);
    this.#topicId = this.#createTopic();
    this.#quorum.commit(this.#quorum.openCount);
    this.#drawActions();
  }

  run(steps: number): void {
    for (; this.#stepNumber < steps; this.#stepNumber += 1) {
      if (this.#stepNumber % 80 === 0) this.#isCalm = this.#random(4) > 0;
      this.#actions[this.#random(this.#actions.length)]!();
      this.#checks.onAppended(this.#quorum.ahead, this.#quorum.heard);
    }
  }

  /** Every history has faults of its own in more or less numbers. */
  #drawActions(): void {
    const add = (weight: number, action: () => void): void => {
      for (let times = 0; times < weight; times += 1) this.#actions.push(action);
    };
    const broker = (): SimBroker => this.#brokers[this.#random(this.#brokers.length)]!;
    const each = (action: (one: SimBroker) => void): void => {
      for (const one of this.#brokers) if (this.#random(2) === 0) action(one);
    };
    const partition = (): number => this.#random(assignments.length);
    const some = (most: number): number => this.#random(most + 1);
    add(60, () => each((one) => this.#fetch(one, partition())));
    add(5, () => this.#produce(partition()));
    add(24, () => each((one) => this.#hear(one)));
    add(28, () => each((one) => this.#beat(one)));
    add(16, () => each((one) => this.#propose(one, partition())));
    add(16, () => this.#deliver());
    add(20, () => this.#quorum.commit(this.#random(this.#quorum.openCount + 1)));
    add(3 + some(3), () => this.#quorum.pass(this.#random(sessionTimeoutMs / 2)));
    add(24, () => this.#begins(broker()));
    add(some(12), () => this.#slows(broker()));
    const fault = (weight: number, action: () => void): void =>
      add(weight, () => {
        if (!this.#isCalm) action();
      });
    fault(2 + some(4), () => this.#dies(broker()));
    fault(some(4), () => this.#restarts(broker()));
    fault(some(2), () => this.#oneSurvives(partition()));
    fault(some(4), () => this.#pauses(broker()));
    fault(some(2), () => this.#stops(broker()));
    fault(some(4), () => this.#electPreferred(partition()));
    fault(some(2), () => this.#reassign(partition()));
    fault(some(2), () => this.#failOver());
  }

  #createTopic(): string {
    const topic = newTopic(topicName, {
      assignments: assignments.map((ids, partitionIndex) => ({ partitionIndex, brokerIds: ids })),
    });
    const { result } = this.#quorum.ask<'createTopics'>({
      type: 'createTopics',
      topics: [topic],
      validateOnly: false,
    });
    assert.equal(result?.topics[0]?.errorCode, ErrorCode.NONE);
    return result.topics[0].topicId;
  }

  #replica(broker: SimBroker, partition: number): Replica {
    const known = broker.replicas.get(partition);
    if (known !== undefined) return known;
    const view = this.#quorum.image.partition(topicName, partition);
    assert(view !== undefined);
    const replica = newReplica(broker.id, view);
    broker.replicas.set(partition, replica);
    return replica;
  }

  /** The broker hears what is committed by now. */
  #hear(broker: SimBroker): void {
    if (!broker.isAlive || broker.isPaused) return;
    const { image } = this.#quorum;
    // A process leads and follows only what it was given after it had registered.
    if (image.broker(broker.id)?.epoch !== broker.epoch) return;
    image.topic(topicName)!.partitions.forEach((view, partition) => {
      const replica = this.#replica(broker, partition);
      const before = replica.leading?.epoch;
      learn(replica, view);
      const { leading } = replica;
      if (leading !== null && leading.epoch !== before) this.#checks.onLeading(partition, replica);
      // Who is a replica no longer deletes its log, and begins without one if it is one again.
      if (!view.replicas.includes(broker.id)) replica.log = [];
      replica.highWatermark = Math.min(replica.highWatermark, replica.log.length);
    });
  }

  #produce(partition: number): void {
    for (const broker of this.#brokers) {
      const replica = broker.replicas.get(partition);
      if (!broker.isAlive || replica === undefined || replica.leading === null) continue;
      replica.log.push(this.#nextRecord);
      this.#nextRecord += 1;
    }
  }

  #fetch(broker: SimBroker, partition: number): void {
    if (!broker.isAlive || broker.isSlow || broker.epoch === -1) return;
    const follower = this.#replica(broker, partition);
    const leader = this.#brokers.find(({ id }) => id === follower.view.leader);
    const leading = leader?.replicas.get(partition);
    if (leader === undefined || leading === undefined || !leader.isAlive || leader === broker)
      return;
    fetch(follower, leading, broker.epoch, 1 + this.#random(4));
    const before = leading.highWatermark;
    advance(leading, this.#minIsr);
    if (leading.highWatermark > before) this.#checks.onHighWatermark(partition, leading);
  }

  #propose(broker: SimBroker, partition: number): void {
    const replica = broker.replicas.get(partition);
    if (!broker.isAlive || replica === undefined) return;
    const slow = this.#brokers.filter(({ id, isAlive, isSlow }) =>
      id === broker.id ? false : isSlow || (!isAlive && this.#random(3) === 0),
    );
    const asked = proposal(replica, broker.epoch, new Set(slow.map(({ id }) => id)));
    if (asked !== null) this.#send(broker, asked);
  }

  #send(from: SimBroker, asked: PartitionToAlter): void {
    const isLate = this.#random(3) === 0;
    const due = this.#stepNumber + (isLate ? this.#random(400) : 0);
    this.#delayed.push({ from, brokerEpoch: from.epoch, asked, due });
  }

  /** A request on its way arrives, in any order, perhaps not for the last time. */
  #deliver(): void {
    const arriving = this.#delayed.filter(({ due }) => due <= this.#stepNumber);
    const delayed = arriving[this.#random(Math.max(1, arriving.length))];
    if (delayed === undefined) return;
    const { from, brokerEpoch, asked } = delayed;
    this.#delayed.splice(this.#delayed.indexOf(delayed), 1);
    if (this.#random(2) === 0) this.#send(from, asked);
    const { errorCode, result } = this.#quorum.ask<'alterPartition'>({
      type: 'alterPartition',
      brokerId: from.id,
      brokerEpoch,
      topics: [{ topicId: this.#topicId, partitions: [asked] }],
    });
    const outcome = result?.topics[0]?.partitions[0]?.errorCode ?? errorCode;
    this.#count(outcome === ErrorCode.NONE ? 'ISRs changed' : `ISR error ${outcome}`);
    // Every other error leaves it open whether an earlier attempt has succeeded: newer metadata will tell.
    if (outcome === ErrorCode.INELIGIBLE_REPLICA) this.#refused(from, asked);
  }

  #refused(from: SimBroker, asked: PartitionToAlter): void {
    const { leading } = this.#replica(from, asked.partitionIndex);
    if (leading !== null) leading.proposals = leading.proposals.filter((one) => one !== asked);
    const others = this.#delayed.filter((one) => one.asked !== asked);
    this.#delayed.splice(0, this.#delayed.length, ...others);
  }

  /** Another controller takes over. Leaders that have no answer ask it again. */
  #failOver(): void {
    this.#count('other controllers');
    this.#quorum.failOver();
    for (const from of this.#brokers)
      for (const { leading } of from.replicas.values())
        for (const asked of leading?.proposals ?? [])
          if (!this.#delayed.some((one) => one.asked === asked)) this.#send(from, asked);
  }

  #register(broker: SimBroker): void {
    const { incarnation: incarnationId, previousEpoch: previousBrokerEpoch } = broker;
    const reply = this.#quorum.ask<'registerBroker'>(
      registration(broker.id, { incarnationId, previousBrokerEpoch }),
    );
    if (reply.result !== null) {
      broker.epoch = reply.result.brokerEpoch;
      return;
    }
    assert.equal(reply.errorCode, ErrorCode.DUPLICATE_BROKER_REGISTRATION);
    this.#count('duplicate registrations');
  }

  #beat(broker: SimBroker): void {
    if (!broker.isAlive || broker.isPaused) return;
    if (broker.epoch === -1) {
      this.#register(broker);
      return;
    }
    const { result } = this.#quorum.ask<'brokerHeartbeat'>({
      type: 'brokerHeartbeat',
      brokerId: broker.id,
      brokerEpoch: broker.epoch,
      currentMetadataOffset: this.#quorum.image.offset,
      wantFence: false,
      wantShutDown: broker.wantsShutDown,
      offlineLogDirs: [],
    });
    // Another controller may not know of a registration that was not committed.
    if (result === null) broker.epoch = -1;
    else if (result.shouldShutDown) {
      this.#count('controlled shutdowns');
      this.#end(broker);
    }
  }

  /** A crash, sometimes of two at a time; what was written last may be gone. */
  #dies(broker: SimBroker): void {
    if (!broker.isAlive) return;
    this.#end(broker);
    const isLossy = this.#random(3) === 0;
    if (isLossy) this.#lose(broker);
    this.#count(isLossy ? 'lossy crashes' : 'crashes');
    if (this.#random(3) > 0) this.#quorum.unreachable(broker.id);
    if (this.#random(3) === 0) this.#dies(this.#brokers[this.#random(this.#brokers.length)]!);
  }

  /** So fast that what was on its way to the controller may still be. */
  #restarts(broker: SimBroker): void {
    if (!broker.isAlive) return;
    this.#end(broker);
    this.#lose(broker);
    this.#quorum.unreachable(broker.id);
    this.#begins(broker);
    for (let times = 0; times < 3; times += 1) {
      this.#quorum.commit(this.#quorum.openCount);
      this.#beat(broker);
    }
    this.#count('fast restarts');
  }

  /** All of an ISR go but the one that has least, if it is there at all. */
  #oneSurvives(partition: number): void {
    const { isr, leader } = this.#quorum.ahead.partition(topicName, partition)!;
    const length = (one: SimBroker): number => this.#replica(one, partition).log.length;
    const members = this.#brokers.filter(({ id, isAlive }) => isAlive && isr.includes(id));
    const [, ...others] = members.sort((a, b) => length(a) - length(b));
    for (const broker of others) {
      this.#end(broker);
      this.#quorum.unreachable(broker.id);
      if (broker.id === leader) this.#count('lost leaders');
    }
  }

  #begins(broker: SimBroker): void {
    if (broker.isAlive) return;
    broker.isAlive = true;
    broker.isPaused = false;
    broker.isSlow = this.#random(4) === 0;
    broker.incarnation = this.#newUuid();
    broker.epoch = -1;
  }

  #end(broker: SimBroker): void {
    broker.isAlive = false;
    broker.wantsShutDown = false;
    // A process that has registered and not come further says what the one before it said.
    if (this.#quorum.ahead.broker(broker.id)?.epoch === broker.epoch)
      broker.previousEpoch = broker.epoch;
    for (const replica of broker.replicas.values()) replica.leading = null;
  }

  #lose(broker: SimBroker): void {
    broker.previousEpoch = -1;
    for (const replica of broker.replicas.values()) {
      replica.log.length = this.#random(replica.log.length + 1);
      replica.highWatermark = Math.min(replica.highWatermark, replica.log.length);
    }
  }

  #pauses(broker: SimBroker): void {
    broker.isPaused = broker.isAlive && this.#random(4) === 0;
  }

  #slows(broker: SimBroker): void {
    broker.isSlow = this.#random(3) === 0;
  }

  #stops(broker: SimBroker): void {
    broker.wantsShutDown = broker.isAlive;
  }

  #electPreferred(partition: number): void {
    const topics = [{ name: topicName, partitions: [partition] }];
    this.#quorum.ask<'electLeaders'>({ type: 'electLeaders', electionType: 0, topics });
  }

  #reassign(partitionIndex: number): void {
    // Mostly three of four.
    const left = this.#random(brokerIds.length);
    const target = brokerIds.filter((_, at) => at !== left && this.#random(12) > 0);
    const replicas = this.#random(4) === 0 || target.length === 0 ? null : target;
    const { errorCode } = this.#quorum.ask<'alterPartitionReassignments'>({
      type: 'alterPartitionReassignments',
      allowReplicationFactorChange: true,
      topics: [{ name: topicName, partitions: [{ partitionIndex, replicas }] }],
    });
    assert.equal(errorCode, ErrorCode.NONE);
    this.#count(replicas === null ? 'cancelled' : 'reassigned');
  }

  #count(what: string): void {
    this.totals[what] = (this.totals[what] ?? 0) + 1;
  }
}
