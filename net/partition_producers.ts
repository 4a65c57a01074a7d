/** The idempotent and transactional producers of a partition, as DescribeProducers tells of them. Structured-cloneable. */
import { ErrorCode } from '../engine/error_code.gen.ts';
import type { PartitionLeader } from '../replication/partition/leader.ts';
import type { PartitionTable } from './partition_table.ts';

export interface ProducersRequest {
  readonly topicId: string;
  readonly partition: number;
}

export interface ActiveProducer {
  readonly producerId: bigint;
  readonly producerEpoch: number;
  /** -1: none in this epoch. */
  readonly lastSequence: number;
  readonly lastTimestamp: bigint;
  /** -1: no transaction of it has ended here. */
  readonly coordinatorEpoch: number;
  /** First offset of its open transaction, or -1. */
  readonly currentTxnStartOffset: bigint;
}

export interface ProducersAnswer {
  readonly errorCode: ErrorCode;
  readonly activeProducers: readonly ActiveProducer[];
}

/** Asked of the shard that owns the partition. */
export function findProducers(
  table: PartitionTable,
  { topicId, partition }: ProducersRequest,
): ProducersAnswer {
  const leader = table.byId(topicId, partition);
  if (leader === undefined)
    return { errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, activeProducers: [] };
  return producersOf(leader);
}

/** Asked on the partition's own shard. */
export function producersOf(leader: PartitionLeader): ProducersAnswer {
  if (leader.refusal !== ErrorCode.NONE) return { errorCode: leader.refusal, activeProducers: [] };
  const activeProducers: ActiveProducer[] = [];
  for (const entry of leader.log.producers.values())
    activeProducers.push({
      producerId: BigInt(entry.producerId),
      producerEpoch: entry.epoch,
      lastSequence: entry.lastSequence,
      lastTimestamp: entry.lastTimestamp,
      coordinatorEpoch: entry.coordinatorEpoch,
      currentTxnStartOffset: BigInt(entry.currentTxnFirstOffset),
    });
  return { errorCode: ErrorCode.NONE, activeProducers };
}
