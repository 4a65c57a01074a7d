/** The settings of group coordinators, with Kafka's names and defaults. Time spans are milliseconds. */
export interface GroupOptions {
  /** `group.min.session.timeout.ms`, `group.max.session.timeout.ms`: what classic members may ask for. */
  readonly minSessionTimeoutMs: number;
  readonly maxSessionTimeoutMs: number;
  /** `group.initial.rebalance.delay.ms`. */
  readonly initialRebalanceDelayMs: number;
  /** `group.max.size`. */
  readonly maxSize: number;
  /** `offset.metadata.max.bytes`. */
  readonly offsetMetadataMaxBytes: number;
  /** `offsets.retention.minutes`, in milliseconds. */
  readonly offsetsRetentionMs: number;
  /** `offsets.retention.check.interval.ms`. */
  readonly offsetsRetentionCheckIntervalMs: number;
  /** `group.consumer.session.timeout.ms`. */
  readonly consumerSessionTimeoutMs: number;
  /** `group.consumer.heartbeat.interval.ms`. */
  readonly consumerHeartbeatIntervalMs: number;
  /** `group.consumer.max.size`. */
  readonly consumerMaxSize: number;
  /** `group.consumer.assignment.interval.ms`. */
  readonly consumerAssignmentIntervalMs: number;
  /** `group.consumer.assignors`: the first is the default. */
  readonly consumerAssignors: readonly ConsumerAssignorName[];
}

export type ConsumerAssignorName = 'uniform' | 'range';

export const defaultGroupOptions: GroupOptions = {
  minSessionTimeoutMs: 6_000,
  maxSessionTimeoutMs: 1_800_000,
  initialRebalanceDelayMs: 3_000,
  maxSize: 2_147_483_647,
  offsetMetadataMaxBytes: 4_096,
  offsetsRetentionMs: 10_080 * 60_000,
  offsetsRetentionCheckIntervalMs: 600_000,
  consumerSessionTimeoutMs: 45_000,
  consumerHeartbeatIntervalMs: 5_000,
  consumerMaxSize: 2_147_483_647,
  consumerAssignmentIntervalMs: 1_000,
  consumerAssignors: ['uniform', 'range'],
};
