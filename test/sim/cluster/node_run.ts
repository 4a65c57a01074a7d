/**
 * One run of a broker process on a simulated machine: production cores for the metadata quorum, the controller, the
 * partitions and their logs, put together with the world's network, disk and clocks around them.
 */
import { LogDirectories } from '../../../net/log_directories.ts';
import { metadataCodec } from '../../../net/metadata_codec.ts';
import { previousEpochOf } from '../../../net/own_registration.ts';
import type {
  AnyControllerReply,
  ControllerRequest,
} from '../../../replication/metadata/controller_api.ts';
import type { MetadataImage } from '../../../replication/metadata/image.ts';
import type { MetadataDelta } from '../../../replication/metadata/records.ts';
import { FileStateStore } from '../../../replication/raft/file_state_store.ts';
import type { PartitionLogStore } from '../../../replication/raft/partition_log_store.ts';
import { RaftQuorum } from '../../../replication/raft/raft_quorum.ts';
import type { SnapshotSettings } from '../../../replication/raft/raft_snapshots.ts';
import { SeededRandom } from '../seeded_random.ts';
import type { ClientRequest } from './client_api.ts';
import { ControllerHost } from './controller_host.ts';
import type { Moment } from './fault_plan.ts';
import type { MetadataWatch } from './metadata_watch.ts';
import type { Mutant } from './mutants.ts';
import type { Answer, Listener, Network } from './network.ts';
import { configFor, newController, newUuid, quietLogger } from './node_config.ts';
import type { FetchMessage } from './node_fetcher.ts';
import { type DescribeMessage, joinQuorum, textOf } from './node_join.ts';
import { NodeLifecycle, type NodeLifecycleOptions } from './node_lifecycle.ts';
import { NodePartitions } from './node_partitions.ts';
import { openNodeStore } from './node_store.ts';
import {
  endpointsOf,
  type RaftMessage,
  SimTransport,
  stateStoreFor,
  watchVote,
} from './raft_ports.ts';
import type { ReplicaView } from './replica_watch.ts';
import type { SimNode } from './sim_node.ts';
import { SimProcess } from './sim_process.ts';
import type { Swarm } from './swarm.ts';
import type { Timeline } from './timeline.ts';
import type { TopicMaker } from './topic_maker.ts';
import type { Trace } from './trace.ts';

export const dataDir = '/data';

/** What nodes know of the world. */
export interface NodeWorld {
  readonly swarm: Swarm;
  readonly mutant: Mutant | null;
  readonly timeline: Timeline;
  readonly network: Network;
  readonly trace: Trace;
  readonly nodeIds: readonly number[];
  readonly metadataWatch: MetadataWatch;
  readonly topicMaker: TopicMaker;
  readonly count: (what: string, times?: number) => void;
  touched(nodeId: number): void;
  /** @param otherId the node that it is about, -1: none */
  moment(moment: Moment, nodeId: number, otherId: number): void;
}

interface ControllerMessage {
  readonly type: 'controller';
  readonly request: ControllerRequest;
}

type NodeRequest = DescribeMessage | RaftMessage | ControllerMessage | FetchMessage | ClientRequest;

export class NodeRun implements Listener {
  readonly process: SimProcess;
  readonly #world: NodeWorld;
  readonly #node: SimNode;
  readonly #boot: number;
  readonly #random: SeededRandom;
  /** What the monotonic clock shows when virtual time is 0. */
  readonly #clockOrigin: number;
  #quorum: RaftQuorum | null = null;
  #host: ControllerHost | null = null;
  #partitions: NodePartitions | null = null;
  #lifecycle: NodeLifecycle | null = null;
  #isFlushing: boolean = false;
  #isReady: boolean = false;
  /** Requests for data that came before the broker was unfenced for the first time; null from then on. */
  #early: (() => void)[] | null = [];

  constructor(world: NodeWorld, node: SimNode, boot: number, start: number) {
    this.#world = world;
    this.#node = node;
    this.#boot = boot;
    this.#random = new SeededRandom(world.swarm.seed * 4096 + node.id * 256 + start);
    this.#clockOrigin = this.#random.below(1_000_000);
    this.process = new SimProcess(world.timeline, node.id, (id) => world.touched(id));
  }

  get name(): string {
    return `node ${this.#node.id}`;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** Who leads the quorum as far as this node knows. */
  get leaderId(): number {
    return this.#quorum?.leaderId ?? -1;
  }

  get isUnfenced(): boolean {
    return this.#lifecycle?.isUnfenced ?? false;
  }

  get metadataOffset(): number {
    return this.#partitions?.appliedOffset ?? -1;
  }

  /** Term in which this node is the active controller, -1: it is not. */
  get controllerEpoch(): number {
    const quorum = this.#quorum;
    return quorum !== null && quorum.leaderId === this.#node.id ? quorum.epoch : -1;
  }

  leadsInEpoch(partition: number): number {
    return this.#partitions?.leadsInEpoch(partition) ?? -1;
  }

  highWatermark(partition: number): number {
    return this.#partitions?.highWatermark(partition) ?? -1;
  }

  *replicas(): Generator<ReplicaView> {
    if (this.#partitions !== null) yield* this.#partitions.views(this.#node);
  }

  /** All of the metadata but who leads the quorum, as a text to be compared. */
  metadataText(): string {
    const snapshot = this.#host?.image.snapshot();
    // Who has begun with a snapshot does not know when a feature was last changed.
    return JSON.stringify({ ...snapshot, leaderId: -1, featuresEpoch: -1 });
  }

  async start(): Promise<void> {
    const { disk, id } = this.#node;
    const random = this.#random;
    const config = configFor(this.#world.swarm, id);
    const directories = LogDirectories.open({
      config,
      disk,
      random,
      bootId: `boot-${this.#boot}`,
      logger: quietLogger(this.#world.trace, this.name),
    });
    const { metadata } = directories;
    const clock = { wallMs: () => this.#node.wallMs, monotonicMs: () => this.now() };
    const defer = (run: () => void): void => {
      this.process.after(0, run);
    };
    const { store, snapshots } = await openNodeStore({
      disk,
      clock,
      random,
      logDir: dataDir,
      metadata,
      snapshotEveryBytes: this.#world.swarm.snapshotEveryBytes,
      defer,
      onSlice: () => this.#world.moment('snapshot', id, -1),
      onWarning: (text) => this.#warn(text),
    });
    const quorum = this.#makeQuorum(store, metadata.meta.directoryId, snapshots);
    this.#quorum = quorum;
    const host = this.#makeHost();
    this.#host = host;
    await host.start(quorum);
    if (!this.process.isAlive) return;
    this.#world.network.machine(id).listener = this;
    if (this.#world.swarm.nodes > 1) await this.#join(quorum, host.image);
    const partitions = new NodePartitions({
      world: this.#world,
      node: this.#node,
      process: this.process,
      config,
      directories,
      disk,
      clock,
      random,
      defer,
      ask: (request, done) => this.#ask(request, done),
      brokerEpoch: () => this.#lifecycle?.brokerEpoch ?? -1,
      brokerRefused: (brokerId) => this.#host?.brokerUnreachable(brokerId),
    });
    this.#partitions = partitions;
    partitions.apply(host.image.snapshot());
    const epoch = previousEpochOf(config, directories, host.image, partitions.damaged);
    this.#lifecycle = this.#makeLifecycle(host, {
      logDirs: directories.directoryIds,
      previousBrokerEpoch: epoch,
      damagedReplicas: partitions.damaged,
    });
    this.#lifecycle.start();
    this.#isReady = true;
    this.#checkpointLater(store, directories);
  }

  #join(quorum: RaftQuorum, image: MetadataImage): Promise<void> {
    const { process } = this;
    return joinQuorum({
      quorum,
      image,
      process,
      random: this.#random,
      network: this.#world.network,
    });
  }

  /** As main does it: a start reads the metadata log from the recovery point on. */
  #checkpointLater(store: PartitionLogStore, directories: LogDirectories): void {
    this.process.after(this.#world.swarm.checkpointEveryMs, () => {
      const { log } = store;
      const report = (): void => {
        const { topic, topicId, partition, logStartOffset } = log;
        // What is not committed may be cut yet.
        const committed = (this.#quorum?.committedOffset ?? -1) + 1;
        const recoveryPoint = Math.min(log.recoveryPoint, committed);
        const marks = { topic, topicId, partition, recoveryPoint, logStartOffset };
        directories.report([{ path: dataDir, partitions: [{ ...marks, highWatermark: 0 }] }]);
      };
      void store.checkpoint().then(report);
      this.#checkpointLater(store, directories);
    });
  }

  /** Milliseconds of the node's monotonic clock. */
  now(): number {
    return this.#clockOrigin + this.#world.timeline.nowMs;
  }

  serve(from: number, request: unknown, answer: Answer): void {
    const message = request as NodeRequest;
    switch (message.type) {
      case 'raft':
        this.#quorum?.handle(message.request, (reply) => {
          watchVote(this.#world, this.#node.id, message.request, reply);
          answer(reply);
        });
        return;
      case 'describe':
        answer(this.#quorum?.describe());
        return;
      case 'controller':
        if (from > this.#world.nodeIds.length) this.#ask(message.request, answer);
        else this.#host?.submit(message.request, answer);
        return;
      default:
        if (this.#early === null) this.#serveData(message, answer);
        else this.#early.push(() => this.#serveData(message, answer));
    }
  }

  #serveData(message: FetchMessage | ClientRequest, answer: Answer): void {
    if (message.type === 'replicaFetch') this.#partitions?.serveFollower(message, answer);
    else this.#partitions?.serveClient(message, answer);
  }

  /** The broker may be used: from now on it accepts what has come to its listener. */
  #serveClients(): void {
    const early = this.#early ?? [];
    this.#early = null;
    for (const serve of early) serve();
  }

  /** Flushes that the process has begun end after a while. */
  scheduleFlush(): void {
    const { disk } = this.#node;
    if (this.#isFlushing || disk.waitingFlushes === 0) return;
    this.#isFlushing = true;
    this.process.after(1 + this.#random.below(this.#world.swarm.flushMs), () => {
      this.#isFlushing = false;
      disk.endFlushes();
      this.#world.moment('flushed', this.#node.id, -1);
    });
  }

  #ask(request: ControllerRequest, done: (reply: AnyControllerReply) => void): void {
    this.#lifecycle?.ask(request, done);
  }

  #warn(text: string): void {
    this.#world.trace.add(this.name, () => `warns: ${text}`);
  }

  #makeQuorum(
    store: PartitionLogStore,
    directoryId: string,
    snapshots: SnapshotSettings,
  ): RaftQuorum {
    const { swarm, nodeIds, mutant } = this.#world;
    const node = this.#node;
    const random = this.#random;
    const without = mutant === 'formation without all voters' ? 'all voters form' : null;
    return new RaftQuorum({
      self: { voterId: node.id, voterDirectoryId: directoryId, endpoints: endpointsOf(node.id) },
      configuredVoters:
        swarm.nodes === 1
          ? []
          : nodeIds.map((voterId) => ({ voterId, endpoints: endpointsOf(voterId) })),
      clusterId: node.clusterId,
      newClusterId: newUuid(random),
      onClusterId: (clusterId) => this.#joinCluster(clusterId),
      store,
      stateStore: stateStoreFor(this.#world, new FileStateStore(node.disk, store.log.dir)),
      codec: metadataCodec,
      transport: swarm.nodes === 1 ? null : new SimTransport(this.#world, this.process),
      timers: {
        now: () => this.now(),
        setTimer: (ms, run) => this.process.after(ms, run),
      },
      random,
      timeouts: {
        fetchTimeoutMs: 2 * swarm.electionTimeoutMs,
        electionTimeoutMs: swarm.electionTimeoutMs,
        electionBackoffMaxMs: swarm.electionTimeoutMs,
        requestTimeoutMs: 2 * swarm.electionTimeoutMs,
      },
      wallMs: () => node.wallMs,
      snapshots,
      onWarning: (message) => this.#warn(message),
      ...(without === null ? {} : { without }),
    });
  }

  /** Noted in a file that is flushed, in a real broker. */
  #joinCluster(clusterId: string): Promise<void> {
    return new Promise((resolve) => {
      this.process.after(1 + this.#random.below(this.#world.swarm.flushMs), () => {
        this.#node.clusterId = clusterId;
        this.#world.metadataWatch.belongs(this.name, clusterId);
        resolve();
      });
    });
  }

  #makeHost(): ControllerHost {
    const { swarm, metadataWatch, trace, timeline } = this.#world;
    const { id } = this.#node;
    return new ControllerHost({
      process: this.process,
      controller: newController(swarm, id, this.#random),
      now: () => this.now(),
      onDelta: (delta, isNews) => this.#committed(delta, isNews),
      onProposed: (image, records) => metadataWatch.proposed(image, records),
      onElected: (epoch, nextOffset) => {
        trace.add(this.name, () => `is elected in term ${epoch} at ${nextOffset}`);
        metadataWatch.elected(this.name, epoch, nextOffset);
        this.#world.moment('elected', id, -1);
      },
      onLeaderChanged: (leaderId, epoch) =>
        trace.add(this.name, () => `knows leader ${leaderId} in term ${epoch}`),
      onFailed: (error) => timeline.fail(error),
      mutant: this.#world.mutant,
    });
  }

  #committed(delta: MetadataDelta, isNews: boolean): void {
    const { metadataWatch, topicMaker, trace } = this.#world;
    const { image } = this.#host as ControllerHost;
    if (!isNews) {
      trace.add(this.name, () => `has a snapshot up to ${delta.lastOffset}`);
      this.#world.count(delta.snapshot ? 'snapshots begun with' : '20 snapshots installed');
      this.#world.moment('snapshot', this.#node.id, -1);
    } else if (!delta.snapshot) {
      const isFirst = delta.lastOffset > metadataWatch.committedOffset;
      trace.add(this.name, () =>
        isFirst ? `commits ${delta.lastOffset}: ${textOf(delta)}` : `hears of ${delta.lastOffset}`,
      );
      metadataWatch.committed(this.name, delta);
    }
    metadataWatch.applied(this.name, image);
    for (const { name, id: topicId } of image.topics.values()) topicMaker.learn(name, topicId);
    this.#partitions?.follow(delta);
  }

  #makeLifecycle(host: ControllerHost, disks: NodeLifecycleOptions['disks']): NodeLifecycle {
    const { network, swarm, trace } = this.#world;
    return new NodeLifecycle({
      process: this.process,
      network,
      host,
      random: this.#random,
      incarnationId: Buffer.from(this.#random.bytes(16)).toString('base64url'),
      sessionTimeoutMs: swarm.sessionTimeoutMs,
      disks,
      leaderId: () => this.leaderId,
      appliedOffset: () => this.metadataOffset,
      onUnfenced: () => this.#serveClients(),
      onRefused: (text) => trace.add(this.name, () => `is not registered: ${text}`),
      onRegistered: (epoch) => trace.add(this.name, () => `is registered with epoch ${epoch}`),
    });
  }
}
