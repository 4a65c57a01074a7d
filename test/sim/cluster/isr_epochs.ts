/** R3 (KIP-903): nobody is taken into an ISR under a broker epoch that is not the one it is registered with. */
import assert from 'node:assert/strict';
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type {
  AlterPartitionRequest,
  AlterPartitionResult,
  AnyControllerReply,
  ControllerRequest,
} from '../../../replication/metadata/controller_api.ts';
import type { MetadataImage } from '../../../replication/metadata/image.ts';

export type BrokerEpochs = ReadonlyMap<number, number>;

export function brokerEpochs(image: MetadataImage): BrokerEpochs {
  return new Map([...image.brokers.values()].map(({ id, epoch }) => [id, epoch]));
}

/** What the controller has said to a leader, when these were the brokers' epochs. */
export function checkIsrEpochs(
  request: AlterPartitionRequest,
  reply: AnyControllerReply,
  epochs: BrokerEpochs,
): void {
  if (reply.errorCode !== ErrorCode.NONE) return;
  for (const topic of (reply.result as AlterPartitionResult).topics)
    for (const { partitionIndex, errorCode } of topic.partitions) {
      if (errorCode !== ErrorCode.NONE) continue;
      const asked = request.topics
        .find(({ topicId }) => topicId === topic.topicId)
        ?.partitions.find((one) => one.partitionIndex === partitionIndex);
      for (const { brokerId, brokerEpoch } of asked?.newIsr ?? [])
        assert(
          brokerEpoch === -1 || brokerEpoch === epochs.get(brokerId),
          `R3 partition ${partitionIndex}: broker ${brokerId} is in the ISR with epoch ${brokerEpoch}, it is registered with ${epochs.get(brokerId)}`,
        );
    }
}

/** The same request as if everybody had been seen with the epoch of now: a mutant. */
export function withEpochs(
  request: AlterPartitionRequest,
  epochs: BrokerEpochs,
): ControllerRequest {
  return {
    ...request,
    type: 'alterPartition',
    topics: request.topics.map(({ topicId, partitions }) => ({
      topicId,
      partitions: partitions.map((partition) => ({
        ...partition,
        newIsr: partition.newIsr.map(({ brokerId }) => ({
          brokerId,
          brokerEpoch: epochs.get(brokerId) ?? -1,
        })),
      })),
    })),
  };
}
