/** From records to the parts of an image, and back. */
import type { BrokerImage, PartitionImage } from './image.ts';
import type { PartitionChangeRecord, PartitionRecord, RegisterBrokerRecord } from './records.ts';
import { SharedLists } from './shared_lists.ts';

/** Of all images of the thread. */
const ids = new SharedLists<number>();
const directoryIds = new SharedLists<string>();

export function partitionOf(record: PartitionRecord): PartitionImage {
  return {
    partitionId: record.partitionId,
    replicas: ids.of(record.replicas),
    isr: ids.of(record.isr),
    removingReplicas: ids.of(record.removingReplicas),
    addingReplicas: ids.of(record.addingReplicas),
    leader: record.leader,
    leaderRecoveryState: record.leaderRecoveryState,
    leaderEpoch: record.leaderEpoch,
    partitionEpoch: record.partitionEpoch,
    directories: directoryIds.of(record.directories),
    eligibleLeaderReplicas: ids.of(record.eligibleLeaderReplicas ?? []),
    lastKnownElr: ids.of(record.lastKnownElr ?? []),
  };
}

/** Kafka's `PartitionRegistration.merge`: a change raises the partition epoch, naming a leader the leader epoch. */
export function changedPartition(
  from: PartitionImage,
  change: PartitionChangeRecord,
): PartitionImage {
  const leaderUnchanged = change.leader === -2;
  return {
    partitionId: from.partitionId,
    replicas: changedList(ids, change.replicas, from.replicas),
    isr: changedList(ids, change.isr, from.isr),
    removingReplicas: changedList(ids, change.removingReplicas, from.removingReplicas),
    addingReplicas: changedList(ids, change.addingReplicas, from.addingReplicas),
    leader: leaderUnchanged ? from.leader : change.leader,
    leaderRecoveryState:
      change.leaderRecoveryState === -1 ? from.leaderRecoveryState : change.leaderRecoveryState,
    leaderEpoch: leaderUnchanged ? from.leaderEpoch : from.leaderEpoch + 1,
    partitionEpoch: from.partitionEpoch + 1,
    directories: changedList(directoryIds, change.directories, from.directories),
    eligibleLeaderReplicas: changedList(
      ids,
      change.eligibleLeaderReplicas,
      from.eligibleLeaderReplicas,
    ),
    lastKnownElr: changedList(ids, change.lastKnownElr, from.lastKnownElr),
  };
}

function changedList<Item extends number | string>(
  lists: SharedLists<Item>,
  changed: readonly Item[] | null,
  before: readonly Item[],
): readonly Item[] {
  return changed === null ? before : lists.of(changed);
}

export function brokerOf(record: RegisterBrokerRecord): BrokerImage {
  return {
    id: record.brokerId,
    epoch: record.brokerEpoch,
    incarnationId: record.incarnationId,
    endpoints: record.endPoints,
    features: record.features,
    rack: record.rack,
    fenced: record.fenced,
    inControlledShutdown: record.inControlledShutdown,
    logDirs: record.logDirs,
  };
}

export function registrationOf(broker: BrokerImage): RegisterBrokerRecord {
  return {
    type: 'RegisterBrokerRecord',
    brokerId: broker.id,
    brokerEpoch: broker.epoch,
    incarnationId: broker.incarnationId,
    endPoints: broker.endpoints,
    features: broker.features,
    rack: broker.rack,
    fenced: broker.fenced,
    inControlledShutdown: broker.inControlledShutdown,
    logDirs: broker.logDirs,
  };
}
