/**
 * One direction of a broker's throttled replication (KIP-73): the quota, and the replicas that it is for. A leader leaves
 * the records of throttled replicas out of its answers while the quota is exceeded, a follower leaves the replicas out of
 * what it asks for; both but for replicas that are in sync, which producers wait for. What is sent to those, or fetched,
 * counts all the same.
 */
import type { ReplicationQuota } from './replication_quota.ts';
import type { ThrottledReplicas } from './throttled_replicas.ts';

export class ReplicationThrottle {
  readonly #quota: ReplicationQuota;
  readonly #replicasOf: (topicId: string) => ThrottledReplicas;
  /** By topic id. */
  readonly #known = new Map<string, ThrottledReplicas>();
  #isLimited: boolean = false;

  /** @param replicasOf this broker's throttled replicas of a topic; asked again when that is to be forgotten */
  constructor(quota: ReplicationQuota, replicasOf: (topicId: string) => ThrottledReplicas) {
    this.#quota = quota;
    this.#replicasOf = replicasOf;
  }

  /** @param bytesPerSecond `leader.replication.throttled.rate` or the follower's; from `noLimit` on there is none */
  limit(bytesPerSecond: number): void {
    this.#isLimited = bytesPerSecond < noLimit;
    this.#quota.limit(bytesPerSecond);
  }

  /** Bytes of the partition were sent, or have come. */
  record(topicId: string, partition: number, bytes: number, nowMs: number): void {
    if (this.#isThrottled(topicId, partition)) this.#quota.record(bytes, nowMs);
  }

  /** When the partition may go on if its replica is not in sync: `nowMs`, or later while the quota is exceeded. */
  freeAtMs(topicId: string, partition: number, nowMs: number): number {
    return this.#isThrottled(topicId, partition) ? this.#quota.freeAtMs(nowMs) : nowMs;
  }

  /** To be called at least once in each window of the quota. */
  tick(nowMs: number): void {
    this.#quota.observe(nowMs);
  }

  /** The topic's settings have changed, or it is gone. */
  forget(topicId: string): void {
    this.#known.delete(topicId);
  }

  #isThrottled(topicId: string, partition: number): boolean {
    if (!this.#isLimited) return false;
    let replicas = this.#known.get(topicId);
    if (replicas === undefined) {
      replicas = this.#replicasOf(topicId);
      this.#known.set(topicId, replicas);
    }
    return replicas.has(partition);
  }
}

/** Kafka's default of the rates. */
const noLimit = 2 ** 63;
