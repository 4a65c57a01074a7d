/** OffsetCommit: who may commit, and when it is answered. */
import { ErrorCode } from '../error_code.gen.ts';
import { type ClassicGroup, ClassicState } from './classic_group.ts';
import { checkGeneration } from './classic_membership.ts';
import { restartSession } from './classic_rebalance.ts';
import type { CoordinatorRuntime } from './coordinator_runtime.ts';
import type { OffsetCommitReply, OffsetCommitRequest } from './group_api.ts';
import type { GroupOffsets } from './group_offsets.ts';
import type { OffsetCommitKey, OffsetCommitValue } from './group_records.ts';

/**
 * Whether a classic group takes the commit; NONE for yes. Without members anybody may commit; with members only they may,
 * in their generation. A commit is a sign of life.
 */
export function checkClassicCommit(
  runtime: CoordinatorRuntime,
  group: ClassicGroup,
  request: OffsetCommitRequest,
): ErrorCode {
  const { generationIdOrMemberEpoch: generationId, memberId, groupInstanceId } = request;
  if (group.state === ClassicState.dead) return ErrorCode.COORDINATOR_NOT_AVAILABLE;
  if (!runtime.keeps('commits from members only')) return ErrorCode.NONE;
  if (generationId < 0 && group.state === ClassicState.empty) return ErrorCode.NONE;
  if (generationId < 0 && memberId === '' && groupInstanceId === null)
    return ErrorCode.UNKNOWN_MEMBER_ID;
  const { groupId } = request;
  const error = checkGeneration(runtime, group, {
    groupId,
    generationId,
    memberId,
    groupInstanceId,
  });
  if (error !== ErrorCode.NONE) return error;
  // What the member owns in this generation is not known yet, so what it has read belongs to the one before.
  if (group.state === ClassicState.completingRebalance) return ErrorCode.REBALANCE_IN_PROGRESS;
  const member = group.members.get(memberId);
  if (member !== undefined) restartSession(runtime, member);
  return ErrorCode.NONE;
}

/** Says of each partition why it is refused, NONE for not. */
export type PartitionCheck = (
  topic: OffsetCommitRequest['topics'][number],
  partition: number,
) => ErrorCode;

/** Stores what is not refused and answers once that is committed. */
export function storeCommit(
  runtime: CoordinatorRuntime,
  offsets: GroupOffsets,
  token: number,
  request: OffsetCommitRequest,
  check: PartitionCheck = () => ErrorCode.NONE,
): void {
  const accepted: { readonly key: OffsetCommitKey; readonly value: OffsetCommitValue }[] = [];
  const topics = request.topics.map((topic) => {
    const partitions = topic.partitions.map((partition) => {
      const { partitionIndex, committedMetadata } = partition;
      // Kafka counts UTF-16 units, whatever the setting's name says.
      const isTooLarge = (committedMetadata ?? '').length > runtime.options.offsetMetadataMaxBytes;
      const errorCode = isTooLarge
        ? ErrorCode.OFFSET_METADATA_TOO_LARGE
        : check(topic, partitionIndex);
      if (errorCode === ErrorCode.NONE) {
        const key = { group: request.groupId, topic: topic.name, partition: partitionIndex };
        accepted.push({ key, value: commitValue(runtime, request, topic.topicId, partition) });
      }
      return { partitionIndex, errorCode };
    });
    return { name: topic.name, topicId: topic.topicId, partitions };
  });
  if (accepted.length === 0) {
    runtime.reply(token, { api: 'OffsetCommit', body: { topics } });
    return;
  }
  for (const { key } of accepted) offsets.begin(key);
  const records = accepted.map((entry) => ({ type: 'OffsetCommit' as const, ...entry }));
  runtime.append(records, {
    committed: () => {
      for (const { key, value } of accepted) {
        offsets.end(key);
        offsets.apply(key, value);
      }
      runtime.reply(token, { api: 'OffsetCommit', body: { topics } });
    },
    failed: (error) => {
      for (const { key } of accepted) offsets.end(key);
      runtime.reply(token, { api: 'OffsetCommit', body: withError({ topics }, error) });
    },
  });
}

function commitValue(
  runtime: CoordinatorRuntime,
  { retentionTimeMs }: OffsetCommitRequest,
  topicId: string,
  partition: OffsetCommitRequest['topics'][number]['partitions'][number],
): OffsetCommitValue {
  const commitTimestamp = BigInt(Math.floor(runtime.wallMs));
  return {
    offset: partition.committedOffset,
    leaderEpoch: partition.committedLeaderEpoch,
    metadata: partition.committedMetadata ?? '',
    commitTimestamp,
    expireTimestamp: retentionTimeMs < 0n ? -1n : commitTimestamp + retentionTimeMs,
    topicId,
  };
}

function withError({ topics }: OffsetCommitReply, error: ErrorCode): OffsetCommitReply {
  // Kafka's translation: the client cannot make the batch smaller by trying again.
  const code =
    error === ErrorCode.UNKNOWN_SERVER_ERROR ? ErrorCode.INVALID_COMMIT_OFFSET_SIZE : error;
  return {
    topics: topics.map((topic) => ({
      ...topic,
      partitions: topic.partitions.map(({ partitionIndex, errorCode }) => ({
        partitionIndex,
        errorCode: errorCode === ErrorCode.NONE ? code : errorCode,
      })),
    })),
  };
}
