/**
 * The replication thread: follows what other brokers lead and this one has copies of. It has no partitions and no logs:
 * it brings the shards what it fetches, and tells the leaders how far those are.
 *
 * Thread: a worker of its own, the fabric's member after the last shard; only in a cluster. It follows the metadata by
 * itself, and hears of partitions' places from main before them. Memory: responses, in slabs of its own. Durable: the
 * offsets that it tells leaders are what shards have reported, which are flushed (`log.durability=fsync`).
 */
import type { Clock } from '../../engine/ports.ts';
import { SlabAllocator, slabLimits } from '../../engine/thread/slab.ts';
import type { MetadataChanges } from '../../replication/metadata/changes.ts';
import { MetadataImage } from '../../replication/metadata/image.ts';
import { ReplicaFetch } from '../../replication/partition/replica_fetch.ts';
import { LocalCounter } from '../../replication/partition/replication_quota.ts';
import type { ReplicationThrottle } from '../../replication/partition/replication_throttle.ts';
import { LiveConfig } from '../config/live_config.ts';
import { Fabric } from '../fabric/fabric.ts';
import type { FabricMemory } from '../fabric/fabric_memory.ts';
import { Placements, type TopicPlacement } from '../fabric/placements.ts';
import type { Logger } from '../logger.ts';
import { Reader } from '../protocol/reader.ts';
import { QuorumClient } from '../quorum_client.ts';
import type { QuorumPort } from '../quorum_messages.ts';
import { changedTopicIds, makeThrottle } from '../replication_throttles.ts';
import type { ShardData } from '../shard_messages.ts';
import { FollowedLeaders } from './followed_leaders.ts';
import { type FetcherContext, LeaderFetcher } from './leader_fetcher.ts';
import type { FromReplication } from './replication_messages.ts';

export interface ReplicationOptions {
  readonly data: Pick<ShardData, 'config' | 'clusterId'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** To main: carries the quorum's messages and the thread's own. */
  readonly port: QuorumPort;
  readonly fabric: FabricMemory;
}

const tickMs = 1_000;
const sharedBufferBytes = 64 * 1024;
/**
 * What is received at a time, unless `replica.fetch.max.bytes` is more: while a copy catches up, all else on the way to
 * this broker, on its shards and on its disk waits behind such an answer.
 */
const answerBytes = 1024 * 1024;
/** Of that, not asked for: an answer with its header still fits a region of that size. */
const headerBytes = 16 * 1024;
/**
 * The most: it fits a slab, which is used again and again. Fresh memory for larger answers has cost twice the thread's time
 * for each byte (measured, 500 MB over 6 partitions).
 */
const answerBytesMax = slabLimits.slabBytes - 64 * 1024;
/** Above what a leader may answer, for its headers and for a first batch that is larger than was asked for. */
const frameHeadroomBytes = 1024 * 1024;

export class Replication {
  readonly #options: ReplicationOptions;
  readonly #image: MetadataImage;
  readonly #quorum: QuorumClient;
  readonly #placements: Placements;
  readonly #fabric: Fabric;
  readonly #slabs: SlabAllocator = new SlabAllocator();
  readonly #leaders: FollowedLeaders;
  /** By the id of the broker that leads. */
  readonly #fetchers = new Map<number, LeaderFetcher>();
  readonly #context: FetcherContext;
  readonly #live: LiveConfig;
  readonly #throttle: ReplicationThrottle;
  readonly #timer: NodeJS.Timeout;
  #isServing: boolean = false;
  /** Told when shards have answered all that they were asked. */
  #onIdle: (() => void) | null = null;

  constructor(options: ReplicationOptions) {
    this.#options = options;
    const { data, port, fabric } = options;
    const { nodeId } = data.config;
    const image = new MetadataImage(data.clusterId);
    this.#image = image;
    this.#live = new LiveConfig(data.config);
    this.#throttle = makeThrottle('follower', data.config, image, new LocalCounter());
    this.#placements = new Placements(fabric.shard, fabric.peers.length + 1);
    this.#fabric = new Fabric({
      memory: fabric,
      serve: (peer) => {
        throw new Error(`shard ${peer.shard} asks the replication thread, which has no partitions`);
      },
      onMoved: () => {},
      onTurn: () => this.#onTurn(),
    });
    this.#slabs.onRetired = (slabId) => this.#fabric.retireSlab(slabId);
    this.#context = this.#makeContext();
    this.#leaders = new FollowedLeaders({ nodeId, fetchOf: (id) => this.#fetcherOf(id).fetch });
    this.#quorum = new QuorumClient({
      port,
      nodeId,
      image,
      onChanges: (changes) => this.#apply(changes),
      onFailed: (error) => {
        const reason = error instanceof Error ? error.message : String(error);
        this.#post({ type: 'shard.failed', reason: `metadata cannot be applied: ${reason}` });
      },
    });
    this.#timer = setInterval(() => this.#tick(), tickMs);
  }

  /** Fulfilled once the thread knows the metadata. */
  get ready(): Promise<void> {
    return this.#quorum.ready;
  }

  /** Main has decided where partitions go. */
  place(topics: readonly TopicPlacement[]): void {
    this.#placements.add(topics);
  }

  /** The broker is registered: its fetches may tell under which epoch. */
  serve(): void {
    this.#isServing = true;
    this.#pump();
  }

  /** Ends all connections, and waits up to `graceMs` until shards do not need this thread's memory any more. */
  async stop(graceMs: number): Promise<void> {
    clearInterval(this.#timer);
    for (const fetcher of this.#fetchers.values()) fetcher.close();
    this.#fetchers.clear();
    if (this.#fabric.openCount > 0)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, graceMs);
        this.#onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    this.#post({ type: 'shard.drained' });
  }

  #makeContext(): FetcherContext {
    const { data, clock, logger } = this.#options;
    const { config, clusterId } = data;
    const shared = Buffer.allocUnsafeSlow(sharedBufferBytes);
    const { fetchResponseMaxBytes, socketTimeoutMs } = config.replication;
    return {
      clusterId,
      identity: () => ({
        brokerId: config.nodeId,
        brokerEpoch: this.#image.broker(config.nodeId)?.epoch ?? -1,
      }),
      placements: this.#placements,
      followers: this.#fabric.followers,
      slabs: this.#slabs,
      shared,
      reader: new Reader(shared),
      frameBytesMax:
        Math.max(fetchResponseMaxBytes, config.socketRequestMaxBytes) + frameHeadroomBytes,
      socketTimeoutMs,
      nowMs: () => clock.monotonicMs(),
      logger,
      onRefused: (brokerId) => this.#post({ type: 'replication.refused', brokerId }),
    };
  }

  #fetcherOf(leaderId: number): LeaderFetcher {
    const known = this.#fetchers.get(leaderId);
    if (known !== undefined) return known;
    const { replication } = this.#options.data.config;
    const fetch = new ReplicaFetch({
      maxWaitMs: replication.fetchWaitMaxMs,
      minBytes: replication.fetchMinBytes,
      maxBytes: Math.min(
        replication.fetchResponseMaxBytes,
        Math.max(answerBytes, replication.fetchMaxBytes) - headerBytes,
        answerBytesMax,
      ),
      partitionMaxBytes: replication.fetchMaxBytes,
      backoffMs: replication.fetchBackoffMs,
      throttle: this.#throttle,
    });
    const fetcher = new LeaderFetcher(leaderId, fetch, this.#context);
    fetcher.moveTo(this.#endpointOf(leaderId));
    this.#fetchers.set(leaderId, fetcher);
    return fetcher;
  }

  #endpointOf(brokerId: number): { host: string; port: number } | null {
    const { interBrokerListenerName } = this.#options.data.config;
    return this.#image.endpoint(brokerId, interBrokerListenerName) ?? null;
  }

  #apply(changes: MetadataChanges): void {
    this.#followSettings(changes);
    this.#leaders.apply(changes);
    for (const { id } of changes.deletedTopics) this.#placements.remove(id);
    for (const brokerId of changes.changedBrokers)
      this.#fetchers.get(brokerId)?.moveTo(this.#endpointOf(brokerId));
    for (const [leaderId, fetcher] of this.#fetchers) {
      if (fetcher.fetch.size > 0) continue;
      fetcher.close();
      this.#fetchers.delete(leaderId);
    }
    this.#pump();
  }

  #followSettings(changes: MetadataChanges): void {
    for (const id of changedTopicIds(changes, this.#image)) this.#throttle.forget(id);
    if (changes.changedBrokerConfigs.length === 0) return;
    this.#live.follow(this.#image, null);
    this.#throttle.limit(this.#live.current.throttledRates.follower);
  }

  #pump(): void {
    if (this.#isServing) for (const fetcher of this.#fetchers.values()) fetcher.pump();
  }

  #onTurn(): void {
    this.#pump();
    if (this.#onIdle !== null && this.#fabric.openCount === 0) this.#onIdle();
  }

  #tick(): void {
    for (const fetcher of this.#fetchers.values()) fetcher.tick();
    this.#fabric.tick();
    this.#slabs.trim(1);
  }

  #post(message: FromReplication): void {
    this.#options.port.postMessage(message);
  }
}
