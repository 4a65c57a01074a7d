/**
 * A whole simulated cluster with its clients: runs it under a plan of faults (safety phase), then heals everything and
 * sees to it that it comes to rest in good time with all that was promised (liveness phase).
 */
import assert from 'node:assert/strict';
import { SeededRandom } from '../seeded_random.ts';
import { checkAtRest, unsettled } from './at_rest.ts';
import type { ClientWorld } from './client.ts';
import { CommittedLog } from './committed_log.ts';
import type { Fault, Moment } from './fault_plan.ts';
import { Faults, type FaultyWorld } from './faults.ts';
import { GroupMembers } from './group_members.ts';
import { HastyProducer } from './hasty_producer.ts';
import { MetadataWatch } from './metadata_watch.ts';
import type { Mutant } from './mutants.ts';
import { Network } from './network.ts';
import type { NodeWorld } from './node_run.ts';
import { Producer } from './producer.ts';
import { Reader } from './reader.ts';
import { ReplicaWatch } from './replica_watch.ts';
import { SimNode } from './sim_node.ts';
import { eventsMin, type Swarm } from './swarm.ts';
import { Timeline } from './timeline.ts';
import { partitionOf, TopicMaker } from './topic_maker.ts';
import { Trace } from './trace.ts';

export interface ClusterOptions {
  readonly swarm: Swarm;
  readonly plan: readonly Fault[];
  readonly mutant: Mutant | null;
  readonly isTraced: boolean;
}

/** The last virtual moment of a safety phase that has too few events. */
const safetyMaxMs = 300_000;
/** Service must be back, and all at rest, within this after the last fault has healed. */
const settleMaxMs = 60_000;

export class ClusterWorld implements ClientWorld, FaultyWorld, NodeWorld {
  readonly swarm: Swarm;
  readonly mutant: Mutant | null;
  readonly timeline: Timeline = new Timeline();
  readonly trace: Trace;
  readonly network: Network;
  /** Of the topic that clients produce to, by partition. */
  readonly committed: readonly CommittedLog[];
  /** The same, and the partition that holds the groups if there are any. */
  readonly logs: readonly CommittedLog[];
  readonly replicaWatch: ReplicaWatch;
  readonly metadataWatch: MetadataWatch = new MetadataWatch();
  readonly nodes: readonly SimNode[];
  readonly nodeIds: readonly number[];
  readonly counts: Record<string, number> = {};
  readonly producers: readonly Producer[];
  readonly hastyProducers: readonly HastyProducer[];
  readonly readers: readonly Reader[];
  readonly members: GroupMembers;
  readonly topicMaker: TopicMaker;
  readonly #faults: Faults;
  readonly #touched = new Set<number>();

  constructor({ swarm, plan, mutant, isTraced }: ClusterOptions) {
    this.swarm = swarm;
    this.mutant = mutant;
    const { timeline } = this;
    this.trace = new Trace(isTraced, () => timeline.nowMs);
    this.network = new Network({
      timeline,
      random: new SeededRandom(swarm.seed * 8 + 3),
      delayMs: swarm.networkDelayMs,
      breakChance: swarm.breakChance,
      count: this.count,
    });
    this.committed = Array.from(
      { length: swarm.partitions },
      (_, partition) => new CommittedLog(`partition ${partition}`),
    );
    this.logs =
      swarm.members > 0 ? [...this.committed, new CommittedLog('groups')] : this.committed;
    this.replicaWatch = new ReplicaWatch(this.logs, (partition, leaderEpoch) =>
      this.#wholeIsr(partition, leaderEpoch),
    );
    this.nodeIds = Array.from({ length: swarm.nodes }, (_, index) => index + 1);
    this.nodes = this.nodeIds.map((id) => new SimNode(this, id));
    this.topicMaker = new TopicMaker(this, swarm);
    this.producers = Array.from(
      { length: swarm.producers },
      (_, index) =>
        new Producer(this, {
          id: index + 1,
          seed: swarm.seed * 64 + 10 + index,
          everyMs: swarm.produceEveryMs,
          inFlightMax: swarm.inFlightMax,
          recordsMax: swarm.recordsMax,
          valueBytesMax: swarm.valueBytesMax,
        }),
    );
    this.hastyProducers = Array.from(
      { length: swarm.hastyProducers },
      (_, index) =>
        new HastyProducer(this, index + 1, swarm.seed * 64 + 20 + index, 2 * swarm.produceEveryMs),
    );
    this.readers = Array.from(
      { length: swarm.readers },
      (_, index) => new Reader(this, index + 1, swarm.seed * 64 + 30 + index),
    );
    this.members = new GroupMembers(this, swarm.members, swarm.seed * 64 + 40);
    this.#faults = new Faults(this, plan);
    timeline.afterEvent = () => this.#lookAround();
  }

  readonly count = (what: string, times = 1): void => {
    this.counts[what] = (this.counts[what] ?? 0) + times;
  };

  get partitions(): number {
    return this.swarm.partitions;
  }

  get clientIds(): readonly number[] {
    const clients = [...this.producers, ...this.hastyProducers, ...this.readers, this.members];
    return clients.map(({ machineId }) => machineId);
  }

  get minInsyncReplicas(): number {
    return this.swarm.minInsyncReplicas;
  }

  get patienceMs(): number {
    return Math.max(this.swarm.sessionTimeoutMs, this.swarm.replicaLagTimeMaxMs);
  }

  /** A step of a node has run. */
  touched(nodeId: number): void {
    this.#touched.add(nodeId);
  }

  moment(moment: Moment, nodeId: number, otherId: number): void {
    const node = this.#node(nodeId);
    if (node !== null) this.#faults.onMoment(moment, node, this.#node(otherId));
  }

  leaderOf(partition: number): SimNode | null {
    let best: SimNode | null = null;
    for (const node of this.nodes)
      if (node.leadsInEpoch(partition) > (best?.leadsInEpoch(partition) ?? -1)) best = node;
    return best;
  }

  controller(): SimNode | null {
    let best: SimNode | null = null;
    for (const node of this.nodes)
      if ((node.run?.controllerEpoch ?? -1) > (best?.run?.controllerEpoch ?? -1)) best = node;
    return best;
  }

  isrOf(partition: number): readonly number[] {
    return this.#partition(partition)?.isr ?? [];
  }

  replicasOf(partition: number): readonly number[] {
    return this.#partition(partition)?.replicas ?? [];
  }

  canSpare(node: SimNode): boolean {
    if (this.nodes.some((other) => other !== node && other.isExcused)) return false;
    for (let partition = 0; partition < this.partitions; partition += 1) {
      if (!this.replicasOf(partition).includes(node.id)) continue;
      const { topic, partition: index } = partitionOf(partition, this.swarm);
      const topicId = this.topicMaker.topicId(topic);
      if (topicId === undefined) return false;
      const isr = this.metadataWatch.surelyInSync(topicId, index);
      if (isr.filter((id) => id !== node.id).length < 2) return false;
    }
    return true;
  }

  async run(): Promise<void> {
    const { timeline, swarm } = this;
    const random = new SeededRandom(swarm.seed * 8 + 4);
    for (const node of this.nodes) timeline.after(random.below(200), () => node.start());
    this.topicMaker.start();
    for (const client of [...this.producers, ...this.hastyProducers, ...this.readers, this.members])
      timeline.after(200, () => client.start());
    await timeline.run(() => false, swarm.safetyMs);
    await timeline.run(() => timeline.events >= eventsMin, safetyMaxMs);
    this.#heal();
    await this.#settle();
    checkAtRest(this);
    this.count('events', timeline.events);
    this.count('elections', this.metadataWatch.elections);
    this.count('virtual seconds', Math.round(timeline.nowMs / 1000));
  }

  #heal(): void {
    this.trace.add('world', () => 'everything is healed');
    this.#faults.isOn = false;
    this.network.isFaulty = false;
    this.network.healAll();
    for (const node of this.nodes) {
      node.wallSkewMs = 0;
      node.goOn();
      node.start();
    }
  }

  async #settle(): Promise<void> {
    const { timeline } = this;
    const limitMs = timeline.nowMs + settleMaxMs;
    const acknowledged = this.committed.map((log) => log.acknowledged);
    const isServed = (): boolean =>
      this.committed.every((log, partition) => log.acknowledged > (acknowledged[partition] ?? 0));
    await timeline.run(isServed, limitMs);
    assert(
      isServed(),
      `I9 no service ${settleMaxMs} ms after everything is healed: ${unsettled(this)}`,
    );
    for (const producer of [...this.producers, ...this.hastyProducers]) producer.isEnding = true;
    this.members.end();
    let problem = unsettled(this);
    while (problem !== null && timeline.nowMs < limitMs) {
      await timeline.run(() => false, timeline.nowMs + 250);
      problem = unsettled(this);
    }
    assert(
      problem === null,
      `I9 not at rest ${settleMaxMs} ms after everything is healed: ${problem}`,
    );
  }

  #lookAround(): void {
    for (const nodeId of this.#touched) {
      const node = this.#node(nodeId);
      if (node === null) continue;
      for (const view of node.replicas()) this.replicaWatch.look(view);
      node.run?.scheduleFlush();
      if (node.isExcused && this.#isWhole(node)) node.isExcused = false;
    }
    this.#touched.clear();
  }

  /** It has told the controller that something is missing, and got it back. */
  #isWhole(node: SimNode): boolean {
    if (node.run?.isUnfenced !== true) return false;
    for (const number of this.logs.keys())
      if (this.replicasOf(number).includes(node.id) && !this.isrOf(number).includes(node.id))
        return false;
    return true;
  }

  #wholeIsr(partition: number, leaderEpoch: number): readonly number[] {
    const state = this.#partition(partition);
    if (state?.leaderEpoch !== leaderEpoch) return [];
    return state.isr.filter((id) => this.#node(id)?.isExcused === false);
  }

  #node(id: number): SimNode | null {
    return this.nodes[id - 1] ?? null;
  }

  #partition(number: number): ReturnType<MetadataWatch['partition']> {
    const { topic, partition } = partitionOf(number, this.swarm);
    const topicId = this.topicMaker.topicId(topic);
    return topicId === undefined ? undefined : this.metadataWatch.partition(topicId, partition);
  }
}
