/** What a simulated broker follows: a fetcher for each leader, fed from the metadata and from the followers' logs. */
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { ShardPartitions } from '../../../net/shard_partitions.ts';
import type { FetchPosition, LeaderAnswer } from '../../../replication/partition/fetch_exchange.ts';
import type { FollowedPartition } from '../../../replication/partition/followed_partition.ts';
import type { PartitionFollower } from '../../../replication/partition/follower.ts';
import { type FollowerOwner, NodeFetcher } from './node_fetcher.ts';
import type { NodePartitionsOptions } from './node_partitions.ts';

type Settled = (error: ErrorCode, position: FetchPosition | null) => void;

export class NodeFollowers implements FollowerOwner {
  readonly #options: NodePartitionsOptions;
  readonly #shard: ShardPartitions;
  /** By the leader's id. */
  readonly #fetchers = new Map<number, NodeFetcher>();
  /** `topic id,partition` to the leader that it is fetched from. */
  readonly #followed = new Map<string, number>();
  /** Epochs in which the logs were cut to the high watermark: a mutant. */
  readonly #cutIn = new Map<PartitionFollower, number>();

  constructor(options: NodePartitionsOptions, shard: ShardPartitions) {
    this.#options = options;
    this.#shard = shard;
  }

  /** The metadata have changed. */
  reconcile(): void {
    const before = new Map(this.#followed);
    this.#followed.clear();
    for (const { topicId, partition, leaderId, leaderEpoch } of this.#shard.followers.values()) {
      const key = `${topicId},${partition}`;
      const known = before.get(key);
      if (known !== undefined && known !== leaderId)
        this.#fetchers.get(known)?.unfollow(topicId, partition);
      before.delete(key);
      if (leaderId === -1) continue;
      this.#followed.set(key, leaderId);
      this.#fetcher(leaderId).follow(topicId, partition, leaderEpoch);
    }
    for (const [key, leaderId] of before) {
      const [topicId = '', partition] = key.split(',');
      this.#fetchers.get(leaderId)?.unfollow(topicId, Number(partition));
    }
  }

  position(topicId: string, partition: number, done: Settled): void {
    const follower = this.#shard.followers.byId(topicId, partition);
    if (follower === undefined) {
      done(ErrorCode.NOT_LEADER_OR_FOLLOWER, null);
      return;
    }
    if (this.#options.world.mutant === 'truncation to the high watermark') this.#cut(follower);
    follower.prepare((error) => done(error, this.#positionOf(follower, error)));
  }

  receive(followed: FollowedPartition, answer: LeaderAnswer, done: Settled): void {
    const { clock, world, node } = this.#options;
    const follower = this.#shard.followers.byId(followed.topicId, followed.partition);
    if (follower === undefined) {
      done(ErrorCode.NOT_LEADER_OR_FOLLOWER, null);
      return;
    }
    world.trace.add(
      `node ${node.id}`,
      () =>
        `gets partition ${followed.partition}: ${answer.records?.length ?? 0} bytes, high watermark ${answer.highWatermark}, error ${answer.errorCode}; has ${follower.log.logEndOffset}, ${follower.highWatermark}`,
    );
    if (answer.diverging !== null) {
      world.count('12 logs cut where histories part');
      world.moment('truncated', node.id, -1);
      world.trace.add(
        `node ${node.id}`,
        () =>
          `is told that partition ${followed.partition} parts at ${JSON.stringify(answer.diverging)}, ends at ${follower.log.logEndOffset}`,
      );
    }
    const isEarly = world.mutant === 'fetch before the flush' && (answer.records?.length ?? 0) > 0;
    const leaderEpoch =
      world.mutant === 'no epoch check' ? follower.leaderEpoch : followed.leaderEpoch;
    follower.receive({ ...answer, leaderEpoch }, clock.wallMs(), {
      onWritten: () => {
        if (isEarly) done(ErrorCode.NONE, endOf(follower));
      },
      onReplicated: (error) => {
        if (!isEarly) done(error, this.#positionOf(follower, error));
      },
    });
    if ((answer.records?.length ?? 0) > 0) world.moment('replicated', node.id, -1);
  }

  #positionOf(follower: PartitionFollower, error: ErrorCode): FetchPosition | null {
    return error === ErrorCode.NONE ? follower.fetchState() : null;
  }

  /** What KIP-101 did away with. */
  #cut(follower: PartitionFollower): void {
    if (this.#cutIn.get(follower) === follower.leaderEpoch) return;
    this.#cutIn.set(follower, follower.leaderEpoch);
    follower.log.truncateTo(follower.highWatermark);
    follower.flushGroup.flushSoon(follower.log);
  }

  #fetcher(leaderId: number): NodeFetcher {
    const known = this.#fetchers.get(leaderId);
    if (known !== undefined) return known;
    const { process, world, clock, brokerEpoch, brokerRefused } = this.#options;
    const fetcher = new NodeFetcher({
      process,
      network: world.network,
      leaderId,
      owner: this,
      maxWaitMs: world.swarm.fetchWaitMaxMs,
      now: () => clock.monotonicMs(),
      brokerEpoch,
      onRefused: brokerRefused,
    });
    this.#fetchers.set(leaderId, fetcher);
    return fetcher;
  }
}

/** Where the log ends, flushed or not. */
function endOf({ log }: PartitionFollower): FetchPosition {
  const { logEndOffset, logStartOffset, epochs } = log;
  return { fetchOffset: logEndOffset, lastFetchedEpoch: epochs.latestEpoch, logStartOffset };
}
