/**
 * A shard's data path without threads and sockets: production handlers, leaders and logs over a simulated disk, a
 * metadata quorum in the same thread, and virtual time. Turns and flushes end when the test says so.
 */
import assert from 'node:assert/strict';
import { ReadAhead } from '../../../engine/read_ahead.ts';
import { ThreadCalls } from '../../../engine/thread/calls.ts';
import { regionView, SlabAllocator } from '../../../engine/thread/slab.ts';
import { serveAdministration } from '../../../net/administration_calls.ts';
import type { BrokerConfig } from '../../../net/config/broker_config.ts';
import { checkDynamicConfigs, listDefault } from '../../../net/config/dynamic_config.ts';
import { LiveConfig } from '../../../net/config/live_config.ts';
import { loadBrokerConfig } from '../../../net/config/load.ts';
import { checkTopicConfigs } from '../../../net/config/topic_config.ts';
import { Placements } from '../../../net/fabric/placements.ts';
import { RemotePartitions } from '../../../net/fabric/remote_partitions.ts';
import type { GroupCoordinators } from '../../../net/groups/group_coordinators.ts';
import { GroupRouter } from '../../../net/groups/group_router.ts';
import { IsrProposals } from '../../../net/isr_proposals.ts';
import { LogDirectories } from '../../../net/log_directories.ts';
import { LevelLogger, type Logger } from '../../../net/logger.ts';
import { ProducerIds } from '../../../net/producer_ids.ts';
import { QuorumClient } from '../../../net/quorum_client.ts';
import type { QuorumHost } from '../../../net/quorum_host.ts';
import type { QuorumPort } from '../../../net/quorum_messages.ts';
import { makeThrottle } from '../../../net/replication_throttles.ts';
import { serveDeleteRecords } from '../../../net/retention/delete_records.ts';
import { LogRetention } from '../../../net/retention/log_retention.ts';
import { LogStarts } from '../../../net/retention/log_starts.ts';
import { type GroupBehind, LossWarnings } from '../../../net/retention/loss_warnings.ts';
import { type FetchWait, Routes } from '../../../net/routes.ts';
import { makeRegistry } from '../../../net/served_apis.ts';
import { FetchSessions } from '../../../net/server/fetch_sessions.ts';
import { MemoryBudget } from '../../../net/server/memory_budget.ts';
import { Purgatory } from '../../../net/server/purgatory.ts';
import type { Registry } from '../../../net/server/registry.ts';
import type { RequestMemory } from '../../../net/server/request_frame.ts';
import { followSettings } from '../../../net/setting_changes.ts';
import type { ShardCalls } from '../../../net/shard_calls.ts';
import type { DeletedPartition, LogDirCheckpoint } from '../../../net/shard_messages.ts';
import { ShardPartitions } from '../../../net/shard_partitions.ts';
import type { ShardServices } from '../../../net/shard_services.ts';
import { TopicRules } from '../../../net/topic_rules.ts';
import { MetadataImage } from '../../../replication/metadata/image.ts';
import type { PartitionLeader } from '../../../replication/partition/leader.ts';
import { LocalCounter } from '../../../replication/partition/replication_quota.ts';
import { splitMix } from '../../harness/split_mix.ts';
import { clusterId, newTopic, registration } from '../../replication/metadata/fixtures.ts';
import { SimulatedStore } from '../../replication/raft/simulated_store.ts';
import { SimDisk } from '../../sim/disk.ts';
import { SeededRandom } from '../../sim/seeded_random.ts';
import { newHost, portPair } from '../cluster_fixture.ts';
import { groupsOf } from '../groups/world_groups.ts';
import { WorldClock } from './world_clock.ts';

export interface WorldOptions {
  /** `key=value` of the broker's configuration. */
  readonly settings?: readonly string[];
  /** Topics that exist from the start: name, partitions, settings. */
  readonly topics?: readonly (readonly [string, number, Record<string, string>?])[];
  readonly logDirs?: readonly string[];
  readonly seed?: number;
}

export function configOf(settings: readonly string[] = []): BrokerConfig {
  const { config, errors } = loadBrokerConfig({
    sets: settings,
    surroundings: { cwd: '/', hostname: 'localhost', memoryBytes: 1 << 30 },
  });
  assert(config !== null, errors.join('; '));
  return config;
}

export class ShardWorld {
  readonly clock: WorldClock = new WorldClock();
  readonly disk: SimDisk;
  readonly config: BrokerConfig;
  readonly host: QuorumHost;
  /** Log lines, level first. */
  readonly lines: string[] = [];
  readonly logger: Logger;
  readonly deleted: DeletedPartition[] = [];
  readonly failedDirs: string[] = [];
  readonly allFailed: string[] = [];
  readonly readAhead: ReadAhead;
  memory!: RequestMemory;
  image!: MetadataImage;
  live!: LiveConfig;
  partitions!: ShardPartitions;
  groups!: GroupCoordinators;
  services!: ShardServices;
  retention!: LogRetention;
  /** What the groups of the broker answer. */
  groupsBehind: readonly GroupBehind[] = [];
  registry!: Registry;
  #directories!: LogDirectories;
  #deferred: (() => void)[] = [];
  #woken: FetchWait[] = [];
  #boot = 1;
  #hostPort: QuorumPort | null = null;

  static async start(options: WorldOptions = {}): Promise<ShardWorld> {
    const logDirs = options.logDirs ?? ['/data/a'];
    const config = configOf([...(options.settings ?? []), `log.dirs=${logDirs.join(',')}`]);
    const host = newHost(new SimulatedStore(splitMix(1)), {
      checkTopicConfigs,
      checkBrokerConfigs: checkDynamicConfigs,
      listDefault,
    });
    await host.start();
    const world = new ShardWorld(config, host, options.seed ?? 1);
    await host.request(registration(1));
    for (const [name, partitions, configs] of options.topics ?? [])
      await world.createTopic(name, partitions, configs);
    await world.open();
    return world;
  }

  private constructor(config: BrokerConfig, host: QuorumHost, seed: number) {
    this.config = config;
    this.host = host;
    this.disk = new SimDisk({ seed });
    const { pageCache } = this.disk;
    this.readAhead = new ReadAhead({ pageCache, piecesMax: 4, devicePiecesMax: 2 });
    this.disk.nowMs = () => this.clock.wallMs();
    this.logger = new LevelLogger(
      { format: 'text', level: 'info' },
      (level, message, fields) => this.lines.push(`${level} ${message} ${JSON.stringify(fields)}`),
      () => this.clock.ms,
    );
  }

  /** Opens the directories and the logs, as a start of the broker does. */
  async open(): Promise<void> {
    this.memory = poisonedMemory();
    const { clock, disk, config, logger } = this;
    const random = new SeededRandom(5);
    const bootId = `boot-${this.#boot}`;
    this.#directories = LogDirectories.open({ config, disk, random, bootId, logger });
    const [hostPort, port] = portPair();
    // The one before died with its process.
    if (this.#hostPort !== null) this.host.detach(this.#hostPort);
    this.#hostPort = hostPort;
    const image = new MetadataImage(clusterId);
    this.image = image;
    const placements = new Placements(0, 1);
    const live = new LiveConfig(config);
    this.live = live;
    const starts = new LogStarts(({ number, path, starts: asked }) =>
      this.#directories.storeLogStarts(path, asked, (error) =>
        starts.stored(number, error !== null),
      ),
    );
    this.partitions = new ShardPartitions({
      live,
      image,
      placements,
      disk,
      clock,
      random,
      logger,
      logDirs: this.#directories.data(),
      defer: (run) => this.#deferred.push(run),
      onHighWatermark: (leader) => {
        this.#woken.push(leader);
        this.groups.onHighWatermark(leader);
      },
      onWritten: ({ followers }) => this.#woken.push(followers),
      propose: (leader, proposal) => proposals.propose(leader, proposal),
      release: (_log, run) => run(),
      starts,
      onDeleted: (_log, deleted) => this.deleted.push(deleted),
      onDamaged: () => {},
      onDirFailed: (path) => {
        this.failedDirs.push(path);
        this.#directories.noteFlushFailure(path);
      },
      onAllFailed: (reason) => this.allFailed.push(reason),
    });
    const quorum = new QuorumClient({
      port,
      nodeId: 1,
      image,
      onChanges: (changes) => {
        const { partitions, services } = this;
        const { topicRules, throttle } = services;
        followSettings(changes, { image, live, partitions, topicRules, throttle });
        partitions.apply(changes);
        this.groups.apply(changes);
      },
      onFailed: (error) => assert.fail(error as Error),
    });
    const proposals = new IsrProposals({ quorum, clock });
    this.services = this.#makeServices(quorum, placements, starts);
    this.registry = makeRegistry(this.services);
    await this.host.attach(hostPort);
  }

  #makeServices(quorum: QuorumClient, placements: Placements, starts: LogStarts): ShardServices {
    const { clock, config, image, live, logger } = this;
    const calls = this.#openRetention(starts);
    serveAdministration(calls, this.partitions);
    this.groups = groupsOf(this, calls, (run) => this.#deferred.push(run));
    const routes = new Routes(this.partitions.table, placements, image);
    let sessionId = 0;
    return {
      nodeId: 1,
      clusterId,
      image,
      quorum,
      get settings() {
        return live.topicSettings;
      },
      logger,
      get config() {
        return live.current;
      },
      clock,
      routes,
      remote: new RemotePartitions([]),
      calls,
      topicRules: new TopicRules(image, live),
      throttle: makeThrottle('leader', config, image, new LocalCounter()),
      readAhead: this.readAhead,
      fetchSessions: new FetchSessions(
        config.maxIncrementalFetchSessionCacheSlots,
        () => {
          sessionId += 1;
          return sessionId;
        },
        (session) => this.#woken.push(session),
      ),
      purgatory: new Purgatory(clock),
      produceTimeouts: new Purgatory(clock),
      producerIds: new ProducerIds(quorum),
      groups: new GroupRouter(image, routes, calls, this.groups, this.config.groups),
    };
  }

  /** What deletes records, and the calls that it serves. */
  #openRetention(starts: LogStarts): ShardCalls {
    const { clock, disk, config, logger, partitions } = this;
    const { table } = partitions;
    const calls: ShardCalls = new ThreadCalls(0, []);
    serveDeleteRecords(calls, table, starts);
    calls.serve('groups.behind', () => this.groupsBehind);
    this.retention = new LogRetention({
      clock,
      disk,
      logger,
      intervalMs: config.logRetentionCheckIntervalMs,
      replicas: () => partitions.replicas,
      starts,
      warnings: new LossWarnings({
        groupsBehind: async (asked) => (await calls.callAll('groups.behind', asked)).flat(),
        logger,
        aheadMs: config.logRetentionWarnAheadMs,
      }),
      defer: (run) => this.#deferred.push(run),
    });
    return calls;
  }

  async createTopic(
    name: string,
    numPartitions = 1,
    configs: Record<string, string> = {},
  ): Promise<void> {
    const reply = await this.host.request({
      type: 'createTopics',
      topics: [
        newTopic(name, {
          numPartitions,
          configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
        }),
      ],
      validateOnly: false,
    });
    assert.equal(
      reply.result?.topics[0]?.errorCode,
      0,
      reply.result?.topics[0]?.errorMessage ?? '',
    );
  }

  async deleteTopic(name: string): Promise<void> {
    await this.host.request({ type: 'deleteTopics', topics: [{ name, topicId: null }] });
  }

  leader(topic: string, partition = 0): PartitionLeader {
    const leader = this.partitions.table.byName(topic, partition);
    assert(leader !== undefined, `${topic}-${partition} is not here`);
    return leader;
  }

  idOf(topic: string): string {
    const found = this.image.topic(topic);
    assert(found !== undefined, `no topic ${topic}`);
    return found.id;
  }

  /** The end of the turn: gathered writes, and the looks of fetches that were woken. */
  endTurn(): void {
    const runs = this.#deferred;
    this.#deferred = [];
    for (const run of runs) run();
    this.wake();
  }

  /** As the shard does it at the end of a callback: every woken fetch gets one look. */
  wake(): void {
    const woken = this.#woken;
    this.#woken = [];
    this.services.purgatory.wake(woken);
  }

  /** Ends the flushes under way. */
  endFlushes(): void {
    this.disk.endFlushes();
    this.wake();
  }

  /** Turns and flushes until nothing is left to do. */
  settle(): void {
    for (let round = 0; round < 1_000; round += 1) {
      this.endTurn();
      this.endFlushes();
      if (this.#deferred.length === 0 && this.disk.waitingFlushes === 0) return;
    }
    assert.fail('does not come to rest');
  }

  /** Time goes by; timers fire. */
  advance(ms: number): void {
    this.clock.advance(ms);
  }

  /** As main does with what a shard reports; its flushes are ended by whoever goes on. */
  checkpoint(): void {
    this.partitions.checkpoint((dir) => this.#directories.report([dir]));
  }

  /** The process dies; what was written stays in the page cache. */
  kill(): void {
    this.disk.kill();
    this.#deferred = [];
    this.#woken = [];
  }

  /** The power goes, and with it what was not flushed. */
  powerCut(): void {
    this.disk.crash();
    this.#boot += 1;
    this.#deferred = [];
    this.#woken = [];
  }

  /** An orderly stop, and a start. */
  async restart(): Promise<void> {
    const { dirs } = await this.close();
    this.#directories.report(dirs);
    this.settle();
    this.#directories.markClean(1);
    this.kill();
    await this.open();
  }

  async close(): Promise<{ dirs: LogDirCheckpoint[]; clean: boolean }> {
    const closed = this.partitions.close();
    for (let round = 0; round < 10; round += 1) {
      this.settle();
      await new Promise((resolve) => setImmediate(resolve));
    }
    return await closed;
  }
}

function poisonedMemory(): RequestMemory {
  const slabs = new SlabAllocator();
  const free = slabs.free.bind(slabs);
  // Whoever still looks at a frame that was given back shall notice.
  slabs.free = (region) => {
    regionView(region).fill(0xdd);
    free(region);
  };
  return { slabs, budget: new MemoryBudget(1 << 28) };
}
