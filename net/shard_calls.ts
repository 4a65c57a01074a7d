/**
 * What shards ask each other outside of the data path: one line for each call. Which thread serves it, and when its
 * answer is durable, is said where its types are.
 */
import type { ThreadCalls } from '../engine/thread/calls.ts';
import type { LogDirUse, LogDirUseRequest } from './log_dir_use.ts';
import type { ProducersAnswer, ProducersRequest } from './partition_producers.ts';

export interface DeleteRecordsCall {
  readonly topicId: string;
  readonly partition: number;
  /** First offset to keep; −1 for the high watermark. */
  readonly offset: number;
}

export interface ShardCallTypes {
  'logDirs.use': { request: LogDirUseRequest; reply: readonly LogDirUse[] };
  'partition.producers': { request: ProducersRequest; reply: ProducersAnswer };
  'partition.deleteRecords': {
    request: DeleteRecordsCall;
    reply: { readonly errorCode: number; readonly lowWatermark: number };
  };
}

export type ShardCalls = ThreadCalls<ShardCallTypes>;
