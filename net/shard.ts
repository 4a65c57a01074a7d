/**
 * One shard: a thread's connections, partitions and handlers, put together.
 *
 * Thread: a worker of its own (`shard_main.ts`). It owns its sockets' descriptors and its logs' files; requests'
 * memory comes from its slabs. Nothing here blocks but page-cache writes and metadata changes.
 */
import { randomInt } from 'node:crypto';
import type { MessagePort } from 'node:worker_threads';
import type { Clock, Disk, PageCache, Random } from '../engine/ports.ts';
import type { ReadAhead } from '../engine/read_ahead.ts';
import { SharedCounter } from '../engine/thread/shared_counter.ts';
import type { MetadataChanges } from '../replication/metadata/changes.ts';
import { MetadataImage } from '../replication/metadata/image.ts';
import type { PartitionLeader } from '../replication/partition/leader.ts';
import type { ReplicationThrottle } from '../replication/partition/replication_throttle.ts';
import { serveAdministration } from './administration_calls.ts';
import { ShardCleaning } from './cleaning/shard_cleaning.ts';
import { LiveConfig } from './config/live_config.ts';
import { Fabric } from './fabric/fabric.ts';
import type { FabricMemory } from './fabric/fabric_memory.ts';
import { FollowerServer } from './fabric/follower_server.ts';
import { PartitionServer } from './fabric/partition_server.ts';
import { Placements, type TopicPlacement } from './fabric/placements.ts';
import type { GroupCoordinators } from './groups/group_coordinators.ts';
import { GroupRouter } from './groups/group_router.ts';
import { IsrProposals } from './isr_proposals.ts';
import { marksOf } from './log_dirs.ts';
import type { Logger } from './logger.ts';
import { ProducerIds } from './producer_ids.ts';
import { QuorumClient } from './quorum_client.ts';
import type { QuorumPort } from './quorum_messages.ts';
import { makeThrottle } from './replication_throttles.ts';
import { serveDeleteRecords } from './retention/delete_records.ts';
import { LogRetention } from './retention/log_retention.ts';
import { LogStarts } from './retention/log_starts.ts';
import { LossWarnings } from './retention/loss_warnings.ts';
import { type FetchWait, Routes } from './routes.ts';
import { makeRegistry } from './served_apis.ts';
import type { ConnectionOrigin } from './server/connection.ts';
import type { ConnectionHost } from './server/connection_host.ts';
import { FetchSessions } from './server/fetch_sessions.ts';
import { Purgatory } from './server/purgatory.ts';
import { followSettings } from './setting_changes.ts';
import type { ShardCalls } from './shard_calls.ts';
import { makeConnections, makeReadAhead } from './shard_connections.ts';
import type { FromShard, ShardData } from './shard_messages.ts';
import { ShardPartitions } from './shard_partitions.ts';
import { makeCalls, makeGroups } from './shard_parts.ts';
import type { ShardServices } from './shard_services.ts';
import { TopicRules } from './topic_rules.ts';

/** What a shard needs of the machine; a test or a simulator gives it others. */
export interface ShardPorts {
  readonly disk: Disk;
  readonly pageCache: PageCache;
  readonly clock: Clock;
  readonly random: Random;
}

export interface ShardOptions {
  readonly data: ShardData;
  readonly ports: ShardPorts;
  readonly logger: Logger;
  /** To main: carries the quorum's messages and the shard's own. */
  readonly port: QuorumPort;
  readonly fabric: FabricMemory;
}

const tickMs = 1_000;
const sessionIdEnd = 0x7fffffff;

export class Shard {
  readonly #options: ShardOptions;
  readonly #readAhead: ReadAhead;
  readonly #partitions: ShardPartitions;
  readonly #cleaning: ShardCleaning;
  readonly #quorum: QuorumClient;
  readonly #proposals: IsrProposals;
  readonly #image: MetadataImage;
  readonly #live: LiveConfig;
  readonly #placements: Placements;
  readonly #topicRules: TopicRules;
  readonly #throttle: ReplicationThrottle;
  readonly #server: PartitionServer;
  readonly #fabric: Fabric;
  readonly #calls: ShardCalls;
  readonly #groups: GroupCoordinators;
  readonly #logStarts: LogStarts;
  readonly #retention: LogRetention;
  readonly #purgatory: Purgatory<FetchWait> = new Purgatory();
  readonly #produceTimeouts: Purgatory<never> = new Purgatory();
  readonly #connections: ConnectionHost;
  /** Partitions whose parked fetches get another look at the end of the current callback. */
  #woken: FetchWait[] = [];
  /** Fulfilled when no shard has requests under way any more. */
  readonly #closing = Promise.withResolvers<void>();
  readonly #timers: NodeJS.Timeout[];

  constructor(options: ShardOptions) {
    this.#options = options;
    const { data, ports, logger, port, fabric } = options;
    const { config } = data;
    this.#readAhead = makeReadAhead(ports.pageCache, fabric.shardCount);
    const live = new LiveConfig(config);
    this.#live = live;
    const image = new MetadataImage(data.clusterId);
    this.#image = image;
    this.#placements = new Placements(fabric.shard, fabric.peers.length + 1);
    this.#topicRules = new TopicRules(image, live);
    const throttled = new SharedCounter(fabric.throttledBytes);
    this.#throttle = makeThrottle('leader', config, image, throttled);
    this.#logStarts = new LogStarts((request) =>
      this.#post({ type: 'shard.logStarts', ...request }),
    );
    this.#partitions = this.#makePartitions();
    this.#cleaning = this.#makeCleaning();
    this.#quorum = new QuorumClient({
      port,
      nodeId: config.nodeId,
      image,
      onChanges: (changes) => this.#apply(changes),
      onFailed: (error) => {
        const reason = error instanceof Error ? error.message : String(error);
        this.#post({ type: 'shard.failed', reason: `metadata cannot be applied: ${reason}` });
      },
    });
    this.#proposals = new IsrProposals({ quorum: this.#quorum, clock: ports.clock });
    const partitions = this.#partitions.table;
    this.#calls = makeCalls(fabric);
    serveAdministration(this.#calls, this.#partitions);
    this.#server = new PartitionServer({
      partitions,
      placements: this.#placements,
      followers: this.#makeFollowers(),
      readAhead: this.#readAhead,
      logger,
      nowMs: () => ports.clock.monotonicMs(),
    });
    this.#groups = makeGroups(options, image, partitions, this.#calls);
    this.#fabric = new Fabric({
      memory: fabric,
      serve: (peer, words, at) => this.#server.serve(peer, words, at),
      onMoved: (number) => this.#onMoved(number),
      onTurn: () => {
        this.#wakeAll();
        this.#connections.flush();
      },
    });
    serveDeleteRecords(this.#calls, partitions, this.#logStarts);
    this.#retention = this.#makeRetention();
    const services = this.#makeServices(image);
    this.#connections = makeConnections(
      options,
      makeRegistry(services),
      this.#fabric,
      this.#readAhead,
    );
    this.#timers = [
      setInterval(() => this.#tick(), tickMs),
      setInterval(() => this.#checkpoint(), config.logFlushOffsetCheckpointIntervalMs),
    ];
  }

  /** Fulfilled once the logs of all partitions that the metadata names are open. */
  get ready(): Promise<void> {
    return this.#quorum.ready;
  }

  /** Main has decided where partitions go. */
  place(topics: readonly TopicPlacement[]): void {
    this.#placements.add(topics);
  }

  /** A log directory has failed on another shard. */
  failDirectory(path: string, reason: string): void {
    this.#partitions.failDirectory(path, reason);
  }

  /** Main's answer to a request of `LogStarts`. */
  logStartsStored(number: number, failed: boolean): void {
    this.#logStarts.stored(number, failed);
  }

  /** No shard has requests under way any more: `stop` may close the logs. */
  closeLogs(): void {
    this.#closing.resolve();
  }

  /** A thread of the cleaner's is free. */
  clean(port: MessagePort): void {
    this.#cleaning.serve(port);
  }

  /** Takes over a connected descriptor. */
  adopt(fd: number, origin: ConnectionOrigin): void {
    this.#connections.adopt(fd, origin);
  }

  /**
   * Answers what is running within `graceMs`, closes connections and, when the other shards have done so too, the logs,
   * which their requests may need until then; and tells main how it went. Fetches are
   * answered with what there is; members that wait in a rebalance are sent away; produce requests wait for their flush as ever, since "timed out" would make
   * producers send again what is about to be stored.
   */
  async stop(graceMs: number): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#groups.stop();
    this.#retention.stop();
    const drained = this.#connections.stop(graceMs);
    this.#purgatory.expireAll();
    await drained;
    await this.#cleaning.stop();
    this.#post({ type: 'shard.drained' });
    await this.#closing.promise;
    const { dirs, clean } = await this.#partitions.close();
    this.#post({ type: 'shard.checkpoint', dirs });
    this.#post({ type: 'shard.stopped', clean });
  }

  /** For the replication thread. */
  #makeFollowers(): FollowerServer {
    return new FollowerServer({
      find: (number) => {
        const placed = this.#placements.byNumber(number);
        if (placed === undefined) return undefined;
        return this.#partitions.followers.byId(placed.topicId, placed.partition);
      },
      nowMs: () => this.#options.ports.clock.wallMs(),
    });
  }

  #makePartitions(): ShardPartitions {
    const { data, ports, logger } = this.#options;
    return new ShardPartitions({
      live: this.#live,
      image: this.#image,
      placements: this.#placements,
      ...ports,
      logDirs: data.logDirs,
      logger,
      defer: (run) => this.#defer(run),
      onHighWatermark: (leader) => this.#onHighWatermark(leader),
      onWritten: (leader) => this.#onWritten(leader),
      propose: (leader, proposal) => this.#proposals.propose(leader, proposal),
      release: (log, run) => this.#cleaning.release(log, run),
      starts: this.#logStarts,
      onDeleted: (log, deleted) =>
        this.#cleaning.release(log, () => this.#post({ type: 'shard.deleted', ...deleted })),
      onDamaged: (replicas) => this.#post({ type: 'shard.damaged', replicas }),
      onDirFailed: (path, reason) => this.#post({ type: 'shard.dirFailed', path, reason }),
      onAllFailed: (reason) => this.#post({ type: 'shard.failed', reason }),
    });
  }

  #makeRetention(): LogRetention {
    const { data, ports, logger } = this.#options;
    const { logRetentionCheckIntervalMs, logRetentionWarnAheadMs } = data.config;
    return new LogRetention({
      ...ports,
      logger,
      intervalMs: logRetentionCheckIntervalMs,
      replicas: () => this.#partitions.replicas,
      starts: this.#logStarts,
      warnings: new LossWarnings({
        groupsBehind: async (asked) => (await this.#calls.callAll('groups.behind', asked)).flat(),
        logger,
        aheadMs: logRetentionWarnAheadMs,
      }),
      defer: (run) => this.#defer(run),
    });
  }

  #makeCleaning(): ShardCleaning {
    const { ports, logger } = this.#options;
    return new ShardCleaning({
      config: () => this.#live.current.cleaner,
      clock: ports.clock,
      logger,
      replicas: () => this.#partitions.replicas,
      offer: (need) => this.#post({ type: 'shard.dirty', need }),
      onCleaned: (replica) => this.#post({ type: 'shard.checkpoint', dirs: [marksOf(replica)] }),
      onBroken: (log, error) => this.#partitions.failDirectoryOf(log, error),
      defer: (run) => this.#defer(run),
    });
  }

  #makeServices(image: MetadataImage): ShardServices {
    const { data, ports, logger } = this.#options;
    const { config } = data;
    const routes = new Routes(this.#partitions.table, this.#placements, image);
    const live = this.#live;
    return {
      nodeId: config.nodeId,
      clusterId: data.clusterId,
      image,
      quorum: this.#quorum,
      get settings() {
        return live.topicSettings;
      },
      logger,
      get config() {
        return live.current;
      },
      clock: ports.clock,
      routes,
      remote: this.#fabric.remote,
      calls: this.#calls,
      topicRules: this.#topicRules,
      throttle: this.#throttle,
      readAhead: this.#readAhead,
      fetchSessions: new FetchSessions(
        this.#share(config.maxIncrementalFetchSessionCacheSlots),
        () => randomInt(1, sessionIdEnd),
        (session) => this.#wake(session),
      ),
      purgatory: this.#purgatory,
      produceTimeouts: this.#produceTimeouts,
      producerIds: new ProducerIds(this.#quorum),
      groups: new GroupRouter(image, routes, this.#calls, this.#groups, config.groups),
    };
  }

  /** Runs the end of a turn, and sends what it answered without waiting for the next one. */
  #defer(run: () => void): void {
    setImmediate(() => this.#endTurn(run));
  }

  #endTurn(run: () => void): void {
    run();
    this.#wakeAll();
    this.#connections.flush();
  }

  /** This shard's part of what is meant for the whole broker. */
  #share(count: number): number {
    return Math.ceil(count / this.#options.fabric.shardCount);
  }

  #apply(changes: MetadataChanges): void {
    followSettings(changes, {
      image: this.#image,
      live: this.#live,
      partitions: this.#partitions,
      topicRules: this.#topicRules,
      throttle: this.#throttle,
    });
    this.#partitions.apply(changes);
    for (const { id } of changes.deletedTopics) this.#placements.remove(id);
    this.#groups.apply(changes);
  }

  #tick(): void {
    this.#partitions.tick();
    this.#retention.tick();
    this.#cleaning.tick();
    this.#fabric.tick();
    this.#throttle.tick(this.#options.ports.clock.monotonicMs());
  }

  #onHighWatermark(leader: PartitionLeader): void {
    this.#wake(leader);
    this.#server.moved(leader);
    this.#groups.onHighWatermark(leader);
  }

  /** There is more for followers to fetch. */
  #onWritten({ followers }: PartitionLeader): void {
    this.#wake(followers);
    this.#server.moved(followers);
  }

  /** A partition of another shard has more to read. */
  #onMoved(number: number): void {
    const placed = this.#placements.byNumber(number);
    if (placed === undefined) return;
    placed.moves += 1;
    this.#wake(placed);
  }

  /** One flush may raise many high watermarks: a fetch over several of them should see them all. */
  #wake(wait: FetchWait): void {
    if (!this.#purgatory.hasWaiters(wait)) return;
    if (this.#woken.length === 0) queueMicrotask(() => this.#wakeAll());
    this.#woken.push(wait);
  }

  #wakeAll(): void {
    const woken = this.#woken;
    this.#woken = [];
    if (woken.length > 0) this.#purgatory.wake(woken);
  }

  #checkpoint(): void {
    this.#partitions.checkpoint((dir) => this.#post({ type: 'shard.checkpoint', dirs: [dir] }));
  }

  #post(message: FromShard): void {
    this.#options.port.postMessage(message);
  }
}
