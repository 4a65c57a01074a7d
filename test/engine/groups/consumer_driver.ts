/** Heartbeats of consumer groups, over the driver of coordinators. */
import type {
  ConsumerGroupDescribeReply,
  ConsumerGroupHeartbeatReply,
  ConsumerGroupHeartbeatRequest,
} from '../../../engine/groups/group_api.ts';
import type { GroupOptions } from '../../../engine/groups/group_options.ts';
import { type Asked, CoordinatorDriver, groupId } from './coordinator_driver.ts';

/** A world with topic t of some partitions. */
export function newDriver(
  partitionCount: number,
  options: Partial<GroupOptions> = {},
): CoordinatorDriver {
  const driver = new CoordinatorDriver({ consumerAssignmentIntervalMs: 0, ...options });
  driver.topics.set('t', { topicId: 'T', partitionCount });
  return driver;
}

export function beat(
  driver: CoordinatorDriver,
  memberId: string,
  memberEpoch: number,
  more: Partial<ConsumerGroupHeartbeatRequest> = {},
): Asked<'ConsumerGroupHeartbeat'> {
  const isFirst = memberEpoch === 0;
  return driver.ask('ConsumerGroupHeartbeat', {
    groupId,
    apiVersion: 1,
    memberId,
    memberEpoch,
    instanceId: null,
    rackId: null,
    rebalanceTimeoutMs: isFirst ? 30_000 : -1,
    subscribedTopicNames: isFirst ? ['t'] : null,
    subscribedTopicRegex: null,
    serverAssignor: null,
    topicPartitions: isFirst ? [] : null,
    ...more,
  });
}

/** The partitions of t in an answer, null if it tells of none. */
export function told({ assignment }: ConsumerGroupHeartbeatReply): number[] | null {
  if (assignment === null) return null;
  return assignment.topicPartitions.flatMap(({ partitions }) => [...partitions]).sort();
}

/** What a member says it has. */
export const owning = (...partitions: number[]): Partial<ConsumerGroupHeartbeatRequest> => ({
  topicPartitions: partitions.length === 0 ? [] : [{ topicId: 'T', partitions }],
});

export function describe(driver: CoordinatorDriver): ConsumerGroupDescribeReply {
  return driver.ask('ConsumerGroupDescribe', { groupId }).body;
}
