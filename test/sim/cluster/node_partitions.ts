/**
 * The partitions of a simulated broker: production code opens, leads and follows them (`ShardPartitions`); this is what
 * threads, sockets and timers are in a real one.
 */
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import { GroupCoordinator } from '../../../engine/groups/group_coordinator.ts';
import type { Clock, Disk } from '../../../engine/ports.ts';
import type { BrokerConfig } from '../../../net/config/broker_config.ts';
import { LiveConfig } from '../../../net/config/live_config.ts';
import { Placements } from '../../../net/fabric/placements.ts';
import { GroupCoordinators } from '../../../net/groups/group_coordinators.ts';
import type { LogDirectories } from '../../../net/log_directories.ts';
import { LogStarts } from '../../../net/retention/log_starts.ts';
import { Purgatory } from '../../../net/server/purgatory.ts';
import { ShardPartitions } from '../../../net/shard_partitions.ts';
import type {
  AlterPartitionResult,
  AnyControllerReply,
  ControllerRequest,
  DamagedReplicas,
} from '../../../replication/metadata/controller_api.ts';
import { MetadataImage } from '../../../replication/metadata/image.ts';
import type { MetadataDelta } from '../../../replication/metadata/records.ts';
import type { IsrProposal } from '../../../replication/partition/isr.ts';
import type { PartitionLeader } from '../../../replication/partition/leader.ts';
import type { SeededRandom } from '../seeded_random.ts';
import type { ClientRequest } from './client_api.ts';
import { ClientServer } from './client_server.ts';
import { FetchServer } from './fetch_server.ts';
import { quietLogger } from './node_config.ts';
import type { FetchMessage } from './node_fetcher.ts';
import { NodeFollowers } from './node_followers.ts';
import type { NodeWorld } from './node_run.ts';
import { lookForFollower } from './replica_look.ts';
import type { ReplicaView } from './replica_watch.ts';
import type { SimNode } from './sim_node.ts';
import type { SimProcess } from './sim_process.ts';
import { numberOf, partitionOf } from './topic_maker.ts';

export interface NodePartitionsOptions {
  readonly world: NodeWorld;
  readonly node: SimNode;
  readonly process: SimProcess;
  readonly config: BrokerConfig;
  readonly directories: LogDirectories;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: SeededRandom;
  readonly defer: (run: () => void) => void;
  readonly ask: (request: ControllerRequest, done: (reply: AnyControllerReply) => void) => void;
  readonly brokerEpoch: () => number;
  /** Nobody listens at that broker. */
  readonly brokerRefused: (brokerId: number) => void;
}

const tickMs = 250;

export class NodePartitions {
  readonly #options: NodePartitionsOptions;
  readonly #image: MetadataImage = new MetadataImage('simulatedClusterOfTests');
  readonly #shard: ShardPartitions;
  readonly #followers: NodeFollowers;
  readonly #server: FetchServer;
  readonly #clients: ClientServer;
  readonly #groups: GroupCoordinators;
  /** Replicas whose logs lack what they had. */
  readonly damaged: DamagedReplicas[] = [];
  /** Deltas reach the partitions in order, after a while, as they reach the threads of a real broker. */
  #lastDeltaMs = 0;

  constructor(options: NodePartitionsOptions) {
    this.#options = options;
    const { process, config, directories, disk, clock, random, defer, world } = options;
    const starts: LogStarts = new LogStarts(({ number, path, starts: asked }) =>
      directories.storeLogStarts(path, asked, (error) =>
        process.after(0, () => starts.stored(number, error !== null)),
      ),
    );
    const shard = new ShardPartitions({
      live: new LiveConfig(config),
      image: this.#image,
      placements: new Placements(0, 1),
      disk,
      clock,
      random,
      logDirs: directories.data(),
      logger: quietLogger(world.trace, `node ${options.node.id}`),
      defer,
      starts,
      release: (_log, run) => run(),
      propose: (leader, proposal) => this.#propose(leader, proposal),
      onHighWatermark: (leader) => this.#groups.onHighWatermark(leader),
      onWritten: () => defer(() => this.#server.wake()),
      onDamaged: (replicas) => this.damaged.push(replicas),
      onDeleted: () => {},
      onDirFailed: (_path, reason) => world.timeline.fail(new Error(reason)),
      onAllFailed: () => {},
    });
    this.#shard = shard;
    this.#followers = new NodeFollowers(options, shard);
    this.#server = new FetchServer(
      process,
      () => clock.monotonicMs(),
      (...asked) => lookForFollower(shard, this.#image, options, ...asked),
      ({ topicId, partition }) => shard.table.byId(topicId, partition),
    );
    this.#clients = new ClientServer(options, shard, this.#image);
    this.#groups = this.#makeGroups();
    process.after(tickMs, () => this.#tick());
    process.after(world.swarm.checkpointEveryMs, () => this.#checkpoint());
  }

  /** Offset of the last metadata that the partitions have acted on. */
  get appliedOffset(): number {
    return this.#image.offset;
  }

  /** Partitions by their numbers in the world; see `partitionOf`. */
  leadsInEpoch(number: number): number {
    const { topic, partition } = partitionOf(number, this.#options.world.swarm);
    return this.#shard.table.byName(topic, partition)?.leaderEpoch ?? -1;
  }

  highWatermark(number: number): number {
    const { topic, partition } = partitionOf(number, this.#options.world.swarm);
    const replica =
      this.#shard.table.byName(topic, partition) ?? this.#shard.followers.byName(topic, partition);
    return replica?.highWatermark ?? -1;
  }

  *views(node: SimNode): Generator<ReplicaView> {
    for (const { topic, partition, log, highWatermark } of this.#shard.replicas) {
      const number = numberOf(topic, partition, this.#options.world.swarm);
      yield {
        nodeId: node.id,
        partition: number,
        log,
        highWatermark,
        leadsInEpoch: this.leadsInEpoch(number),
        isExcused: node.isExcused,
      };
    }
  }

  /** Acts on a delta now. */
  apply(delta: MetadataDelta): void {
    const { world, node } = this.#options;
    const before = [...this.#shard.table.values()].map(({ leaderEpoch }) => leaderEpoch).join();
    const changes = this.#image.apply(delta);
    this.#shard.apply(changes);
    this.#groups.apply(changes);
    this.#followers.reconcile();
    const after = [...this.#shard.table.values()].map(({ leaderEpoch }) => leaderEpoch).join();
    if (before === after) return;
    world.moment('leading', node.id, -1);
    for (const { partition, leaderEpoch, log, highWatermark } of this.#shard.table.values())
      world.trace.add(
        `node ${node.id}`,
        () =>
          `leads partition ${partition} in ${leaderEpoch}, ends at ${log.logEndOffset}, flushed ${log.flushedOffset}, high watermark ${highWatermark}`,
      );
  }

  /** A delta is committed. */
  follow(delta: MetadataDelta): void {
    const { world, process, random } = this.#options;
    const { nowMs } = world.timeline;
    const isSlow = random.chance(0.02);
    const atMs = Math.max(this.#lastDeltaMs, nowMs + random.below(isSlow ? 300 : 3));
    this.#lastDeltaMs = atMs;
    process.after(atMs - nowMs, () => this.apply(delta));
  }

  serveFollower(message: FetchMessage, answer: (answer: unknown) => void): void {
    this.#server.serve(message, answer);
  }

  serveClient(request: ClientRequest, answer: (answer: unknown) => void): void {
    if (request.type === 'group') {
      const client = { clientId: 'sim', clientHost: '/127.0.0.1' };
      void Promise.resolve(this.#groups.request(0, client, request.request)).then(answer);
    } else this.#clients.serve(request, answer);
  }

  #makeGroups(): GroupCoordinators {
    const { config, clock, process, random, defer, world, node } = this.#options;
    return new GroupCoordinators({
      config: config.groups,
      image: this.#image,
      partitions: this.#shard.table,
      clock,
      timers: new Purgatory({
        nowMs: () => clock.monotonicMs(),
        setTimer: (run, delayMs) => process.after(delayMs, run),
        clearTimer: (cancel) => (cancel as () => void)(),
      }),
      logger: quietLogger(world.trace, `node ${node.id}`),
      newUuid: () => Buffer.from(random.bytes(16)).toString('hex'),
      makeMachine: (environment) => new GroupCoordinator(environment),
      defer,
    });
  }

  #tick(): void {
    this.#shard.tick();
    this.#options.process.after(tickMs, () => this.#tick());
  }

  #checkpoint(): void {
    const { directories, process, world } = this.#options;
    this.#shard.checkpoint((dir) => directories.report([dir]));
    process.after(world.swarm.checkpointEveryMs, () => this.#checkpoint());
  }

  #propose(leader: PartitionLeader, proposal: IsrProposal): void {
    const { world, node, process, ask, brokerEpoch } = this.#options;
    const { topicId, partition, leaderEpoch, partitionEpoch, newIsr } = proposal;
    const isr = this.#image.topicById(topicId)?.partitions[partition]?.isr ?? [];
    const added = newIsr.find(({ brokerId }) => !isr.includes(brokerId));
    world.trace.add(
      `node ${node.id}`,
      () => `proposes ISR ${JSON.stringify(newIsr)} of partition ${partition} in ${leaderEpoch}`,
    );
    world.count(added === undefined ? 'ISR shrinks proposed' : 'ISR expansions proposed');
    world.moment(added === undefined ? 'shrinking' : 'expanding', node.id, added?.brokerId ?? -1);
    const request = {
      type: 'alterPartition',
      brokerId: node.id,
      brokerEpoch: brokerEpoch(),
      topics: [
        {
          topicId,
          partitions: [
            {
              partitionIndex: partition,
              leaderEpoch,
              newIsr,
              leaderRecoveryState: 0,
              partitionEpoch,
            },
          ],
        },
      ],
    } as const;
    const delayMs = node.proposalDelayMs;
    node.proposalDelayMs = 0;
    const answered = (reply: AnyControllerReply): void => {
      const { topics } =
        reply.errorCode === ErrorCode.NONE
          ? (reply.result as AlterPartitionResult)
          : { topics: [] };
      leader.proposalAnswered(proposal, topics[0]?.partitions[0] ?? null);
    };
    process.after(delayMs, () => ask(request, answered));
  }
}
