/**
 * Which part each replica of this shard plays: it leads its partition or follows another broker's. Takes them from one to
 * the other as the metadata says.
 *
 * Thread: the shard's own. Concurrency: none. What the one part had appended is written before the other begins, for the
 * memory of what waits for its write goes back to those who brought it.
 */
import { ErrorCode } from '../engine/error_code.gen.ts';
import type { FlushGroup } from '../engine/log/flush_group.ts';
import { asDiskError } from '../engine/log/flush_set.ts';
import type { PartitionLog } from '../engine/log/partition_log.ts';
import type { Clock } from '../engine/ports.ts';
import type { PartitionReference } from '../replication/metadata/changes.ts';
import type { MetadataImage, PartitionImage } from '../replication/metadata/image.ts';
import { LeaderRecoveryState } from '../replication/metadata/partition_change.ts';
import { type FollowerOptions, PartitionFollower } from '../replication/partition/follower.ts';
import type { BrokerView } from '../replication/partition/isr.ts';
import { type LeaderOptions, PartitionLeader } from '../replication/partition/leader.ts';
import type { PartitionReplica } from '../replication/partition/replica.ts';
import type { LiveConfig } from './config/live_config.ts';
import { PartitionTable } from './partition_table.ts';

export interface PartitionRolesOptions
  extends Pick<LeaderOptions, 'propose' | 'onHighWatermark' | 'onWritten'>,
    Pick<FollowerOptions, 'cut' | 'storeLogStart'> {
  readonly brokers: BrokerView;
  readonly clock: Clock;
  /** Whether what the metadata say of this broker is about this life of it, and not about one before its last stop. */
  readonly isOurLife: () => boolean;
}

/** What a replica begins with, whichever part it plays. */
interface Beginning {
  readonly log: PartitionLog;
  /** Of the log's directory. */
  readonly flushGroup: FlushGroup;
  /** As it was known before, here or before the last stop. */
  readonly highWatermark: number;
  readonly minInsyncReplicas: number;
}

interface Change {
  readonly reference: PartitionReference;
  readonly minInsyncReplicas: number;
}

export class PartitionRoles {
  readonly leaders: PartitionTable = new PartitionTable();
  readonly followers: PartitionTable<PartitionFollower> = new PartitionTable();
  readonly #options: PartitionRolesOptions;
  readonly #byLog = new Map<PartitionLog, PartitionReplica>();
  /** Followers whose holes are being cut, with what made them leaders; null: they are to lead no more. */
  readonly #mending = new Map<PartitionFollower, Change | null>();

  constructor(options: PartitionRolesOptions) {
    this.#options = options;
  }

  /** Undefined: the log is none of this shard's any more. */
  of(log: PartitionLog): PartitionReplica | undefined {
    return this.#byLog.get(log);
  }

  find(topicId: string, partition: number): PartitionReplica | undefined {
    return this.leaders.byId(topicId, partition) ?? this.followers.byId(topicId, partition);
  }

  /** All replicas of this shard. */
  values(): Iterable<PartitionReplica> {
    return this.#byLog.values();
  }

  /** Gives an opened log its part. */
  begin({ topic, partition }: PartitionReference, beginning: Beginning): PartitionReplica {
    const { brokers, clock, propose, onHighWatermark, onWritten, cut, storeLogStart } =
      this.#options;
    const names = { topic: topic.name, topicId: topic.id, partition: partition.partitionId };
    let replica: PartitionReplica;
    if (this.#leads(partition)) {
      acceptHole(beginning);
      const leader = new PartitionLeader({
        ...names,
        ...beginning,
        state: partition,
        brokers,
        propose,
        onHighWatermark,
        onWritten,
        nowMs: clock.monotonicMs(),
      });
      this.leaders.add(leader);
      replica = leader;
    } else {
      const { leaderEpoch } = partition;
      const from = { leaderId: this.#leaderOf(partition), leaderEpoch, cut, storeLogStart };
      const follower = new PartitionFollower({ ...names, ...beginning, ...from });
      this.followers.add(follower);
      replica = follower;
    }
    this.#byLog.set(beginning.log, replica);
    // It lies in a directory that has failed.
    if (beginning.flushGroup.failure !== null) replica.refuse(ErrorCode.KAFKA_STORAGE_ERROR);
    return replica;
  }

  /** The metadata of a partition of this shard have changed. */
  change(reference: PartitionReference, minInsyncReplicas: number): void {
    const { topic, partition } = reference;
    const { partitionId, leaderEpoch } = partition;
    const isLeader = this.#leads(partition);
    const leader = this.leaders.byId(topic.id, partitionId);
    const follower = this.followers.byId(topic.id, partitionId);
    if (leader !== undefined && isLeader) {
      if (minInsyncReplicas !== leader.minInsyncReplicas)
        leader.updateConfig(leader.log.config, minInsyncReplicas);
      leader.lead(partition, this.#options.clock.monotonicMs());
    } else if (follower !== undefined && !isLeader) {
      if (this.#mending.has(follower)) this.#mending.set(follower, null);
      follower.follow(this.#leaderOf(partition), leaderEpoch);
    } else if (follower !== undefined && isToMend(follower.log, partition))
      this.#mend(follower, { reference, minInsyncReplicas });
    else {
      const before = leader ?? follower;
      if (before === undefined) return;
      const { log, flushGroup } = before;
      flushGroup.writeNow(log);
      this.end(before, ErrorCode.NOT_LEADER_OR_FOLLOWER);
      const { highWatermark } = before;
      this.begin(reference, { log, flushGroup, highWatermark, minInsyncReplicas });
    }
  }

  /** The replica plays no part any more; whoever waits for it is told `error`. */
  end(replica: PartitionReplica, error: ErrorCode): void {
    const { topicId, partition, log } = replica;
    this.leaders.remove(topicId, partition);
    this.followers.remove(topicId, partition);
    this.#byLog.delete(log);
    replica.refuse(error);
  }

  /** The replica is to lead and has a hole: it leads once that is cut. */
  #mend(follower: PartitionFollower, change: Change): void {
    const { partition } = change.reference;
    const isUnderWay = this.#mending.has(follower);
    this.#mending.set(follower, change);
    follower.follow(this.#leaderOf(partition), partition.leaderEpoch);
    if (isUnderWay) return;
    follower.flushGroup.writeNow(follower.log);
    follower.cutAtHole((error) => {
      const last = this.#mending.get(follower);
      this.#mending.delete(follower);
      if (last && error === ErrorCode.NONE) this.change(last.reference, last.minInsyncReplicas);
    });
  }

  /**
   * A leader that has stopped may have lost the end of what followers have of it, so it must not write in its old epoch
   * again: it begins anew when the controller knows of its new life. What nobody else has, nobody else can have got.
   */
  #leads({ leader, replicas }: PartitionImage): boolean {
    const { brokers, isOurLife } = this.#options;
    return leader === brokers.nodeId && (replicas.length === 1 || isOurLife());
  }

  /** -1: nobody yet. */
  #leaderOf({ leader }: PartitionImage): number {
    return leader === this.#options.brokers.nodeId ? -1 : leader;
  }

  /** Once a second. */
  tick(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const leader of this.leaders.values()) leader.tick(nowMs);
  }
}

/**
 * Who is elected cleanly with a hole in its log is in sync for this reason: it had asked for what is missing, and the leader
 * had nothing committed there, but died before its answer came. What lies behind the hole is no part of the history then. Who
 * is elected uncleanly, or is the only replica, keeps what it has.
 */
function isToMend(log: PartitionLog, { replicas, leaderRecoveryState }: PartitionImage): boolean {
  const isClean = leaderRecoveryState === LeaderRecoveryState.recovered;
  return isClean && log.holeFrom >= 0 && replicas.length > 1;
}

/** A leader's log is what the others copy, so that nobody will fill a hole in it. */
function acceptHole({ log, flushGroup }: Beginning): void {
  try {
    if (log.holeFrom < 0) return;
    log.acceptHole();
    flushGroup.flushSoon(log);
  } catch (caught) {
    flushGroup.takeOffline(asDiskError(caught));
  }
}

/** The brokers as a thread's image and settings have them. */
export function brokerViewOf(image: MetadataImage, live: Pick<LiveConfig, 'current'>): BrokerView {
  return {
    get nodeId() {
      return live.current.nodeId;
    },
    get lagTimeMaxMs() {
      return live.current.replication.lagTimeMaxMs;
    },
    eligibleEpoch: (brokerId) => {
      const broker = image.broker(brokerId);
      if (broker === undefined || broker.fenced || broker.inControlledShutdown) return -1;
      return broker.epoch;
    },
  };
}
