/** OffsetFetch: what is committed, of all partitions or of some. */
import { ErrorCode } from '../error_code.gen.ts';
import type { OffsetFetchReply, OffsetFetchReplyTopic, OffsetFetchRequest } from './group_api.ts';
import type { GroupOffsets } from './group_offsets.ts';
import type { OffsetCommitValue } from './group_records.ts';

/** The uuid of zeros. */
const noTopicId = 'AAAAAAAAAAAAAAAAAAAAAA';

type Partition = OffsetFetchReplyTopic['partitions'][number];

/** `offsets` is undefined if there is no such group, or one without offsets: then there are none, which is no error. */
export function fetchOffsets(
  offsets: GroupOffsets | undefined,
  { groupId, topics }: OffsetFetchRequest,
): OffsetFetchReply {
  const found =
    topics === null
      ? allTopics(offsets)
      : topics.map(({ name, topicId, partitionIndexes }) => ({
          name,
          topicId,
          partitions: partitionIndexes.map((partition) =>
            entry(partition, ofTopic(offsets?.get(name, partition), topicId)),
          ),
        }));
  return { groupId, errorCode: ErrorCode.NONE, topics: found };
}

/** Not an offset of a topic of the same name that was there before. Both ids may be missing: then the name counts. */
function ofTopic(value: OffsetCommitValue | undefined, topicId: string) {
  const isOther =
    value !== undefined &&
    topicId !== noTopicId &&
    value.topicId !== noTopicId &&
    value.topicId !== topicId;
  return isOther ? undefined : value;
}

function allTopics(offsets: GroupOffsets | undefined): OffsetFetchReplyTopic[] {
  const found: OffsetFetchReplyTopic[] = [];
  for (const [name, stored] of offsets?.topics ?? []) {
    const partitions: Partition[] = [];
    let topicId = '';
    for (const [partition, value] of stored) {
      partitions.push(entry(partition, value));
      topicId = value.topicId;
    }
    found.push({ name, topicId, partitions });
  }
  return found;
}

function entry(partitionIndex: number, value: OffsetCommitValue | undefined): Partition {
  return {
    partitionIndex,
    committedOffset: value?.offset ?? -1n,
    committedLeaderEpoch: value?.leaderEpoch ?? -1,
    metadata: value?.metadata ?? '',
    errorCode: ErrorCode.NONE,
  };
}
