/** What a broker's registration means for the cluster (KIP-631, KIP-966): records, as a pure function of the image. */
import type { RegisterBrokerRequest } from './controller_api.ts';
import type { MetadataImage, PartitionImage } from './image.ts';
import type { MetadataRecord, PartitionChangeRecord } from './records.ts';

/** Keeps a batch of changes well below the log's limit. */
const recordsPerBatchMax = 5_000;

/**
 * The batches of a registration, in order. `brokerEpoch` is the offset that its first record will take, as in Kafka.
 *
 * The broker is registered and unfenced at once: with one node there is nobody for whom it could still be behind.
 *
 * The partitions that it led get a new leader epoch unless its last shutdown was clean: it may have lost the unflushed
 * end of its logs, and a follower or a consumer can only see by the epoch that other records may stand there now
 * (KIP-101, KIP-320). After a clean one nothing can differ, so a restart of many partitions costs no records.
 */
export function planRegistration(
  image: MetadataImage,
  request: RegisterBrokerRequest,
  brokerEpoch: number,
): MetadataRecord[][] {
  const { brokerId } = request;
  const clean =
    request.previousBrokerEpoch >= 0 &&
    image.broker(brokerId)?.epoch === request.previousBrokerEpoch;
  const batches: MetadataRecord[][] = [registrationRecords(request, brokerEpoch)];
  let changes: MetadataRecord[] = [];
  for (const topic of image.topics.values())
    for (const partition of topic.partitions) {
      if (!needsNewEpoch(partition, brokerId, clean)) continue;
      changes.push(leaderRecord(topic.id, partition.partitionId, brokerId));
      if (changes.length < recordsPerBatchMax) continue;
      batches.push(changes);
      changes = [];
    }
  if (changes.length > 0) batches.push(changes);
  return batches;
}

function registrationRecords(
  request: RegisterBrokerRequest,
  brokerEpoch: number,
): MetadataRecord[] {
  const { brokerId, incarnationId, endPoints, features, rack, logDirs } = request;
  return [
    {
      type: 'RegisterBrokerRecord',
      brokerId,
      incarnationId,
      brokerEpoch,
      endPoints,
      features,
      rack,
      fenced: true,
      inControlledShutdown: false,
      logDirs,
    },
    {
      type: 'BrokerRegistrationChangeRecord',
      brokerId,
      brokerEpoch,
      fenced: -1,
      inControlledShutdown: 0,
      logDirs: [],
    },
  ];
}

function needsNewEpoch(partition: PartitionImage, brokerId: number, clean: boolean): boolean {
  if (partition.leader === brokerId) return !clean;
  return partition.leader === -1 && partition.isr.includes(brokerId);
}

function leaderRecord(topicId: string, partitionId: number, leader: number): PartitionChangeRecord {
  return {
    type: 'PartitionChangeRecord',
    partitionId,
    topicId,
    leader,
    isr: null,
    replicas: null,
    removingReplicas: null,
    addingReplicas: null,
    leaderRecoveryState: -1,
    directories: null,
    eligibleLeaderReplicas: null,
    lastKnownElr: null,
  };
}
