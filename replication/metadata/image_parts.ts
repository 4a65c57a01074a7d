/** From records to the parts of an image, and back. */
import type { BrokerImage, PartitionImage } from './image.ts';
import type { PartitionChangeRecord, PartitionRecord, RegisterBrokerRecord } from './records.ts';

export function partitionOf(record: PartitionRecord): PartitionImage {
  return {
    partitionId: record.partitionId,
    replicas: record.replicas,
    isr: record.isr,
    removingReplicas: record.removingReplicas,
    addingReplicas: record.addingReplicas,
    leader: record.leader,
    leaderRecoveryState: record.leaderRecoveryState,
    leaderEpoch: record.leaderEpoch,
    partitionEpoch: record.partitionEpoch,
    directories: record.directories,
    eligibleLeaderReplicas: record.eligibleLeaderReplicas ?? [],
    lastKnownElr: record.lastKnownElr ?? [],
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
    replicas: change.replicas ?? from.replicas,
    isr: change.isr ?? from.isr,
    removingReplicas: change.removingReplicas ?? from.removingReplicas,
    addingReplicas: change.addingReplicas ?? from.addingReplicas,
    leader: leaderUnchanged ? from.leader : change.leader,
    leaderRecoveryState:
      change.leaderRecoveryState === -1 ? from.leaderRecoveryState : change.leaderRecoveryState,
    leaderEpoch: leaderUnchanged ? from.leaderEpoch : from.leaderEpoch + 1,
    partitionEpoch: from.partitionEpoch + 1,
    directories: change.directories ?? from.directories,
    eligibleLeaderReplicas: change.eligibleLeaderReplicas ?? from.eligibleLeaderReplicas,
    lastKnownElr: change.lastKnownElr ?? from.lastKnownElr,
  };
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
