/**
 * How copies of partitions are kept, and who leads them: `replica.*` and the keys of leader elections. Kafka's names in
 * camel case, times in milliseconds, sizes in bytes.
 */
import type { Settings } from './settings.ts';

export interface ReplicationConfig {
  /** A follower that has not reached the leader's end for so long leaves the in-sync replicas. */
  readonly lagTimeMaxMs: number;
  /** Of one partition in one answer; a single batch may be larger. */
  readonly fetchMaxBytes: number;
  readonly fetchMinBytes: number;
  /** Of all partitions in one answer. */
  readonly fetchResponseMaxBytes: number;
  readonly fetchWaitMaxMs: number;
  /** Before a partition is asked for again after an error. */
  readonly fetchBackoffMs: number;
  readonly socketTimeoutMs: number;
  /** Over which the rate of throttled replicas is measured, and of how much time each is. */
  readonly quotaWindows: number;
  readonly quotaWindowMs: number;
  readonly autoLeaderRebalanceEnable: boolean;
  readonly leaderImbalanceCheckIntervalMs: number;
}

/** Bytes per second of throttled replicas that this broker sends and fetches. */
export interface ThrottledRates {
  readonly leader: number;
  readonly follower: number;
}

export function readThrottledRates(settings: Settings): ThrottledRates {
  return {
    leader: settings.number('leader.replication.throttled.rate'),
    follower: settings.number('follower.replication.throttled.rate'),
  };
}

export function readReplication(settings: Settings): ReplicationConfig {
  const replication: ReplicationConfig = {
    lagTimeMaxMs: settings.number('replica.lag.time.max.ms'),
    fetchMaxBytes: settings.number('replica.fetch.max.bytes'),
    fetchMinBytes: settings.number('replica.fetch.min.bytes'),
    fetchResponseMaxBytes: settings.number('replica.fetch.response.max.bytes'),
    fetchWaitMaxMs: settings.number('replica.fetch.wait.max.ms'),
    fetchBackoffMs: settings.number('replica.fetch.backoff.ms'),
    socketTimeoutMs: settings.number('replica.socket.timeout.ms'),
    quotaWindows: settings.number('replication.quota.window.num'),
    quotaWindowMs: settings.number('replication.quota.window.size.seconds') * 1_000,
    autoLeaderRebalanceEnable: settings.boolean('auto.leader.rebalance.enable'),
    leaderImbalanceCheckIntervalMs:
      settings.number('leader.imbalance.check.interval.seconds') * 1_000,
  };
  // As Kafka demands: a follower with nothing to fetch must not look like one that lags.
  if (replication.fetchWaitMaxMs > replication.lagTimeMaxMs)
    settings.refuse(
      'replica.fetch.wait.max.ms',
      `allowed: at most replica.lag.time.max.ms=${replication.lagTimeMaxMs}`,
    );
  if (replication.fetchWaitMaxMs > replication.socketTimeoutMs)
    settings.refuse(
      'replica.fetch.wait.max.ms',
      `allowed: at most replica.socket.timeout.ms=${replication.socketTimeoutMs}`,
    );
  return replication;
}
