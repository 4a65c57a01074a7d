/**
 * What shards ask each other outside of the data path: one line for each call. Which thread serves it, and when its
 * answer is durable, is said where its types are.
 */
import type { GroupReply, ListGroupsReply, ListGroupsRequest } from '../engine/groups/group_api.ts';
import type { ThreadCalls } from '../engine/thread/calls.ts';
import type { GroupRequestCall } from './groups/group_coordinators.ts';

export interface DeleteRecordsCall {
  readonly topicId: string;
  readonly partition: number;
  /** First offset to keep; −1 for the high watermark. */
  readonly offset: number;
}

export interface ShardCallTypes {
  'group.request': { request: GroupRequestCall; reply: GroupReply };
  'group.list': { request: ListGroupsRequest; reply: ListGroupsReply };
  'partition.deleteRecords': {
    request: DeleteRecordsCall;
    reply: { readonly errorCode: number; readonly lowWatermark: number };
  };
}

export type ShardCalls = ThreadCalls<ShardCallTypes>;
