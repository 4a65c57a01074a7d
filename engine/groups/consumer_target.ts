/** The target assignment of a consumer group: when it is computed anew, by which assignor, and the records that tell it. */
import { type AssignorMember, assignors } from './assignor.ts';
import type { ConsumerChange } from './consumer_change.ts';
import type { ConsumerGroup } from './consumer_group.ts';
import type { CoordinatorRuntime } from './coordinator_runtime.ts';
import type { ConsumerAssignorName } from './group_options.ts';
import type { TopicPartitions } from './group_records.ts';
import { byText } from './text_order.ts';

/** The epoch of a group's first member, as in Kafka. */
const firstEpoch = 2;

/** Looks whether the topics are still as they were when the epoch began, and begins a new epoch if not, or if asked to. */
export function maybeBumpEpoch(
  runtime: CoordinatorRuntime,
  group: ConsumerGroup,
  change: ConsumerChange,
  mustBump: boolean,
): void {
  if (!mustBump && !group.hasStaleMetadata) return;
  const isEmpty = group.members.size === 0;
  const metadataHash = isEmpty ? 0n : hashTopics(runtime, group);
  group.hasStaleMetadata = false;
  if (!mustBump && metadataHash === group.metadataHash) return;
  const key = { groupId: group.groupId };
  const epoch = Math.max(group.epoch + 1, firstEpoch);
  change.put({ type: 'ConsumerGroupMetadata', key, value: { epoch, metadataHash } });
  if (!isEmpty) return;
  // There is nothing to assign in an epoch without members.
  const value = { assignmentEpoch: epoch, assignmentTimestamp: 0n };
  change.put({ type: 'ConsumerGroupTargetAssignmentMetadata', key, value });
}

/** FNV-1a in two lanes over the names, ids and sizes of the subscribed topics that exist, in the order of their names. */
function hashTopics(runtime: CoordinatorRuntime, group: ConsumerGroup): bigint {
  let low = 0x811c9dc5;
  let high = 0x1234567;
  for (const name of [...group.subscribers.keys()].sort(byText)) {
    const topic = runtime.topics.byName(name);
    if (topic === undefined) continue;
    const text = `${name} ${topic.topicId} ${topic.partitionCount}\n`;
    for (let at = 0; at < text.length; at += 1) {
      low = Math.imul(low ^ text.charCodeAt(at), 0x01000193);
      high = Math.imul(high ^ text.charCodeAt(at), 0x01000199);
    }
  }
  return BigInt.asIntN(64, (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0));
}

/**
 * Computes the target assignment if it is behind the group's epoch. Many members that join one after the other share a
 * computation: it is not done again before `group.consumer.assignment.interval.ms` is over (KIP-1263); any heartbeat
 * after that does it.
 */
export function maybeUpdateTarget(
  runtime: CoordinatorRuntime,
  group: ConsumerGroup,
  change: ConsumerChange,
): void {
  if (group.epoch <= group.assignmentEpoch) return;
  const { consumerAssignmentIntervalMs } = runtime.options;
  if (group.nextAssignmentMs > runtime.nowMs) return;
  group.nextAssignmentMs = runtime.nowMs + consumerAssignmentIntervalMs;
  const { groupId } = group;
  const assignment = computeTarget(runtime, group);
  for (const member of group.members.values()) {
    const topicPartitions = assignment.get(member.memberId) ?? [];
    if (sameTarget(member.target, topicPartitions)) continue;
    const key = { groupId, memberId: member.memberId };
    change.put({ type: 'ConsumerGroupTargetAssignmentMember', key, value: { topicPartitions } });
  }
  const assignmentTimestamp = BigInt(Math.floor(runtime.wallMs));
  const value = { assignmentEpoch: group.epoch, assignmentTimestamp };
  change.put({ type: 'ConsumerGroupTargetAssignmentMetadata', key: { groupId }, value });
}

function computeTarget(
  runtime: CoordinatorRuntime,
  group: ConsumerGroup,
): ReadonlyMap<string, readonly TopicPartitions[]> {
  const partitionCounts = new Map<string, number>();
  const idOf = new Map<string, string>();
  let isHomogeneous = true;
  for (const [name, count] of group.subscribers) {
    const topic = runtime.topics.byName(name);
    if (topic === undefined) continue;
    partitionCounts.set(topic.topicId, topic.partitionCount);
    idOf.set(name, topic.topicId);
    if (count !== group.members.size) isHomogeneous = false;
  }
  const all = [...partitionCounts.keys()];
  const members = [...group.members.values()].map(
    ({ memberId, metadata, target }): AssignorMember => ({
      memberId,
      instanceId: metadata.instanceId,
      target,
      topicIds: isHomogeneous
        ? all
        : metadata.subscribedTopicNames.flatMap((name) => idOf.get(name) ?? []),
    }),
  );
  return assignors[chosenAssignor(runtime, group)]({ members, partitionCounts, isHomogeneous });
}

/** What most of the members that have a preference want, else the first that is configured. */
export function chosenAssignor(
  runtime: CoordinatorRuntime,
  group: ConsumerGroup,
): ConsumerAssignorName {
  const { consumerAssignors } = runtime.options;
  const votes = new Map<string, number>();
  for (const { metadata } of group.members.values())
    if (metadata.serverAssignor !== null)
      votes.set(metadata.serverAssignor, (votes.get(metadata.serverAssignor) ?? 0) + 1);
  let chosen: ConsumerAssignorName = consumerAssignors[0] ?? 'uniform';
  let most = 0;
  for (const name of consumerAssignors) {
    const count = votes.get(name) ?? 0;
    if (count > most) chosen = name;
    most = Math.max(most, count);
  }
  return chosen;
}

function sameTarget(a: readonly TopicPartitions[], b: readonly TopicPartitions[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  const byTopic = new Map(b.map((topic) => [topic.topicId, topic]));
  return a.every(({ topicId, partitions }) => {
    const other = byTopic.get(topicId);
    if (other?.partitions.length !== partitions.length) return false;
    const set = new Set(other.partitions);
    return partitions.every((partition) => set.has(partition));
  });
}
