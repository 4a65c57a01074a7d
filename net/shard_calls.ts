/**
 * What shards ask each other outside of the data path: one line for each call. Which thread serves it, and when its
 * answer is durable, is said where its types are.
 */
import type { ErrorCode } from '../engine/error_code.gen.ts';
import type { GroupReply, ListGroupsReply, ListGroupsRequest } from '../engine/groups/group_api.ts';
import type { ThreadCalls } from '../engine/thread/calls.ts';
import type { GroupRequestCall } from './groups/group_coordinators.ts';
import type { LogDirUse, LogDirUseRequest } from './log_dir_use.ts';
import type { ProducersAnswer, ProducersRequest } from './partition_producers.ts';
import type { GroupBehind, GroupsBehindCall } from './retention/loss_warnings.ts';

export interface DeleteRecordsCall {
  readonly topicId: string;
  readonly partition: number;
  /** First offset to keep; −1 for the high watermark. */
  readonly offset: number;
}

export interface DeleteRecordsReply {
  readonly errorCode: ErrorCode;
  /** The partition's log start offset; −1 with an error. */
  readonly lowWatermark: number;
}

export interface ShardCallTypes {
  'group.request': { request: GroupRequestCall; reply: GroupReply };
  'group.list': { request: ListGroupsRequest; reply: ListGroupsReply };
  'logDirs.use': { request: LogDirUseRequest; reply: readonly LogDirUse[] };
  'partition.producers': { request: ProducersRequest; reply: ProducersAnswer };
  'partition.deleteRecords': {
    request: DeleteRecordsCall;
    reply: DeleteRecordsReply;
  };
  'groups.behind': { request: GroupsBehindCall; reply: readonly GroupBehind[] };
}

export type ShardCalls = ThreadCalls<ShardCallTypes>;
