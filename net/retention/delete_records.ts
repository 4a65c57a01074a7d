/**
 * Deletes the records of a partition below an offset because a client says so (KIP-107).
 *
 * Thread: the partition's shard. Durability: answered when the new log start is on stable storage. The segments below it
 * go with the next look for what can be deleted, as in Kafka.
 */
import { ErrorCode } from '../../engine/error_code.gen.ts';
import type { PartitionLeader } from '../../replication/partition/leader.ts';
import type { PartitionTable } from '../partition_table.ts';
import type { DeleteRecordsCall, DeleteRecordsReply, ShardCalls } from '../shard_calls.ts';
import type { LogStarts } from './log_starts.ts';

/** In a request: all that consumers may read. */
const upToHighWatermark = -1;

/** Answers the calls of handlers, on this shard and others. */
export function serveDeleteRecords(
  calls: ShardCalls,
  partitions: PartitionTable,
  starts: LogStarts,
): void {
  calls.serve('partition.deleteRecords', (asked) => {
    const leader = partitions.byId(asked.topicId, asked.partition);
    return leader === undefined
      ? refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)
      : deleteRecords(leader, asked, starts);
  });
}

async function deleteRecords(
  leader: PartitionLeader,
  asked: DeleteRecordsCall,
  starts: LogStarts,
): Promise<DeleteRecordsReply> {
  if (leader.refusal !== ErrorCode.NONE) return refusal(leader.refusal);
  const { log, highWatermark } = leader;
  const { cleanupPolicy } = log.config;
  if (cleanupPolicy.compact && !cleanupPolicy.delete) return refusal(ErrorCode.POLICY_VIOLATION);
  const offset = asked.offset === upToHighWatermark ? highWatermark : asked.offset;
  if (offset < 0 || offset > highWatermark) return refusal(ErrorCode.OFFSET_OUT_OF_RANGE);
  if (offset > log.logStartOffset) {
    const errorCode = await starts.advance(leader, offset);
    if (errorCode !== ErrorCode.NONE) return refusal(errorCode);
  }
  return { errorCode: ErrorCode.NONE, lowWatermark: log.logStartOffset };
}

export function refusal(errorCode: ErrorCode): DeleteRecordsReply {
  return { errorCode, lowWatermark: -1 };
}
