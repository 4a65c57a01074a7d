/** What a follower finds when it fetches from a simulated leader. */
import { ErrorCode } from '../../../engine/error_code.gen.ts';
import type { Disk } from '../../../engine/ports.ts';
import { type Look, lookAt } from '../../../net/partition_look.ts';
import type { FetchPartition } from '../../../net/server/fetch_sessions.ts';
import type { ShardPartitions } from '../../../net/shard_partitions.ts';
import type { MetadataImage } from '../../../replication/metadata/image.ts';
import type { AnsweredPartition } from '../../../replication/partition/fetch_exchange.ts';
import type { PartitionLeader } from '../../../replication/partition/leader.ts';
import type { NodePartitionsOptions } from './node_partitions.ts';

const noBytes = new Uint8Array(0);

export function lookForFollower(
  shard: ShardPartitions,
  image: MetadataImage,
  options: NodePartitionsOptions,
  asked: FetchPartition,
  brokerId: number,
  brokerEpoch: number,
  bytesLeft: number,
  isFirst: boolean,
): AnsweredPartition {
  const { topicId, partition } = asked;
  const leader = shard.table.byId(topicId, partition);
  if (leader === undefined) return failed(topicId, partition, ErrorCode.NOT_LEADER_OR_FOLLOWER);
  const { mutant } = options.world;
  const isBlind = mutant === 'no epoch check';
  const request = {
    ...asked,
    currentLeaderEpoch: isBlind ? -1 : asked.currentLeaderEpoch,
    lastFetchedEpoch:
      isBlind || mutant === 'truncation to the high watermark' ? -1 : asked.lastFetchedEpoch,
  };
  const look = lookAt(leader, request, bytesLeft, isFirst, false, true, {
    brokerId,
    brokerEpoch,
    nowMs: options.clock.monotonicMs(),
  });
  const { errorCode, diverging, highWatermark, logStartOffset } = look;
  const records = sliceBytes(options.disk, look);
  if (errorCode === ErrorCode.NONE && diverging === null)
    mutate(leader, image, options, asked, brokerId, brokerEpoch);
  return { topicId, partition, errorCode, diverging, records, highWatermark, logStartOffset };
}

/** A copy of the records that a look has found, which are let go of. */
export function sliceBytes(disk: Disk, { slice }: Look): Uint8Array {
  if (slice === null) return noBytes;
  const { fd, position, length, segment } = slice;
  const bytes = new Uint8Array(length);
  disk.read(fd, bytes, 0, length, position);
  segment.unpin();
  return bytes;
}

/** Rules that some mutants break here. */
function mutate(
  leader: PartitionLeader,
  image: MetadataImage,
  { world, clock, node, ask, brokerEpoch: ownEpoch }: NodePartitionsOptions,
  { topicId, partition }: FetchPartition,
  brokerId: number,
  brokerEpoch: number,
): void {
  if (world.mutant === 'high watermark ahead of the ISR')
    leader.followerFetched(brokerId, brokerEpoch, leader.log.logEndOffset, clock.monotonicMs());
  if (world.mutant !== 'early ISR expansion') return;
  const state = image.topicById(topicId)?.partitions[partition];
  const isIn = state?.isr.includes(brokerId) ?? true;
  if (state === undefined || isIn || state.leader !== node.id) return;
  const members = [...state.isr, brokerId];
  const newIsr = members.map((id) => ({
    brokerId: id,
    brokerEpoch: image.broker(id)?.epoch ?? -1,
  }));
  const { leaderEpoch, partitionEpoch } = state;
  const altered = {
    partitionIndex: partition,
    leaderEpoch,
    newIsr,
    leaderRecoveryState: 0,
    partitionEpoch,
  };
  const topics = [{ topicId, partitions: [altered] }];
  ask({ type: 'alterPartition', brokerId: node.id, brokerEpoch: ownEpoch(), topics }, () => {});
}

function failed(topicId: string, partition: number, errorCode: ErrorCode): AnsweredPartition {
  return {
    topicId,
    partition,
    errorCode,
    diverging: null,
    records: null,
    highWatermark: -1,
    logStartOffset: -1,
  };
}
